/* The plugin fit-roofline: see README.md for what it computes. */
#include "plugins/fit-roofline/roofline.h"

#include <stdlib.h>
#include <string.h>

enum parameter { FLOPS_COLUMN, BYTES_COLUMN, FORM, CRITERION, WITH_OVERHEAD };
enum { IMPROVED, CLASSICAL };

static const char *const flops_names[] = {"flops", "flop", NULL}, *const bytes_names[] = {"bytes", NULL};
static const char *const forms[] = {"improved", "classical", NULL};
static const char *const criteria[] = {"relative", "time", "log", NULL};
static const char *const overheads[] = {"fitted", "none", NULL};
static const char *const response_units[] = {"s", "flop/s", NULL};
enum { RESPONSE_TIME, RESPONSE_PERFORMANCE };

static const struct plugin_parameter parameters[] = {
    [FLOPS_COLUMN] = {"flops", PLUGIN_COLUMN, "flop", .choices = flops_names, .required = true,
                      .help = "number of operations of the kernel"},
    [BYTES_COLUMN] = {"bytes", PLUGIN_COLUMN, "By", .choices = bytes_names, .required = true,
                      .help = "number of bytes that the kernel moves to and from memory"},
    [FORM] = {"form", PLUGIN_WORD, .choices = forms, .default_text = "improved",
              .help = "improved: time = flops/peak + bytes/bandwidth + overhead; classical: "
                      "time = max(flops/peak, bytes/bandwidth)"},
    [CRITERION] = {"criterion", PLUGIN_WORD, .choices = criteria, .default_text = "relative",
                   .help = "which squared errors are minimised: relative errors of the time, "
                           "errors of the time, or errors of its logarithm (classical only)"},
    [WITH_OVERHEAD] = {"overhead", PLUGIN_WORD, .choices = overheads, .default_text = "fitted",
                       .help = "whether the improved form has an overhead, a time spent on neither "
                               "flops nor bytes"},
    {0},
};

static bool is_word(const struct fit_request *request, enum parameter parameter, int word) {
    return (int)request->values[parameter].number == word;
}

/* Reads the rows with flops and bytes of 0 or more, not both 0, and a time above 0. A note says how many rows
 * are left out. -ENOMEM. The caller frees RET->rows. */
static int read_rows(const struct fit_rows *rows, const struct fit_request *request, struct kernels *ret,
                     struct fit_result *result) {
    bool is_time = request->response_choice == RESPONSE_TIME;
    bool overhead = is_word(request, FORM, IMPROVED) && is_word(request, WITH_OVERHEAD, 0);
    *ret =
        (struct kernels){.criterion = (enum criterion)request->values[CRITERION].number,
                         .terms = overhead ? 3 : 2,
                         .rows = malloc((rows->count + 1) * sizeof *ret->rows),
                         .names = {request->values[FLOPS_COLUMN].text, request->values[BYTES_COLUMN].text}};
    for (size_t i = 0; ret->rows && i < rows->count; i++) {
        double flops = rows->columns[0][i], bytes = rows->columns[1][i], y = rows->response[i];
        double duration = is_time ? y : flops / y;
        if (flops >= 0 && bytes >= 0 && flops + bytes > 0 && y > 0 && duration > 0 && isfinite(duration))
            ret->rows[ret->count++] =
                (struct kernel){flops, bytes, duration, rows->weights ? rows->weights[i] : 1};
    }
    size_t left_out = rows->count - ret->count;
    if (left_out > 0)
        fit_result_note(result,
                        "%zu row%s left out: flops or bytes are below 0, both are 0, or the response is not "
                        "above 0",
                        left_out, left_out == 1 ? "" : "s");
    return ret->rows ? 0 : -ENOMEM;
}

/* How well a fit describes its rows. */
struct quality {
    size_t estimated;
    double freedom, rss, sigma, log_likelihood;
    bool saturated, perfect;
};

/* Degrees of freedom, sigma and likelihood of a fit. */
static struct quality fit_quality(const struct kernels *kernels, const struct roofline *roofline) {
    double n = (double)kernels->count, logarithms = 0;
    struct quality q = {.estimated = 0};
    for (size_t i = 0; i < TERMS_MAX; i++)
        q.estimated += roofline->found[i];
    for (size_t i = 0; i < kernels->count; i++)
        logarithms += log(kernels->rows[i].w) / 2 -
                      (kernels->criterion == BY_TIME ? 0 : log(kernels->rows[i].duration));
    q.freedom = n - (double)q.estimated;
    q.saturated = q.freedom <= 0;
    q.perfect = roofline->rss <= 1e-24 * roofline->total || (q.saturated && roofline->rss == 0);
    q.rss = q.saturated || q.perfect ? 0 : roofline->rss;
    q.sigma = q.saturated ? NAN : sqrt(q.rss / q.freedom);
    q.log_likelihood = q.rss > 0 ? logarithms - n / 2 * (log(2 * M_PI) + 1 + log(q.rss / n)) : NAN;
    return q;
}

/* Records the terms: for times F, B and 1 with x, y and a; for performances 1, F/B and F with 1/x, 1/y and
 * 1/a. */
static void record_terms(const struct kernels *kernels, const struct fit_request *request,
                         const struct roofline *roofline, double sigma, struct fit_result *result) {
    static const char *const kinds[2][2] = {{"linear", "maximum"}, {"harmonic", "minimum"}};
    bool is_rate = request->response_choice == RESPONSE_PERFORMANCE;
    size_t p = kernels->terms;
    char names[2][TERMS_MAX][1100] = {{"", "", "1"}, {"1", "", ""}};
    double slopes[TERMS_MAX], covariance[TERMS_MAX * TERMS_MAX];
    snprintf(names[0][0], sizeof names[0][0], "`%.512s`", kernels->names[FLOPS]);
    snprintf(names[0][1], sizeof names[0][1], "`%.512s`", kernels->names[BYTES]);
    snprintf(names[1][1], sizeof names[1][1], "`%.512s`*`%.512s`^-1", kernels->names[FLOPS],
             kernels->names[BYTES]);
    memcpy(names[1][2], names[0][0], sizeof names[1][2]);
    fit_result_kind(result, kinds[is_rate][(size_t)request->values[FORM].number], NULL, NULL);
    for (size_t i = 0; i < p; i++) {
        double e = roofline->estimates[i], error = sigma * sqrt(roofline->inverse[i * (TERMS_MAX + 1)]);
        slopes[i] = !roofline->found[i] ? 0 : is_rate ? -1 / e / e : 1;
        if (roofline->found[i])
            fit_result_term(result, names[is_rate][i], is_rate ? 1 / e : e,
                            roofline->tied ? NAN : error * fabs(slopes[i]));
        else
            fit_result_dropped(result, names[is_rate][i]);
    }
    for (size_t i = 0; i < p * p; i++)
        covariance[i] =
            sigma * sigma * roofline->inverse[i / p * TERMS_MAX + i % p] * slopes[i / p] * slopes[i % p];
    if (isfinite(sigma) && !roofline->tied)
        fit_result_covariance(result, covariance);
}

/* Records the noise of times whose model is a sum: a constant, or a share of the mean. */
static void record_noise(const struct kernels *kernels, const struct fit_request *request,
                         const struct roofline *roofline, double sigma, struct fit_result *result) {
    static char method[] = "least-squares";
    const double *e = roofline->estimates;
    double coefficients[TERMS_MAX] = {sigma * e[FLOPS], sigma * e[BYTES], 0};
    if (!(sigma > 0) || request->response_choice != RESPONSE_TIME)
        return;
    if (kernels->criterion == BY_TIME) {
        fit_result_value(result, "sigma", sigma, NULL);
        fit_result_noise(result, sigma);
    } else if (is_word(request, FORM, IMPROVED)) {
        fit_result_noise_model(result, &(struct model_noise){.kind = MODEL_NOISE_HETEROSCEDASTIC,
                                                             .method = method,
                                                             .constant = sigma * e[OVERHEAD],
                                                             .coefficients = coefficients});
    }
}

/* Records a peak (1 / estimate) or the overhead, with its standard error; NaN if it was not estimated. */
static void record_peak(const struct roofline *roofline, size_t i, double sigma, const char *name,
                        const char *unit, struct fit_result *result) {
    char error_name[64];
    double e = roofline->estimates[i], error = sigma * sqrt(roofline->inverse[i * (TERMS_MAX + 1)]);
    bool is_peak = i != OVERHEAD, found = roofline->found[i];
    snprintf(error_name, sizeof error_name, "%s_standard_error", name);
    fit_result_value(result, name, !found ? NAN : is_peak ? 1 / e : e, unit);
    fit_result_value(result, error_name,
                     !found || roofline->tied ? NAN
                     : is_peak                ? error / e / e
                                              : error,
                     unit);
}

/* Records peaks, ridge and the quality of the fit. */
static void record_values(const struct kernels *kernels, const struct fit_request *request,
                          const struct roofline *roofline, const struct quality *q,
                          struct fit_result *result) {
    const char *squared = kernels->criterion == BY_TIME ? "s2" : "1";
    const double *e = roofline->estimates, *v = roofline->inverse;
    double n = (double)kernels->count, parameters_counted = (double)q->estimated + 1; /* sigma is one */
    bool both = roofline->found[FLOPS] && roofline->found[BYTES];
    double share = v[0] / e[0] / e[0] + v[TERMS_MAX + 1] / e[1] / e[1] - 2 * v[1] / e[0] / e[1];
    record_peak(roofline, FLOPS, q->sigma, "peak_flops", "flop/s", result);
    record_peak(roofline, BYTES, q->sigma, "peak_bandwidth", "By/s", result);
    fit_result_value(result, "ridge_intensity", both ? e[1] / e[0] : NAN, "flop/By");
    fit_result_value(result, "ridge_intensity_standard_error",
                     both && !roofline->tied ? e[1] / e[0] * q->sigma * sqrt(fmax(share, 0)) : NAN,
                     "flop/By");
    if (kernels->terms == TERMS_MAX)
        record_peak(roofline, OVERHEAD, q->sigma, "overhead", "s", result);
    fit_result_value(result, "rss", q->rss, squared);
    fit_result_value(result, "degrees_of_freedom", q->freedom, "1");
    fit_result_value(result, "criterion_sigma", q->sigma, kernels->criterion == BY_TIME ? "s" : "1");
    fit_result_value(result, "r2", roofline->total > 0 ? 1 - q->rss / roofline->total : NAN, "1");
    fit_result_value(result, "log_likelihood", q->log_likelihood, "1");
    fit_result_value(result, "aic", 2 * parameters_counted - 2 * q->log_likelihood, "1");
    fit_result_value(result, "bic", log(n) * parameters_counted - 2 * q->log_likelihood, "1");
    if (is_word(request, FORM, CLASSICAL)) {
        fit_result_value(result, "rows_memory_bound", (double)roofline->memory_bound, "1");
        fit_result_value(result, "rows_compute_bound", n - (double)roofline->memory_bound, "1");
    }
}

/* Notes peaks that were not estimated, and standard errors that are not defined. */
static void record_notes(const struct kernels *kernels, const struct roofline *roofline,
                         const struct quality *q, struct fit_result *result) {
    static const char *const what[] = {"peak flop rate", "peak bandwidth", "overhead"};
    static const char *const units[] = {"flop/s", "By/s"};
    for (size_t i = 0; i < kernels->terms; i++)
        if (!roofline->found[i] && isfinite(roofline->bound))
            fit_result_note(result,
                            "no row is bound by %s: only a lower bound is known, the %s is at "
                            "least %.4g %s",
                            i == FLOPS ? "flops" : "memory", what[i], roofline->bound, units[i]);
        else if (!roofline->found[i])
            fit_result_note(result, "the fitted model has no %s, because its estimate would be below 0",
                            what[i]);
    if (roofline->tied)
        fit_result_note(result, "the ridge point coincides with the intensity of a row: standard "
                                "errors are not defined");
    if (q->saturated)
        fit_result_note(result, "there are as many rows as terms: standard errors cannot be estimated; "
                                "measure more settings");
    else if (q->perfect)
        fit_result_note(result, "the model passes through all rows: the likelihood is not defined");
}

/* Fits one group. -EDOM: the rows do not suffice. */
static int fit_roofline(const struct fit_rows *rows, const struct fit_request *request,
                        struct fit_result *result, struct plugin_message *message) {
    struct kernels kernels;
    struct roofline roofline;
    int r = read_rows(rows, request, &kernels, result);
    if (r == 0)
        r = is_word(request, FORM, CLASSICAL) ? classical_fit(&kernels, &roofline, message)
                                              : improved_fit(&kernels, &roofline, message);
    if (r == 0) {
        struct quality quality = fit_quality(&kernels, &roofline);
        record_terms(&kernels, request, &roofline, quality.sigma, result);
        record_noise(&kernels, request, &roofline, quality.sigma, result);
        record_values(&kernels, request, &roofline, &quality, result);
        record_notes(&kernels, &roofline, &quality, result);
        fit_result_rows(result, kernels.count);
    }
    free(kernels.rows);
    return r;
}

/* -EINVAL for settings that do not go together. */
static int check_roofline(const struct fit_request *request, struct plugin_message *message) {
    if (is_word(request, FORM, IMPROVED) && is_word(request, CRITERION, BY_LOG))
        return plugin_refuse(message, -EINVAL,
                             "criterion=log is not possible with form=improved; set "
                             "criterion=relative or criterion=time, or form=classical");
    if (request->response_choice == RESPONSE_TIME && strcmp(request->response, "performance") == 0)
        return plugin_refuse(message, -EINVAL,
                             "the response 'performance' has no unit; expected one in flop/s, or a duration, "
                             "such as --response 'flops / performance'");
    return 0;
}

ASSAY_FIT_PLUGIN("roofline", "0.2.0", "peak flop rate and bandwidth from flops, bytes and durations",
                 .fit = fit_roofline, .check = check_roofline, .parameters = parameters,
                 .response_units = response_units, .rows_min = 1,
                 .main_values = (const char *const[]){"r2", "peak_flops", "peak_bandwidth", "ridge_intensity",
                                                      NULL});
