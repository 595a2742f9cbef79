/* assay nodes restore: what an agent that is gone has left changed is put back. */
#include "engine/command-line/nodes.h"

#include "engine/command-line/nodes-answers.h"
#include "engine/command-line/nodes-values.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/controls.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TOLD_MAX = 4 }; /* files of a node that are named in its failure; --json names all */

/* What became of a node, or of what lies there, in one word and in words. */
enum outcome { FAILED, NOTHING, LEFT, HELD, RESTORED, DIFFERENT };
static const char *const outcome_names[] = {
    [FAILED] = "failed", [NOTHING] = "nothing",   [LEFT] = "left over",
    [HELD] = "held",     [RESTORED] = "restored", [DIFFERENT] = "different"};

struct restoring {
    struct nodes *nodes;
    size_t count;
    struct node_control_state *states; /* --dry-run */
    struct node_change *changes;
    struct failure *failures;
    enum outcome *outcomes;
};

static void clear_restoring(struct restoring *restoring) {
    node_control_states_free(restoring->states, restoring->count);
    for (size_t i = 0; restoring->changes && i < restoring->count; i++)
        node_change_clear(&restoring->changes[i]);
    free(restoring->changes);
    free(restoring->failures);
    free(restoring->outcomes);
}

/* ---- what became of it */

static enum outcome find_outcome(const struct restoring *restoring, size_t node) {
    if (restoring->failures[node].code < 0)
        return FAILED;
    if (restoring->states) {
        const struct node_control_state *state = &restoring->states[node];
        return !state->holder ? NOTHING : state->holder_alive ? HELD : LEFT;
    }
    const struct node_change *change = &restoring->changes[node];
    if (change->restored)
        return change->files_different > 0 || change->different.length > 0 ? DIFFERENT : RESTORED;
    return change->held ? HELD : NOTHING;
}

/* Of whom. */
static const char *whose(const struct restoring *restoring, size_t node) {
    if (restoring->states)
        return restoring->states[node].holder;
    const struct node_change *change = &restoring->changes[node];
    return change->restored ? change->restored : change->held;
}

static char *sentence_of(const struct restoring *restoring, size_t node) {
    const char *who = whose(restoring, node);
    switch (restoring->outcomes[node]) {
    case NOTHING:
        return text_format("nothing to do: %s", restoring->states ? "nobody has left anything changed"
                                                                  : restoring->changes[node].nothing);
    case LEFT:
        return text_format("left changed by %s, whose agent is gone", who);
    case HELD:
        return text_format("%s by %s, whose agent is there; --force takes it back all the same",
                           restoring->states ? "held" : "left alone: held", who);
    case RESTORED:
    case DIFFERENT: {
        uint64_t written = restoring->changes[node].files_written;
        if (written == 0)
            return text_format("nothing differed from what %s had kept", who);
        return text_format("put back what %s had changed: %" PRIu64 " file%s written", who, written,
                           written == 1 ? "" : "s");
    }
    case FAILED:
        break;
    }
    return NULL;
}

/* ---- what could not be put back */

/* One line of the tool, unescaped in a copy; LINE is what strsep() gave. */
struct different {
    const char *control, *path, *wanted, *found, *error;
};

static struct different parse_different(char *line) {
    struct different different;
    different.control = tool_field_next(&line);
    different.path = tool_field_next(&line);
    different.wanted = tool_field_next(&line);
    different.found = tool_field_next(&line);
    different.error = tool_field_next(&line);
    return different;
}

/* "3 files could not be put back: turbo: /sys/...: expected '0', found '1' (EPERM); ..." */
static int complain(const struct node_change *change, struct failure *ret) {
    cleanup_free char *lines = strdup(change->different.bytes);
    cleanup(text_clear) struct text text;
    text_init(&text, FAILURE_TEXT_SIZE);
    size_t count = 0;
    int r = lines ? 0 : -ENOMEM;
    for (char *at = lines, *line; r == 0 && count < TOLD_MAX && (line = tool_line_next(&at)); count++) {
        struct different different = parse_different(line);
        r = text_printf(&text, "%s%s: %s: expected '%.100s', found '%.100s'%s%s%s", count ? "; " : "",
                        different.control, different.path, different.wanted, different.found,
                        *different.error ? " (" : "", different.error, *different.error ? ")" : "");
    }
    if (r == -ENOMEM)
        return failure_memory(ret);
    return failure_set(ret, -EIO, "%" PRIu64 " file%s could not be put back%s%s", change->files_different,
                       change->files_different == 1 ? "" : "s", count ? ": " : "", text.bytes);
}

/* What could not be put back is a failure of its node, after which it is still known what was done there. */
static int judge(struct restoring *restoring) {
    restoring->outcomes = xcalloc(restoring->count + 1, sizeof *restoring->outcomes);
    for (size_t i = 0; i < restoring->count; i++) {
        restoring->outcomes[i] = find_outcome(restoring, i);
        if (restoring->outcomes[i] == DIFFERENT)
            complain(&restoring->changes[i], &restoring->failures[i]);
    }
    return 0;
}

/* ---- for people */

static int print_text(const struct restoring *restoring, struct failure *failure) {
    cleanup(nodes_table_clear) struct nodes_table table;
    nodes_table_init(&table, restoring->nodes);
    int r = 0;
    for (size_t i = 0; i < restoring->count && r == 0; i++)
        if (restoring->outcomes[i] != FAILED)
            r = nodes_table_add(&table, i, "", sentence_of(restoring, i), failure);
    return r < 0 ? r : nodes_table_print_row(&table, "", failure);
}

/* ---- for programs */

static bool add_different(cJSON *object, const struct node_change *change) {
    cleanup_free char *lines = strdup(change->different.bytes);
    cJSON *array = lines ? json_add_array(object, "different") : NULL;
    bool added = array;
    for (char *at = lines, *line; added && (line = tool_line_next(&at));) {
        struct different different = parse_different(line);
        cJSON *item = json_add_object(array, NULL);
        added = item && json_add_string(item, "control", different.control) &&
                json_add_string(item, "path", different.path) &&
                json_add_string(item, "wanted", different.wanted) &&
                json_add_string(item, "found", different.found) &&
                json_add_string(item, "error", *different.error ? different.error : NULL);
    }
    return added;
}

static bool add_node(cJSON *item, const struct restoring *restoring, size_t node) {
    enum outcome outcome = restoring->outcomes[node];
    bool added = json_add_string(item, "node", node_group_name(restoring->nodes->group, node)) &&
                 json_add_string(item, "outcome", outcome_names[outcome]);
    if (!added || outcome == FAILED)
        return added && json_add_string(item, "failure", restoring->failures[node].text);
    if (outcome == NOTHING)
        return restoring->states || json_add_string(item, "why", restoring->changes[node].nothing);
    added = json_add_string(item, "of", whose(restoring, node));
    if (!added || outcome == LEFT || outcome == HELD)
        return added;
    const struct node_change *change = &restoring->changes[node];
    return json_add_uint64(item, "files_written", change->files_written) &&
           json_add_uint64(item, "files_different", change->files_different) && add_different(item, change);
}

static int print_json(const struct restoring *restoring, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cJSON *array = object ? json_add_array(object, "nodes") : NULL;
    bool added = array;
    for (size_t i = 0; i < restoring->count && added; i++) {
        cJSON *item = json_add_object(array, NULL);
        added = item && add_node(item, restoring, i);
    }
    return added ? nodes_print_json(object, failure) : failure_memory(failure);
}

/* ---- the action */

static int restore(struct restoring *restoring, bool dry, bool force, struct failure *failure) {
    struct node_group *group = restoring->nodes->group;
    if (dry)
        return node_controls_show(group, &restoring->states, &restoring->failures, failure);
    struct node_change *changes = restoring->changes =
        calloc(restoring->count + 1, sizeof *restoring->changes);
    if (!changes)
        return failure_memory(failure);
    for (size_t i = 0; i < restoring->count; i++)
        node_change_init(&changes[i]);
    return node_controls_restore(group, NULL, !force, changes, &restoring->failures, failure);
}

static int restore_all(struct nodes *nodes, bool dry, bool force, bool json, struct failure *failure) {
    cleanup(clear_restoring) struct restoring restoring = {.nodes = nodes,
                                                           .count = node_group_count(nodes->group)};
    nodes_doing(nodes, dry ? "looking" : "restoring");
    int r = restore(&restoring, dry, force, failure);
    nodes_doing(nodes, NULL);
    if (r == 0)
        r = judge(&restoring);
    if (r < 0)
        return r;
    r = json ? print_json(&restoring, failure) : print_text(&restoring, failure);
    return r < 0 ? r : nodes_failures(nodes, restoring.failures, "restoring", failure);
}

int nodes_restore(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(nodes_clear) struct nodes nodes = {0};
    /* Our own agents are not to do it by themselves: what the tool does is told, and nothing else is done. */
    int r = nodes_open(&nodes, arguments, NODES_LEAVE_CONTROLS, failure);
    if (r == 0)
        r = restore_all(&nodes, verb_switch(arguments, "--dry-run"), verb_switch(arguments, "--force"),
                        verb_switch(arguments, "--json"), failure);
    return nodes_close(&nodes, r, failure);
}
