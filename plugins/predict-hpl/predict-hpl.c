/* The plugin predict-hpl: see README.md for what it computes. */
#include "engine/numerics/distribution.h"
#include "plugins/predict-hpl/hpl.h"

#include <assay/predict.h>

#include <stdlib.h>
#include <string.h>

static const char *const kinds[] = {"linear", NULL};
static const struct predict_role roles[] = {
    {.name = "dgemm",
     .kinds = kinds,
     .is_time = true,
     .help = "the time of dgemm over m, n, k, such as M-2",
     .experiment = "dgemm"},
    {0},
};

enum { N, NB, P, Q, LATENCY, BANDWIDTH, SPEED, PANELS, RANKS_PER_CARD, PANEL_RATE, PARAMETER_COUNT };

static const char *const speed_words[] = {"mean", "slowest", "waiting", NULL};
enum { SPEED_MEAN, SPEED_SLOWEST, SPEED_WAITING };
static const char *const panel_words[] = {"recursive", "asymptotic", NULL};
enum { PANELS_RECURSIVE };

static const struct plugin_parameter parameters[PARAMETER_COUNT + 1] = {
    [N] = PREDICT_COUNT("N", 1e9, .required = true, .help = "order of the matrix"),
    [NB] = PREDICT_COUNT("NB", 1e6, .required = true, .plausible_minimum = 4, .plausible_maximum = 4096,
                         .help = "block size"),
    [P] = PREDICT_COUNT("P", 1e6, .required = true, .help = "rows of the process grid"),
    [Q] = PREDICT_COUNT("Q", 1e6, .required = true, .help = "columns of the process grid"),
    [LATENCY] = PREDICT_LATENCY(
        "latency", .help = "latency of a message between two processes; needed unless P = Q = 1"),
    [BANDWIDTH] =
        PREDICT_BANDWIDTH("bandwidth", .help = "bandwidth between two processes; needed unless P = Q = 1"),
    [SPEED] = {"speed", PLUGIN_WORD, .choices = speed_words, .default_text = "slowest",
               .help = "which dgemm speed all processes have: the mean of the model's groups "
                       "(too fast for many processes), the slowest group, or the slowest "
                       "single calls, for which every panel waits"},
    [PANELS] = {"panels", PLUGIN_WORD, .choices = panel_words, .default_text = "recursive",
                .help = "how panels are factored: recursively by dgemm of their halves, or at "
                        "the asymptotic rate of dgemm"},
    [RANKS_PER_CARD] = PREDICT_COUNT("ranks-per-card", 1e6, .default_text = "1",
                                     .help = "number of processes of a node that share one network card"),
    [PANEL_RATE] = {"panel-rate", PLUGIN_NUMBER, "flop/s", .minimum = 1, .maximum = 1e18,
                    .plausible_minimum = 1e7, .plausible_maximum = 1e15,
                    .help = "rate at which a process factors panels; replaces the rate that "
                            "'panels' gives"},
};

enum {
    TIME,
    GFLOPS,
    FACTORISATION,
    BROADCAST,
    UPDATE,
    SWAP,
    TIME_CLOSED,
    GAMMA,
    MEMORY,
    OUTSIDE,
    EFFICIENCY,
    LINEAR
};

static const struct column columns[] = {
    [TIME] = {"time", .unit = "s", .help = "sum over the panels: factorisation + broadcast + update + swap",
              .goal = COLUMN_LESS},
    [GFLOPS] = {"gflops", .unit = "Gflop/s", .help = "(2/3 N^3 + 3/2 N^2) / time, as HPL counts",
                .goal = COLUMN_MORE},
    [FACTORISATION] = {"factorisation", .unit = "s", .help = "time of the panel factorisations",
                       .part_of = "time"},
    [BROADCAST] = {"broadcast", .unit = "s",
                   .help = "time to broadcast the panels along the rows of the grid", .exact = true,
                   .part_of = "time"},
    [UPDATE] = {"update", .unit = "s",
                .help = "time to update the trailing matrix: dgemm, by the model, and dtrsm",
                .part_of = "time"},
    [SWAP] = {"swap", .unit = "s",
              .help = "time to swap rows and to broadcast U along the columns of the grid", .exact = true,
              .part_of = "time"},
    [TIME_CLOSED] = {"time_closed", .unit = "s",
                     .help = "time by the closed formula, which uses gamma3 for all computation",
                     .detail = true},
    [GAMMA] = {"gamma3", .unit = "s/{flop}", .help = "half the model's coefficient of m*n*k", .detail = true},
    [MEMORY] = {"memory", .unit = "By", .help = "memory of the matrix in one process: 8 N (N + 1) / (P Q)",
                .detail = true, .exact = true},
    [OUTSIDE] = {"outside", .unit = "1", .help = "share of the dgemm time that is extrapolated",
                 .exact = true},
    [EFFICIENCY] = {"efficiency", .unit = "1",
                    .help = "gflops divided by P Q / gamma3, the asymptotic rate of dgemm"},
    [LINEAR] = {"gflops_linear", .unit = "Gflop/s",
                .help = "naive baseline, linear scaling: P Q times the rate of one process "
                        "alone, with its share of the memory"},
    {.name = NULL},
};

/* The table `panels`: a row for each panel of the factorisation. Times are s. */
static const struct column panel_columns[] = {
    {"panel", .unit = "1", .help = "first column of the panel"},
    {"panel_time", .unit = "s", .help = "time of the panel: factorisation + broadcast + update + swap"},
    {"panel_factorisation", .unit = "s", .help = "time to factor the panel"},
    {"panel_broadcast", .unit = "s", .help = "time to broadcast the panel along the rows of the grid"},
    {"panel_update", .unit = "s", .help = "time to update the trailing matrix"},
    {"panel_swap", .unit = "s", .help = "time to swap rows and to broadcast U"},
    {.name = NULL},
};
/* The table `changes`: the gain from a better network, dgemm or memory. */
static const struct column change_columns[] = {
    {"change", .help = "change: what is 10 % better, or N_half, the order at which half of "
                       "the rate is reached"},
    {"changed_N", .unit = "1", .help = "order of the matrix"},
    {"changed_time", .unit = "s", .help = "value with the change"},
    {"changed_gflops", .unit = "Gflop/s", .help = "value with the change"},
    {"gain", .unit = "%", .help = "gain in gflops"},
    {.name = NULL},
};
enum { TABLE_PANELS, TABLE_CHANGES };
static const struct predict_table tables[] = {
    {"panels",
     "the time of each panel; if there are more than 1024 panels, of 1025 "
     "of them",
     PREDICT_CURVE, panel_columns},
    {"changes", "the gain from 10 % better network, dgemm and memory, and N_half", PREDICT_ROWS,
     change_columns},
    {.name = NULL},
};

/* Nodes of the quadrature over panels: for a draw and for searches fewer suffice, since its error stays far
 * below the interval. */
enum { NODES = 1024, NODES_DRAW = 128, NODES_SEARCH = 32 };
/* With this many processes or more, some most likely share a node. */
enum { PROCESSES_MANY = 16 };
/* Effects above this share of the time get a warning. */
static const double noteworthy = 0.01;

/* ---- dgemm by the model */

/* dgemm by the model, as one run uses it, and sums over the calls for remarks. */
struct machine {
    const struct predict_inputs *inputs;
    const struct model *model;
    const struct predict_call *const *calls; /* of each group */
    struct predict_output *output;
    struct plugin_message *message;
    int error;
    double seconds;      /* one unit of the response */
    size_t first, count; /* groups: all of them, or one */
    double wait; /* of SPEED_WAITING: the share of calls that are faster than the slowest of all processes;
                    else 0 */
    double gamma;
    double rows;            /* of the matrix in a process, for the progress; 0: it is not reported */
    double *means, *sigmas; /* of HPL_CALLS_MAX calls of each group */
    /* Sums over all dgemm of one process, s: also of what is extrapolated, and of those whose time was not
     * positive; over those of updates the variance, s^2: the noise of a model need not hold for the small
     * calls of a panel, and these are many. */
    double all, outside, replaced, variance;
};

/* Sets gamma, half the mean coefficient of m*n*k over the groups in use. -EINVAL (-EDOM in a draw): a
 * coefficient is not above 0. */
static int find_gamma(struct machine *machine) {
    const struct model *model = machine->model;
    size_t product = predict_product_term(model);
    double sum = 0;
    for (size_t g = machine->first; g < machine->first + machine->count; g++) {
        double value = model->groups[g].parts[0].estimates[product].estimate;
        if (!(value > 0))
            return plugin_refuse(machine->message, machine->inputs->is_draw ? -EDOM : -EINVAL,
                                 "the coefficient of m*n*k of the group '%s' in '%s' is %g; expected a "
                                 "coefficient above 0",
                                 model->groups[g].name, machine->inputs->sources[0]->file, value);
        sum += value;
    }
    machine->gamma = machine->seconds * sum / (double)machine->count / 2;
    return 0;
}

/* The time of call I that the share WAIT of all calls is below, each group being equally likely; by
 * bisection. */
static double slowest_call(const struct machine *machine, size_t i) {
    const double *means = machine->means + i, *sigmas = machine->sigmas + i;
    double low = INFINITY, high = -INFINITY;
    size_t end = machine->count * HPL_CALLS_MAX;
    for (size_t g = 0; g < end; g += HPL_CALLS_MAX) {
        low = fmin(low, means[g] - 9 * sigmas[g]);
        high = fmax(high, means[g] + 9 * sigmas[g]);
    }
    while (high - low > 1e-9 * fabs(high)) {
        double middle = (low + high) / 2, above = 0;
        for (size_t g = 0; g < end; g += HPL_CALLS_MAX) {
            double off = middle - means[g];
            above += sigmas[g] > 0 ? distribution_normal_upper(off / sigmas[g]) : off < 0;
        }
        if (above > (1 - machine->wait) * (double)machine->count)
            low = middle;
        else
            high = middle;
    }
    return (low + high) / 2;
}

/* Adds the times of the calls by group GROUP, which is SHARE of the processes, to calls->seconds, and their
 * variances where noise matters. Where the model's time is not positive, 2 m n k gamma is used and counted in
 * `replaced`. */
static void add_group(struct machine *machine, size_t group, double share, struct hpl_calls *calls,
                      double *variances) {
    const double *const sizes[] = {calls->m, calls->n, calls->k};
    double *means = machine->means + group * HPL_CALLS_MAX, *sigmas = machine->sigmas + group * HPL_CALLS_MAX;
    bool outside[HPL_CALLS_MAX], has_noise = machine->wait > 0 || machine->inputs->is_draw;
    machine->error = machine->inputs->evaluate_rows(
        machine->inputs->context, machine->calls[machine->first + group], sizes, calls->count, means,
        has_noise ? sigmas : NULL, outside, machine->message);
    double all = 0, extrapolated = 0, replaced = 0;
    for (size_t i = 0; machine->error == 0 && i < calls->count; i++) {
        double seconds = machine->seconds * means[i], weight = calls->times[i] * share;
        if (!(seconds > 0)) {
            seconds = 2 * calls->m[i] * calls->n[i] * calls->k[i] * machine->gamma;
            replaced += weight * seconds;
        }
        means[i] = seconds;
        extrapolated += weight * (outside[i] ? seconds : 0);
        all += weight * seconds;
        calls->seconds[i] += share * seconds;
    }
    for (size_t i = 0; has_noise && machine->error == 0 && i < calls->count; i++) {
        sigmas[i] = machine->seconds * sigmas[i] > 0 ? machine->seconds * sigmas[i] : 0;
        variances[i] += share * share * sigmas[i] * sigmas[i];
    }
    machine->all += all;
    machine->outside += extrapolated;
    machine->replaced += replaced;
}

/* The times of dgemm calls of one process (hpl.h). After a failure machine->error is set. */
static void dgemm(void *context, struct hpl_calls *calls) {
    struct machine *machine = context;
    double variances[HPL_CALLS_MAX] = {0};
    memset(calls->seconds, 0, sizeof calls->seconds);
    for (size_t g = 0; machine->error == 0 && g < machine->count; g++)
        add_group(machine, g, 1 / (double)machine->count, calls, variances);
    if (calls->is_update && calls->count > 0 && machine->error == 0 && machine->rows > 0)
        machine->error = machine->output->progress(machine->output->context,
                                                   1 - calls->m[calls->count - 1] / machine->rows);
    for (size_t i = 0; calls->is_update && i < calls->count; i++) {
        machine->variance += calls->times[i] * variances[i];
        if (machine->wait > 0 && machine->error == 0)
            calls->seconds[i] = slowest_call(machine, i);
    }
}

static void add_panel(void *context, const struct hpl_panel *panel) {
    struct machine *machine = context;
    double values[] = {
        panel->column,        panel->factorisation + panel->broadcast + panel->update + panel->swap,
        panel->factorisation, panel->broadcast,
        panel->update,        panel->swap};
    if (machine->error == 0)
        machine->error = machine->output->table_row(machine->output->context, 0, values, NULL);
}

/* ---- A scenario */

/* Reads the parameters. -EINVAL: the network is not known; -EDOM: NB is larger than N. */
static int read_scenario(const struct plugin_value *values, struct hpl_scenario *ret,
                         struct plugin_message *message) {
    bool is_alone = values[P].number == 1 && values[Q].number == 1;
    double latency = values[LATENCY].number, bandwidth = values[BANDWIDTH].number;
    if (!is_alone && (isnan(latency) || isnan(bandwidth)))
        return plugin_refuse(message, -EINVAL,
                             "the %s is not set; a grid of %g x %g processes needs both latency and "
                             "bandwidth",
                             isnan(latency) ? "latency" : "bandwidth", values[P].number, values[Q].number);
    if (values[NB].number > values[N].number)
        return plugin_refuse(message, -EDOM,
                             "the block size NB = %g is larger than the order of the matrix, N = "
                             "%g; set a smaller NB",
                             values[NB].number, values[N].number);
    *ret = (struct hpl_scenario){
        .n = values[N].number,
        .nb = values[NB].number,
        .p = values[P].number,
        .q = values[Q].number,
        .latency = isnan(latency) ? 0 : latency,
        .word = isnan(bandwidth) ? 0 : 8 / bandwidth,
        .ranks_per_card = fmin(values[RANKS_PER_CARD].number, values[P].number * values[Q].number),
        .recursive = values[PANELS].number == PANELS_RECURSIVE && !values[PANEL_RATE].is_set,
        .least_half = 1,
        .panel_gamma = values[PANEL_RATE].is_set ? 1 / values[PANEL_RATE].number : 0,
    };
    return 0;
}

/* The smallest k or n that the model was calibrated for: narrower halves of a panel go at its rate. */
static double find_least_half(const struct machine *machine) {
    double least = 1;
    for (size_t g = machine->first; g < machine->first + machine->count; g++) {
        const struct model_part *part = &machine->model->groups[g].parts[0];
        for (size_t i = 0; i < part->domain_count; i++)
            if (strcmp(part->domain[i].name, "n") == 0 || strcmp(part->domain[i].name, "k") == 0)
                least = fmax(least, part->domain[i].minimum);
    }
    return least;
}

/* The group that takes longest for the updates of this scenario. */
static size_t find_slowest(const struct machine *machine, const struct hpl_scenario *scenario) {
    struct hpl_scenario rough = *scenario;
    size_t slowest = 0;
    double longest = -INFINITY;
    rough.nodes_max = NODES_SEARCH;
    rough.recursive = false;
    for (size_t g = 0; g < machine->model->group_count; g++) {
        struct machine one = *machine;
        one.first = g;
        one.count = 1;
        double seconds = find_gamma(&one) == 0 ? hpl_predict(&rough, dgemm, NULL, &one).update : NAN;
        if (seconds > longest) {
            longest = seconds;
            slowest = g;
        }
    }
    return slowest;
}

/* Chooses the groups whose speed the processes have, by SPEED, with a remark. -EINVAL as find_gamma(). */
static int choose_groups(struct machine *machine, struct hpl_scenario *scenario, int speed,
                         struct predict_output *output) {
    const struct model *model = machine->model;
    double processes = scenario->p * scenario->q;
    machine->count = model->group_count;
    int r = find_gamma(machine); /* all of them must be positive */
    if (r == 0 && speed == SPEED_SLOWEST && model->group_count > 1) {
        machine->first = find_slowest(machine, scenario);
        machine->count = 1;
        predict_remark(output, false,
                       "every process has the speed of '%s', the slowest of the %zu groups of "
                       "the model",
                       model->groups[machine->first].name, model->group_count);
        r = find_gamma(machine);
    } else if (r == 0 && speed == SPEED_MEAN && model->group_count > 1) {
        predict_remark(
            output, processes > 1, "every process has the mean speed of the %zu groups of the model%s",
            model->group_count,
            processes > 1 ? "; the predicted time is too short, because HPL waits for the slowest process"
                          : "");
    } else if (speed == SPEED_WAITING && processes > 1) {
        machine->wait = (processes - 0.375) / (processes + 0.25); /* G. Blom, 1958 */
    }
    scenario->gamma = machine->gamma;
    scenario->least_half = find_least_half(machine);
    return r;
}

/* Warns of idle processes, of terms taken as 0, of replaced times, and of a model without a domain. */
static void warn(const struct hpl_scenario *s, const struct hpl_time *time, const struct machine *machine,
                 struct predict_output *output) {
    double blocks = ceil(s->n / s->nb); /* including a last narrow one, which also occupies a process */
    if (s->p > blocks || s->q > blocks)
        predict_remark(output, true,
                       "some processes have no rows or columns: the matrix has %g x %g blocks "
                       "for a grid of %g x %g processes; set a smaller NB or a smaller grid",
                       blocks, blocks, s->p, s->q);
    /* A narrow last panel is nearly always among them, and weighs nothing. */
    if (time->hidden > noteworthy * time->factorisation)
        predict_remark(output, true,
                       "the published factorisation term is negative for %.0f of %.0f panels, "
                       "where it is taken as 0: the grid has too many rows P for these panels",
                       time->clamped, time->panels);
    if (machine->replaced > noteworthy * machine->all)
        predict_remark(output, true,
                       "the model's time of dgemm is not positive for some calls; 2mnk gamma3 "
                       "was used instead, for %.0f %% of the dgemm time",
                       100 * machine->replaced / machine->all);
    if (machine->model->groups[0].parts[0].domain_count == 0)
        predict_remark(output, false,
                       "the model states no domain, so that it is not known whether it was "
                       "calibrated for these sizes");
}

/* ---- Changed scenarios */

static double seconds_of(const struct hpl_time *time) {
    return time->factorisation + time->broadcast + time->update + time->swap;
}

/* The seconds of SCENARIO, summed by fewer nodes, with dgemm in FACTOR of its time; NaN: not possible.
 * MACHINE is unchanged. */
static double predict_other(const struct machine *machine, struct hpl_scenario scenario, double factor) {
    struct machine own = *machine;
    own.rows = 0; /* no progress */
    own.seconds *= factor;
    own.gamma *= factor;
    own.wait = scenario.p * scenario.q > 1 ? own.wait : 0;
    scenario.gamma *= factor;
    scenario.nodes_max = NODES_SEARCH;
    struct hpl_time time = hpl_predict(&scenario, dgemm, NULL, &own);
    return own.error == 0 ? seconds_of(&time) : NAN;
}

/* The flop/s of all processes if each ran at the rate of one process alone with its share of the memory. */
static double predict_linear(const struct machine *machine, struct hpl_scenario scenario) {
    double processes = scenario.p * scenario.q;
    scenario.n = fmax(scenario.n / sqrt(processes), scenario.nb);
    scenario.p = scenario.q = scenario.ranks_per_card = 1;
    return processes * hpl_flops(scenario.n) / predict_other(machine, scenario, 1);
}

/* The order of the matrix at which half of RATE is reached, by bisection; NaN: one block is faster. */
static double find_half(const struct machine *machine, const struct hpl_scenario *scenario, double rate) {
    struct hpl_scenario other = *scenario;
    double low = scenario->nb, high = scenario->n;
    while (high - low > 0.5) {
        other.n = (low + high) / 2;
        *(hpl_flops(other.n) / predict_other(machine, other, 1) < rate / 2 ? &low : &high) = other.n;
    }
    return low > scenario->nb ? ceil(high) : NAN;
}

/* Adds a row to the table `changes` for each change. */
static void add_changes(const struct machine *machine, const struct hpl_scenario *scenario) {
    static const struct {
        const char *label;
        double latency, word, dgemm, memory;
    } changes[] = {
        {"none", 1, 1, 1, 1},
        {"latency 10 % less", 0.9, 1, 1, 1},
        {"bandwidth 10 % more", 1, 1 / 1.1, 1, 1},
        {"network 10 % better", 0.9, 1 / 1.1, 1, 1},
        {"dgemm 10 % faster", 1, 1, 1 / 1.1, 1},
        {"memory 10 % more and a larger N", 1, 1, 1, 1.1},
        {"half of the rate: N_half", 1, 1, 1, 0},
    };
    double rate = hpl_flops(scenario->n) / predict_other(machine, *scenario, 1);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        struct hpl_scenario other = *scenario;
        other.latency *= changes[i].latency;
        other.word *= changes[i].word;
        other.n = changes[i].memory > 0 ? floor(scenario->n * sqrt(changes[i].memory))
                                        : find_half(machine, scenario, rate);
        double seconds = isnan(other.n) ? NAN : predict_other(machine, other, changes[i].dgemm);
        double values[] = {NAN, other.n, seconds, hpl_flops(other.n) / seconds / 1e9,
                           100 * (hpl_flops(other.n) / seconds / rate - 1)};
        const char *texts[] = {changes[i].label, NULL, NULL, NULL, NULL};
        (void)machine->output->table_row(machine->output->context, TABLE_CHANGES, values, texts);
    }
}

/* Fills in the columns of the result. */
static void fill_result(const struct hpl_scenario *s, const struct hpl_time *time,
                        const struct machine *machine, double *ret) {
    ret[TIME] = seconds_of(time);
    ret[GFLOPS] = hpl_flops(s->n) / ret[TIME] / 1e9;
    ret[FACTORISATION] = time->factorisation;
    ret[BROADCAST] = time->broadcast;
    ret[UPDATE] = time->update;
    ret[SWAP] = time->swap;
    ret[TIME_CLOSED] = time->closed;
    ret[GAMMA] = s->gamma;
    ret[MEMORY] = 8 * s->n * (s->n + 1) / (s->p * s->q);
    ret[OUTSIDE] = machine->all > 0 ? machine->outside / machine->all : 0;
    ret[EFFICIENCY] = 1e9 * ret[GFLOPS] * s->gamma / (s->p * s->q);
    ret[LINEAR] = s->p * s->q > 1 ? predict_linear(machine, *s) / 1e9 : ret[GFLOPS];
}

/* The state is a call for each group. */
static int hpl_open(const struct predict_inputs *inputs, void **ret_state, struct plugin_message *message) {
    const struct predict_call **calls = NULL;
    int r = predict_bind_dgemm(inputs, 0, &calls, message);
    *ret_state = calls;
    return r;
}

/* Predicts one scenario. */
static int hpl_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                   double *ret_values, struct predict_output *output, struct plugin_message *message) {
    struct hpl_scenario scenario;
    struct machine machine = {.inputs = inputs,
                              .model = inputs->models[0][0],
                              .calls = state,
                              .output = output,
                              .message = message};
    int r = read_scenario(values, &scenario, message);
    if (r < 0)
        return r;
    machine.seconds = machine.model->response_seconds;
    machine.means = calloc(2 * HPL_CALLS_MAX * machine.model->group_count, sizeof *machine.means);
    if (!machine.means)
        return -ENOMEM;
    machine.sigmas = machine.means + HPL_CALLS_MAX * machine.model->group_count;
    r = choose_groups(&machine, &scenario, (int)values[SPEED].number, output);
    if (r == 0) {
        scenario.nodes_max = inputs->is_draw ? NODES_DRAW : NODES;
        bool has_panels = output->wants(output->context, TABLE_PANELS);
        machine.rows = scenario.n / scenario.p;
        struct hpl_time time = hpl_predict(&scenario, dgemm, has_panels ? add_panel : NULL, &machine);
        if (inputs->is_draw && machine.wait == 0) /* a sum of many is normal, whatever each of them is */
            time.update += sqrt(machine.variance) * inputs->normal(inputs->context, "noise", 0);
        if (!values[RANKS_PER_CARD].is_set && scenario.p * scenario.q >= PROCESSES_MANY)
            predict_remark(output, false,
                           "each of the %g processes is assumed to have its own network card; "
                           "where the processes of a node share a card, set "
                           "ranks-per-card=PROCESSES-A-NODE",
                           scenario.p * scenario.q);
        fill_result(&scenario, &time, &machine, ret_values);
        warn(&scenario, &time, &machine, output);
        if (output->wants(output->context, TABLE_CHANGES))
            add_changes(&machine, &scenario);
        r = machine.error;
    }
    free(machine.means);
    return r;
}

ASSAY_PREDICT_PLUGIN("hpl", ASSAY_VERSION,
                     "HPL's time by the analytic model of HPL's authors and a model of dgemm", .roles = roles,
                     .parameters = parameters, .columns = columns, .open = hpl_open, .run = hpl_run,
                     .close = free, .tables = tables);
