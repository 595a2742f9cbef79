#include "engine/run/campaign/plan.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/measure/job.h"
#include "engine/run/measure/settling.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plan_cleanup(struct plan **plan) {
    plan_free(*plan);
}

static int check_conditions(const struct plan *plan, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    int r = 0;
    for (size_t i = 0; r == 0 && i < experiment->condition_count; i++)
        r = design_require(plan->design, experiment->conditions[i], failure);
    return r;
}

static int find_maxima(struct plan *plan, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    plan->maxima = xcalloc(experiment->maximum_count + 1, sizeof *plan->maxima);
    int r = 0;
    for (size_t i = 0; r == 0 && i < experiment->maximum_count; i++)
        r = design_maximum(plan->design, experiment->maxima[i].expression, &plan->maxima[i], failure);
    if (r < 0 || !experiment->memory)
        return r;
    plan->memory = expression_value(experiment->memory, plan->maxima);
    if (!isfinite(plan->memory) || plan->memory < 0)
        return expression_failure(experiment->memory, failure,
                                  "the memory of this design is %g, expected a number of bytes",
                                  plan->memory);
    return 0;
}

static int estimate(struct plan *plan, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    plan->seconds = -1;
    if (!experiment->estimate)
        return 0;
    size_t rows = plan->design->row_count;
    cleanup_free double *values = xcalloc(plan->design->column_count + 1, sizeof *values);
    plan->row_seconds = xcalloc(rows, sizeof *plan->row_seconds);
    double sum = 0;
    for (size_t row = 0; row < rows; row++) {
        design_numbers(plan->design, row, values);
        double seconds = expression_value(experiment->estimate, values);
        if (!isfinite(seconds) || seconds < 0)
            return design_failure(plan->design, row, failure,
                                  "the experiment's estimate is %g s, expected a time", seconds);
        plan->row_seconds[row] = seconds;
        sum += seconds;
    }
    plan->seconds = sum * (double)plan->order->repetitions;
    return 0;
}

/* The first column of a control: those of factors come before. */
static size_t first_control(const struct plan *plan) {
    return plan->design->column_count - plan->design->control_count;
}

/* A streamed kernel reads lines of fields parted by commas, so a text of the design may not have either. */
static int check_texts(const struct plan *plan, struct failure *failure) {
    const struct design *design = plan->design;
    for (size_t i = 0; plan->campaign->experiment->streamed && i < first_control(plan); i++)
        for (size_t row = 0; design->columns[i].type == DESIGN_TEXT && row < design->row_count; row++) {
            char buffer[NUMBER_TEXT_SIZE];
            if (strpbrk(design_value(design, row, i, buffer), ",\"\r\n"))
                return design_failure(
                    design, row, failure,
                    "'%s' has a comma, a quote or a line's end in it, which a streamed kernel could "
                    "not tell from the next value",
                    design->columns[i].name);
        }
    return 0;
}

/* Better said now than by a node: a value that no node could take. */
static int check_controls(const struct plan *plan, struct failure *failure) {
    const struct document *document = plan->campaign->document;
    for (size_t i = 0; i < plan_control_count(plan); i++)
        for (size_t k = 0; k < CONTROL_KINDS; k++) {
            const struct document_node *at =
                document_get(document_get(document->root, "controls"), control_kind_names[k]);
            if (at && strcmp(plan_control_name(plan, i), control_kind_names[k]) == 0)
                return failure_input(failure, document->file, at->line, at->column,
                                     "'%s' is set here for all of the run, and by the design's column '%s%s'",
                                     control_kind_names[k], CONTROL_PREFIX, control_kind_names[k]);
        }
    const struct design *design = plan->design;
    for (size_t i = 0; i < plan_control_count(plan); i++) {
        const struct design_column *column = &design->columns[first_control(plan) + i];
        cleanup_free bool *bad = xcalloc(column->labels.count + 1, sizeof *bad);
        const char *name = plan_control_name(plan, i);
        for (size_t code = 0; code < column->labels.count; code++)
            bad[code] = control_value_expectation(name, column->labels.items[code]) != NULL;
        for (size_t row = 0; row < design->row_count; row++)
            if (bad[column->codes[row]]) {
                const char *value = plan_control_value(plan, row, i);
                return design_failure(design, row, failure, "'%s' is '%.64s', expected %s", column->name,
                                      value, control_value_expectation(name, value));
            }
    }
    return 0;
}

/* Whether every command finds the values that it asks for: better said now than after an hour of setup. */
static int check_commands(const struct plan *plan, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    struct plan_values values = {0};
    int r = plan_values_new(plan, 1, &values, failure);
    for (size_t i = 0; r == 0 && i < experiment->setup_count; i++)
        r = experiment_command_check(&experiment->setup[i], experiment->file, plan_values_view(&values),
                                     failure);
    for (size_t i = 0; r == 0 && i < experiment->teardown_count; i++)
        r = experiment_command_check(&experiment->teardown[i], experiment->file, plan_values_view(&values),
                                     failure);
    if (r == 0)
        r = experiment->streamed ? plan_values_set_block(&values, plan, 0, 1, failure)
                                 : plan_values_set_unit(&values, plan, 0, 1, failure);
    if (r == 0)
        r = experiment_command_check(&experiment->run, experiment->file, plan_values_view(&values), failure);
    plan_values_clear(&values);
    return r;
}

int plan_given(const struct experiment *experiment, const struct plan_facts *facts, struct design_given **ret,
               size_t *ret_count) {
    struct design_given *given = xcalloc(PLAN_FACTS + experiment->option_count, sizeof *given);
    /* A unit that is placed on one node has no others. */
    bool job = experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    given[0] = (struct design_given){"run_nodes", job ? facts->nodes : 1, job};
    given[1] = (struct design_given){"node_cores", facts->cores, true};
    given[2] = (struct design_given){"node_memory", facts->memory, true};
    *ret_count = PLAN_FACTS;
    for (size_t i = 0; i < experiment->option_count; i++) {
        const struct experiment_option *option = &experiment->options[i];
        double value;
        if ((option->type == EXPERIMENT_OPTION_INTEGER || option->type == EXPERIMENT_OPTION_NUMBER) &&
            number_parse_double(option->value, strlen(option->value), &value))
            given[(*ret_count)++] = (struct design_given){option->name, value, false};
    }
    *ret = given;
    return 0;
}

static int make_design(struct plan *plan, struct failure *failure) {
    const struct campaign *campaign = plan->campaign;
    const struct experiment *experiment = campaign->experiment;
    cleanup_free struct design_given *given = NULL;
    size_t given_count = 0;
    int r = plan_given(experiment, &plan->facts, &given, &given_count);
    if (r < 0)
        return r;
    struct design_factors factors = {.items = experiment->factors,
                                     .count = experiment->factor_count,
                                     .file = experiment->file,
                                     .given = given,
                                     .given_count = given_count,
                                     .facts_are_guessed =
                                         !plan->facts.known && campaign->testbed.backend != &testbed_local};
    r = design_specification_make(campaign->design, &factors, &plan->design, &plan->order, failure);
    if (r < 0)
        return r;
    plan->uses_facts = design_uses_facts(plan->design);
    plan->is_tentative = factors.facts_are_guessed && plan->uses_facts;
    return 0;
}

/* Whether every row's unit can be started on such nodes. */
static int check_shapes(struct plan *plan, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    const struct testbed_choice *testbed = &plan->campaign->testbed;
    size_t expected = testbed->backend->expected_nodes(testbed->settings);
    /* Nodes that are lost are no fault of the design. */
    struct experiment_facts facts = {fmax(plan->facts.nodes, (double)expected), plan->facts.cores,
                                     plan->facts.memory};
    plan->ranks_per_node = 1;
    if (plan->is_tentative || (experiment->placement == EXPERIMENT_PLACEMENT_CORE))
        return 0;
    cleanup_free double *values = calloc(plan->design->column_count + 1, sizeof *values);
    int r = values ? 0 : failure_memory(failure);
    for (size_t row = 0; r == 0 && row < plan->design->row_count; row++) {
        struct experiment_shape shape;
        design_numbers(plan->design, row, values);
        r = experiment_job_shape(experiment, values, &facts, &shape, failure);
        if (r == 0 && (double)shape.nodes > facts.run_nodes)
            r = expression_failure(experiment->job.counts[EXPERIMENT_COUNT_NODES], failure,
                                   "'nodes' is %zu, expected at most %g, which there are", shape.nodes,
                                   facts.run_nodes);
        if (r == 0 && shape.ranks_per_node > plan->ranks_per_node)
            plan->ranks_per_node = shape.ranks_per_node;
    }
    return r;
}

int plan_new(const struct campaign *campaign, const struct plan_facts *facts, struct plan **ret,
             struct failure *failure) {
    cleanup(plan_cleanup) struct plan *plan = calloc(1, sizeof *plan);
    if (!plan)
        return failure_memory(failure);
    plan->campaign = campaign;
    plan->facts = *facts;
    int r = make_design(plan, failure);
    if (r == 0)
        r = check_controls(plan, failure);
    if (r == 0)
        r = settling_choose_response(campaign, &plan->repeat_response, failure);
    if (r == 0 && !plan->is_tentative)
        r = check_conditions(plan, failure);
    if (r == 0)
        r = find_maxima(plan, failure);
    if (r == 0)
        r = estimate(plan, failure);
    if (r == 0)
        r = check_texts(plan, failure);
    if (r == 0)
        r = check_commands(plan, failure);
    if (r == 0)
        r = check_shapes(plan, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(plan);
    return 0;
}

void plan_free(struct plan *plan) {
    if (!plan)
        return;
    design_free(plan->design);
    design_order_free(plan->order);
    free(plan->maxima);
    free(plan->row_seconds);
    free(plan);
}

size_t plan_positions(const struct plan *plan) {
    return plan->order->count;
}

double plan_weight(const struct plan *plan, size_t position) {
    return plan->row_seconds ? plan->row_seconds[design_order_row(plan->order, position)] : 1;
}

static int append_columns(const struct plan *plan, size_t row, size_t from, size_t to, struct text *text) {
    int r = 0;
    for (size_t i = from; r == 0 && i < to; i++) {
        char buffer[NUMBER_TEXT_SIZE];
        const char *value = design_value(plan->design, row, i, buffer);
        r = csv_append_field(text, false, value, strlen(value));
    }
    return r;
}

int plan_append_factors(const struct plan *plan, size_t row, struct text *text) {
    return append_columns(plan, row, 0, first_control(plan), text);
}

int plan_append_controls(const struct plan *plan, size_t row, struct text *text) {
    return append_columns(plan, row, first_control(plan), plan->design->column_count, text);
}

size_t plan_control_count(const struct plan *plan) {
    return plan->design->control_count;
}

const char *plan_control_name(const struct plan *plan, size_t i) {
    return control_of_column(plan->design->columns[first_control(plan) + i].name);
}

const char *plan_control_value(const struct plan *plan, size_t row, size_t i) {
    const struct design_column *column = &plan->design->columns[first_control(plan) + i];
    return column->labels.items[column->codes[row]];
}

int plan_append_state(const struct plan *plan, size_t row, struct text *text) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < plan_control_count(plan); i++)
        r = text_printf(text, "%s%s %s", i ? ", " : "", plan_control_name(plan, i),
                        plan_control_value(plan, row, i));
    return r;
}

/* ---- Values of commands -----------------------------------------------------------------------------------
 */

enum { UNIT_VALUES = 4 }; /* block, row, repetition, order */

static int set(struct plan_values *values, size_t i, const char *name, const char *value) {
    char *copy = strdup(value);
    if (!values->names[i])
        values->names[i] = strdup(name);
    if (!copy || !values->names[i]) {
        free(copy);
        return -ENOMEM;
    }
    free(values->values[i]);
    values->values[i] = copy;
    if (values->count <= i)
        values->count = i + 1;
    return 0;
}

int plan_values_new(const struct plan *plan, size_t cpus, struct plan_values *ret, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    size_t most =
        2 + experiment->option_count + experiment->maximum_count + UNIT_VALUES + plan->design->column_count;
    struct plan_values values = {.names = calloc(most, sizeof *values.names),
                                 .values = calloc(most, sizeof *values.values)};
    char text[NUMBER_TEXT_SIZE];
    size_t count = 0;
    int r = values.names && values.values ? 0 : -ENOMEM;
    if (r == 0) {
        number_format_uint64(cpus, text);
        r = set(&values, count++, "cpus", text);
    }
    if (r == 0 && experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        r = set(&values, count++, "hostfile", JOB_HOST_FILE);
    for (size_t i = 0; r == 0 && i < experiment->option_count; i++)
        r = set(&values, count++, experiment->options[i].name, experiment->options[i].value);
    for (size_t i = 0; r == 0 && i < experiment->maximum_count; i++) {
        number_format_double(ceil(plan->maxima[i]), text);
        r = set(&values, count++, experiment->maxima[i].name, text);
    }
    values.unit_from = count;
    if (r < 0) {
        plan_values_clear(&values);
        return failure_memory(failure);
    }
    *ret = values;
    return 0;
}

/* The block's number, and the state of the controls in it. */
static int set_block(struct plan_values *values, const struct plan *plan, size_t row, size_t number,
                     size_t *at) {
    char buffer[NUMBER_TEXT_SIZE], variable[CONTROL_VARIABLE_SIZE];
    number_format_uint64(number, buffer);
    int r = set(values, (*at)++, "block", buffer);
    for (size_t i = first_control(plan); r == 0 && i < plan->design->column_count; i++)
        r = set(values, (*at)++, control_variable(plan->design->columns[i].name, variable),
                design_value(plan->design, row, i, buffer));
    return r;
}

int plan_values_set_block(struct plan_values *values, const struct plan *plan, size_t row, size_t number,
                          struct failure *failure) {
    size_t at = values->unit_from;
    return set_block(values, plan, row, number, &at) < 0 ? failure_memory(failure) : 0;
}

int plan_values_set_unit(struct plan_values *values, const struct plan *plan, size_t position, size_t number,
                         struct failure *failure) {
    static const char *const names[] = {"row", "repetition", "order"};
    size_t row = design_order_row(plan->order, position);
    size_t numbers[] = {row + 1, design_order_repetition(plan->order, position) + 1, position + 1};
    char buffer[NUMBER_TEXT_SIZE];
    size_t at = values->unit_from;
    int r = set_block(values, plan, row, number, &at);
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++) {
        number_format_uint64(numbers[i], buffer);
        r = set(values, at++, names[i], buffer);
    }
    for (size_t i = 0; r == 0 && i < first_control(plan); i++)
        r = set(values, at++, plan->design->columns[i].name, design_value(plan->design, row, i, buffer));
    return r < 0 ? failure_memory(failure) : 0;
}

void plan_values_clear(struct plan_values *values) {
    for (size_t i = 0; i < values->count; i++) {
        free(values->names[i]);
        free(values->values[i]);
    }
    free(values->names);
    free(values->values);
    *values = (struct plan_values){0};
}

struct experiment_values plan_values_view(const struct plan_values *values) {
    return (struct experiment_values){.names = (const char *const *)values->names,
                                      .values = (const char *const *)values->values,
                                      .count = values->count};
}

int plan_values_environment(const struct plan_values *values, char ***ret, struct failure *failure) {
    char **environment = xcalloc(values->count + 1, sizeof *environment);
    for (size_t i = 0; i < values->count; i++)
        if (!(environment[i] = text_format("%s=%s", values->names[i], values->values[i]))) {
            experiment_arguments_free(environment);
            return failure_memory(failure);
        }
    *ret = environment;
    return 0;
}
