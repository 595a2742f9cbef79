/* results/missing.csv: the units that were planned and are not done, and why. Written as the run is sealed.
 */
#include "engine/run/run-state.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/run/campaign/placement.h"
#include "engine/run/nodes/out.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PENDING_MOST = 1 << 20 }; /* bytes that wait in memory */

struct missing {
    struct run *run;
    struct append_file *file; /* NULL: nothing was missing yet */
    uint64_t lines;
    bool *current; /* a place of the ledger: the nodes have it now */
    bool *lost;    /* its node is out of the run */
    bool *whole;   /* ... or came late: blocks that are over may be missing too */
    size_t place_count;
};

static void clear(struct missing *missing) {
    append_file_close(missing->file);
    free(missing->current);
    free(missing->lost);
    free(missing->whole);
}

/* ---- Which -----------------------------------------------------------------------------------------------
 */

static int mark_node(struct missing *missing, const struct run_node *node, bool mark) {
    struct run *run = missing->run;
    bool shares = node->state != NODE_SPARE && node->state != NODE_REPLACED;
    size_t count = shares ? placement_count(run, node) : 0;
    for (size_t i = 0; i < count; i++) {
        size_t place = placement_place(run, node, i);
        if (place == SIZE_MAX)
            return -ENOMEM;
        if (mark) {
            missing->current[place] = true;
            missing->lost[place] = node->out;
            missing->whole[place] = node->state != NODE_IN;
        }
    }
    return 0;
}

/* A run that ended early may not have asked the ledger for all places yet. */
static int find_places(struct missing *missing) {
    struct run *run = missing->run;
    int r = 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        r = mark_node(missing, &run->nodes[i], false);
    missing->place_count = ledger_place_count(run->ledger);
    missing->current = calloc(missing->place_count + 1, sizeof *missing->current);
    missing->lost = calloc(missing->place_count + 1, sizeof *missing->lost);
    missing->whole = calloc(missing->place_count + 1, sizeof *missing->whole);
    if (!missing->current || !missing->lost || !missing->whole)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        r = mark_node(missing, &run->nodes[i], true);
    return r;
}

/* Blocks that are over have been measured on the cores that the nodes had then. */
static bool is_missing(const struct missing *missing, size_t place, size_t position) {
    const struct run *run = missing->run;
    if (ledger_is_done(run->ledger, place, position) || settling_leaves_out(run, position))
        return false;
    return (missing->current[place] && (position >= run->reached || missing->whole[place])) ||
           ledger_has_failed(run->ledger, place, position);
}

/* ---- Why -------------------------------------------------------------------------------------------------
 */

static const char *find_why(const struct missing *missing, size_t place, size_t position) {
    static const char *const interruptions[] = {[RUN_GOES_ON] = "stopped",
                                                [RUN_INTERRUPTED] = "interrupted",
                                                [RUN_CHECKPOINT] = "checkpoint",
                                                [RUN_DEADLINE] = "deadline"};
    const struct run *run = missing->run;
    if (ledger_has_failed(run->ledger, place, position))
        return "failed";
    return missing->lost[place] ? "lost" : interruptions[run->interrupted];
}

/* ---- The table -------------------------------------------------------------------------------------------
 */

static int open_table(struct missing *missing, const char *path, struct failure *failure) {
    int r = append_file_create(path, &missing->file, failure);
    if (r == 0 && text_append_string(&missing->file->pending, "row,repetition,order,node,core,why\n") < 0)
        r = failure_memory(failure);
    return r;
}

static int append_line(struct missing *missing, size_t place, size_t position, struct failure *failure) {
    const struct run *run = missing->run;
    const struct design_order *order = run->plan->order;
    const char *node = ledger_place_node(run->ledger, place), *core = ledger_place_core(run->ledger, place);
    const char *why = find_why(missing, place, position);
    struct text *text = &missing->file->pending;
    int r = csv_append_int64(text, true, (int64_t)design_order_row(order, position) + 1);
    r = r < 0 ? r : csv_append_int64(text, false, (int64_t)design_order_repetition(order, position) + 1);
    r = r < 0 ? r : csv_append_int64(text, false, (int64_t)position + 1);
    r = r < 0 ? r : csv_append_field(text, false, node, strlen(node));
    r = r < 0 ? r : csv_append_field(text, false, core, strlen(core));
    r = r < 0 ? r : csv_append_field(text, false, why, strlen(why));
    r = r < 0 ? r : text_append_character(text, '\n');
    missing->lines++;
    if (r < 0)
        return failure_memory(failure);
    return text->length < PENDING_MOST ? 0 : append_file_commit(missing->file, failure);
}

static int write_table(struct missing *missing, const char *path, struct failure *failure) {
    size_t positions = plan_positions(missing->run->plan);
    int r = find_places(missing) < 0 ? failure_memory(failure) : 0;
    for (size_t place = 0; r == 0 && place < missing->place_count; place++)
        for (size_t position = 0; r == 0 && position < positions; position++) {
            if (!is_missing(missing, place, position))
                continue;
            if (!missing->file)
                r = open_table(missing, path, failure);
            if (r == 0)
                r = append_line(missing, place, position, failure);
        }
    return r == 0 && missing->file ? append_file_commit(missing->file, failure) : r;
}

int run_record_missing(struct run *run, uint64_t *ret, struct failure *failure) {
    cleanup(clear) struct missing missing = {.run = run};
    cleanup_free char *path = run_path(run, "results/missing.csv");
    if (!path)
        return failure_memory(failure);
    if (unlink(path) < 0 && errno != ENOENT) /* of an earlier part, or try */
        return failure_set(failure, -errno, "cannot remove '%s': %s", path, strerror(errno));
    int r = write_table(&missing, path, failure);
    if (r == 0)
        r = run_record_columns(run, missing.lines > 0, failure);
    if (r < 0)
        return r;
    /* It ended before anybody counted. */
    if (run->units_planned == 0)
        run->units_planned = run->units->done + missing.lines;
    *ret = missing.lines;
    return 0;
}
