/* The plugin predict-hpl-layers: see README.md for what it computes. */
#include "plugins/predict-hpl-layers/layers.h"

#include <assay/predict.h>

static const char *const kinds[] = {"linear", NULL};
enum { DGEMM, LAYER };
static const struct predict_role roles[] = {
    [DGEMM] = {.name = "dgemm",
               .kinds = kinds,
               .is_time = true,
               .optional = true,
               .experiment = "dgemm",
               .help = "the time of dgemm over m, n, k; its slowest group gives the rate"},
    [LAYER] = {.name = "layer",
               .kinds = kinds,
               .is_time = true,
               .optional = true,
               .many = true,
               .experiment = "transfer",
               .help = "latency and bandwidth of a layer between processes, by 'assay fit "
                       "transfer' (its slowest group); several models: nearest layer first"},
    {0},
};

enum { N, NB, P, Q, RATE, CORES, FLOPS, CLOCK, MEMORY, WORDS, CYCLES, LAYERS };
enum { LATENCY, BANDWIDTH, PROCESSES, LAYER_PARAMETERS };

#define LAYER_NAMES(J)                                                                                       \
    PREDICT_LATENCY("latency-" #J, .help = "latency of layer " #J),                                          \
        PREDICT_BANDWIDTH("bandwidth-" #J,                                                                   \
                          .help = "bandwidth of layer " #J "; layers without a bandwidth do not exist"),     \
        PREDICT_COUNT("processes-" #J, 1e12,                                                                 \
                      .help = "number of processes that layer " #J " joins; the last layer joins all P Q")

static const struct plugin_parameter parameters[] = {
    [N] = PREDICT_COUNT("N", 1e9, .required = true, .help = "order of the matrix"),
    [NB] = PREDICT_COUNT("NB", 1e6, .required = true, .plausible_minimum = 4, .plausible_maximum = 4096,
                         .help = "block size"),
    [P] = PREDICT_COUNT("P", 1e6, .required = true, .help = "rows of the process grid"),
    [Q] = PREDICT_COUNT("Q", 1e6, .required = true, .help = "columns of the process grid"),
    [RATE] = PREDICT_RATE("rate", .instead_of = "dgemm",
                          .help = "rate of large dgemm in one process, 1/gamma3; default: the rate of "
                                  "the model, or else cores x flops x clock"),
    [CORES] = {"cores", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e9,
               .help = "C: number of cores of the accelerator; if set, layer 1 is the memory "
                       "of the accelerator"},
    [FLOPS] = {"flops", PLUGIN_NUMBER, "1", .minimum = 1e-3, .maximum = 1e6, .instead_of = "dgemm",
               .help = "F: flop of a core of the accelerator in a cycle; default 1"},
    [CLOCK] = {"clock", PLUGIN_NUMBER, "Hz", .minimum = 1, .maximum = 1e12, .plausible_minimum = 1e8,
               .plausible_maximum = 1e10, .help = "S: clock of the accelerator"},
    [MEMORY] = {"memory-bandwidth", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15,
                .plausible_minimum = 1e9, .plausible_maximum = 1e14,
                .help = "8 M W H: bandwidth of all memory of the accelerator"},
    [WORDS] = {"memory-words", PLUGIN_NUMBER, "1", .minimum = 1, .maximum = 1e6,
               .help = "M W: number of 8-byte words that the accelerator's memory controllers "
                       "read at once; default: the paper's simple sum, where all "
                       "communication has the whole bandwidth"},
    [CYCLES] = {"memory-cycles", PLUGIN_NUMBER, "1", .minimum = 0, .maximum = 1e9,
                .help = "latency of the accelerator's memory, in cycles of its clock"},
    [LAYERS] = LAYER_NAMES(1),
    LAYER_NAMES(2),
    LAYER_NAMES(3),
    LAYER_NAMES(4),
    LAYER_NAMES(5),
    LAYER_NAMES(6),
    {0},
};
_Static_assert(sizeof parameters / sizeof *parameters == LAYERS + LAYER_PARAMETERS * LAYERS_MAX + 1,
               "a layer is missing");

enum {
    TIME,
    GFLOPS,
    EFFICIENCY,
    COMPUTATION,
    PIVOTS,
    BROADCAST,
    SWAP,
    TIME_PRINTED,
    GFLOPS_PRINTED,
    TIME_ORIGINAL,
    GFLOPS_ORIGINAL,
    PADDED
};
static const struct column columns[] = {
    [TIME] = {"time", .unit = "s",
              .help = "time by the additive form: a sum over panels, each with the layer "
                      "that holds it",
              .goal = COLUMN_LESS},
    [GFLOPS] = {"gflops", .unit = "Gflop/s", .help = "(2/3 N^3 + 3/2 N^2) / time, as HPL counts",
                .goal = COLUMN_MORE},
    [EFFICIENCY] = {"efficiency", .unit = "1", .help = "gflops divided by P Q rate", .goal = COLUMN_MORE},
    [COMPUTATION] = {"computation", .unit = "s", .help = "time of factorisation and update at the rate",
                     .part_of = "time"},
    [PIVOTS] = {"pivots", .unit = "s", .help = "time to search and exchange pivots", .part_of = "time"},
    [BROADCAST] = {"broadcast", .unit = "s", .help = "time to broadcast the panels", .part_of = "time"},
    [SWAP] = {"swap", .unit = "s", .help = "time to swap rows and to broadcast U", .part_of = "time"},
    [TIME_PRINTED] = {"time_printed", .unit = "s",
                      .help = "time by equations (25) to (29) as they are printed"},
    [GFLOPS_PRINTED] = {"gflops_printed", .unit = "Gflop/s", .help = "rate by time_printed"},
    [TIME_ORIGINAL] = {"time_original", .unit = "s",
                       .help = "time by equation (3), with the last layer alone"},
    [GFLOPS_ORIGINAL] = {"gflops_original", .unit = "Gflop/s", .help = "rate by time_original"},
    [PADDED] = {"N_new", .unit = "1", .help = "order of the matrix in the printed form, equation (17)",
                .detail = true, .exact = true},
    {0},
};

enum { TABLE_LAYERS, TABLE_PANELS };
static const struct column layer_columns[] = {
    {"layer", .unit = "1", .help = "number of the layer; 1 is the nearest to the process"},
    {"rows", .unit = "1",
     .help = "m_j: largest number of rows of a trailing matrix that uses this layer "
             "or a nearer one"},
    {"columns", .unit = "1", .help = "n_j: the same for columns"},
    {"latency", .unit = "s", .help = "latency of the layer, alpha_j"},
    {"bandwidth", .unit = "By/s", .help = "bandwidth of the layer, 8 / beta_j"},
    {"communication", .unit = "s", .help = "time of pivots, broadcast and swap, by the additive form"},
    {"communication_printed", .unit = "s",
     .help = "time of pivots, broadcast and swap, by equations (27) to (29)"},
    {0},
};
static const struct column panel_columns[] = {
    {"panel", .unit = "1", .help = "first column of the panel"},
    {"panel_computation", .unit = "s", .help = "time to factor the panel and to update the trailing matrix"},
    {"panel_communication", .unit = "s", .help = "time of pivots, broadcast and swap"},
    {"panel_layer", .unit = "1", .help = "layer over which the panel is broadcast"},
    {0},
};
static const struct predict_table tables[] = {
    [TABLE_LAYERS] = {"layers", "each layer with its boundary and what is sent through it", PREDICT_ROWS,
                      layer_columns},
    [TABLE_PANELS] = {"panels", "the time of each panel", PREDICT_CURVE, panel_columns},
    {0},
};

/* Limit of panels, which take 20 ns each. */
static const double panels_max = 1e6;

/* ---- The rate, by a model */

/* Binds a call for each group of the model of dgemm; no state without a model. */
static int layers_open(const struct predict_inputs *inputs, void **ret, struct plugin_message *message) {
    const struct predict_call **calls = NULL;
    int r = predict_bind_dgemm(inputs, DGEMM, &calls, message);
    *ret = calls;
    return r;
}

/* Sets gamma3 from the group that takes longest for the first update: half its coefficient of m*n*k. -EINVAL:
 * it is not above 0. */
static int find_gamma(const struct predict_call *const *calls, const struct predict_inputs *inputs,
                      struct layers_scenario *s, struct plugin_message *message) {
    const struct model *model = inputs->models[DGEMM][0];
    double sizes[] = {s->n / s->p, s->n / s->q, s->nb}, longest = -INFINITY;
    size_t slowest = 0;
    for (size_t g = 0; g < model->group_count; g++) {
        struct predict_value value;
        int r = inputs->evaluate(inputs->context, calls[g], sizes, &value, message);
        if (r < 0)
            return r;
        if (value.mean > longest) {
            longest = value.mean;
            slowest = g;
        }
    }
    double coefficient = model->groups[slowest].parts[0].estimates[predict_product_term(model)].estimate;
    s->gamma = model->response_seconds * coefficient / 2;
    if (!(coefficient > 0))
        return plugin_refuse(message, inputs->is_draw ? -EDOM : -EINVAL,
                             "the coefficient of m*n*k of the group '%s' in '%s' is %g; expected a "
                             "coefficient above 0",
                             model->groups[slowest].name, inputs->sources[DGEMM]->file, coefficient);
    return 0;
}

/* ---- The layers */

/* Reads latency and bandwidth of a layer from model number INDEX of a transfer, by its group with the least
 * bandwidth. -EINVAL: its terms are not 1 and bytes, or it gives no bandwidth. */
static int read_model(const struct predict_inputs *inputs, size_t index, struct layer *layer,
                      struct plugin_message *message) {
    const struct model *model = inputs->models[LAYER][index];
    const char *file = inputs->sources[LAYER][index].file;
    const struct model_term *terms = model->terms;
    bool is_transfer = model->term_count == 2 && terms[0].factor_count == 0 && terms[1].factor_count == 1 &&
                       terms[1].factors[0].power == 1 && model->group_count > 0;
    for (size_t c = 0; is_transfer && c < model->column_count; c++)
        if (strcmp(model->columns[c].about.name, terms[1].factors[0].column) == 0)
            is_transfer = !model->columns[c].about.unit || strcmp(model->columns[c].about.unit, "By") == 0;
    if (!is_transfer)
        return plugin_refuse(message, -EINVAL,
                             "the model '%s' has other terms than 1 and bytes; expected a model of "
                             "'assay fit transfer'",
                             file);
    layer->word = -INFINITY;
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_estimate *estimates = model->groups[g].parts[0].estimates;
        if (8 * model->response_seconds * estimates[1].estimate > layer->word)
            *layer = (struct layer){.latency = fmax(model->response_seconds * estimates[0].estimate, 0),
                                    .word = 8 * model->response_seconds * estimates[1].estimate};
    }
    return layer->word > 0
               ? 0
               : plugin_refuse(message, inputs->is_draw ? -EDOM : -EINVAL,
                               "the model '%s' gives no bandwidth: its coefficient of bytes is not "
                               "above 0; measure larger messages",
                               file);
}

/* Sets layer 1 to the accelerator's memory, and gamma3 by its peak (equation 10), if the parameters describe
 * one. -EINVAL: they do so in part, or layer 1 is given too. */
static int read_accelerator(const struct plugin_value *values, struct layers_scenario *s,
                            struct plugin_message *message) {
    size_t missing = LAYERS, given = LAYERS;
    for (size_t i = CORES; i <= CYCLES; i++)
        if (values[i].is_set)
            given = i;
        else if (i != FLOPS && i != WORDS)
            missing = i;
    if (given == LAYERS)
        return 0;
    if (missing != LAYERS)
        return plugin_refuse(message, -EINVAL,
                             "'%s' is set, but '%s' is not; the memory of an accelerator needs "
                             "cores, clock, memory-bandwidth and memory-cycles, from the data sheet",
                             parameters[given].name, parameters[missing].name);
    if (values[LAYERS + BANDWIDTH].is_set || values[LAYERS + LATENCY].is_set ||
        values[LAYERS + PROCESSES].is_set)
        return plugin_refuse(message, -EINVAL,
                             "layer 1 is the accelerator's memory; number the layers between processes from "
                             "2, or leave 'cores' out");
    s->is_memory_first = true;
    double flops = isnan(values[FLOPS].number) ? 1 : values[FLOPS].number;
    double words = isnan(values[WORDS].number) ? 0 : values[WORDS].number;
    s->gamma = 1 / (values[CORES].number * flops * values[CLOCK].number);
    s->layers[0] = layers_memory(values[CORES].number, values[MEMORY].number, words, values[CYCLES].number,
                                 values[CLOCK].number);
    s->count = 1;
    return 0;
}

/* Reads latency and bandwidth of all layers, from models or parameters. -EINVAL: a value is missing or given
 * twice. */
static int read_layers(const struct plugin_value *values, const struct predict_inputs *inputs,
                       struct layers_scenario *s, struct plugin_message *message) {
    size_t first = s->count, end = first;
    for (size_t j = first; j < LAYERS_MAX; j++)
        if (!isnan(values[LAYERS + j * LAYER_PARAMETERS + BANDWIDTH].number))
            end = j + 1;
    end = end > first + inputs->model_counts[LAYER] ? end : first + inputs->model_counts[LAYER];
    if (end > LAYERS_MAX)
        return plugin_refuse(message, -EINVAL, "there are %zu layers; expected at most %d", end, LAYERS_MAX);
    if (end == 0 || (end == 1 && first == 1 && s->p * s->q > 1))
        end++; /* is missing */
    for (size_t j = first; j < end; j++) {
        const struct plugin_value *own = values + LAYERS + j * LAYER_PARAMETERS;
        bool has_model = j - first < inputs->model_counts[LAYER];
        int r = has_model ? read_model(inputs, j - first, &s->layers[j], message) : 0;
        if (r < 0)
            return r;
        for (size_t k = LATENCY; k <= BANDWIDTH; k++)
            if (has_model && !isnan(own[k].number))
                return plugin_refuse(message, -EINVAL,
                                     "%s is set, but the model for 'layer' gives it, too; remove one",
                                     parameters[LAYERS + j * LAYER_PARAMETERS + k].name);
            else if (!has_model && isnan(own[k].number))
                return plugin_refuse(message, -EINVAL,
                                     "%s is not set, and no model has the role 'layer' for layer %zu; set "
                                     "latency and bandwidth from a data sheet, or measure both with the "
                                     "experiments transfer and mpi-point-to-point",
                                     parameters[LAYERS + j * LAYER_PARAMETERS + k].name, j + 1);
        if (!has_model)
            s->layers[j] = (struct layer){.latency = own[LATENCY].number, .word = 8 / own[BANDWIDTH].number};
    }
    s->count = end;
    for (size_t i = LAYERS + end * LAYER_PARAMETERS; i < LAYERS + LAYERS_MAX * LAYER_PARAMETERS; i++)
        if (values[i].is_set)
            return plugin_refuse(message, -EINVAL,
                                 "%s has no effect, because the last layer with a bandwidth is layer "
                                 "%zu; set bandwidth-%zu, or remove %s",
                                 parameters[i].name, end, (i - LAYERS) / LAYER_PARAMETERS + 1,
                                 parameters[i].name);
    return 0;
}

/* Computes the boundaries of the layers, section 3.1.4. -EINVAL: the processes of a layer do not fit the
 * grid. */
static int place_layers(const struct plugin_value *values, struct layers_scenario *s,
                        struct plugin_message *message) {
    double before = 1, all = s->p * s->q;
    for (size_t j = 0; j < s->count; j++) {
        double processes = values[LAYERS + j * LAYER_PARAMETERS + PROCESSES].number, p, q;
        if (j + 1 == s->count && !isnan(processes) && processes != all)
            return plugin_refuse(message, -EINVAL,
                                 "the grid P x Q = %g x %g has %g processes, but processes-%zu of the "
                                 "last layer is %g; expected the same number",
                                 s->p, s->q, all, j + 1, processes);
        if (isnan(processes) && j > 0 && j + 1 < s->count)
            return plugin_refuse(message, -EINVAL,
                                 "processes-%zu is not set; set it to the number of processes that "
                                 "layer %zu joins, such as the accelerators of a node",
                                 j + 1, j + 1);
        processes = j + 1 == s->count ? all : isnan(processes) ? 1 : processes;
        if (processes < before || processes > all)
            return plugin_refuse(message, -EINVAL,
                                 "the layers are not in ascending order: processes-%zu is %g; expected "
                                 "%g (layer %zu) to P Q = %g",
                                 j + 1, processes, before, j, all);
        if (!layers_grid(processes, s->p, s->q, &p, &q))
            return plugin_refuse(message, -EINVAL,
                                 "processes-%zu is %g, and so many processes form no rectangle in a "
                                 "grid of %g x %g; choose another grid or number",
                                 j + 1, processes, s->p, s->q);
        s->layers[j].rows = s->n * p / s->p;
        s->layers[j].columns = s->n * q / s->q;
        if (j > 0 &&
            (s->layers[j].rows < s->layers[j - 1].rows || s->layers[j].columns < s->layers[j - 1].columns))
            return plugin_refuse(message, -EINVAL,
                                 "the %g processes of layer %zu, %g x %g, do not hold those of layer %zu, %g "
                                 "x %g; choose another grid than %g x %g",
                                 processes, j + 1, p, q, j, s->layers[j - 1].rows / s->n * s->p,
                                 s->layers[j - 1].columns / s->n * s->q, s->p, s->q);
        before = processes;
    }
    return 0;
}

/* ---- A scenario */

static double sum(const struct layers_share *share) {
    return share->pivots + share->broadcast + share->swap;
}

static void panel_done(void *context, const struct layers_panel *panel) {
    struct predict_output *output = context;
    double values[] = {panel->column, panel->computation, panel->communication, (double)panel->layer + 1};
    (void)output->table_row(output->context, TABLE_PANELS, values, NULL); /* the host remembers failures */
}

/* Fills in the columns of the result, and the table of layers. */
static void fill_result(const struct layers_scenario *s, const struct layers_time *time,
                        struct predict_output *output, double *ret) {
    double flops = (2.0 / 3.0 * s->n + 1.5) * s->n * s->n;
    ret[PIVOTS] = ret[BROADCAST] = ret[SWAP] = 0;
    ret[COMPUTATION] = time->computation;
    ret[TIME_PRINTED] = time->printed_computation;
    ret[TIME_ORIGINAL] = time->original;
    ret[PADDED] = time->padded;
    for (size_t j = 0; j < s->count; j++) {
        ret[PIVOTS] += time->layers[j].pivots;
        ret[BROADCAST] += time->layers[j].broadcast;
        ret[SWAP] += time->layers[j].swap;
        ret[TIME_PRINTED] += sum(&time->printed[j]);
        double values[] = {(double)j + 1,         s->layers[j].rows,     s->layers[j].columns,
                           s->layers[j].latency,  8 / s->layers[j].word, sum(&time->layers[j]),
                           sum(&time->printed[j])};
        if (output->wants(output->context, TABLE_LAYERS))
            (void)output->table_row(output->context, TABLE_LAYERS, values, NULL);
    }
    ret[TIME] = ret[COMPUTATION] + ret[PIVOTS] + ret[BROADCAST] + ret[SWAP];
    for (size_t i = TIME; i <= TIME_ORIGINAL; i = i == TIME ? TIME_PRINTED : i + 2)
        ret[i + 1] = flops / ret[i] / 1e9;
    ret[EFFICIENCY] = flops / ret[TIME] * s->gamma / (s->p * s->q);
}

/* Predicts one scenario. */
static int layers_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                      double *ret_values, struct predict_output *output, struct plugin_message *message) {
    struct layers_scenario s = {
        .n = values[N].number, .nb = values[NB].number, .p = values[P].number, .q = values[Q].number};
    if (s.nb > s.n)
        return plugin_refuse(message, -EINVAL,
                             "the block size NB = %g is larger than the order of the matrix, N = "
                             "%g; set a smaller NB",
                             s.nb, s.n);
    if (s.n / s.nb > panels_max)
        return plugin_refuse(message, -EDOM,
                             "the matrix has %.0f panels (N / NB); expected at most %g: set a "
                             "larger NB",
                             s.n / s.nb, panels_max);
    int r = read_accelerator(values, &s, message);
    if (r == 0 && values[RATE].is_set && values[FLOPS].is_set)
        r = plugin_refuse(message, -EINVAL,
                          "both rate and flops are set, and flops gives another rate (cores x "
                          "flops x clock); remove one");
    else if (r == 0 && values[RATE].is_set)
        s.gamma = 1 / values[RATE].number;
    else if (r == 0 && inputs->model_counts[DGEMM] > 0)
        r = find_gamma(state, inputs, &s, message);
    else if (r == 0 && s.gamma == 0)
        r = plugin_refuse(message, -EINVAL,
                          "the rate is not known; set rate, or cores and clock of an accelerator, or give a "
                          "model for the role 'dgemm'");
    r = r < 0 ? r : read_layers(values, inputs, &s, message);
    r = r < 0 ? r : place_layers(values, &s, message);
    if (r < 0)
        return r;
    double blocks = ceil(s.n / s.nb);
    if (s.p > blocks || s.q > blocks)
        predict_remark(output, true,
                       "some processes have no rows or columns: the matrix has %g x %g blocks "
                       "for a grid of %g x %g processes; set a smaller NB or a smaller grid",
                       blocks, blocks, s.p, s.q);
    bool has_panels = output->wants(output->context, TABLE_PANELS);
    struct layers_time time = layers_predict(&s, has_panels ? panel_done : NULL, output);
    fill_result(&s, &time, output, ret_values);
    return 0;
}

ASSAY_PREDICT_PLUGIN("hpl-layers", ASSAY_VERSION,
                     "HPL's time over layers of communication: accelerator memory, node, network",
                     .roles = roles, .parameters = parameters, .columns = columns, .open = layers_open,
                     .run = layers_run, .close = free, .tables = tables);
