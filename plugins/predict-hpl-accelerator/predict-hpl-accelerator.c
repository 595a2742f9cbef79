/* The plugin predict-hpl-accelerator: see README.md for what it computes. */
#include "plugins/predict-hpl-accelerator/accelerator.h"

#include <assay/predict.h>

static const char *const kinds[] = {"linear", NULL};
static const struct predict_role roles[] = {
    {.name = "dgemm",
     .kinds = kinds,
     .is_time = true,
     .optional = true,
     .experiment = "dgemm",
     .help = "the time of dgemm over m, n, k on the accelerators of a process (its "
             "slowest group); replaces peak and dgemm-efficiency in the update"},
    {0},
};

enum {
    N,
    NB,
    P,
    Q,
    PEAK,
    DGEMM_EFFICIENCY,
    DTRSM_EFFICIENCY,
    PANEL_PEAK,
    PANEL_EFFICIENCY,
    PANEL_SHARE,
    LATENCY,
    BANDWIDTH,
    OVERLAP,
    SPLIT,
    NODE_ROWS,
    NODE_COLUMNS,
    NODE_LATENCY,
    NODE_BANDWIDTH
};

static const char *const overlaps[] = {
    [ACCELERATOR_NO_OVERLAP] = "none",
    [ACCELERATOR_LOOK_AHEAD] = "look-ahead",
    [ACCELERATOR_SPLIT] = "split",
    NULL,
};

#define SHARE(NAME, ...)                                                                                     \
    { NAME, PLUGIN_NUMBER, "1", .minimum = 1e-6, .maximum = 1, __VA_ARGS__ }

static const struct plugin_parameter parameters[] = {
    [N] = PREDICT_COUNT("N", 1e9, .required = true, .help = "order of the matrix"),
    [NB] = PREDICT_COUNT("NB", 1e6, .required = true, .plausible_minimum = 4, .plausible_maximum = 4096,
                         .help = "block size"),
    [P] = PREDICT_COUNT("P", 1e6, .required = true, .help = "rows of the process grid"),
    [Q] = PREDICT_COUNT("Q", 1e6, .required = true, .help = "columns of the process grid"),
    [PEAK] = PREDICT_RATE("peak", .required = true,
                          .help = "P_acc: peak rate of the accelerators of a process, from the data sheet"),
    [DGEMM_EFFICIENCY] = SHARE("dgemm-efficiency", .instead_of = "dgemm",
                               .help = "E_dgemm: share of the peak that dgemm reaches; needed unless a model "
                                       "has the role 'dgemm'"),
    [DTRSM_EFFICIENCY] = SHARE("dtrsm-efficiency",
                               .help = "E_dtrsm: share of the peak that dtrsm reaches; default: the rate of "
                                       "dgemm, or, with a model of dgemm, the rate of the first update"),
    [PANEL_PEAK] = PREDICT_RATE("panel-peak",
                                .help = "P_cpu|acc: peak rate of the processor that factors panels; default: "
                                        "peak"),
    [PANEL_EFFICIENCY] = SHARE("panel-efficiency", .default_text = "0.5",
                               .help = "E_cpu|dgemm: share of panel-peak that is reached"),
    [PANEL_SHARE] = {"panel-share", PLUGIN_NUMBER, "1", .minimum = 1e-6, .maximum = 1e3, .default_text = "1",
                     .help = "f_fact: flop of a panel divided by mp NB NB"},
    [LATENCY] = PREDICT_LATENCY(
        "latency", .help = "Lat: latency of a message between two nodes; needed unless P = Q = 1"),
    [BANDWIDTH] = PREDICT_BANDWIDTH(
        "bandwidth", .help = "BW: bandwidth of the network of a node; needed unless P = Q = 1"),
    [OVERLAP] = {"overlap", PLUGIN_WORD, .choices = overlaps, .default_text = "look-ahead",
                 .help = "what the update hides: nothing, the next panel, or also swaps of rows "
                         "(split update, rocHPL)"},
    [SPLIT] = SHARE("split", .default_text = "0.5",
                    .help = "for overlap=split: share of all columns that is updated last"),
    [NODE_ROWS] = PREDICT_COUNT("node-rows", 1e6, .default_text = "1",
                                .help = "rows of the part of the grid that is one node; divides P"),
    [NODE_COLUMNS] = PREDICT_COUNT("node-columns", 1e6, .default_text = "1",
                                   .help = "columns of the part of the grid that is one node; divides Q"),
    [NODE_LATENCY] = PREDICT_LATENCY(
        "node-latency", .help = "latency between two processes of a node; needed where a node has "
                                "several"),
    [NODE_BANDWIDTH] = PREDICT_BANDWIDTH(
        "node-bandwidth", .help = "bandwidth between two processes of a node; needed where a node has "
                                  "several"),
    {0},
};

enum { TIME, GFLOPS, EFFICIENCY, UPDATE, EXPOSED_PANELS, EXPOSED_SWAP, FACTORISATION, BROADCAST, SWAP };
static const struct column columns[] = {
    [TIME] = {"time", .unit = "s", .help = "update + exposed_panels + exposed_swap", .goal = COLUMN_LESS},
    [GFLOPS] = {"gflops", .unit = "Gflop/s", .help = "(2/3 N^3 + 3/2 N^2) / time, as HPL counts",
                .goal = COLUMN_MORE},
    [EFFICIENCY] = {"efficiency", .unit = "1", .help = "gflops divided by P Q peak", .goal = COLUMN_MORE},
    [UPDATE] = {"update", .unit = "s", .help = "time of the update: dgemm and dtrsm", .part_of = "time"},
    [EXPOSED_PANELS] = {"exposed_panels", .unit = "s",
                        .help = "time of factorisation and broadcast that no update hides",
                        .part_of = "time"},
    [EXPOSED_SWAP] = {"exposed_swap", .unit = "s", .help = "time of swaps of rows that no update hides",
                      .part_of = "time"},
    [FACTORISATION] = {"factorisation", .unit = "s", .help = "time for all panels, hidden or not",
                       .exact = true},
    [BROADCAST] = {"broadcast", .unit = "s", .help = "time for all panels, hidden or not", .exact = true},
    [SWAP] = {"swap", .unit = "s", .help = "time to swap rows and to broadcast U, hidden or not",
              .exact = true},
    {0},
};

static const struct column panel_columns[] = {
    {"panel", .unit = "1", .help = "first column of the panel"},
    {"panel_time", .unit = "s",
     .help = "time of the panel's iteration: the update, and what it does not hide"},
    {"panel_update", .unit = "s", .help = "time to update the trailing matrix"},
    {"panel_factorisation", .unit = "s", .help = "time for the panel, hidden or not"},
    {"panel_broadcast", .unit = "s", .help = "time for the panel, hidden or not"},
    {"panel_swap", .unit = "s", .help = "time to swap rows, hidden or not"},
    {0},
};
static const struct predict_table tables[] = {
    {"panels", "the time of each panel's iteration", PREDICT_CURVE, panel_columns},
    {0},
};

/* Limit of panels, which take 50 ns each. */
static const double panels_max = 1e6;

/* dgemm as one run uses it: by the model, or at a rate. */
struct machine {
    const struct predict_inputs *inputs;
    const struct predict_call *call; /* of the slowest group; NULL: no model */
    double rate;                     /* P_acc E_dgemm, flop/s; with a model that of the first update */
    struct predict_output *output;
    struct plugin_message *message;
    int error;
};

/* The time of one dgemm call of one process, s. After a failure machine->error is set: -EDOM if the model
 * predicts less than 0. */
static double dgemm(void *context, double m, double n, double k) {
    struct machine *machine = context;
    double sizes[] = {m, n, k};
    struct predict_value value = {0};
    if (!machine->call)
        return 2 * m * n * k / machine->rate;
    if (machine->error == 0)
        machine->error = machine->inputs->evaluate(machine->inputs->context, machine->call, sizes, &value,
                                                   machine->message);
    if (machine->error == 0 && !(value.mean >= 0))
        machine->error = plugin_refuse(machine->message, -EDOM,
                                       "the model '%s' predicts %g s for dgemm of m = %g, n = %g, k = %g; "
                                       "expected a time above 0",
                                       machine->inputs->sources[0]->file, value.mean, m, n, k);
    return machine->inputs->models[0][0]->response_seconds * value.mean;
}

static void panel_done(void *context, double column, const struct accelerator_time *panel) {
    struct machine *machine = context;
    double values[] = {column,           panel->update + panel->exposed_panels + panel->exposed_swap,
                       panel->update,    panel->factorisation,
                       panel->broadcast, panel->swap};
    (void)machine->output->table_row(machine->output->context, 0, values, NULL); /* the host remembers */
}

/* The state is a call for each group of the model; none without one. */
static int accelerator_open(const struct predict_inputs *inputs, void **ret, struct plugin_message *message) {
    const struct predict_call **calls = NULL;
    int r = predict_bind_dgemm(inputs, 0, &calls, message);
    *ret = calls;
    return r;
}

/* Chooses the group that takes longest for the first update, and sets the rate to that of this update. */
static void choose_group(const struct predict_call *const *calls, const struct accelerator_scenario *s,
                         struct machine *machine) {
    double longest = -INFINITY, sizes[] = {s->n / s->p, s->n / s->q, s->nb};
    for (size_t g = 0; calls[g]; g++) {
        double seconds = calls[g]->mean(calls[g], sizes) * machine->inputs->models[0][0]->response_seconds;
        if (seconds > longest || !machine->call) {
            longest = seconds;
            machine->call = calls[g];
            machine->rate = 2 * sizes[0] * sizes[1] * sizes[2] / seconds;
        }
    }
}

/* Reads the parameters. -EINVAL: one is missing, or grid and nodes do not fit; -EDOM: too many panels. */
static int read_scenario(const struct plugin_value *values, bool has_model, struct accelerator_scenario *s,
                         struct plugin_message *message) {
    double processes = values[P].number * values[Q].number,
           local = values[NODE_ROWS].number * values[NODE_COLUMNS].number;
    bool needs[] = {[LATENCY] = processes > local,
                    [BANDWIDTH] = processes > local,
                    [NODE_LATENCY] = local > 1,
                    [NODE_BANDWIDTH] = local > 1,
                    [DGEMM_EFFICIENCY] = !has_model};
    for (size_t i = 0; i < sizeof needs / sizeof *needs; i++)
        if (needs[i] && isnan(values[i].number))
            return plugin_refuse(
                message, -EINVAL, "%s is not set (%s)%s", parameters[i].name, parameters[i].help,
                i == DGEMM_EFFICIENCY ? "; to make such a model, run the experiment dgemm and fit its archive"
                                      : "; take it from a data sheet or the experiment mpi-point-to-point");
    if (values[NB].number > values[N].number)
        return plugin_refuse(message, -EINVAL,
                             "the block size NB = %g is larger than the order of the matrix, N = "
                             "%g; set a smaller NB",
                             values[NB].number, values[N].number);
    if (fmod(values[P].number, values[NODE_ROWS].number) != 0 ||
        fmod(values[Q].number, values[NODE_COLUMNS].number) != 0)
        return plugin_refuse(message, -EINVAL,
                             "a node of %g x %g processes does not divide the grid of %g x %g; set "
                             "node-rows to a divisor of P, and node-columns to a divisor of Q",
                             values[NODE_ROWS].number, values[NODE_COLUMNS].number, values[P].number,
                             values[Q].number);
    if (values[N].number / values[NB].number > panels_max)
        return plugin_refuse(message, -EDOM,
                             "the matrix has %.0f panels (N / NB); expected at most %g: set a "
                             "larger NB",
                             values[N].number / values[NB].number, panels_max);
    double peak = values[PEAK].number, panel_peak = values[PANEL_PEAK].number;
    *s = (struct accelerator_scenario){
        .n = values[N].number,
        .nb = values[NB].number,
        .p = values[P].number,
        .q = values[Q].number,
        .panel_share = values[PANEL_SHARE].number,
        .panel_rate = (isnan(panel_peak) ? peak : panel_peak) * values[PANEL_EFFICIENCY].number,
        .overlap = (enum accelerator_overlap)values[OVERLAP].number,
        .split = values[SPLIT].number,
        .links = {{values[LATENCY].number, values[BANDWIDTH].number},
                  {values[NODE_LATENCY].number, values[NODE_BANDWIDTH].number}},
        .node_rows = values[NODE_ROWS].number,
        .node_columns = values[NODE_COLUMNS].number,
    };
    return 0;
}

/* Predicts one scenario. */
static int accelerator_run(void *state, const struct predict_inputs *inputs,
                           const struct plugin_value *values, double *ret, struct predict_output *output,
                           struct plugin_message *message) {
    struct accelerator_scenario s;
    struct machine machine = {.inputs = inputs, .output = output, .message = message};
    int r = read_scenario(values, inputs->model_counts[0] > 0, &s, message);
    if (r < 0)
        return r;
    machine.rate = values[PEAK].number * values[DGEMM_EFFICIENCY].number;
    choose_group(state, &s, &machine);
    s.dtrsm_rate = isnan(values[DTRSM_EFFICIENCY].number)
                       ? machine.rate
                       : values[PEAK].number * values[DTRSM_EFFICIENCY].number;
    struct accelerator_time time =
        accelerator_predict(&s, dgemm, output->wants(output->context, 0) ? panel_done : NULL, &machine);
    ret[TIME] = time.update + time.exposed_panels + time.exposed_swap;
    ret[GFLOPS] = (2.0 / 3.0 * s.n + 1.5) * s.n * s.n / ret[TIME] / 1e9;
    ret[EFFICIENCY] = 1e9 * ret[GFLOPS] / (s.p * s.q * values[PEAK].number);
    ret[UPDATE] = time.update;
    ret[EXPOSED_PANELS] = time.exposed_panels;
    ret[EXPOSED_SWAP] = time.exposed_swap;
    ret[FACTORISATION] = time.factorisation;
    ret[BROADCAST] = time.broadcast;
    ret[SWAP] = time.swap;
    return machine.error;
}

ASSAY_PREDICT_PLUGIN("hpl-accelerator", ASSAY_VERSION,
                     "HPL's time on nodes with accelerators, with look-ahead and split "
                     "update",
                     .roles = roles, .parameters = parameters, .columns = columns, .open = accelerator_open,
                     .run = accelerator_run, .close = free, .tables = tables);
