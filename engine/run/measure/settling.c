#include "engine/run/measure/settling.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/repeat.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/measure/stopping-rule.h"
#include "engine/run/nodes/placement.h"
#include "engine/run/run-state.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct settling {
    struct stopping_rule *rule;
};

static const struct design_repeat *repeat_of(const struct plan *plan) {
    return &plan->campaign->design->repeat;
}

/* ---- The run ---------------------------------------------------------------------------------------------
 */

int settling_open(struct run *run, struct failure *failure) {
    (void)failure;
    const struct design_repeat *repeat = repeat_of(run->plan);
    if (!repeat->wanted)
        return 0;
    run->settling = xcalloc(1, sizeof *run->settling);
    run->settling->rule = stopping_rule_new(repeat, run->plan->design->row_count);
    return 0;
}

void settling_free(struct settling *settling) {
    if (settling)
        stopping_rule_free(settling->rule);
    free(settling);
}

int settling_check_nodes(const struct run *run, struct failure *failure) {
    const struct design_repeat *repeat = repeat_of(run->plan);
    size_t rows = run->plan->design->row_count;
    if (!repeat->wanted || !(repeat->between & DESIGN_BETWEEN_NODE))
        return 0;
    if (repeat->between == DESIGN_BETWEEN_NODE && run->node_count == 1)
        return repeat_refuse_one_node(run->campaign, failure);
    if (rows <= STOPPING_CELLS_MAX / run->node_count)
        return 0;
    return failure_input(failure, run->campaign->design->place_file, repeat->place.line, repeat->place.column,
                         "%zu rows on each of %zu nodes are more than the limit of %d for 'repeat' between "
                         "nodes",
                         rows, run->node_count, STOPPING_CELLS_MAX);
}

int settling_take(struct run *run, size_t place, size_t position, const double *responses,
                  struct failure *failure) {
    if (!run->settling)
        return 0;
    const struct design_order *order = run->plan->order;
    struct stopping_value value = {
        .row = design_order_row(order, position),
        .repetition = design_order_repetition(order, position),
        .node = ledger_place_node(run->ledger, place),
        .core = ledger_place_core(run->ledger, place),
        .value = responses[run->plan->repeat_response],
    };
    return stopping_rule_take(run->settling->rule, &value) < 0 ? failure_memory(failure) : 0;
}

/* ---- Lines of the results */

/* Field number INDEX, from 0, of LINE: a number, so without quotes, which fields before it may have. */
static const char *find_field(const char *line, size_t index, size_t *ret_length) {
    bool quoted = false;
    for (; *line && index > 0; line++) {
        quoted ^= *line == '"';
        index -= *line == ',' && !quoted;
    }
    *ret_length = strcspn(line, ",");
    return line;
}

int settling_take_line(const char *line, size_t length, void *context, struct failure *failure) {
    struct run *run = context;
    enum { BEFORE_FACTORS = 9 };
    if (!run->settling)
        return 0;
    bool job = run->experiment->placement == EXPERIMENT_PLACEMENT_JOB; /* whose nodes may be in quotes */
    cleanup_free char *copy = xstrndup(line, length);
    char node[512] = PLACEMENT_JOB_NODE, core[64] = PLACEMENT_ALL_CORES;
    size_t row = 0, repetition = 0, response_length;
    struct stopping_value value = {.node = node, .core = core, .value = NAN};
    int found = sscanf(copy, job ? "%zu,%zu," : "%zu,%zu,%*u,%*u,%*u,%511[^,],%63[^,],", &row, &repetition,
                       node, core);
    const char *response =
        find_field(copy, BEFORE_FACTORS + run->plan->design->column_count + run->plan->repeat_response,
                   &response_length);
    value.row = row - 1;
    value.repetition = repetition - 1;
    if (found < (job ? 2 : 4) || value.row >= run->plan->design->row_count ||
        value.repetition >= run->plan->order->repetitions ||
        (response_length > 0 && !number_parse_double(response, response_length, &value.value)))
        return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                                "results.csv has the line '%.*s', which does not belong to this run",
                                (int)(length < 128 ? length : 128), line);
    return stopping_rule_take(run->settling->rule, &value) < 0 ? failure_memory(failure) : 0;
}

bool settling_leaves_out(const struct run *run, size_t position) {
    const struct design_order *order = run->plan->order;
    return run->settling && stopping_rule_leaves_out(run->settling->rule, design_order_row(order, position),
                                                     design_order_repetition(order, position));
}

static void journal_settled(struct run *run, size_t row) {
    struct stopping_estimate estimate = stopping_rule_estimate(run->settling->rule, row);
    journal_begin(run->journal, "row-settled");
    journal_integer(run->journal, "row", (int64_t)row + 1);
    journal_integer(run->journal, "repetitions", (int64_t)estimate.repetitions);
    journal_integer(run->journal, "groups", (int64_t)estimate.groups);
    journal_number(run->journal, "mean", estimate.mean);
    journal_number(run->journal, "half_width", estimate.half_width);
    journal_number(run->journal, "relative_half_width", estimate.relative);
    journal_end(run->journal);
}

struct settling_saving settling_apply(struct run *run, const struct design_block *block, bool has_ended) {
    struct settling_saving saving = {0};
    if (!run->settling)
        return saving;
    const struct design_order *order = run->plan->order;
    size_t before = design_order_repetition(order, block->first) + has_ended;
    stopping_rule_close(run->settling->rule, before);
    for (size_t i = block->first; i < block->first + block->count; i++) {
        size_t row = design_order_row(order, i),
               from = stopping_rule_settle(run->settling->rule, row, before);
        if (from == 0)
            continue;
        journal_settled(run, row);
        saving.rows++;
        saving.positions += order->repetitions - from;
        saving.weight += (double)(order->repetitions - from) * plan_weight(run->plan, i);
    }
    return saving;
}

/* ---- The end ---------------------------------------------------------------------------------------------
 */

void settling_note(struct run *run, bool is_whole) {
    if (!run->settling)
        return;
    struct stopping_rule *rule = run->settling->rule;
    stopping_rule_close(rule, SIZE_MAX);
    const struct design_repeat *repeat = repeat_of(run->plan);
    size_t rows = run->plan->design->row_count, all = run->plan->order->repetitions;
    size_t least = SIZE_MAX, most = 0, exhausted = 0; /* repetitions of those that are settled; other rows */
    for (size_t row = 0; row < rows; row++) {
        size_t repetitions = stopping_rule_estimate(rule, row).repetitions;
        /* A part of the run may have ended between the last repetition of a row and what it made of it. */
        if (is_whole && repetitions == all && stopping_rule_settle(rule, row, all) > 0)
            journal_settled(run, row);
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
    text_printf(&words, "%zu of %zu row%s %s known to %g %% (%g %%)", settled, rows, rows == 1 ? "" : "s",
                settled == 1 ? "is" : "are", repeat->ci * 100, repeat->confidence * 100);
    if (settled && least < most)
        text_printf(&words, " after %zu to %zu repetitions", least, most);
    else if (settled)
        text_printf(&words, " after %zu repetition%s", most, most == 1 ? "" : "s");
    if (exhausted)
        text_printf(&words, "; %zu reached %" PRIu64, exhausted, repeat->at_most);
    if (others)
        text_printf(&words, "; %zu %s left before that", others, others == 1 ? "was" : "were");
    run_note(run, "%s", words.bytes);
}

uint64_t settling_count(const struct run *run) {
    return stopping_rule_settled_count(run->settling->rule);
}

int settling_record(struct run *run, struct failure *failure) {
    if (!run->settling)
        return 0;
    struct stopping_rule *rule = run->settling->rule;
    cleanup_free char *path = run_path(run, "results/repeat.csv");
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 30);
    struct archive_column columns[TABLES_REPEAT_COLUMNS];
    tables_repeat_columns(run->plan, columns);
    stopping_rule_close(rule, SIZE_MAX);
    int r = 0;
    for (size_t i = 0; i < TABLES_REPEAT_COLUMNS; i++)
        r = text_printf(&text, "%s%s", columns[i].name, i + 1 < TABLES_REPEAT_COLUMNS ? "," : "\n");
    for (size_t row = 0; r == 0 && row < run->plan->design->row_count; row++) {
        struct stopping_estimate estimate = stopping_rule_estimate(rule, row);
        r = text_printf(&text, "%zu,%zu,%zu", row + 1, estimate.repetitions, estimate.groups);
        r = r < 0 ? r : csv_append_double(&text, false, estimate.mean);
        r = r < 0 ? r : csv_append_double(&text, false, estimate.half_width);
        r = r < 0 ? r : csv_append_double(&text, false, estimate.relative);
        r = r < 0 ? r : text_printf(&text, ",%s\n", stopping_rule_is_settled(rule, row) ? "yes" : "no");
    }
    return r < 0 ? failure_memory(failure) : file_replace(path, text.bytes, text.length, 0666, failure);
}
