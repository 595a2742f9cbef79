/*
 * A fit plugin is one function from rows in memory to coefficients:
 *
 *     static int fit_mean(const struct fit_rows *rows, const struct fit_request *request,
 *                         struct fit_result *result, struct plugin_message *message) {
 *         ...
 *         fit_result_term(result, "1", mean, standard_error);
 *         fit_result_noise(result, sigma);
 *         return 0;
 *     }
 *     ASSAY_FIT_PLUGIN("mean", "1.0", "the mean of each group", .fit = fit_mean, .rows_min = 2);
 *
 * The host reads the table, forms the groups, drops rows with missing values, converts units, and calls fit()
 * once a group, and again on subsets of its rows for cross-validation. It then knows domain, hull, residuals,
 * scores and lack of fit by itself, and writes the model file. fit() is called from one thread and keeps
 * nothing between calls.
 */
#ifndef ASSAY_ASSAY_FIT_H
#define ASSAY_ASSAY_FIT_H

#include <assay/model.h>
#include <assay/plugin.h>

#include <errno.h>
#include <math.h>

/* The rows of one group, column by column, in the order of the table (in any order where it is a fold's).
 * Arrays have `count` entries; no number is missing or infinite. The host's memory, valid during the call. */
struct fit_rows {
    uint32_t size;
    size_t count;
    const double *response; /* in request->response_unit */
    const double *weights;  /* above 0; NULL: all are 1 */
    /* The value of each term of the request: terms[t] is terms[0] + t x term_stride, a matrix column by
     * column. */
    const double *const *terms;
    size_t term_stride;
    const double *const *columns;      /* of the parameters of type column, in their order */
    const uint32_t *const *categories; /* of the parameters of type category: indices into request->levels */
    const uint64_t *numbers;           /* which row of the table each is, from 0: for messages */
    /* Which setting each row is of, from 0 to setting_count - 1: the rows of one are equal in every column of
     * the terms and the parameters. Some may have no rows. */
    const uint32_t *settings;
    size_t setting_count;
};

struct fit_levels {
    const char *const *texts; /* in natural order */
    size_t count;
};

struct fit_request {
    uint32_t size;
    const char *response;
    const char *response_unit; /* one of fit_plugin.response_units where there are such; NULL: not known */
    size_t response_choice;    /* the index of response_unit in fit_plugin.response_units */
    const struct model_term
        *terms; /* of the formula that the user, the experiment or fit_plugin.terms gave */
    size_t term_count;
    bool suggested; /* the terms are not the user's own */
    bool positive;  /* the response is a time or another cost: no prediction should be 0 or less */
    const struct fit_levels *levels;   /* of each category, over the whole table */
    const struct plugin_value *values; /* of each parameter, in the order of fit_plugin.parameters */
    const char *group;                 /* its labels, for messages */
    bool is_fold;                      /* a fit for cross-validation, whose notes and tables are ignored */
    uint64_t seed;                   /* of whatever is drawn: equal rows, request and seed give equal bits */
    const char *const *column_units; /* of each of fit_rows.columns; NULL: not known */
};

/* Receives the results of fit() through the functions below. Texts and arrays are copied. */
struct fit_result {
    uint32_t size;
    void *context;
    void (*kind)(void *context, const char *kind, const char *over, const char *named_by);
    void (*part)(void *context, const char *kind, const char *name, double from, double to);
    void (*term)(void *context, const char *name, const struct model_estimate *estimate);
    void (*covariance)(void *context, const double *covariance);
    void (*noise)(void *context, const struct model_noise *noise);
    void (*value)(void *context, bool of_group, const char *name, double value, const char *unit);
    void (*rows)(void *context, uint64_t rows);
    void (*note)(void *context, const char *sentence);
    void (*table)(void *context, const char *title, const char *const *columns, const char *const *units,
                  size_t column_count);
    void (*table_row)(void *context, const char *label, const double *numbers);
    void (*freedom)(void *context, double freedom);
    void (*outliers)(void *context, const bool *is_outlier);
};

/* Sets how a row's mean follows from the estimates (model.h), the same for every group. Default: "linear". */
static inline void fit_result_kind(struct fit_result *result, const char *kind, const char *over,
                                   const char *named_by) {
    result->kind(result->context, kind, over, named_by);
}
/* Begins a part, to which the following calls refer. Without this call there is one part of the kind
 * "whole". */
static inline void fit_result_part(struct fit_result *result, const char *kind, const char *name, double from,
                                   double to) {
    result->part(result->context, kind, name, from, to);
}
/* The estimate of a term: one of request->terms by its name, or any other formula ("1", "m^2*n"; "`size`", as
 * a parameter's column, which may be an expression, is between backquotes), which becomes a term of the
 * model. STANDARD_ERROR NaN: not defined. t and p follow from it and the degrees of freedom, rows less terms.
 */
static inline void fit_result_term(struct fit_result *result, const char *name, double estimate,
                                   double standard_error) {
    struct model_estimate e = {.estimate = estimate, .standard_error = standard_error, .t = NAN, .p = NAN};
    result->term(result->context, name, &e);
}
/* Records a term that is left out in this group. */
static inline void fit_result_dropped(struct fit_result *result, const char *name) {
    struct model_estimate e = {.standard_error = NAN, .t = NAN, .p = NAN, .dropped = true};
    result->term(result->context, name, &e);
}
/* Records the covariance of the part's estimates, row by row, in the order in which they were recorded,
 * with dropped ones. */
static inline void fit_result_covariance(struct fit_result *result, const double *covariance) {
    result->covariance(result->context, covariance);
}
/* Student's degrees of freedom of the covariance and the noise: of intervals, t and p. Not called: the part's
 * value "degrees_of_freedom", or rows less estimates. */
static inline void fit_result_freedom(struct fit_result *result, double freedom) {
    result->freedom(result->context, freedom);
}
/* Records homoscedastic noise: single measurements have the standard deviation SIGMA everywhere on the
 * part. */
static inline void fit_result_noise(struct fit_result *result, double sigma) {
    struct model_noise noise = {.kind = MODEL_NOISE_HOMOSCEDASTIC, .constant = sigma};
    result->noise(result->context, &noise);
}
/* Records any noise; its coefficients are in the order in which the terms were recorded. */
static inline void fit_result_noise_model(struct fit_result *result, const struct model_noise *noise) {
    result->noise(result->context, noise);
}
/* A number of the part in hand ("bandwidth") with its unit (UCUM; "1": a plain number; NULL: the response's).
 * A detail of reports, unless fit_plugin.main_values has its name. */
static inline void fit_result_value(struct fit_result *result, const char *name, double value,
                                    const char *unit) {
    result->value(result->context, false, name, value, unit);
}
/* Records a number of the group as a whole, as fit_result_value() does of a part. */
static inline void fit_result_group_value(struct fit_result *result, const char *name, double value,
                                          const char *unit) {
    result->value(result->context, true, name, value, unit);
}
/* Records how many rows were used, if fewer than fit() got. */
static inline void fit_result_rows(struct fit_result *result, uint64_t rows) {
    result->rows(result->context, rows);
}
/* Records the outliers, rows of fit() with no or almost no influence on the estimates: one flag a row,
 * copied. They are counted, but not scored. */
static inline void fit_result_outliers(struct fit_result *result, const bool *is_outlier) {
    result->outliers(result->context, is_outlier);
}
/* Adds a note that a reader of this group's numbers must know: one sentence without full stop. */
__attribute__((format(printf, 2, 3))) static inline void fit_result_note(struct fit_result *result,
                                                                         const char *format, ...) {
    char sentence[PLUGIN_MESSAGE_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    result->note(result->context, sentence);
}
/* Begins a table of the report, which is not in the model file; then its rows follow, each a text and its
 * numbers. */
static inline void fit_result_table(struct fit_result *result, const char *title, const char *const *columns,
                                    const char *const *units, size_t column_count) {
    result->table(result->context, title, columns, units, column_count);
}
static inline void fit_result_table_row(struct fit_result *result, const char *label, const double *numbers) {
    result->table_row(result->context, label, numbers);
}

struct fit_plugin {
    uint32_t size;
    /* Fits one group. -EDOM: this group has no fit, for the reason in MESSAGE, but others are still
     * fitted; other errors end the command. */
    int (*fit)(const struct fit_rows *rows, const struct fit_request *request, struct fit_result *result,
               struct plugin_message *message);
    /* Optional: predicts the mean and sigma of each of ROWS by GROUP, for a kind of model that the host
     * cannot evaluate, or a method with needs_all_rows. NaN: no prediction. MEAN and SIGMA have
     * rows->count entries. */
    int (*predict)(const struct model *model, const struct model_group *group, const struct fit_rows *rows,
                   const struct fit_request *request, double *mean, double *sigma,
                   struct plugin_message *message);
    /* Optional: called before any group; refuses parameters and terms that cannot be combined. */
    int (*check)(const struct fit_request *request, struct plugin_message *message);
    const struct plugin_parameter *parameters; /* ended by one without a name; NULL: none */
    const char *terms;                         /* the default formula; NULL: the plugin takes none */
    const char *const *response_units; /* the response is converted to the first of the same dimension; NULL:
                                          no conversion */
    size_t rows_min;                   /* a group of fewer is skipped by the host */
    bool takes_terms;                  /* --terms is a formula, and fit_rows has its terms */
    bool needs_all_rows;               /* its rows mean something only together: no cross-validation */
    const char *const
        *main_values; /* the names of values that reports show without --verbose; ended by NULL */
};

#define ASSAY_FIT_PLUGIN(NAME, VERSION, SUMMARY, ...)                                                        \
    static const struct fit_plugin assay_fit_operations = {.size = sizeof(struct fit_plugin), __VA_ARGS__};  \
    __attribute__((visibility("default")))                                                                   \
    const struct assay_plugin assay_plugin = {.abi = ASSAY_PLUGIN_ABI,                                       \
                                              .size = sizeof(struct assay_plugin),                           \
                                              .kind = PLUGIN_FIT,                                            \
                                              .name = (NAME),                                                \
                                              .version = (VERSION),                                          \
                                              .summary = (SUMMARY),                                          \
                                              .operations = &assay_fit_operations}

#endif
