#include "engine/run/campaign/plan.h"

#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/repeat.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

void plan_cleanup(struct plan **plan) {
    plan_free(*plan);
}

#define FACT(key_, member) BIND_RANGED(key_, BIND_NUMBER, plan_facts, member, 1, INFINITY)
const struct bind_field plan_fact_fields[PLAN_FACTS] = {
    {FACT("run_nodes", nodes)},
    {FACT("node_cores", cores)},
    {FACT("node_memory", memory)},
};

static int check_conditions(struct plan *plan, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    int r = 0;
    for (size_t i = 0; r == 0 && !plan->is_tentative && i < experiment->condition_count; i++)
        r = design_require(plan->design, experiment->conditions[i], failure);
    return r;
}

/* Computes the experiment's maxima over all rows, and from them the memory of a process. Refused: a memory
 * that is not a number of bytes. */
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
                                  "the expression 'memory' gives %g for this design; expected a number "
                                  "of bytes",
                                  plan->memory);
    return 0;
}

/* Computes the estimated seconds of each row and of all units of a placement; plan->seconds is -1 without an
 * estimate. */
static int estimate_seconds(struct plan *plan, struct failure *failure) {
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
                                  "the expression 'estimate' gives %g s for this design; expected a time",
                                  seconds);
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

/* Refuses texts with a comma, quote or line break in a design for a streamed kernel, which reads
 * comma-separated lines. */
static int check_texts(struct plan *plan, struct failure *failure) {
    const struct design *design = plan->design;
    for (size_t i = 0; plan->campaign->experiment->streamed && i < first_control(plan); i++)
        for (size_t row = 0; design->columns[i].about.type == COLUMN_STRING && row < design->row_count;
             row++) {
            char buffer[NUMBER_TEXT_SIZE];
            if (strpbrk(design_value(design, row, i, buffer), ",\"\r\n"))
                return design_failure(
                    design, row, failure,
                    "'%s' contains a comma, a quote or a line break, which a streamed kernel cannot "
                    "tell from the next value",
                    design->columns[i].about.name);
        }
    return 0;
}

/* Refuses controls on a testbed that kills agents with the job: what such an agent has set would stay set. */
static int check_restoring(struct plan *plan, struct failure *failure) {
    const struct campaign *campaign = plan->campaign;
    const struct testbed_choice *testbed = &campaign->testbed;
    const struct document_node *root = campaign->document->root, *controls = document_get(root, "controls");
    if ((!control_settings_any(&campaign->controls) && plan_control_count(plan) == 0) ||
        !testbed->backend->kills_agents || !testbed->backend->kills_agents(testbed->settings))
        return 0;
    return bind_refuse(campaign->document, controls ? controls : root, failure,
                       "with the launcher 'srun' or 'oarsh' the end of the job would kill the "
                       "agents before they restore the controls; use 'launcher: ssh', or set "
                       "no controls");
}

/* Refuses a control that is set for the whole run too, and a value that no node could set. */
static int check_controls(struct plan *plan, struct failure *failure) {
    const struct document *document = plan->campaign->document;
    const struct document_node *controls = document_get(document->root, "controls");
    const struct design *design = plan->design;
    for (size_t i = 0; i < plan_control_count(plan); i++) {
        const char *name = plan_control_name(plan, i),
                   *column = design->columns[first_control(plan) + i].about.name;
        const struct document_node *at = document_get(controls, name);
        if (at)
            return bind_refuse(document, at, failure,
                               "'%s' is set for the whole run and also by the design's column '%s'; "
                               "remove one of the two",
                               name, column);
        for (size_t row = 0; row < design->row_count; row++) {
            const char *value = plan_control_value(plan, row, i),
                       *expected = control_value_expectation(name, value);
            if (expected)
                return design_failure(design, row, failure, "'%s' is '%.64s', expected %s", column, value,
                                      expected);
        }
    }
    return 0;
}

static int check_list(const struct experiment_command *commands, size_t count, const char *file,
                      const struct plan_values *values, struct failure *failure) {
    int r = 0;
    struct experiment_values view = plan_values_view(values);
    for (size_t i = 0; r == 0 && i < count; i++) {
        char **arguments = NULL;
        r = experiment_command_arguments(&commands[i], file, &view, &arguments, failure);
        experiment_arguments_free(arguments);
    }
    return r;
}

/* Whether every command finds the values that it asks for. Checked now, not after an hour of setup. */
static int check_commands(struct plan *plan, struct failure *failure) {
    const struct experiment *experiment = plan->campaign->experiment;
    cleanup(plan_values_clear) struct plan_values values = plan_values_new(plan, 1);
    int r = check_list(experiment->setup, experiment->setup_count, experiment->file, &values, failure);
    if (r == 0)
        r = check_list(experiment->teardown, experiment->teardown_count, experiment->file, &values, failure);
    plan_values_set(&values, plan, 0, 1);
    return r < 0 ? r : check_list(&experiment->run, 1, experiment->file, &values, failure);
}

/* The names that expressions may use beside the factors: three facts, then the numeric options. A unit that
 * is placed on one node knows of no others, so run_nodes is 1. */
static struct design_given *plan_given(const struct experiment *experiment, const struct plan_facts *facts,
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
        if (option->factor.about.type != COLUMN_STRING &&
            number_parse_double(option->value, strlen(option->value), &value))
            given[(*ret_count)++] = (struct design_given){option->factor.about.name, value, false};
    }
    return given;
}

/* Makes the table of the design and its order with the facts and options that its expressions use. */
static int make_design(struct plan *plan, struct failure *failure) {
    const struct campaign *campaign = plan->campaign;
    const struct experiment *experiment = campaign->experiment;
    size_t given_count;
    cleanup_free struct design_given *given = plan_given(experiment, &plan->facts, &given_count);
    struct design_factors factors = {.items = experiment->factors,
                                     .count = experiment->factor_count,
                                     .file = experiment->file,
                                     .given = given,
                                     .given_count = given_count,
                                     .facts_are_guessed =
                                         !plan->facts.known && campaign->testbed.backend != &testbed_local};
    int r = design_specification_make(campaign->design, &factors, &plan->design, &plan->order, failure);
    if (r < 0)
        return r;
    plan->uses_facts = design_uses_facts(plan->design);
    plan->is_tentative = factors.facts_are_guessed && plan->uses_facts;
    return 0;
}

/* Refuses rows whose units need more nodes or ranks than there are. Skipped while the facts are only guessed.
 */
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
    cleanup_free double *values = xcalloc(plan->design->column_count + 1, sizeof *values);
    int r = 0;
    for (size_t row = 0; r == 0 && row < plan->design->row_count; row++) {
        struct experiment_shape shape;
        design_numbers(plan->design, row, values);
        r = experiment_job_shape(experiment, values, &facts, &shape, failure);
        if (r == 0 && (double)shape.nodes > facts.run_nodes)
            r = expression_failure(experiment->job.counts[EXPERIMENT_COUNT_NODES], failure,
                                   "'nodes' is %zu, but the testbed has %g; expected at most as many",
                                   shape.nodes, facts.run_nodes);
        if (r == 0 && shape.ranks_per_node > plan->ranks_per_node)
            plan->ranks_per_node = shape.ranks_per_node;
    }
    return r;
}

int plan_check_memory(const struct plan *plan, const char *where, double cores, double available,
                      struct failure *failure) {
    bool is_on_cores = plan->campaign->experiment->placement == EXPERIMENT_PLACEMENT_CORE;
    double processes = is_on_cores ? cores : (double)plan->ranks_per_node, needed = plan->memory * processes;
    char need[NUMBER_TEXT_SIZE], each[NUMBER_TEXT_SIZE], have[NUMBER_TEXT_SIZE];
    if (needed <= available)
        return 0;
    return failure_set_kind(
        failure, FAILURE_INPUT, -ENOMEM,
        "the design needs %s of memory on %s (%.0f process%s of %s), but %s are available; expected "
        "smaller sizes or fewer processes",
        number_describe_bytes(needed, need), where, processes, processes == 1 ? "" : "es",
        number_describe_bytes(plan->memory, each), number_describe_bytes(available, have));
}

int plan_check_guess(const struct plan *plan, struct failure *failure) {
    cleanup(plan_cleanup) struct plan *known = NULL;
    struct plan_facts facts = plan->facts;
    facts.known = true;
    int r = plan_new(plan->campaign, &facts, &known, failure);
    return r < 0 ? r : plan_check_memory(known, "this machine", facts.cores, facts.memory, failure);
}

/* Makes the plan of a campaign: the design for FACTS and its order, then checks of every row. */
int plan_new(const struct campaign *campaign, const struct plan_facts *facts, struct plan **ret,
             struct failure *failure) {
    static int (*const steps[])(struct plan * plan, struct failure * failure) = {
        check_restoring,  check_controls, check_conditions, find_maxima,
        estimate_seconds, check_texts,    check_commands,   check_shapes};
    cleanup(plan_cleanup) struct plan *plan = xcalloc(1, sizeof *plan);
    plan->campaign = campaign;
    plan->facts = *facts;
    int r = make_design(plan, failure);
    if (r == 0)
        r = repeat_choose_response(campaign, &plan->repeat_response, failure);
    for (size_t i = 0; r == 0 && i < sizeof steps / sizeof *steps; i++)
        r = steps[i](plan, failure);
    if (r == 0)
        *ret = take_pointer(plan);
    return r;
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

static int append_columns(const struct plan *plan, size_t row, size_t count, struct text *text) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        char buffer[NUMBER_TEXT_SIZE];
        const char *value = design_value(plan->design, row, i, buffer);
        r = csv_append_field(text, false, value, strlen(value));
    }
    return r;
}

int plan_append_factors(const struct plan *plan, size_t row, struct text *text) {
    return append_columns(plan, row, first_control(plan), text);
}

int plan_append_row(const struct plan *plan, size_t row, struct text *text) {
    return append_columns(plan, row, plan->design->column_count, text);
}

size_t plan_control_count(const struct plan *plan) {
    return plan->design->control_count;
}

const char *plan_control_name(const struct plan *plan, size_t i) {
    return control_of_column(plan->design->columns[first_control(plan) + i].about.name);
}

const char *plan_control_value(const struct plan *plan, size_t row, size_t i) {
    const struct design_column *column = &plan->design->columns[first_control(plan) + i];
    return column->labels.texts[column->codes[row]];
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

static void set(struct plan_values *values, size_t i, const char *name, const char *value) {
    if (!values->names[i])
        values->names[i] = xstrdup(name);
    free(values->values[i]);
    values->values[i] = xstrdup(value);
    if (values->count <= i)
        values->count = i + 1;
}

static void set_number(struct plan_values *values, size_t i, const char *name, double value) {
    char text[NUMBER_TEXT_SIZE];
    number_format_double(value, text);
    set(values, i, name, text);
}

/* The values that commands may use and that are the same for all units; plan_values_set() adds those of one.
 */
struct plan_values plan_values_new(const struct plan *plan, size_t cpus) {
    const struct experiment *experiment = plan->campaign->experiment;
    size_t most =
        2 + experiment->option_count + experiment->maximum_count + UNIT_VALUES + plan->design->column_count;
    struct plan_values values = {.names = xcalloc(most, sizeof(char *)),
                                 .values = xcalloc(most, sizeof(char *))};
    set_number(&values, values.count, "cpus", (double)cpus);
    if (experiment->placement == EXPERIMENT_PLACEMENT_JOB)
        set(&values, values.count, "hostfile", JOB_HOST_FILE);
    for (size_t i = 0; i < experiment->option_count; i++)
        set(&values, values.count, experiment->options[i].factor.about.name, experiment->options[i].value);
    for (size_t i = 0; i < experiment->maximum_count; i++)
        set_number(&values, values.count, experiment->maxima[i].name, ceil(plan->maxima[i]));
    values.unit_from = values.count;
    return values;
}

/* Sets the values of the block and of the unit at POSITION. For a streamed kernel only those of the block: it
 * reads its units as rows. */
void plan_values_set(struct plan_values *values, const struct plan *plan, size_t position, size_t block) {
    size_t row = design_order_row(plan->order, position), at = values->unit_from;
    char buffer[NUMBER_TEXT_SIZE], variable[CONTROL_VARIABLE_SIZE];
    set_number(values, at++, "block", (double)block);
    for (size_t i = first_control(plan); i < plan->design->column_count; i++)
        set(values, at++, control_variable(plan->design->columns[i].about.name, variable),
            design_value(plan->design, row, i, buffer));
    if (plan->campaign->experiment->streamed)
        return;
    set_number(values, at++, "row", (double)row + 1);
    set_number(values, at++, "repetition", (double)design_order_repetition(plan->order, position) + 1);
    set_number(values, at++, "order", (double)position + 1);
    for (size_t i = 0; i < first_control(plan); i++)
        set(values, at++, plan->design->columns[i].about.name, design_value(plan->design, row, i, buffer));
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

char **plan_values_environment(const struct plan_values *values) {
    char **environment = xcalloc(values->count + 1, sizeof *environment);
    for (size_t i = 0; i < values->count; i++)
        environment[i] = xformat("%s=%s", values->names[i], values->values[i]);
    return environment;
}
