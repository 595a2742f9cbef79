/* The plugin predict-hpcc: see README.md for what it computes. */
#include <assay/predict.h>

static const char *const linear_kinds[] = {"linear", NULL};
static const struct predict_role roles[] = {
    {"application", linear_kinds, .is_time = true, .experiment = "hpcc",
     .help = "the run time of the application as a function of HPC Challenge's "
             "inverse speeds and latencies, and of sizes; at most one term of each "
             "kind"},
    {0},
};

/* Kinds of columns, in the order of the result's parts. SIZE: of the problem or the machine. */
enum kind { COMPUTE, MEMORY, BANDWIDTH, LATENCY, KIND_COUNT, SIZE = KIND_COUNT };
static const char *const kind_words[] = {"floating point", "memory", "network bandwidth", "network latency"};

/* The results of the experiment hpcc, by their names and in their units there. A number that was given
 * without its unit is outside of the ranges: 6 is 6 flop/s. */
#define GFLOPS "Gflop/s", 1e-4, 1e7
#define GBYTES "GBy/s", 1e-6, 1e7
#define MICROSECONDS "us", 1e-4, 1e5
#define PLAIN NULL, 1e-12, 1e12
#define KERNELS(X)                                                                                           \
    X(HPL_Tflops, COMPUTE, "Tflop/s", 1e-6, 1e10, "HPL, all ranks together")                                 \
    X(StarDGEMM_Gflops, COMPUTE, GFLOPS, "matrix product, all ranks at once; speed of one rank")             \
    X(SingleDGEMM_Gflops, COMPUTE, GFLOPS, "matrix product, one rank alone")                                 \
    X(StarFFT_Gflops, COMPUTE, GFLOPS, "Fourier transform, all ranks at once; speed of one rank")            \
    X(StarSTREAM_Copy, MEMORY, GBYTES, "copy in memory, all ranks at once; speed of one rank")               \
    X(StarSTREAM_Scale, MEMORY, GBYTES, "b = s c (scale), all ranks at once; speed of one rank")             \
    X(StarSTREAM_Add, MEMORY, GBYTES, "c = a + b (add), all ranks at once; speed of one rank")               \
    X(StarSTREAM_Triad, MEMORY, GBYTES, "a = b + s c (triad), all ranks at once; speed of one rank")         \
    X(SingleSTREAM_Triad, MEMORY, GBYTES, "a = b + s c (triad), one rank alone")                             \
    X(StarRandomAccess_GUPs, MEMORY, PLAIN,                                                                  \
      "random updates, 10^9 a second, all ranks at once; speed of one rank")                                 \
    X(PTRANS_GBs, BANDWIDTH, GBYTES, "transposition of a matrix, all ranks together")                        \
    X(MinPingPongBandwidth, BANDWIDTH, GBYTES, "2 MB one way, the slowest pair")                             \
    X(AvgPingPongBandwidth, BANDWIDTH, GBYTES, "2 MB one way, the mean of pairs")                            \
    X(NaturallyOrderedRingBandwidth, BANDWIDTH, GBYTES,                                                      \
      "all ranks send to their neighbours; speed of one rank")                                               \
    X(RandomlyOrderedRingBandwidth, BANDWIDTH, GBYTES, "all ranks send in random order; speed of one rank")  \
    X(MaxPingPongLatency, LATENCY, MICROSECONDS, "8 bytes one way, the slowest pair")                        \
    X(AvgPingPongLatency, LATENCY, MICROSECONDS, "8 bytes one way, the mean of pairs")                       \
    X(NaturallyOrderedRingLatency, LATENCY, MICROSECONDS, "all ranks send to their neighbours")              \
    X(RandomlyOrderedRingLatency, LATENCY, MICROSECONDS, "all ranks send in random order")                   \
    X(MPIRandomAccess_GUPs, SIZE, PLAIN, "random updates of one table, 10^9 a second")                       \
    X(MPIFFT_Gflops, SIZE, GFLOPS, "one Fourier transform, all ranks together")

#define AND_ONE(...) +1
enum { GROUP = 2 KERNELS(AND_ONE), PARAMETER_COUNT };

#define NUMBER(NAME, UNIT, LEAST, MOST, HELP)                                                                \
    {NAME, PLUGIN_NUMBER, UNIT, .minimum = LEAST, .maximum = MOST, .help = HELP},
#define PARAMETER(NAME, KIND, ...) NUMBER(#NAME, __VA_ARGS__)
static const struct plugin_parameter parameters[PARAMETER_COUNT + 1] = {
    NUMBER("N", "1", 1, 1e15, "size of the problem, such as the order of HPL's matrix") /**/
    NUMBER("ranks", "1", 1, 1e9, "cores or processes")                                  /**/
    KERNELS(PARAMETER)                                                                  /**/
        [GROUP] = {"group", PLUGIN_TEXT,
                   .help = "group of the model, where it has several applications; default: all "
                           "groups"},
};
#define KIND(NAME, KIND, ...) KIND,
static const enum kind kinds[PARAMETER_COUNT] = {SIZE, SIZE, KERNELS(KIND)};

enum { TIME, PARTS, OTHER = PARTS + KIND_COUNT, APPLICATION, COLUMN_COUNT };
static const struct column columns[COLUMN_COUNT + 1] = {
    [TIME] = {"time", .unit = "s", .help = "run time of the application", .goal = COLUMN_LESS},
    [PARTS + COMPUTE] = {"floating_point", .unit = "s", .help = "time of the term of floating-point speed",
                         .part_of = "time"},
    [PARTS + MEMORY] = {"memory", .unit = "s", .help = "time of the term of memory speed", .part_of = "time"},
    [PARTS + BANDWIDTH] = {"bandwidth", .unit = "s", .help = "time of the term of network bandwidth",
                           .part_of = "time"},
    [PARTS +
        LATENCY] = {"latency", .unit = "s", .help = "time of the term of network latency", .part_of = "time"},
    [OTHER] = {"other", .unit = "s", .help = "time of terms without a benchmark result, such as the constant",
               .part_of = "time", .detail = true},
    [APPLICATION] = {"application", .help = "group of the model: the application"},
};

/* The parameters' names, as the columns that models are bound to. */
static const char *const *column_names(void) {
    static const char *names[GROUP];
    for (int p = 0; p < GROUP; p++)
        names[p] = parameters[p].name;
    return names;
}

static int find_parameter(const char *column) {
    int p = 0;
    while (p < GROUP && strcmp(parameters[p].name, column) != 0)
        p++;
    return p;
}

/* The kind of TERM: that of its one microkernel, SIZE without any. -EINVAL: an unknown column, or no single
 * inverse speed or latency. */
static int find_kind(const struct model_term *term, const char *file, enum kind *ret,
                     struct plugin_message *message) {
    *ret = SIZE;
    for (size_t f = 0; f < term->factor_count; f++) {
        const struct model_factor *factor = &term->factors[f];
        int p = find_parameter(factor->column);
        if (p == GROUP)
            return plugin_refuse(message, -EINVAL,
                                 "the model '%s' uses the column '%.64s', which is no result of the "
                                 "experiment hpcc, nor N or ranks; fit a model to these columns",
                                 file, factor->column);
        if (kinds[p] == SIZE)
            continue;
        if (*ret != SIZE || factor->function || factor->power != (kinds[p] == LATENCY ? 1 : -1))
            return plugin_refuse(message, -EINVAL,
                                 "the term %.128s of '%s' is not a single inverse speed (^-1) or "
                                 "latency; fit terms such as StarDGEMM_Gflops^-1",
                                 term->name, file);
        *ret = kinds[p];
    }
    return 0;
}

/* -EINVAL if two terms of GROUP are of one kind. */
static int check_group(const struct model *model, const struct model_group *group,
                       struct plugin_message *message) {
    const struct model_term *of_kind[KIND_COUNT] = {NULL};
    for (size_t t = 0; t < model->term_count; t++) {
        enum kind kind;
        int r = find_kind(&model->terms[t], model->file, &kind, message);
        if (r < 0)
            return r;
        if (kind == SIZE || group->parts[0].estimates[t].dropped)
            continue;
        if (of_kind[kind])
            return plugin_refuse(message, -EINVAL,
                                 "the group '%.64s' of '%s' has two terms of %s, %.128s and %.128s; "
                                 "expected at most one: fit with --set select=elimination --set "
                                 "one-of='A|B', where A and B are the columns of these terms",
                                 group->name, model->file, kind_words[kind], of_kind[kind]->name,
                                 model->terms[t].name);
        of_kind[kind] = &model->terms[t];
    }
    return 0;
}

/* -EINVAL if the model has a column in another unit than the experiment hpcc. */
static int check_units(const struct model *model, struct plugin_message *message) {
    for (size_t c = 0; c < model->column_count; c++) {
        int p = find_parameter(model->columns[c].about.name);
        const char *unit = model->columns[c].about.unit;
        if (p < GROUP && unit && parameters[p].unit && strcmp(unit, parameters[p].unit) != 0 &&
            strcmp(unit, "1") != 0)
            return plugin_refuse(message, -EINVAL,
                                 "the model '%s' was fitted to %s in %s; expected %s, the unit of the "
                                 "experiment hpcc",
                                 model->file, parameters[p].name, unit, parameters[p].unit);
    }
    return 0;
}

/* Checks the model and binds a call for each group. */
static int hpcc_open(const struct predict_inputs *inputs, void **ret_state, struct plugin_message *message) {
    const struct model *model = inputs->models[0][0];
    const struct predict_call **calls = NULL;
    int r = check_units(model, message);
    for (size_t g = 0; r == 0 && g < model->group_count; g++)
        r = check_group(model, &model->groups[g], message);
    if (r == 0)
        r = predict_bind(inputs, model, column_names(), GROUP, &calls, message);
    *ret_state = calls;
    return r;
}

/* TERM without its coefficient, into *RET. -EINVAL: a parameter is not set. */
static int find_product(const struct model_term *term, const struct plugin_value *values, double *ret,
                        struct plugin_message *message) {
    *ret = 1;
    for (size_t f = 0; f < term->factor_count; f++) {
        int p = find_parameter(term->factors[f].column);
        if (!values[p].is_set)
            return plugin_refuse(
                message, -EINVAL, "%s is not set, but the model uses it; set it: %s", parameters[p].name,
                kinds[p] == SIZE ? "the size for which the run time is predicted"
                                 : "a result of the experiment hpcc, measured on the machine or predicted "
                                   "for it");
        double value = term->factors[f].function ? log2(values[p].number) : values[p].number;
        *ret *= pow(value, term->factors[f].power);
    }
    return 0;
}

/* Predicts the application of group G, and writes its row. -EDOM: the time is not above 0. */
static int predict_application(const struct predict_inputs *inputs, const struct predict_call *call, size_t g,
                               const struct plugin_value *values, double *ret, struct predict_output *output,
                               struct plugin_message *message) {
    const struct model *model = inputs->models[0][0];
    double sizes[GROUP], seconds = model->response_seconds > 0 ? model->response_seconds : 1;
    struct predict_value value;
    for (int c = TIME; c < APPLICATION; c++)
        ret[c] = 0;
    for (int p = 0; p < GROUP; p++)
        sizes[p] = values[p].number;
    for (size_t t = 0; t < model->term_count; t++) {
        const struct model_estimate *estimate = &model->groups[g].parts[0].estimates[t];
        enum kind kind;
        double product;
        int r = estimate->dropped ? 0 : find_kind(&model->terms[t], model->file, &kind, message);
        r = r < 0 || estimate->dropped ? r : find_product(&model->terms[t], values, &product, message);
        if (r < 0)
            return r;
        if (!estimate->dropped)
            ret[PARTS + (int)kind] += seconds * estimate->estimate * product;
    }
    int r = inputs->evaluate(inputs->context, call, sizes, &value, message);
    if (r < 0)
        return r;
    ret[TIME] = seconds * (inputs->is_draw ? call->draw(call, sizes, g, 0) : value.mean);
    if (!(value.mean > 0))
        return plugin_refuse(message, -EDOM,
                             "the model '%s' predicts %g s for '%.64s'; expected a time above 0: "
                             "fit it with --set bounds=nonnegative",
                             model->file, value.mean, model->groups[g].name);
    const char *texts[COLUMN_COUNT] = {[APPLICATION] = model->groups[g].name};
    return output->row(output->context, ret, texts);
}

/* Predicts one scenario, for one group or for all. */
static int hpcc_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                    double *ret, struct predict_output *output, struct plugin_message *message) {
    const struct predict_call *const *calls = state;
    const struct model *model = inputs->models[0][0];
    const struct model_group *only =
        values[GROUP].is_set ? predict_group(model, values[GROUP].text, message) : NULL;
    int r = values[GROUP].is_set && !only ? -EINVAL : 0;
    for (size_t g = 0; r == 0 && g < model->group_count; g++)
        if (!only || only == &model->groups[g])
            r = predict_application(inputs, calls[g], g, values, ret, output, message);
    return r;
}

ASSAY_PREDICT_PLUGIN("hpcc", ASSAY_VERSION,
                     "run time of an application on a machine where it has not run, from "
                     "that machine's HPC Challenge results",
                     .roles = roles, .parameters = parameters, .columns = columns, .open = hpcc_open,
                     .run = hpcc_run, .close = free);
