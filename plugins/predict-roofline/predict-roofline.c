/* The plugin predict-roofline: see README.md for what it computes. */
#include <assay/predict.h>

static const char *const machine_kinds[] = {"linear", "maximum", NULL};
static const char *const linear_kinds[] = {"linear", NULL};
enum { MACHINE, MEMORY, DGEMM };
static const struct predict_role roles[] = {
    [MACHINE] = {"machine", machine_kinds, .is_time = true, .optional = true,
                 .help = "the time of kernels over their operations and bytes, by 'assay fit roofline'"},
    [MEMORY] = {"memory", linear_kinds, .is_time = true, .optional = true, .experiment = "memory",
                .help = "the time of passes over 'size' bytes; its slope is 1 / peak-bandwidth"},
    [DGEMM] = {"dgemm", linear_kinds, .is_time = true, .optional = true, .experiment = "dgemm",
               .help = "the time of dgemm over m, n, k; half its coefficient of m*n*k is 1 / peak-flops"},
    {0},
};

enum { FLOPS, BYTES, FORM, PEAK_FLOPS, PEAK_BANDWIDTH, OVERHEAD, GROUP, PARAMETER_COUNT = GROUP + 3 };
static const char *const form_words[] = {"improved", "classical", NULL};
enum { FORM_IMPROVED, FORM_CLASSICAL };

static const struct plugin_parameter parameters[PARAMETER_COUNT + 1] = {
    [FLOPS] = {"flops", PLUGIN_NUMBER, "flop", .minimum = 0, .maximum = 1e30, .required = true,
               .help = "F: number of operations of the kernel, in all or for a point"},
    [BYTES] = {"bytes", PLUGIN_NUMBER, "By", .minimum = 0, .maximum = 1e30, .required = true,
               .help = "B: number of bytes that the kernel reads from and writes to memory, "
                       "for as many points as 'flops'"},
    [FORM] = {"form", PLUGIN_WORD, .choices = form_words,
              .help = "improved: the times of operations and memory add up; classical: the "
                      "longer of the two counts; default: the form of the model 'machine', "
                      "or else improved"},
    [PEAK_FLOPS] = {"peak-flops", PLUGIN_NUMBER, "flop/s", .minimum = 1, .maximum = 1e21,
                    .plausible_minimum = 1e7, .plausible_maximum = 1e19, .instead_of = "dgemm",
                    .help = "Fpeak: peak rate of operations, from a data sheet where no model "
                            "gives it"},
    [PEAK_BANDWIDTH] = {"peak-bandwidth", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e18,
                        .plausible_minimum = 1e7, .plausible_maximum = 1e16, .instead_of = "memory",
                        .help = "Bpeak: peak bandwidth of memory, from a data sheet where no model "
                                "gives it"},
    [OVERHEAD] = {"overhead", PLUGIN_NUMBER, "s", .minimum = 0, .maximum = 1e6,
                  .help = "alpha of the improved form: time spent on neither operations nor "
                          "memory; default: the model's, or 0"},
    [GROUP + MACHINE] = {"machine-group", PLUGIN_TEXT,
                         .help = "group of the model 'machine', if the model has several"},
    [GROUP + MEMORY] = {"memory-group", PLUGIN_TEXT,
                        .help = "group of the model 'memory', if the model has several"},
    [GROUP +
        DGEMM] = {"dgemm-group", PLUGIN_TEXT, .help = "group of the model 'dgemm', if the model has several"},
};

enum { TIME, PERFORMANCE, COMPUTE, TRANSFER, REST, INTENSITY, RIDGE, SHARE, BOUND, COLUMN_COUNT };
static const struct column columns[COLUMN_COUNT + 1] = {
    [TIME] = {"time", .unit = "s", .help = "time of the kernel", .goal = COLUMN_LESS},
    [PERFORMANCE] = {"performance", .unit = "Gflop/s", .help = "flops / time", .goal = COLUMN_MORE},
    [COMPUTE] = {"compute", .unit = "s", .help = "F / Fpeak", .part_of = "time"},
    [TRANSFER] = {"transfer", .unit = "s", .help = "B / Bpeak", .part_of = "time"},
    [REST] = {"rest", .unit = "s", .help = "overhead, alpha", .part_of = "time", .detail = true},
    [INTENSITY] = {"intensity", .unit = "flop/By", .help = "F / B", .exact = true},
    [RIDGE] = {"ridge", .unit = "flop/By", .help = "Fpeak / Bpeak: below it memory takes longer",
               .detail = true},
    [SHARE] = {"share", .unit = "1", .help = "performance / Fpeak", .detail = true},
    [BOUND] = {"bound", .help = "which takes longer: memory or compute"},
};

/* The roof for kernels of as many operations, over their intensity: figure 3 of the source. */
static const struct column roof_columns[] = {
    {"roof_intensity", .unit = "flop/By", .help = "F / B"},
    {"roof_improved", .unit = "Gflop/s", .help = "F / (F/Fpeak + B/Bpeak + alpha)"},
    {"roof_classical", .unit = "Gflop/s", .help = "min(Fpeak, Bpeak F/B)"},
    {0},
};
static const struct predict_table tables[] = {
    {"roof",
     "improved and classical performance by intensity, from 1/64 to 64 "
     "times the intensity of the ridge",
     PREDICT_CURVE, roof_columns},
    {0},
};

/* The time of one operation and of one byte, and the overhead of a call, s. */
struct roof {
    double flop, byte, overhead;
};

/* ---- The machine, from models and parameters */

/* Whether TERM is a product of COUNT columns, each to the power 1; *RET_COLUMN is the last of them. */
static bool is_plain(const struct model_term *term, size_t count, const char **ret_column) {
    bool plain = term->factor_count == count;
    for (size_t f = 0; plain && f < count; f++) {
        plain = term->factors[f].power == 1 && !term->factors[f].level && !term->factors[f].function;
        *ret_column = term->factors[f].column;
    }
    return plain;
}

/* The names of the two columns of a model of 'assay fit roofline', whose terms are F, B and perhaps 1.
 * -EINVAL: it is another model. */
static int find_columns(const struct predict_inputs *inputs, const char **ret,
                        struct plugin_message *message) {
    const struct model *model = inputs->models[MACHINE][0];
    bool known = model->term_count == 2 || (model->term_count == 3 && model->terms[2].factor_count == 0);
    for (size_t t = 0; known && t < 2; t++) {
        known = is_plain(&model->terms[t], 1, &ret[t]);
        for (size_t c = 0; known && c < model->column_count; c++)
            if (strcmp(model->columns[c].about.name, ret[t]) == 0 && model->columns[c].about.unit)
                known = strcmp(model->columns[c].about.unit, t == 0 ? "flop" : "By") == 0;
    }
    return known ? 0
                 : plugin_refuse(message, -EINVAL,
                                 "the terms of '%s' are not operations in flop, bytes in By, and 1; "
                                 "expected a model of 'assay fit roofline --sizes FLOPS,BYTES'",
                                 inputs->sources[MACHINE]->file);
}

/* The coefficient of TERM in the chosen group of the model of ROLE, in s, into *RET. -EINVAL (-EDOM in a
 * draw): it is not above 0. */
static int find_cost(const struct predict_inputs *inputs, size_t role, const struct plugin_value *values,
                     size_t term, double *ret, struct plugin_message *message) {
    const struct model *model = inputs->models[role][0];
    const struct model_group *group =
        predict_group_by(model, parameters[GROUP + role].name, values[GROUP + role].text, message);
    if (!group)
        return -EINVAL;
    double cost = group->parts[0].estimates[term].estimate;
    *ret = (model->response_seconds > 0 ? model->response_seconds : 1) * cost;
    return cost > 0 || (cost == 0 && role == MACHINE)
               ? 0
               : plugin_refuse(message, inputs->is_draw ? -EDOM : -EINVAL,
                               "the coefficient of %.64s of the group '%.64s' in '%s' is %g; expected "
                               "a coefficient above 0",
                               model->terms[term].name, group->name, inputs->sources[role]->file, cost);
}

/* 1 / peak into *RET: from the parameter PEAK, or the coefficient of a model of ROLE over DIVISOR. -EINVAL:
 * neither is given. */
static int find_peak(const struct predict_inputs *inputs, const struct plugin_value *values, size_t role,
                     int peak, double divisor, double *ret, struct plugin_message *message) {
    size_t term = 0;
    const char *name = parameters[peak].name, *column = NULL, *experiment = roles[role].experiment;
    if (values[peak].is_set) {
        *ret = 1 / values[peak].number;
        return 0;
    }
    if (inputs->model_counts[role] == 0)
        return plugin_refuse(message, -EINVAL,
                             "%s is not known; set it, or give %s=MODEL of the experiment '%s' (or "
                             "the archive of the experiment with --from), or machine=MODEL of "
                             "'assay fit roofline'",
                             name, roles[role].name, experiment);
    const struct model *model = inputs->models[role][0];
    if (role == DGEMM)
        term = predict_product_term(model);
    else
        while (term < model->term_count &&
               !(is_plain(&model->terms[term], 1, &column) && strcmp(column, "size") == 0))
            term++;
    if (term == model->term_count)
        return plugin_refuse(message, -EINVAL,
                             "the model '%s' has no term %s; expected a model of the experiment '%s'",
                             inputs->sources[role]->file, role == DGEMM ? "m*n*k" : "size", experiment);
    int r = find_cost(inputs, role, values, term, ret, message);
    *ret /= divisor;
    return r;
}

/* Finds the roof, as times of a flop and of a byte and the overhead (s), from the model 'machine', or else
 * from peaks. -EINVAL: a peak is missing or given twice, or a model lacks the group, term or positive
 * coefficient. */
static int find_roof(const struct predict_inputs *inputs, const struct plugin_value *values, struct roof *ret,
                     struct plugin_message *message) {
    int r = 0;
    *ret = (struct roof){.overhead = values[OVERHEAD].is_set ? values[OVERHEAD].number : 0};
    if (inputs->model_counts[MACHINE] == 0) {
        r = find_peak(inputs, values, DGEMM, PEAK_FLOPS, 2, &ret->flop, message);
        return r < 0 ? r : find_peak(inputs, values, MEMORY, PEAK_BANDWIDTH, 1, &ret->byte, message);
    }
    if (values[PEAK_FLOPS].is_set || values[PEAK_BANDWIDTH].is_set || values[OVERHEAD].is_set ||
        inputs->model_counts[MEMORY] || inputs->model_counts[DGEMM])
        return plugin_refuse(message, -EINVAL,
                             "the model for 'machine' already gives the peaks and the overhead; "
                             "remove this model, or remove the other models, peak-flops, "
                             "peak-bandwidth and overhead");
    double *costs[] = {&ret->flop, &ret->byte, &ret->overhead};
    for (size_t t = 0; r == 0 && t < inputs->models[MACHINE][0]->term_count; t++)
        r = find_cost(inputs, MACHINE, values, t, costs[t], message);
    return r;
}

/* ---- A scenario */

static double time_of(const struct roof *roof, int form, double flops, double bytes) {
    double compute = flops * roof->flop, transfer = bytes * roof->byte;
    return form == FORM_CLASSICAL ? fmax(compute, transfer) : compute + transfer + roof->overhead;
}

/* Adds the table of the roof over intensity. */
static int add_roof(const struct roof *roof, double flops, struct predict_output *output) {
    double ridge = roof->byte / roof->flop;
    int r = 0;
    for (int step = -24; r == 0 && isfinite(ridge) && ridge > 0 && flops > 0 && step <= 24; step++) {
        double intensity = ridge * exp2(step / 4.0), bytes = flops / intensity;
        r = output->table_row(output->context, 0,
                              (double[]){intensity, flops / time_of(roof, FORM_IMPROVED, flops, bytes) / 1e9,
                                         flops / time_of(roof, FORM_CLASSICAL, flops, bytes) / 1e9},
                              NULL);
    }
    return r;
}

/* Binds a call for each group of the model of the machine; no state without a model. */
static int roofline_open(const struct predict_inputs *inputs, void **ret_state,
                         struct plugin_message *message) {
    if (inputs->model_counts[MACHINE] == 0)
        return 0;
    const struct model *model = inputs->models[MACHINE][0];
    const char *names[2] = {NULL, NULL};
    const struct predict_call **calls = NULL;
    int r = find_columns(inputs, names, message);
    if (r == 0)
        r = predict_bind(inputs, model, names, 2, &calls, message);
    *ret_state = calls;
    return r;
}

/* Predicts one scenario. */
static int roofline_run(void *state, const struct predict_inputs *inputs, const struct plugin_value *values,
                        double *ret, struct predict_output *output, struct plugin_message *message) {
    const struct predict_call *const *calls = state;
    const double sizes[] = {values[FLOPS].number, values[BYTES].number};
    int form = values[FORM].is_set ? (int)values[FORM].number : FORM_IMPROVED;
    struct roof roof;
    if (!(sizes[0] + sizes[1] > 0))
        return plugin_refuse(message, -EINVAL,
                             "flops and bytes are both 0; set at least one of them above 0");
    int r = find_roof(inputs, values, &roof, message);
    if (r == 0 && calls) { /* the host warns of kernels that the model does not cover */
        const struct model *model = inputs->models[MACHINE][0];
        const struct model_group *group =
            predict_group_by(model, parameters[GROUP + MACHINE].name, values[GROUP + MACHINE].text, message);
        struct predict_value ignored;
        r = inputs->evaluate(inputs->context, calls[group - model->groups], sizes, &ignored, message);
        if (!values[FORM].is_set && strcmp(model->kind, "maximum") == 0)
            form = FORM_CLASSICAL;
    }
    if (r < 0)
        return r;
    ret[COMPUTE] = sizes[0] * roof.flop;
    ret[TRANSFER] = sizes[1] * roof.byte;
    ret[REST] = form == FORM_IMPROVED ? roof.overhead : 0;
    ret[TIME] = time_of(&roof, form, sizes[0], sizes[1]);
    ret[PERFORMANCE] = sizes[0] / ret[TIME] / 1e9;
    ret[INTENSITY] = sizes[0] / sizes[1];
    ret[RIDGE] = roof.byte / roof.flop;
    ret[SHARE] = ret[COMPUTE] / ret[TIME];
    const char *texts[COLUMN_COUNT] = {[BOUND] = ret[COMPUTE] < ret[TRANSFER] ? "memory" : "compute"};
    if (form == FORM_CLASSICAL && roof.overhead > 0)
        predict_remark(output, false, "the overhead of %g s is ignored, because the classical form has none",
                       roof.overhead);
    if (output->wants(output->context, 0))
        r = add_roof(&roof, sizes[0], output);
    return r < 0 ? r : output->row(output->context, ret, texts);
}

ASSAY_PREDICT_PLUGIN("roofline", ASSAY_VERSION,
                     "performance of a kernel by the roofline, improved or classical", .roles = roles,
                     .parameters = parameters, .columns = columns, .open = roofline_open, .run = roofline_run,
                     .close = free, .tables = tables);
