#include "engine/run/measure/settling.h"

#include "archive-format/layout.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/repeat.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/measure/stopping-rule.h"
#include "engine/run/nodes/placement.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static const struct design_repeat *repeat_of(const struct plan *plan) {
    return &plan->campaign->design->repeat;
}

void settling_init(struct settling *settling, struct run_record *record, const struct plan *plan) {
    *settling = (struct settling){.record = record, .plan = plan};
    if (repeat_of(plan)->wanted)
        settling->rule = stopping_rule_new(repeat_of(plan), plan->design->row_count);
}

void settling_clear(struct settling *settling) {
    stopping_rule_free(take_pointer(settling->rule));
}

/* Refuses `repeat` between nodes where the run has only one node, or more rows times nodes than
 * STOPPING_CELLS_MAX. Other designs pass. */
int settling_check_nodes(const struct node_set *set, struct failure *failure) {
    const struct design_repeat *repeat = repeat_of(set->plan);
    size_t rows = set->plan->design->row_count;
    if (!repeat->wanted || !(repeat->between & DESIGN_BETWEEN_NODE))
        return 0;
    if (repeat->between == DESIGN_BETWEEN_NODE && set->count == 1)
        return repeat_refuse_one_node(set->campaign, failure);
    if (rows <= STOPPING_CELLS_MAX / set->count)
        return 0;
    return failure_input(failure, set->campaign->design->place_file, repeat->place.line, repeat->place.column,
                         "%zu rows on each of %zu nodes are more than the limit of %d for 'repeat' between "
                         "nodes",
                         rows, set->count, STOPPING_CELLS_MAX);
}

int settling_add(struct settling *settling, size_t place, size_t position, const double *responses,
                 struct failure *failure) {
    if (!settling->rule)
        return 0;
    const struct design_order *order = settling->plan->order;
    struct stopping_value value = {
        .row = design_order_row(order, position),
        .repetition = design_order_repetition(order, position),
        .node = ledger_place_node(settling->record->ledger, place),
        .core = ledger_place_core(settling->record->ledger, place),
        .value = responses[settling->plan->repeat_response],
    };
    return stopping_rule_add(settling->rule, &value) < 0 ? failure_memory(failure) : 0;
}

int settling_add_row(const struct results_row *row, void *context, struct failure *failure) {
    struct settling *settling = context;
    const struct plan *plan = settling->plan;
    bool job = plan->campaign->experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    cleanup_free char *node = job ? xstrdup(PLACEMENT_JOB_NODE) : xstrndup(row->node.bytes, row->node.length),
                      *core =
                          job ? xstrdup(PLACEMENT_ALL_CORES) : xstrndup(row->core.bytes, row->core.length);
    struct stopping_value value = {.row = (size_t)(row->row - 1),
                                   .repetition = (size_t)(row->repetition - 1),
                                   .node = node,
                                   .core = core,
                                   .value = NAN};
    if (value.row >= plan->design->row_count || value.repetition >= plan->order->repetitions ||
        (row->picked.length > 0 && !number_parse_double(row->picked.bytes, row->picked.length, &value.value)))
        return -EBADMSG;
    return stopping_rule_add(settling->rule, &value) < 0 ? failure_memory(failure) : 0;
}

bool settling_skips(const struct settling *settling, size_t position) {
    const struct design_order *order = settling->plan->order;
    return settling->rule && stopping_rule_skips(settling->rule, design_order_row(order, position),
                                                 design_order_repetition(order, position));
}

static void journal_settled(struct settling *settling, size_t row) {
    struct stopping_estimate estimate = stopping_rule_estimate(settling->rule, row);
    journal_begin(settling->record->journal, "row-settled");
    journal_integer(settling->record->journal, "row", (int64_t)row + 1);
    journal_integer(settling->record->journal, "repetitions", (int64_t)estimate.repetitions);
    journal_integer(settling->record->journal, "groups", (int64_t)estimate.groups);
    journal_number(settling->record->journal, "mean", estimate.mean);
    journal_number(settling->record->journal, "half_width", estimate.half_width);
    journal_number(settling->record->journal, "relative_half_width", estimate.relative);
    journal_end(settling->record->journal);
}

/* Settles the rows of BLOCK that are known well enough. TIMES loses the repetitions that they no longer need.
 */
struct settling_saving settling_apply(struct settling *settling, const struct design_block *block,
                                      bool has_ended, struct unit_times *times, size_t lanes) {
    struct settling_saving saving = {0};
    if (!settling->rule)
        return saving;
    const struct design_order *order = settling->plan->order;
    size_t before = design_order_repetition(order, block->first) + has_ended;
    stopping_rule_close(settling->rule, before);
    for (size_t i = block->first; i < block->first + block->count; i++) {
        size_t row = design_order_row(order, i), from = stopping_rule_settle(settling->rule, row, before);
        if (from == 0)
            continue;
        journal_settled(settling, row);
        saving.rows++;
        saving.positions += order->repetitions - from;
        unit_times_plan(times, row, -(int64_t)((order->repetitions - from) * lanes));
    }
    return saving;
}

/* ---- The end ---------------------------------------------------------------------------------------------
 */

/* Notes how many rows are settled. A part of the run may have ended after a row's last repetition and before
 * the row was settled: that is done here. */
void settling_note(struct settling *settling, bool is_whole) {
    if (!settling->rule)
        return;
    struct stopping_rule *rule = settling->rule;
    stopping_rule_close(rule, SIZE_MAX);
    const struct design_repeat *repeat = repeat_of(settling->plan);
    size_t rows = settling->plan->design->row_count, all = settling->plan->order->repetitions;
    size_t least = SIZE_MAX, most = 0, exhausted = 0; /* repetitions of those that are settled; other rows */
    for (size_t row = 0; row < rows; row++) {
        size_t repetitions = stopping_rule_estimate(rule, row).repetitions;
        /* A part of the run may have ended between the last repetition of a row and what it made of it. */
        if (is_whole && repetitions == all && stopping_rule_settle(rule, row, all) > 0)
            journal_settled(settling, row);
        if (!stopping_rule_is_settled(rule, row)) {
            exhausted += repetitions == all;
            continue;
        }
        least = repetitions < least ? repetitions : least;
        most = repetitions > most ? repetitions : most;
    }
    size_t settled = stopping_rule_settled_count(rule), others = rows - settled - exhausted;
    cleanup(text_clear) struct text words;
    text_init(&words, 1024);
    text_printf(&words, "%zu of %zu row%s %s an error within %g %% (confidence level %g %%)", settled, rows,
                rows == 1 ? "" : "s", settled == 1 ? "has" : "have", repeat->ci * 100,
                repeat->confidence * 100);
    if (settled && least < most)
        text_printf(&words, " after %zu to %zu repetitions", least, most);
    else if (settled)
        text_printf(&words, " after %zu repetition%s", most, most == 1 ? "" : "s");
    if (exhausted)
        text_printf(&words, "; %zu reached %" PRIu64, exhausted, repeat->at_most);
    if (others)
        text_printf(&words, "; %zu %s left before that", others, others == 1 ? "was" : "were");
    record_note(settling->record, "%s", words.bytes);
}

uint64_t settling_count(const struct settling *settling) {
    return stopping_rule_settled_count(settling->rule);
}

/* Writes results/repeat.csv, a line for each row: its mean, interval, and whether it is settled. */
int settling_record(struct settling *settling, struct failure *failure) {
    if (!settling->rule)
        return 0;
    struct stopping_rule *rule = settling->rule;
    cleanup_free char *path = record_path(settling->record, ARCHIVE_REPEAT);
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 30);
    struct column columns[TABLES_REPEAT_COLUMNS];
    tables_repeat_columns(settling->plan, columns);
    stopping_rule_close(rule, SIZE_MAX);
    struct text_mark mark = text_mark(&text);
    for (size_t i = 0; i < TABLES_REPEAT_COLUMNS; i++)
        text_printf(&text, "%s%s", columns[i].name, i + 1 < TABLES_REPEAT_COLUMNS ? "," : "\n");
    for (size_t row = 0; row < settling->plan->design->row_count; row++) {
        struct stopping_estimate estimate = stopping_rule_estimate(rule, row);
        text_printf(&text, "%zu,%zu,%zu", row + 1, estimate.repetitions, estimate.groups);
        csv_append_double(&text, false, estimate.mean);
        csv_append_double(&text, false, estimate.half_width);
        csv_append_double(&text, false, estimate.relative);
        text_printf(&text, ",%s\n", stopping_rule_is_settled(rule, row) ? "yes" : "no");
    }
    int r = text_keep(&text, mark);
    if (r < 0)
        return failure_set(failure, r,
                           "results/repeat.csv would be larger than an archive's table may be; "
                           "use fewer rows or repetitions");
    return file_replace(path, text.bytes, text.length, 0666, failure);
}
