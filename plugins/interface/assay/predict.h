/*
 * A predict plugin turns models and a scenario into numbers, or into a text: predictors and exporters are
 * one interface. The host reads the models and gives each to its role, checks every parameter
 * with its unit, makes tables of scenarios, writes CSV, JSON and files, and finds how uncertain a prediction
 * is by running the plugin again with models drawn from their covariances and noise (--draws). Besides its
 * result a plugin may declare tables: lists, curves and intervals of time. The host writes them as CSV and
 * draws them (text, SVG, HTML, trace events); the plugin gives rows, and only of tables that the user asked
 * for.
 *
 *     open(models and options; binds calls) -> state ;  run(state, scenario) -> values or text ... ;
 * close(state)
 *
 * A plugin without open() and close() gets NULL as its state.
 */
#ifndef ASSAY_ASSAY_PREDICT_H
#define ASSAY_ASSAY_PREDICT_H

#include <assay/column.h>
#include <assay/model.h>
#include <assay/plugin.h>

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A role that a model has for the plugin: the user writes `assay predict hpl dgemm=dgemm.json
 * network=smpi.json`; with one role, or where only one role takes a model of its kind, the name may be
 * left out. */
struct predict_role {
    const char *name;
    const char *const *kinds; /* of models that are taken, ended by NULL; NULL: any */
    bool is_time;             /* the response must be a duration */
    bool many;                /* several models may have this role */
    bool optional;
    const char *help;
    /* The role takes any file, such as a platform, by ROLE=FILE: its bytes and hash are in predict_source,
     * and the model is an empty one of the kind "file". */
    bool is_file;
    const char *experiment; /* the experiment from whose archives the host fits a model for the role (--from),
                               such as "dgemm"; or NULL */
};

/* Parameters that many predictors have, with their units, bounds and what is plausible; more members follow:
 * PREDICT_COUNT("N", 1e9, .required = true, .help = "order of the matrix"). */
#define PREDICT_COUNT(NAME, MAXIMUM, ...)                                                                    \
    { NAME, PLUGIN_NUMBER, "1", .minimum = 1, .maximum = MAXIMUM, .integer = true, __VA_ARGS__ }
#define PREDICT_LATENCY(NAME, ...)                                                                           \
    {                                                                                                        \
        NAME, PLUGIN_NUMBER, "s", .minimum = 0, .maximum = 1e3, .plausible_minimum = 1e-8,                   \
                                  .plausible_maximum = 1e-2, __VA_ARGS__                                     \
    }
#define PREDICT_BANDWIDTH(NAME, ...)                                                                         \
    {                                                                                                        \
        NAME, PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15, .plausible_minimum = 1e6,                \
                                     .plausible_maximum = 1e13, __VA_ARGS__                                  \
    }
#define PREDICT_RATE(NAME, ...)                                                                              \
    {                                                                                                        \
        NAME, PLUGIN_NUMBER, "flop/s", .minimum = 1, .maximum = 1e18, .plausible_minimum = 1e8,              \
                                       .plausible_maximum = 1e15, __VA_ARGS__                                \
    }

/* A model's prediction of a row. */
struct predict_value {
    double mean;          /* in the response's unit; in a draw of the drawn coefficients */
    double sigma;         /* standard deviation of one measurement; NaN: the model has no noise */
    bool is_extrapolated; /* the row is outside of what the model was fitted to; false in a draw */
};

/*
 * A group of a model over named columns, bound once by predict_inputs.bind. Its functions are safe from any
 * thread during run(), allocate nothing, and take some 10 ns for a handful of terms. VALUES: one a name, in
 * the order of bind. NaN: the model is not defined there.
 */
struct predict_call {
    double (*mean)(const struct predict_call *call, const double *values);
    /* Draws a measurement: the mean and noise, if the model has noise. The result depends only on the
     * seed, the draw, STREAM and NUMBER (such as a rank and the number of its call), not on the order of
     * calls; calls of two groups with the same stream and number share their random number. The generator
     * is splitmix64 by counter (G. Steele, D. Lea, C. Flood, OOPSLA 2014), its normals are of the ziggurat
     * (G. Marsaglia, W. W. Tsang, J. Stat. Software 5(8), 2000). */
    double (*draw)(const struct predict_call *call, const double *values, uint64_t stream, uint64_t number);
    /* The means of COUNT rows: COLUMNS has an array of COUNT numbers for each name. Faster than one by one.
     */
    void (*means)(const struct predict_call *call, const double *const *columns, size_t count, double *ret);
    /* COUNT draws at VALUES: one of each of STREAMS and NUMBERS. Faster than one by one. */
    void (*draws)(const struct predict_call *call, const double *values, size_t count,
                  const uint64_t *streams, const uint64_t *numbers, double *ret);
};

/* Where a model came from. */
struct predict_source {
    const char *file;   /* base name of its file */
    const char *sha256; /* of the file, in hex */
    /* The word that the user wrote before '=' (`assay export kernels dtrsm=calls.json`: of a role that
     * takes many, any word may stand for the role), or the file's name up to its first point. */
    const char *name;
    /* "not usable for prediction: ...", for a comment in the text that the plugin writes; NULL: the model
     * is usable, or not graded. The host itself warns the user. */
    const char *warning;
    const char *bytes; /* of a role that is a file; a NUL follows them; else NULL */
    size_t length;
};

/* The models of a plugin, and what the host does for it. The host's memory, valid until close. */
struct predict_inputs {
    uint32_t size;
    void *context;
    const struct model *const *const *models; /* by role: a list of models; in a draw, drawn ones */
    const size_t *model_counts;               /* by role; 0: none was given */
    const struct plugin_value *options;       /* of each of predict_plugin.options */
    uint64_t seed;
    /*
     * Binds GROUP of MODEL to the columns NAMES, in open(); the host frees RET. A name "operation=Send" is of
     * a column of texts, and its value is ignored. RET follows the draw: the models of open() stand for the
     * drawn ones in a draw. -EINVAL with a sentence: the model needs a column that NAMES does not have, or is
     * of a kind that is not evaluated row by row.
     */
    int (*bind)(void *context, const struct model *model, size_t group, const char *const *names,
                size_t count, const struct predict_call **ret, struct plugin_message *message);
    /* Sets RET to the prediction at VALUES, one a name. Only from the thread that run() was called in: the
     * host warns, once a scenario, if more than 1 % of the sum of these means is extrapolated. In a draw
     * RET is of the drawn model, without extrapolation. -EDOM with a sentence: the model is not defined
     * there. */
    int (*evaluate)(void *context, const struct predict_call *call, const double *values,
                    struct predict_value *ret, struct plugin_message *message);
    /* The standard deviation of the mean, by the covariance of the estimates; NaN: not known. */
    double (*standard_error)(void *context, const struct predict_call *call, const double *values);
    /* Number INDEX, in [0, 1) or standard normal, of the stream STREAM of this seed and draw: the same in
     * all threads, at any time, and in all scenarios. */
    double (*uniform)(void *context, const char *stream, uint64_t index);
    double (*normal)(void *context, const char *stream, uint64_t index);
    bool is_draw; /* whether this run is a draw, one of many whose values are summarised; its remarks are
                     ignored */
    const struct predict_source *const *sources; /* by role, one a model */
    const char *engine;                          /* "assay 1.0", for texts that the plugin writes */
    size_t threads; /* that run() may use at once, its own included: at least 1 */
    /* evaluate() of COUNT rows, several times faster than one by one: COLUMNS has an array of COUNT numbers
     * for each name. RET_SIGMAS may be NULL; RET_OUTSIDE: which rows are extrapolated. -EDOM with a sentence
     * on the first row where the model is not defined. */
    int (*evaluate_rows)(void *context, const struct predict_call *call, const double *const *columns,
                         size_t count, double *ret_means, double *ret_sigmas, bool *ret_outside,
                         struct plugin_message *message);
};

/* Receives the results of run(). */
struct predict_output {
    uint32_t size;
    void *context;
    /* Adds a remark, one sentence: how the numbers were computed or, with WARNING, why they may be wrong.
     * It is copied. */
    void (*remark)(void *context, bool warning, const char *sentence);
    /* Appends to the text; 0 or negative errno. run() need not check that: the host remembers the first
     * error and refuses the result. */
    int (*text)(void *context, const char *bytes, size_t length);
    /* Adds a row to the result of a scenario that has several; VALUES has one number a column, TEXTS one
     * text a column (NULL: no column is a text). 0 or negative errno. */
    int (*row)(void *context, const double *values, const char *const *texts);
    /* Whether the user asked for rows of table TABLE (an index of predict_plugin.tables). False in draws. A
     * plugin asks before it computes what only the table needs. */
    bool (*wants)(void *context, size_t table);
    /* Adds a row to table TABLE of this scenario; copied, or ignored if the table is not wanted. VALUES
     * has one number a column, TEXTS one text a column (NULL: no column is a text). 0 or negative errno. */
    int (*table_row)(void *context, size_t table, const double *values, const char *const *texts);
    /* For a long run(): reports that SHARE of it, 0 to 1, is done; from the thread that run() was called
     * in, several times a second. -ECANCELED: the user has stopped it; run() must return that at once. */
    int (*progress)(void *context, double share);
    /* Appends MODEL to the text as a model file, once. Its `origin` is ignored, since the host writes
     * that. 0 or negative errno. */
    int (*model)(void *context, const struct model *model);
};

__attribute__((format(printf, 3, 4))) static inline void
predict_remark(struct predict_output *output, bool warning, const char *format, ...) {
    char sentence[PLUGIN_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    output->remark(output->context, warning, sentence);
}

/* The group of MODEL that is called NAME, which is the value of PARAMETER, or its only group where NAME is
 * NULL; NULL with MESSAGE: there is none. */
static inline const struct model_group *predict_group_by(const struct model *model, const char *parameter,
                                                         const char *name, struct plugin_message *message) {
    for (size_t g = 0; g < model->group_count; g++)
        if (name ? strcmp(model->groups[g].name, name) == 0 : model->group_count == 1)
            return &model->groups[g];
    plugin_refuse(message, -EINVAL,
                  "%.128s has %zu groups, and '%s' is %s%.128s; expected the name of one, such as %.128s",
                  model->file, model->group_count, parameter, name ? "" : "not set", name ? name : "",
                  model->group_count > 0 ? model->groups[0].name : "none");
    return NULL;
}

/* predict_group_by() for the parameter "group". */
static inline const struct model_group *predict_group(const struct model *model, const char *name,
                                                      struct plugin_message *message) {
    return predict_group_by(model, "group", name, message);
}

/* The value called NAME of PART, or NaN. */
static inline double predict_part_value(const struct model_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

/* The term m*n*k of MODEL, or term_count where it has none. */
static inline size_t predict_product_term(const struct model *model) {
    for (size_t t = 0; t < model->term_count; t++) {
        const struct model_term *term = &model->terms[t];
        int seen = 0;
        for (size_t f = 0; f < term->factor_count; f++) {
            const struct model_factor *factor = &term->factors[f];
            const char *size = strlen(factor->column) == 1 ? strchr("mnk", factor->column[0]) : NULL;
            seen += size && factor->power == 1 && !factor->level && !factor->function
                        ? 1 << 4 * (size - "mnk")
                        : 1 << 12;
        }
        if (seen == 0x111)
            return t;
    }
    return model->term_count;
}

/* Binds each group of MODEL to the columns NAMES, as bind() does, in open(). RET: the calls in the order of
 * the groups, then NULL; the plugin frees the array by free(). MODEL may be NULL, which has no groups.
 * Negative errno: RET is NULL. */
static inline int predict_bind(const struct predict_inputs *inputs, const struct model *model,
                               const char *const *names, size_t count, const struct predict_call ***ret,
                               struct plugin_message *message) {
    size_t groups = model ? model->group_count : 0;
    const struct predict_call **calls = calloc(groups + 1, sizeof *calls);
    int r = calls ? 0 : -ENOMEM;
    for (size_t g = 0; r == 0 && g < groups; g++)
        r = inputs->bind(inputs->context, model, g, names, count, &calls[g], message);
    if (r < 0)
        free(calls);
    *ret = r < 0 ? NULL : calls;
    return r;
}

/* predict_bind() of the first model of ROLE to m, n and k. No model has the role: RET is empty. -EINVAL with
 * a sentence: it is no model of dgemm. */
static inline int predict_bind_dgemm(const struct predict_inputs *inputs, size_t role,
                                     const struct predict_call ***ret, struct plugin_message *message) {
    static const char *const names[] = {"m", "n", "k"};
    const struct model *model = inputs->model_counts[role] > 0 ? inputs->models[role][0] : NULL;
    if (model && (predict_product_term(model) == model->term_count || model->group_count == 0))
        return plugin_refuse(message, -EINVAL,
                             "the model '%s' has no %s; expected a model of dgemm such as M-2",
                             inputs->sources[role]->file, model->group_count > 0 ? "term m*n*k" : "groups");
    return predict_bind(inputs, model, names, 3, ret, message);
}

/* The shape of a table's rows, by which the host draws them. */
enum predict_shape {
    PREDICT_ROWS,      /* a list: any columns; it is not drawn */
    PREDICT_CURVE,     /* numbers: the first column is x, the others are curves over it; rows in order of x */
    PREDICT_INTERVALS, /* of time: the columns are lane (a text), from and to (numbers, s), word (a text) */
    PREDICT_BARS, /* the first column is a name (a text), the second a number: a bar each; others follow */
};

/* A table that a plugin may fill besides its result, for each scenario. */
struct predict_table {
    const char *name; /* the user writes it: `assay predict hpl ... --plot panels=panels.csv` */
    const char *help;
    enum predict_shape shape;
    const struct column *columns; /* as predict_plugin.columns; NULL for PREDICT_INTERVALS */
};

struct predict_plugin {
    uint32_t size;
    const struct predict_role *roles;          /* ended by one without a name */
    const struct plugin_parameter *options;    /* set once: --set; ended by one without a name; NULL: none */
    const struct plugin_parameter *parameters; /* of each scenario; ended by one without a name; NULL: none */
    /* Of the result: name, unit (NULL: the column is of texts), help, detail (it is left out of a printed
     * table of many scenarios), exact, goal, part_of. Ended by one without a name; NULL: the result is a
     * text. */
    const struct column *columns;
    const char *suffix; /* of the text's file: ".xml" */
    int (*open)(const struct predict_inputs *inputs, void **ret_state, struct plugin_message *message);
    /* PARAMETERS: a value for each. RET_VALUES: one a column, NaN at first and for undefined; of a plugin
     * whose scenarios have several rows each goes through output->row instead. INPUTS has the same context as
     * those of open(). -EDOM: this scenario has no answer, for the reason in MESSAGE, and the others are
     * still run; other errors end all. */
    int (*run)(void *state, const struct predict_inputs *inputs, const struct plugin_value *parameters,
               double *ret_values, struct predict_output *output, struct plugin_message *message);
    void (*close)(void *state);         /* NULL is fine */
    const struct predict_table *tables; /* ended by one without a name; NULL: none */
};

#define ASSAY_PREDICT_PLUGIN(NAME, VERSION, SUMMARY, ...)                                                    \
    static const struct predict_plugin assay_predict_operations = {.size = sizeof(struct predict_plugin),    \
                                                                   __VA_ARGS__};                             \
    __attribute__((visibility("default")))                                                                   \
    const struct assay_plugin assay_plugin = {.abi = ASSAY_PLUGIN_ABI,                                       \
                                              .size = sizeof(struct assay_plugin),                           \
                                              .kind = PLUGIN_PREDICT,                                        \
                                              .name = (NAME),                                                \
                                              .version = (VERSION),                                          \
                                              .summary = (SUMMARY),                                          \
                                              .operations = &assay_predict_operations}

#endif
