#include "engine/run/record/story.h"

#include "engine/design/order.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/run/record/ledger.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <search.h>
#include <stdlib.h>
#include <string.h>

enum {
    NODES_MOST = 1 << 20,
    NAME_SIZE = 256, /* of a node or a core; longer ones are cut */
    SENTENCE_SIZE = FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE,
};
/* Bits for units, one a position of the order in one place: what a journal may make us keep. */
#define UNIT_BITS_MOST (UINT64_C(1) << 30)

/* ---- Nodes ------------------------------------------------------------------------------------- */

static int compare_nodes(const void *a, const void *b) {
    return strcmp(((const struct run_status_node *)a)->name, ((const struct run_status_node *)b)->name);
}

static void keep_name(void *node) {
    (void)node; /* it is the status's */
}

static void forget_names(struct run_story *story) {
    tdestroy(story->names, keep_name);
    story->names = NULL;
}

static int add_node(struct run_story *story, const char *name, struct run_status_node **ret) {
    struct run_status *status = story->status;
    size_t capacity = status->node_count;
    if ((capacity & (capacity - 1)) == 0) { /* 0 or a power of two: full */
        int r = list_reserve(&status->nodes, &capacity, capacity ? 2 * capacity : 1, sizeof *status->nodes,
                             NODES_MOST);
        if (r < 0)
            return r;
    }
    struct run_status_node *node = calloc(1, sizeof *node);
    if (!node || !(node->name = strdup(name)) || !tsearch(node, &story->names, compare_nodes)) {
        if (node)
            free(node->name);
        free(node);
        return -ENOMEM;
    }
    status->nodes[status->node_count++] = node;
    *ret = node;
    return 0;
}

/* The node that the member KEY names, which is made if it is new; NULL when there is no such member. */
static int find_node(struct run_story *story, const struct journal_entry *entry, const char *key,
                     struct run_status_node **ret) {
    char name[NAME_SIZE];
    *ret = NULL;
    if (!journal_entry_text(entry, key, name, sizeof name))
        return 0;
    struct run_status_node wanted = {.name = name};
    struct run_status_node *const *found = tfind(&wanted, &story->names, compare_nodes);
    if (!found)
        return add_node(story, name, ret);
    *ret = *found;
    return 0;
}

static int say_why(struct run_status_node *node, const struct journal_entry *entry) {
    char sentence[SENTENCE_SIZE];
    if (!journal_entry_text(entry, "sentence", sentence, sizeof sentence))
        return 0;
    free(node->sentence);
    node->sentence = strdup(sentence);
    return node->sentence ? 0 : -ENOMEM;
}

static int take_node(struct run_story *story, const struct journal_entry *entry) {
    static const struct {
        const char *event, *key;
        enum run_node_condition condition;
    } events[] = {{"node", "name", RUN_NODE_IN},         {"link-broken", "node", RUN_NODE_OUT_OF_REACH},
                  {"link-resumed", "node", RUN_NODE_IN}, {"node-lost", "node", RUN_NODE_LOST},
                  {"node-out", "node", RUN_NODE_OUT},    {"node-replaced", "node", RUN_NODE_OUT},
                  {"slow-node", "node", RUN_NODE_IN}};
    for (size_t i = 0; i < sizeof events / sizeof *events; i++) {
        if (!journal_entry_is(entry, events[i].event))
            continue;
        struct run_status_node *node, *other;
        int r = find_node(story, entry, events[i].key, &node);
        if (r < 0 || !node)
            return r;
        if (journal_entry_is(entry, "slow-node"))
            node->slow = true;
        else if (node->condition < events[i].condition || node->condition == RUN_NODE_OUT_OF_REACH)
            node->condition = events[i].condition;
        r = say_why(node, entry);
        return r < 0 ? r : find_node(story, entry, "by", &other);
    }
    return 0;
}

static void forget_nodes(struct run_story *story) {
    struct run_status *status = story->status;
    forget_names(story);
    for (size_t i = 0; i < status->node_count; i++) {
        free(status->nodes[i]->name);
        free(status->nodes[i]->sentence);
        free(status->nodes[i]);
    }
    free(take_pointer(status->nodes));
    status->node_count = 0;
}

/* ---- Units ------------------------------------------------------------------------------------- */

static void add_sample(struct run_story *story, int64_t monotonic_ns) {
    story->samples[story->sample_count++ % STORY_SAMPLES] = (struct story_sample){monotonic_ns, story->units};
}

static void begin_measuring(struct run_story *story, int64_t monotonic_ns) {
    story->measuring = true;
    story->units = 0;
    story->sample_count = 0;
    story->last_unit_ns = -1;
    add_sample(story, monotonic_ns > 0 ? monotonic_ns : 0);
}

/* A unit has ended in this part. Gates may want it measured again, which brings the end no nearer. */
static void count_unit(struct run_story *story, int64_t monotonic_ns, int64_t attempt) {
    if (!story->measuring || monotonic_ns < 0 || attempt > story->status->part)
        return;
    const struct story_sample *last = &story->samples[(story->sample_count - 1) % STORY_SAMPLES];
    if (monotonic_ns <
        last->monotonic_ns) { /* no clock of one part does that: believe what comes from now on */
        begin_measuring(story, monotonic_ns);
        return;
    }
    story->units++;
    story->last_unit_ns = monotonic_ns;
    if (monotonic_ns - last->monotonic_ns >= STORY_SAMPLE_NS)
        add_sample(story, monotonic_ns);
}

double run_story_rate(const struct run_story *story) {
    if (story->sample_count == 0 || story->last_unit_ns < 0)
        return NAN;
    size_t first = story->sample_count > STORY_SAMPLES ? story->sample_count - STORY_SAMPLES : 0;
    const struct story_sample *oldest = &story->samples[first % STORY_SAMPLES];
    double seconds = (double)(story->last_unit_ns - oldest->monotonic_ns) / 1e9;
    uint64_t units = story->units - oldest->units;
    return seconds > 0 && units > 0 ? (double)units / seconds : NAN;
}

static bool is_done(const struct journal_member *member) {
    return member->length == 6 && memcmp(member->value, "\"done\"", 6) == 0;
}

static int take_unit(struct run_story *story, const struct journal_entry *entry) {
    struct run_status *status = story->status;
    struct journal_member member;
    int64_t order = 0, attempt = 1;
    bool flagged = false, done = false;
    for (size_t at = 0; journal_entry_next(entry, &at, &member);) {
        if (journal_member_is(&member, "order"))
            journal_member_integer(&member, &order);
        else if (journal_member_is(&member, "attempt"))
            journal_member_integer(&member, &attempt);
        else if (journal_member_is(&member, "flags"))
            flagged = member.length > 2 && member.value[0] == '"';
        else if (journal_member_is(&member, "status"))
            done = is_done(&member);
        else if (journal_member_is(&member, "sentence"))
            journal_member_text(&member, status->last_error, sizeof status->last_error);
    }
    status->flagged += flagged && done;
    if (order > story->highest_order)
        story->highest_order = order;
    count_unit(story, entry->monotonic_ns, attempt);
    return 0;
}

/* ---- The rest ---------------------------------------------------------------------------------- */

static void take_count(const struct journal_entry *entry, const char *key, uint64_t *ret) {
    int64_t value;
    if (journal_entry_integer(entry, key, &value) && value >= 0)
        *ret = (uint64_t)value;
}

static int take_start(struct run_story *story, const struct journal_entry *entry) {
    struct run_status *status = story->status;
    bool again = journal_entry_is(entry, "run-resumed");
    if (again)
        status->part++; /* what it says counts more */
    journal_entry_integer(entry, "part", &status->part);
    forget_nodes(story);
    story->measuring = false;
    story->sample_count = 0;
    story->sealed[0] = status->phase[0] = status->ended[0] = '\0';
    status->last_error[0] = status->deadline[0] = '\0';
    status->block = 0;
    if (again)
        return 0;
    clock_format(entry->wall_ns, status->started);
    journal_entry_text(entry, "run_id", status->run_id, sizeof status->run_id);
    journal_entry_text(entry, "campaign", status->name, sizeof status->name);
    return 0;
}

static int take_phase(struct run_story *story, const struct journal_entry *entry) {
    struct run_status *status = story->status;
    bool begins = journal_entry_is(entry, "phase-started");
    char phase[sizeof status->phase];
    if (!journal_entry_text(entry, "phase", phase, sizeof phase))
        return 0;
    if (begins)
        memcpy(status->phase, phase, sizeof phase);
    if (strcmp(phase, "measure") == 0 && begins)
        begin_measuring(story, entry->monotonic_ns);
    else if (strcmp(phase, "measure") == 0)
        story->measuring = false;
    return 0;
}

static int take_block(struct run_story *story, const struct journal_entry *entry) {
    struct run_status *status = story->status;
    char how[16];
    if (journal_entry_is(entry, "block-started")) {
        take_count(entry, "block", &status->block);
        return 0;
    }
    status->block = 0;
    status->blocks_done += journal_entry_text(entry, "status", how, sizeof how) && strcmp(how, "done") == 0;
    return 0;
}

static int take_planned(struct run_story *story, const struct journal_entry *entry) {
    struct run_status *status = story->status;
    int64_t units;
    if (journal_entry_integer(entry, "units", &units) && units >= 0) {
        status->is_planned = true;
        status->planned = (uint64_t)units;
    }
    return 0;
}

static int take_error(struct run_story *story, const struct journal_entry *entry) {
    struct run_status *status = story->status;
    journal_entry_text(entry, "sentence", status->last_error, sizeof status->last_error);
    return 0;
}

static int take_deadline(struct run_story *story, const struct journal_entry *entry) {
    int64_t wall_ns;
    if (journal_entry_integer(entry, "wall_ns", &wall_ns))
        clock_format(wall_ns, story->status->deadline);
    return 0;
}

static int take_sealing(struct run_story *story, const struct journal_entry *entry) {
    struct run_status *status = story->status;
    if (journal_entry_text(entry, "status", story->sealed, sizeof story->sealed))
        clock_format(entry->wall_ns, status->ended);
    return 0;
}

int run_story_take(const struct journal_entry *entry, void *context, struct failure *failure) {
    static const struct {
        const char *event;
        int (*take)(struct run_story *story, const struct journal_entry *entry);
    } events[] = {{"unit", take_unit},           {"block-started", take_block}, {"block-ended", take_block},
                  {"phase-started", take_phase}, {"phase-ended", take_phase},   {"run-started", take_start},
                  {"run-resumed", take_start},   {"planned", take_planned},     {"error", take_error},
                  {"deadline", take_deadline},   {"sealing", take_sealing},     {"node", take_node},
                  {"link-broken", take_node},    {"link-resumed", take_node},   {"node-lost", take_node},
                  {"node-out", take_node},       {"node-replaced", take_node},  {"slow-node", take_node}};
    struct run_story *story = context;
    if (story->entries == 0 && !journal_entry_is(entry, "run-started"))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "it does not begin with 'run-started'");
    story->entries++;
    story->last_entry_ns = entry->wall_ns;
    for (size_t i = 0; i < sizeof events / sizeof *events; i++)
        if (journal_entry_is(entry, events[i].event)) {
            int r = events[i].take(story, entry);
            return r < 0 ? failure_set(failure, r, "cannot keep it in memory: %s", strerror(-r)) : 0;
        }
    return 0;
}

void run_story_clear(struct run_story *story) {
    forget_names(story);
}

/* ---- Which units have ended -------------------------------------------------------------------- */

struct count {
    struct ledger *ledger;
    uint64_t positions;
    uint64_t entries; /* that the story knows; a run that goes on writes more meanwhile */
    const char *path;
};

static void free_ledger(struct ledger **ledger) {
    ledger_free(*ledger);
}

static int count_attempt(const struct journal_entry *entry, void *context, struct failure *failure) {
    struct count *count = context;
    if (entry->sequence > count->entries || !journal_entry_is(entry, "unit"))
        return 0;
    char node[NAME_SIZE] = "", core[NAME_SIZE] = "";
    struct journal_member member;
    int64_t order = 0, attempt = 1;
    bool done = false;
    for (size_t at = 0; journal_entry_next(entry, &at, &member);) {
        if (journal_member_is(&member, "order"))
            journal_member_integer(&member, &order);
        else if (journal_member_is(&member, "attempt"))
            journal_member_integer(&member, &attempt);
        else if (journal_member_is(&member, "node"))
            journal_member_text(&member, node, sizeof node);
        else if (journal_member_is(&member, "core"))
            journal_member_text(&member, core, sizeof core);
        else if (journal_member_is(&member, "status"))
            done = is_done(&member);
    }
    if (order < 1 || attempt < 1 || attempt > UINT32_MAX)
        return failure_input(failure, count->path, entry->sequence, 0,
                             "the unit has order %" PRId64 " and attempt %" PRId64 "; expected 1 or more",
                             order, attempt);
    size_t place = ledger_place(count->ledger, node, core);
    if (place == SIZE_MAX)
        return failure_memory(failure);
    if (count->positions * ledger_place_count(count->ledger) > UNIT_BITS_MOST)
        return failure_input(failure, count->path, entry->sequence, 0,
                             "%zu places and %" PRIu64 " positions are more than a run can have",
                             ledger_place_count(count->ledger), count->positions);
    struct ledger_attempt taken = {place, (size_t)order - 1, (unsigned)attempt, done, 0};
    /* Out of range is what was not there when the story was read: another file has its name by now. */
    return ledger_take(count->ledger, &taken) == -ENOMEM ? failure_memory(failure) : 0;
}

int run_story_count_units(const struct run_story *story, const char *path, struct failure *failure) {
    if (story->highest_order > DESIGN_POSITIONS_MOST)
        return failure_input(failure, path, 0, 0, "a unit has order %" PRId64 "; expected at most %d",
                             story->highest_order, DESIGN_POSITIONS_MOST);
    cleanup(free_ledger) struct ledger *ledger = NULL;
    if (ledger_new((size_t)story->highest_order, &ledger) < 0)
        return failure_memory(failure);
    struct count count = {ledger, (uint64_t)story->highest_order, story->entries, path};
    struct journal_end end;
    int r = journal_replay(path, count_attempt, &count, &end, failure);
    if (r < 0)
        return r;
    const struct ledger_totals *totals = ledger_totals(ledger);
    story->status->done = totals->done;
    story->status->failed = totals->failed;
    story->status->repeated = totals->repeated;
    return 0;
}
