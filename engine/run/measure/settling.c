#include "engine/run/measure/settling.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/placement.h"
#include "engine/run/measure/repetition-rule.h"
#include "engine/run/run-state.h"
#include "engine/run/state/unit-state.h"

#include <errno.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct settling {
    struct repetition_rule *rule;
    size_t response; /* which is looked at */
};

static const struct design_repeat *repeat_of(const struct plan *plan) {
    return &plan->campaign->design->repeat;
}

/* ---- The plan --------------------------------------------------------------------------------------------
 */

static int refuse(const struct campaign *campaign, struct design_repeat_place at, struct failure *failure,
                  const char *format, ...) __attribute__((format(printf, 4, 5)));
static int refuse(const struct campaign *campaign, struct design_repeat_place at, struct failure *failure,
                  const char *format, ...) {
    struct text sentence;
    text_init(&sentence, FAILURE_TEXT_SIZE);
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&sentence, format, arguments);
    va_end(arguments);
    int r = failure_input(failure, campaign->design->place_file, at.line, at.column, "%s", sentence.bytes);
    text_clear(&sentence);
    return r;
}

/* Index of the response called NAME, or the number of responses. */
static size_t find_response(const struct experiment *experiment, const char *name) {
    size_t i = 0;
    while (i < experiment->response_count && strcmp(experiment->responses[i].name, name) != 0)
        i++;
    return i;
}

static int refuse_response(const struct campaign *campaign, struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct design_repeat *repeat = &campaign->design->repeat;
    cleanup_free const char **names = xcalloc(experiment->response_count, sizeof *names);
    struct text known;
    text_init(&known, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < experiment->response_count; i++) {
        names[i] = experiment->responses[i].name;
        text_printf(&known, "%s'%s'", i ? ", " : "", names[i]);
    }
    const char *nearest = text_nearest(repeat->response, names, experiment->response_count);
    int r = nearest ? refuse(campaign, repeat->response_place, failure,
                             "'%.64s' is not a response of experiment '%s'; did you mean '%s'?",
                             repeat->response, experiment->name, nearest)
                    : refuse(campaign, repeat->response_place, failure,
                             "'%.64s' is not a response of experiment '%s', expected %s%s", repeat->response,
                             experiment->name, experiment->response_count > 1 ? "one of " : "", known.bytes);
    text_clear(&known);
    return r;
}

static int refuse_one_node(const struct campaign *campaign, struct failure *failure) {
    return refuse(campaign, campaign->design->repeat.between_place, failure,
                  "the mean between nodes of one node has no confidence interval, so that no row would ever "
                  "be known well enough; expected 'between: [node, block]', or more nodes");
}

int settling_choose_response(const struct campaign *campaign, size_t *ret, struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct design_repeat *repeat = &campaign->design->repeat;
    *ret = 0;
    if (!repeat->wanted)
        return 0;
    const char *name = repeat->response    ? repeat->response
                       : experiment->model ? experiment->model->response
                                           : experiment->responses[0].name;
    *ret = find_response(experiment, name);
    if (*ret == experiment->response_count)
        return refuse_response(campaign, failure);
    if (experiment->responses[*ret].type == EXPERIMENT_RESPONSE_TEXT)
        return refuse(campaign, repeat->response ? repeat->response_place : repeat->place, failure,
                      "'%s' is a text, which has no mean; expected 'response: NAME' of one that is a number",
                      name);
    const struct testbed_choice *testbed = &campaign->testbed;
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
    const struct design_repeat *repeat = repeat_of(run->plan);
    if (!repeat->wanted)
        return 0;
    struct settling *settling = calloc(1, sizeof *settling);
    if (!settling || repetition_rule_new(repeat, run->plan->design->row_count, &settling->rule) < 0) {
        free(settling);
        return failure_memory(failure);
    }
    settling->response = run->plan->repeat_response;
    run->settling = settling;
    return 0;
}

void settling_free(struct settling *settling) {
    if (!settling)
        return;
    repetition_rule_free(settling->rule);
    free(settling);
}

int settling_check_nodes(const struct run *run, struct failure *failure) {
    const struct design_repeat *repeat = repeat_of(run->plan);
    size_t rows = run->plan->design->row_count;
    if (!repeat->wanted || !(repeat->between & DESIGN_BETWEEN_NODE))
        return 0;
    if (repeat->between == DESIGN_BETWEEN_NODE && run->node_count == 1)
        return refuse_one_node(run->campaign, failure);
    if (rows <= REPETITION_CELLS_MOST / run->node_count)
        return 0;
    return refuse(run->campaign, repeat->place, failure,
                  "%zu rows on each of %zu nodes are more than the limit of %d for 'repeat' between nodes",
                  rows, run->node_count, REPETITION_CELLS_MOST);
}

/* A gate's wish to have the unit measured again is that of verdict.c. */
static int take(struct run *run, struct repetition_value *value, unsigned flags, struct failure *failure) {
    const struct gate_settings *gates = &run->campaign->gates;
    value->again =
        unit_state_action(gates, flags) == GATE_REPEAT && (int64_t)value->attempt <= gates->repeats;
    return repetition_rule_take(run->settling->rule, value) < 0 ? failure_memory(failure) : 0;
}

int settling_take(struct run *run, size_t place, size_t position, unsigned attempt, unsigned flags,
                  const double *responses, struct failure *failure) {
    if (!run->settling)
        return 0;
    const struct design_order *order = run->plan->order;
    struct repetition_value value = {
        .row = design_order_row(order, position),
        .repetition = design_order_repetition(order, position),
        .node = ledger_place_node(run->ledger, place),
        .core = ledger_place_core(run->ledger, place),
        .attempt = attempt,
        .value = responses[run->settling->response],
    };
    return take(run, &value, flags, failure);
}

/* ---- Lines of the results */

enum { FIELD_MOST = 512 }; /* bytes of those that are looked at; node names are the longest */

/* The field at *AT, without quotes (those that are looked at have none inside) and cut at FIELD_MOST, into
 * BUFFER; *AT moves behind its comma. */
static void next_field(const char **at, const char *end, char buffer[static FIELD_MOST]) {
    size_t length = 0;
    bool quoted = false;
    for (; *at < end && (quoted || **at != ','); ++*at)
        if (**at == '"')
            quoted = !quoted;
        else if (length < FIELD_MOST - 1)
            buffer[length++] = **at;
    buffer[length] = '\0';
    *at += *at < end;
}

static bool read_count(const char *text, size_t most, size_t *ret) {
    uint64_t value;
    if (!number_parse_uint64(text, strlen(text), &value) || value < 1 || value > most)
        return false;
    *ret = (size_t)value;
    return true;
}

int settling_take_line(const char *line, size_t length, void *context, struct failure *failure) {
    struct run *run = context;
    enum { ROW, REPETITION, ORDER, BLOCK, ATTEMPT, NODE, CORE, START, START_MONOTONIC, FACTORS };
    if (!run->settling)
        return 0;
    size_t response = FACTORS + run->plan->design->column_count + run->settling->response,
           flags = FACTORS + run->plan->design->column_count + run->experiment->response_count + 2,
           attempt = 1;
    char field[FIELD_MOST], node[FIELD_MOST] = "", core[FIELD_MOST] = "";
    struct repetition_value value = {.node = node, .core = core, .value = NAN};
    const char *at = line, *end = line + length;
    bool good = true;
    for (size_t i = 0; i <= flags; i++) {
        next_field(&at, end, i == NODE ? node : i == CORE ? core : field);
        if (i == ROW)
            good = good && read_count(field, run->plan->design->row_count, &value.row);
        else if (i == REPETITION)
            good = good && read_count(field, run->plan->order->repetitions, &value.repetition);
        else if (i == ATTEMPT)
            good = good && read_count(field, UINT_MAX, &attempt);
        else if (i == response && field[0])
            good = good && number_parse_double(field, strlen(field), &value.value);
    }
    if (!good)
        return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                                "results.csv has the line '%.*s', which is none of this run",
                                (int)(length < 128 ? length : 128), line);
    if (run->experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        snprintf(node, sizeof node, "%s",
                 PLACEMENT_JOB_NODE); /* the results have its nodes, the ledger one place */
    value.row--;
    value.repetition--;
    value.attempt = (unsigned)attempt;
    return take(run, &value, unit_state_parse_flags(field), failure);
}

bool settling_leaves_out(const struct run *run, size_t position) {
    const struct design_order *order = run->plan->order;
    return run->settling && repetition_rule_leaves_out(run->settling->rule, design_order_row(order, position),
                                                       design_order_repetition(order, position));
}

size_t settling_count_left_out(const struct run *run, const struct design_block *block) {
    size_t count = 0;
    for (size_t i = block->first; run->settling && i < block->first + block->count; i++)
        count += settling_leaves_out(run, i);
    return count;
}

static void journal_settled(struct run *run, size_t row, size_t before) {
    struct repetition_estimate estimate = repetition_rule_estimate(run->settling->rule, row, before);
    journal_begin(run->journal, "row-settled");
    journal_integer(run->journal, "row", (int64_t)row + 1);
    journal_integer(run->journal, "repetitions", (int64_t)estimate.repetitions);
    journal_integer(run->journal, "groups", (int64_t)estimate.groups);
    journal_number(run->journal, "mean", estimate.mean);
    journal_number(run->journal, "half_width", estimate.half_width);
    journal_number(run->journal, "relative_half_width", estimate.relative);
    journal_end(run->journal);
}

struct settling_saving settling_settle(struct run *run, const struct design_block *block, bool has_ended) {
    struct settling_saving saving = {0};
    if (!run->settling)
        return saving;
    const struct design_order *order = run->plan->order;
    size_t before = design_order_repetition(order, block->first) + has_ended;
    uint64_t left = order->repetitions - before;
    repetition_rule_gather(run->settling->rule, before);
    for (size_t i = block->first; i < block->first + block->count; i++) {
        size_t row = design_order_row(order, i);
        if (!repetition_rule_settle(run->settling->rule, row, before))
            continue;
        journal_settled(run, row, before);
        saving.rows++;
        saving.positions += left;
        saving.weight += (double)left * plan_weight(run->plan, i);
    }
    return saving;
}

/* ---- The end ---------------------------------------------------------------------------------------------
 */

/* What became of the rows. */
struct outcome {
    size_t least, most; /* repetitions of those that are settled */
    size_t exhausted;   /* were measured as often as they may be */
};

static struct outcome find_outcome(const struct run *run) {
    struct repetition_rule *rule = run->settling->rule;
    struct outcome outcome = {.least = SIZE_MAX};
    for (size_t row = 0; row < run->plan->design->row_count; row++) {
        size_t repetitions = repetition_rule_estimate(rule, row, SIZE_MAX).repetitions;
        if (!repetition_rule_is_settled(rule, row)) {
            outcome.exhausted += repetitions == run->plan->order->repetitions;
            continue;
        }
        outcome.least = repetitions < outcome.least ? repetitions : outcome.least;
        outcome.most = repetitions > outcome.most ? repetitions : outcome.most;
    }
    return outcome;
}

/* A part of the run may have ended between the last repetition of a row and what it made of it. */
static void settle_rest(struct run *run) {
    size_t repetitions = run->plan->order->repetitions;
    struct repetition_rule *rule = run->settling->rule;
    for (size_t row = 0; row < run->plan->design->row_count; row++)
        if (repetition_rule_estimate(rule, row, repetitions).repetitions == repetitions &&
            repetition_rule_settle(rule, row, repetitions))
            journal_settled(run, row, repetitions);
}

void settling_note(struct run *run, bool is_whole) {
    if (!run->settling)
        return;
    if (is_whole)
        settle_rest(run);
    const struct design_repeat *repeat = repeat_of(run->plan);
    size_t settled = repetition_rule_settled_count(run->settling->rule), rows = run->plan->design->row_count;
    struct outcome outcome = find_outcome(run);
    size_t others = rows - settled - outcome.exhausted;
    struct text words;
    text_init(&words, 1024);
    text_printf(&words, "%zu of %zu row%s %s known to %g %% (%g %%)", settled, rows, rows == 1 ? "" : "s",
                settled == 1 ? "is" : "are", repeat->ci * 100, repeat->confidence * 100);
    if (settled && outcome.least < outcome.most)
        text_printf(&words, " after %zu to %zu repetitions", outcome.least, outcome.most);
    else if (settled)
        text_printf(&words, " after %zu repetition%s", outcome.most, outcome.most == 1 ? "" : "s");
    if (outcome.exhausted)
        text_printf(&words, "; %zu reached %" PRIu64, outcome.exhausted, repeat->at_most);
    if (others)
        text_printf(&words, "; %zu %s left before that", others, others == 1 ? "was" : "were");
    run_note(run, "%s", words.bytes);
    text_clear(&words);
}

uint64_t settling_count(const struct run *run) {
    return repetition_rule_settled_count(run->settling->rule);
}

static int append_row(const struct run *run, size_t row, struct text *text) {
    struct repetition_rule *rule = run->settling->rule;
    struct repetition_estimate estimate = repetition_rule_estimate(rule, row, SIZE_MAX);
    bool settled = repetition_rule_is_settled(rule, row);
    int r = csv_append_int64(text, true, (int64_t)row + 1);
    r = r < 0 ? r : csv_append_int64(text, false, (int64_t)estimate.repetitions);
    r = r < 0 ? r : csv_append_int64(text, false, (int64_t)estimate.groups);
    r = r < 0 ? r : csv_append_double(text, false, estimate.mean);
    r = r < 0 ? r : csv_append_double(text, false, estimate.half_width);
    r = r < 0 ? r : csv_append_double(text, false, estimate.relative);
    r = r < 0 ? r : csv_append_field(text, false, settled ? "yes" : "no", settled ? 3 : 2);
    return r < 0 ? r : text_append_character(text, '\n');
}

int settling_record(struct run *run, struct failure *failure) {
    if (!run->settling)
        return 0;
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 30);
    struct archive_column columns[SETTLING_COLUMNS];
    settling_columns(run->plan, columns);
    int r = 0;
    for (size_t i = 0; r == 0 && i < SETTLING_COLUMNS; i++)
        r = csv_append_field(&text, i == 0, columns[i].name, strlen(columns[i].name));
    r = r < 0 ? r : text_append_character(&text, '\n');
    for (size_t row = 0; r == 0 && row < run->plan->design->row_count; row++)
        r = append_row(run, row, &text);
    cleanup_free char *path = run_path(run, "results/repeat.csv");
    if (r < 0 || !path)
        return failure_memory(failure);
    return file_replace(path, text.bytes, text.length, 0666, failure);
}
