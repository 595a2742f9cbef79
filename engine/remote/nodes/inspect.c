/* Requests to many nodes for their facts, clocks and small files. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/facts.h"
#include "engine/remote/nodes/nodes-private.h"

#include <stdlib.h>

/* Is NODE connected? If not, FAILURE says why. */
static bool is_connected(const struct node_round *round, size_t node, struct failure *failure) {
    return node_group_is_there(round->group, node) ||
           node_group_fail_unconnected(round->group, node, failure) == 0;
}

/* ---- facts */

/* The answers of node_group_inspect(), one a node. */
struct inspection {
    struct node_facts **facts;
    struct failure *failures;
};

static void on_facts(struct agent_link *link, struct node_facts *facts, const struct failure *failure,
                     void *context) {
    (void)link;
    struct node_asked *asked = context;
    struct inspection *inspection = asked->round->context;
    inspection->facts[asked->node] = facts;
    if (failure)
        inspection->failures[asked->node] = *failure;
    node_round_answered(asked);
}

static bool ask_for_facts(struct node_round *round, size_t node, struct node_asked *asked) {
    struct inspection *inspection = round->context;
    struct failure *failure = &inspection->failures[node];
    return is_connected(round, node, failure) &&
           agent_link_inspect(round->group->members[node]->link, on_facts, asked, failure) == 0;
}

static void free_all_facts(const struct node_group *group, struct node_facts **facts) {
    for (size_t i = 0; facts && i < group->count; i++)
        node_facts_free(facts[i]);
    free((void *)facts);
}

int node_group_inspect(struct node_group *group, struct node_facts ***ret, struct failure **ret_failures,
                       struct failure *failure) {
    struct inspection inspection = {.facts = xcalloc(group->count + 1, sizeof *inspection.facts),
                                    .failures = xcalloc(group->count + 1, sizeof *inspection.failures)};
    struct node_round round = {.group = group, .ask = ask_for_facts, .context = &inspection};
    int r = node_round_run(&round, failure);
    if (r < 0) {
        free_all_facts(group, inspection.facts);
        free(inspection.failures);
        return r;
    }
    *ret = inspection.facts;
    *ret_failures = inspection.failures;
    return 0;
}

/* ---- clocks */

static void on_clock(struct agent_link *link, const struct agent_clock *clock, const struct failure *failure,
                     void *context) {
    (void)link;
    struct node_asked *asked = context;
    struct agent_clock *clocks = asked->round->context;
    if (!failure)
        clocks[asked->node] = *clock;
    node_round_answered(asked);
}

static bool ask_for_clock(struct node_round *round, size_t node, struct node_asked *asked) {
    return node_group_is_there(round->group, node) &&
           agent_link_measure_clock(round->group->members[node]->link, AGENT_CLOCK_EXCHANGES, on_clock, asked,
                                    NULL) == 0;
}

/* Few at once, because an answer that waits until others are read has a longer round trip. */
enum { CLOCKS_AT_ONCE = 16 };

int node_group_measure_clocks(struct node_group *group, struct agent_clock **ret, struct failure *failure) {
    cleanup_free struct agent_clock *clocks = xcalloc(group->count + 1, sizeof *clocks);
    struct node_round round = {
        .group = group, .at_once = CLOCKS_AT_ONCE, .ask = ask_for_clock, .context = clocks};
    int r = node_round_run(&round, failure);
    if (r == 0)
        *ret = take_pointer(clocks);
    return r;
}

/* ---- files */

/* A call of node_group_read(). */
struct file_reading {
    const char *const *paths;
    uint64_t limit;
    struct failure *failures;
    node_file_callback *take;
    void *context;
};

static void on_file(struct agent_link *link, size_t path, const char *bytes, size_t length, void *context) {
    (void)link;
    struct node_asked *asked = context;
    struct file_reading *reading = asked->round->context;
    reading->take(asked->node, path, bytes, length, reading->context);
}

static void on_files_end(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    struct node_asked *asked = context;
    struct file_reading *reading = asked->round->context;
    if (failure)
        reading->failures[asked->node] = *failure;
    node_round_answered(asked);
}

static bool ask_for_files(struct node_round *round, size_t node, struct node_asked *asked) {
    struct file_reading *reading = round->context;
    struct failure *failure = &reading->failures[node];
    return is_connected(round, node, failure) &&
           agent_link_read_files(node_group_link(round->group, node), reading->paths, reading->limit, on_file,
                                 on_files_end, asked, failure) == 0;
}

/* Few at once, because the files of a node are in memory until all have come. */
enum { READ_AT_ONCE = 16 };

int node_group_read(struct node_group *group, const char *const *paths, uint64_t limit,
                    node_file_callback *take, void *context, struct failure **ret_failures,
                    struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(group->count + 1, sizeof *failures);
    struct file_reading reading = {
        .paths = paths, .limit = limit, .failures = failures, .take = take, .context = context};
    struct node_round round = {
        .group = group, .at_once = READ_AT_ONCE, .ask = ask_for_files, .context = &reading};
    int r = node_round_run(&round, failure);
    if (r == 0)
        *ret_failures = take_pointer(failures);
    return r;
}
