/* results/missing.csv: the units that were planned and are not done, and why. Written as the run is sealed.
 */
#include "archive-format/layout.h"
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/nodes/placement.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PENDING_MAX = 1 << 20 }; /* bytes that wait in memory */

/* The state while results/missing.csv is written. */
struct missing {
    struct run *run;
    struct append_file *file; /* NULL: nothing was missing yet */
    uint64_t lines;
    const struct run_node **nodes; /* for each place of the ledger the node that has it now; NULL: none */
    size_t place_count;
};

static void clear(struct missing *missing) {
    append_file_close(missing->file);
    free(missing->nodes);
}

/* ---- Which -----------------------------------------------------------------------------------------------
 */

/* The number of places (lanes) of NODE in the ledger; 0 for nodes that were never used or were replaced. */
static size_t count_places(const struct run *run, const struct run_node *node) {
    return node->state == NODE_SPARE || node->state == NODE_REPLACED ? 0 : placement_count(&run->set, node);
}

/* Finds which node has each place of the ledger. A run that ended early may not have registered all places;
 * that is done first. */
static void find_places(struct missing *missing) {
    struct run *run = missing->run;
    /* A run that ended early may not have asked the ledger for all places yet. */
    for (const struct run_node *node = run->set.items; node < run->set.items + run->set.count; node++)
        for (size_t i = 0; i < count_places(run, node); i++)
            placement_place(&run->set, node, i);
    missing->place_count = ledger_place_count(run->record.ledger);
    missing->nodes = xcalloc(missing->place_count + 1, sizeof *missing->nodes);
    for (const struct run_node *node = run->set.items; node < run->set.items + run->set.count; node++)
        for (size_t i = 0; i < count_places(run, node); i++)
            missing->nodes[placement_place(&run->set, node, i)] = node;
}

/* Was the unit at POSITION of the order to be measured at PLACE, and is it not done? Positions of blocks that
 * are over count only for nodes that are out or came late: other nodes have measured them on the cores that
 * they had then. */
static bool is_missing(const struct missing *missing, size_t place, size_t position) {
    const struct run *run = missing->run;
    const struct run_node *node = missing->nodes[place];
    if (ledger_is_done(run->record.ledger, place, position) ||
        settling_skips(&run->progress.settling, position))
        return false;
    if (ledger_has_failed(run->record.ledger, place, position))
        return true;
    return node && (position >= run->progress.reached || node->state != NODE_IN);
}

/* ---- Why -------------------------------------------------------------------------------------------------
 */

/* Why the unit is missing, as the word in the column `why`. */
static const char *find_why(const struct missing *missing, size_t place, size_t position) {
    static const char *const interruptions[] = {[RUN_NOT_INTERRUPTED] = "stopped",
                                                [RUN_INTERRUPTED] = "interrupted",
                                                [RUN_CHECKPOINT] = "checkpoint",
                                                [RUN_DEADLINE] = "deadline",
                                                [RUN_REVOKED] = "revoked"};
    const struct run *run = missing->run;
    if (ledger_has_failed(run->record.ledger, place, position))
        return "failed";
    const struct run_node *node = missing->nodes[place];
    return node && node->left_reason ? "lost" : interruptions[run->record.interrupted];
}

/* ---- The table -------------------------------------------------------------------------------------------
 */

static void append_header(struct text *text) {
    for (size_t i = 0; i < TABLES_MISSING_COLUMNS; i++)
        text_printf(text, "%s,", results_column_describe(tables_missing_columns[i])->name);
    text_append_string(text, "why\n");
}

/* Appends the line of one missing unit, and writes pending lines to disk when there are PENDING_MAX bytes. */
static int append_line(struct missing *missing, size_t place, size_t position, struct failure *failure) {
    const struct run *run = missing->run;
    const struct design_order *order = run->set.plan->order;
    const char *node = ledger_place_node(run->record.ledger, place),
               *core = ledger_place_core(run->record.ledger, place);
    struct text *text = &missing->file->pending;
    const char *why = find_why(missing, place, position);
    const struct results_row line = {.row = (int64_t)design_order_row(order, position) + 1,
                                     .repetition = (int64_t)design_order_repetition(order, position) + 1,
                                     .order = (int64_t)position + 1,
                                     .node = {node, strlen(node)},
                                     .core = {core, strlen(core)}};
    struct text_mark mark = text_mark(text);
    for (size_t i = 0; i < TABLES_MISSING_COLUMNS; i++)
        results_row_append(text, &line, tables_missing_columns[i], tables_missing_columns[i] + 1);
    text_printf(text, ",%s\n", why);
    if (text_keep(text, mark) < 0)
        return failure_memory(failure);
    missing->lines++;
    return text->length < PENDING_MAX ? 0 : append_file_commit(missing->file, failure);
}

/* Writes a line for each missing unit. The file is made with the first of them; without any there is no file.
 */
static int write_table(struct missing *missing, const char *path, struct failure *failure) {
    size_t positions = plan_positions(missing->run->set.plan);
    int r = 0;
    find_places(missing);
    for (size_t place = 0; place < missing->place_count; place++)
        for (size_t position = 0; position < positions; position++) {
            if (!is_missing(missing, place, position))
                continue;
            if (!missing->file) {
                r = append_file_create(path, &missing->file, failure);
                if (r == 0)
                    append_header(&missing->file->pending);
            }
            if (r == 0)
                r = append_line(missing, place, position, failure);
            if (r < 0)
                return r;
        }
    return missing->file ? append_file_commit(missing->file, failure) : 0;
}

int run_record_missing(struct run *run, uint64_t *ret, struct failure *failure) {
    cleanup(clear) struct missing missing = {.run = run};
    cleanup_free char *path = record_path(&run->record, ARCHIVE_MISSING);
    if (unlink(path) < 0 && errno != ENOENT) /* of an earlier part, or try */
        return failure_set(failure, -errno, "cannot remove '%s': %s", path, strerror(errno));
    int r = write_table(&missing, path, failure);
    if (r < 0)
        return r;
    if (run->record.units_planned == 0) /* it ended before its units were counted */
        run->record.units_planned = run->record.units->done + missing.lines;
    *ret = missing.lines;
    return 0;
}
