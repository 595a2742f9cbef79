#include "engine/run/measure/settling.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/placement.h"
#include "engine/run/measure/stopping-rule.h"
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

/* ---- The plan --------------------------------------------------------------------------------------------
 */

static int refuse_response(const struct campaign *campaign, struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct design_repeat *repeat = &campaign->design->repeat;
    cleanup_free const char **names = xcalloc(experiment->response_count, sizeof *names);
    cleanup(text_clear) struct text known;
    text_init(&known, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < experiment->response_count; i++) {
        names[i] = experiment->responses[i].name;
        text_printf(&known, "%s'%s'", i ? ", " : "", names[i]);
    }
    const char *nearest = text_nearest(repeat->response, names, experiment->response_count);
    return failure_input(
        failure, campaign->design->place_file, repeat->response_place.line, repeat->response_place.column,
        "'%.64s' is not a response of experiment '%s'%s%s%s%s", repeat->response, experiment->name,
        nearest                          ? "; did you mean '"
        : experiment->response_count > 1 ? ", expected one of "
                                         : ", expected ",
        nearest ? nearest : known.bytes, nearest ? "'" : "", nearest ? "?" : "");
}

static int refuse_one_node(const struct campaign *campaign, struct failure *failure) {
    const struct design_repeat *repeat = &campaign->design->repeat;
    return failure_input(failure, campaign->design->place_file, repeat->between_place.line,
                         repeat->between_place.column,
                         "the mean between nodes of one node has no confidence interval, so that no row "
                         "would ever be known well enough; expected 'between: [node, block]', or more nodes");
}

int settling_choose_response(const struct campaign *campaign, size_t *ret, struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct design_repeat *repeat = &campaign->design->repeat;
    const struct testbed_choice *testbed = &campaign->testbed;
    *ret = 0;
    if (!repeat->wanted)
        return 0;
    const char *name = repeat->response    ? repeat->response
                       : experiment->model ? experiment->model->response
                                           : experiment->responses[0].name;
    while (*ret < experiment->response_count && strcmp(experiment->responses[*ret].name, name) != 0)
        ++*ret;
    if (*ret == experiment->response_count)
        return refuse_response(campaign, failure);
    if (experiment->responses[*ret].type == EXPERIMENT_RESPONSE_TEXT) {
        struct design_repeat_place at = repeat->response ? repeat->response_place : repeat->place;
        return failure_input(failure, campaign->design->place_file, at.line, at.column,
                             "'%s' is a text, which has no mean; expected 'response: NAME' of one that is a "
                             "number",
                             name);
    }
    if (repeat->between == DESIGN_BETWEEN_NODE && testbed->backend->expected_nodes(testbed->settings) == 1)
        return refuse_one_node(campaign, failure);
    return 0;
}

static const struct experiment_response *response_of(const struct plan *plan) {
    return &plan->campaign->experiment->responses[plan->repeat_response];
}

void settling_describe(const struct plan *plan, struct text *ret) {
    static const char *const between[] = {
        [DESIGN_BETWEEN_NODE] = "nodes",
        [DESIGN_BETWEEN_BLOCK] = "blocks",
        [DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK] = "nodes and blocks",
    };
    const struct design_repeat *repeat = repeat_of(plan);
    if (repeat->wanted)
        text_printf(
            ret,
            "             each row until the mean of '%s' between %s is known to %g %% (%g %%), after "
            "%" PRIu64 " to %" PRIu64 " repetitions, each with blocks of its own\n",
            response_of(plan)->name, between[repeat->between], repeat->ci * 100, repeat->confidence * 100,
            repeat->at_least, repeat->at_most);
}

void settling_resolve(const struct plan *plan, cJSON *object) {
    const struct design_repeat *repeat = repeat_of(plan);
    if (!repeat->wanted)
        return;
    cJSON *item = json_add_object(object, "repeat");
    json_add_double(item, "ci", repeat->ci);
    json_add_double(item, "confidence", repeat->confidence);
    json_add_uint64(item, "at_least", repeat->at_least);
    json_add_uint64(item, "at_most", repeat->at_most);
    cJSON *between = json_add_array(item, "between");
    if (repeat->between & DESIGN_BETWEEN_NODE)
        json_add_string(between, NULL, "node");
    if (repeat->between & DESIGN_BETWEEN_BLOCK)
        json_add_string(between, NULL, "block");
    json_add_string(item, "response", response_of(plan)->name);
}

void settling_columns(const struct plan *plan, struct archive_column columns[static SETTLING_COLUMNS]) {
    const char *unit = response_of(plan)->unit;
    const struct archive_column all[SETTLING_COLUMNS] = {
        {"row", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_ID, "row", "line of design.csv, from 1"},
        {"repetitions", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_COVARIATE, "repetitions", "that were measured"},
        {"groups", ARCHIVE_INTEGER, "", ARCHIVE_ROLE_COVARIATE, "groups",
         "means of measurements on one node, in one repetition, or both, over which the mean is taken"},
        {"mean", ARCHIVE_NUMBER, unit, ARCHIVE_ROLE_COVARIATE, "mean",
         "of the response, over the groups; empty where there is none"},
        {"half_width", ARCHIVE_NUMBER, unit, ARCHIVE_ROLE_COVARIATE, "half width",
         "of the mean's confidence interval; empty for fewer than two groups"},
        {"relative_half_width", ARCHIVE_NUMBER, "1", ARCHIVE_ROLE_COVARIATE, "relative half width",
         "to the size of the mean; empty where it is not known or not finite"},
        {"settled", ARCHIVE_STRING, "", ARCHIVE_ROLE_COVARIATE, "settled",
         "yes: the mean is known as well as was wanted; or no"},
    };
    memcpy(columns, all, sizeof all);
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
        return refuse_one_node(run->campaign, failure);
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
                                "results.csv has the line '%.*s', which is none of this run",
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
    struct archive_column columns[SETTLING_COLUMNS];
    settling_columns(run->plan, columns);
    stopping_rule_close(rule, SIZE_MAX);
    int r = 0;
    for (size_t i = 0; i < SETTLING_COLUMNS; i++)
        r = text_printf(&text, "%s%s", columns[i].name, i + 1 < SETTLING_COLUMNS ? "," : "\n");
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
