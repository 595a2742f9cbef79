/* assay nodes restore: what an agent that is gone has left changed is put back. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/controls.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>

enum { FILES_NAMED_MAX = 4 }; /* of a node, in its failure; --json names all */

static void report_outcome(struct report_section *to, const char *outcome, const char *whose) {
    report_text(to, "outcome", NULL, outcome, true);
    if (whose)
        report_text(to, "of", NULL, whose, true);
}

static const char held_advice[] = "whose agent is there; --force takes it back all the same";

/* ---- with --dry-run */

static void report_state(struct report_section *to, const struct node_control_state *state) {
    report_outcome(to,
                   !state->holder        ? "nothing"
                   : state->holder_alive ? "held"
                                         : "left over",
                   state->holder);
    if (!state->holder)
        report_note(to, REPORT_LINE, "nothing to restore: no control is set by anyone");
    else if (state->holder_alive)
        report_note(to, REPORT_LINE, "held by %s, %s", state->holder, held_advice);
    else
        report_note(to, REPORT_LINE, "left changed by %s, whose agent is gone", state->holder);
}

/* Only shows who has set controls on each node; nothing is restored. */
static int show_holders(struct nodes *nodes, struct failure *failure) {
    struct node_control_state *states = NULL;
    int r = node_controls_show(nodes->group, &states, &nodes->failures, failure);
    nodes_report_sections(nodes);
    for (size_t i = 0; r == 0 && i < node_group_count(nodes->group); i++)
        if (nodes->failures[i].code == 0)
            report_state(nodes->sections[i], &states[i]);
        else
            report_outcome(nodes->sections[i], "failed", NULL);
    node_control_states_free(states, node_group_count(nodes->group));
    return r;
}

/* ---- without */

/* Adds a row for each file that could not be restored, and sets RET: "3 files could not be put back: turbo:
 * /sys/...: expected '0', found '1' (EPERM); ...". */
static void report_different(struct report_section *to, const struct node_change *change,
                             struct failure *ret) {
    static const struct column columns[] = {{.name = "control", .detail = true},
                                            {.name = "path", .detail = true},
                                            {.name = "wanted", .detail = true},
                                            {.name = "found", .detail = true},
                                            {.name = "error", .detail = true}};
    struct report_table *table = report_table(to, "different", NULL, columns, 5);
    cleanup_free char *lines = xstrdup(change->different.bytes);
    cleanup(text_clear) struct text text;
    text_init(&text, FAILURE_TEXT_SIZE);
    size_t count = 0;
    for (char *at = lines, *line; (line = tool_line_next(&at)); count++) {
        const char *fields[5];
        for (size_t i = 0; i < 5; i++) {
            fields[i] = tool_field_next(&line);
            report_cell_text(table, i == 4 && !*fields[i] ? NULL : fields[i]);
        }
        if (count < FILES_NAMED_MAX)
            text_printf(&text, "%s%s: %s: expected '%.100s', found '%.100s'%s%s%s", count ? "; " : ": ",
                        fields[0], fields[1], fields[2], fields[3], *fields[4] ? " (" : "", fields[4],
                        *fields[4] ? ")" : "");
    }
    if (change->files_different > 0 || count > 0)
        failure_set(ret, -EIO, "%" PRIu64 " file%s could not be put back%s", change->files_different,
                    change->files_different == 1 ? "" : "s", text.bytes);
}

/* Adds what was restored on a node. Files that could not be set back are the node's failure, RET. */
static void report_restored(struct report_section *to, const struct node_change *change,
                            struct failure *ret) {
    uint64_t written = change->files_written;
    bool is_different = change->files_different > 0 || change->different.length > 0;
    report_outcome(to, is_different ? "different" : "restored", change->restored);
    report_number(to, "files_written", NULL, (double)written, NULL, 0, true);
    report_number(to, "files_different", NULL, (double)change->files_different, NULL, 0, true);
    report_different(to, change, ret);
    if (written == 0)
        report_note(to, REPORT_LINE, "nothing differed from what %s had kept", change->restored);
    else
        report_note(to, REPORT_LINE, "put back what %s had changed: %" PRIu64 " file%s written",
                    change->restored, written, written == 1 ? "" : "s");
}

/* Adds what was restored on a node. Files that could not be, and controls that somebody holds, are the node's
 * failure. */
static void report_change(struct report_section *to, const struct node_change *change, struct failure *ret) {
    if (change->restored) {
        report_restored(to, change, ret);
    } else if (change->held) {
        report_outcome(to, "held", change->held);
        report_note(to, REPORT_LINE, "left alone: held by %s, %s", change->held, held_advice);
        failure_set(ret, -EBUSY, "held by %s, whose agent is there", change->held);
    } else {
        report_outcome(to, "nothing", NULL);
        report_text(to, "why", NULL, change->nothing, true);
        report_note(to, REPORT_LINE, "nothing to do: %s", change->nothing);
    }
}

/* Restores the controls on all nodes. FORCE: also those whose agent still runs. */
static int restore(struct nodes *nodes, bool force, struct failure *failure) {
    size_t count = node_group_count(nodes->group);
    cleanup_free struct node_change *changes = xcalloc(count + 1, sizeof *changes);
    for (size_t i = 0; i < count; i++)
        node_change_init(&changes[i]);
    int r = node_controls_restore(nodes->group, NULL, !force, changes, &nodes->failures, failure);
    nodes_report_sections(nodes);
    for (size_t i = 0; i < count; i++) {
        if (r == 0 && nodes->failures[i].code == 0)
            report_change(nodes->sections[i], &changes[i], &nodes->failures[i]);
        else if (r == 0)
            report_outcome(nodes->sections[i], "failed", NULL);
        node_change_clear(&changes[i]);
    }
    return r;
}

int nodes_restore(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure) {
    if (verb_switch(arguments, "--dry-run"))
        return show_holders(nodes, failure);
    return restore(nodes, verb_switch(arguments, "--force"), failure);
}
