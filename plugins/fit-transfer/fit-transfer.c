/* The plugin fit-transfer: see README.md for what it computes. */
#include "engine/numerics/segments.h"
#include "plugins/fit-transfer/scatter.h"

#include <assay/fit.h>

#include <stdlib.h>
#include <string.h>

enum parameter { SIZE, CRITERION };
enum { FEW_ROWS = 20 };

static const char *const size_names[] = {"size", "msg_size", "message_size", "bytes", NULL};
static const char *const criterion_words[] = {"time", "bandwidth", "log", NULL};
static const char *const response_units[] = {"s", "By/s", NULL};
enum { RESPONSE_TIME, RESPONSE_BANDWIDTH };

static const struct plugin_parameter parameters[] = {
    [SIZE] = {"size", PLUGIN_COLUMN, "By", .choices = size_names, .required = true, .help = "of a transfer"},
    [CRITERION] = {"criterion", PLUGIN_WORD, .choices = criterion_words, .default_text = "bandwidth",
                   .help = "which squared errors are minimised: of the times, of the bandwidths "
                           "or of their logarithms"},
    {0},
};

/* The transfers of one group: sizes s in By, durations T in s, weights w. */
struct transfers {
    struct curve_problem problem;
    double *memory;
    double least, greatest; /* of the sizes */
    size_t left_out, negative;
};

/* Reads the rows whose size and time suit the criterion; others are counted. -ENOMEM. The caller frees
 * RET->memory. */
static int read_rows(const struct fit_rows *rows, const struct fit_request *request, struct transfers *ret) {
    enum curve_criterion criterion = (enum curve_criterion)request->values[CRITERION].number;
    double *size = malloc((3 * rows->count + 1) * sizeof *size), *duration = size + rows->count,
           *weight = duration + rows->count;
    *ret = (struct transfers){
        {criterion, 0, size, duration, weight}, .memory = size, .least = INFINITY, .greatest = -INFINITY};
    if (!size)
        return -ENOMEM;
    for (size_t i = 0; i < rows->count; i++) {
        double s = rows->columns[0][i], t = rows->response[i];
        if (request->response_choice == RESPONSE_BANDWIDTH)
            t = s / t;
        if (!(s >= 0) || (criterion == CURVE_BANDWIDTH && s == 0) || !isfinite(t) ||
            (criterion != CURVE_TIME && t <= 0)) {
            ret->left_out++;
            continue;
        }
        ret->negative += t < 0;
        ret->least = fmin(ret->least, s);
        ret->greatest = fmax(ret->greatest, s);
        size[ret->problem.rows] = s;
        duration[ret->problem.rows] = t;
        weight[ret->problem.rows++] = rows->weights ? rows->weights[i] : 1;
    }
    return 0;
}

/* ---- Least squares ------------------------------------------------------------------------------------- */

/* What is explained: T, s/T or log T. */
static double explained(enum curve_criterion criterion, double size, double duration) {
    return criterion == CURVE_TIME ? duration : criterion == CURVE_LOG ? log(duration) : size / duration;
}

/* Fits t0 + b s by the criterion. -EDOM: there are too few rows or sizes. */
static int fit_curve(const struct transfers *transfers, const char *size, struct curve *ret,
                     struct plugin_message *message) {
    const struct curve_problem *problem = &transfers->problem;
    const struct segments_problem sizes = {
        .points = problem->rows, .x = problem->size, .y = problem->duration};
    struct segment line;
    if (problem->rows < 2)
        return plugin_refuse(message, -EDOM, "%zu row%s for 2 terms; expected at least 2 rows", problem->rows,
                             problem->rows == 1 ? "" : "s");
    segments_line(&sizes, 0, problem->rows, &line);
    if (transfers->least == transfers->greatest)
        return plugin_refuse(message, -EDOM,
                             "only 1 of 2 terms can be estimated: %.64s is %.6g in all rows; "
                             "measure several sizes",
                             size, transfers->least);
    if (sqrt(line.spread / line.weight) <= 1e-7 * line.mean)
        return plugin_refuse(message, -EDOM,
                             "only 1 of 2 terms can be estimated: %.64s hardly changes, from %.17g "
                             "to %.17g; measure more different sizes",
                             size, transfers->least, transfers->greatest);
    int r = curve_find(problem, ret);
    if (r == 0 && !(isfinite(ret->latency) && isfinite(ret->inverse) && isfinite(ret->rss)))
        return plugin_refuse(message, -EDOM, "sums over the rows exceed the range of a double");
    return r;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

struct estimates {
    double latency, inverse;
    struct scatter scatter;                   /* of durations; NaN where it is not defined */
    double rss, sigma, total, log_likelihood; /* of what is explained; the likelihood is of the durations */
    bool saturated, perfect;
};

/* Computes residual sums, likelihood and scatter of the fitted curve. -ENOMEM. */
static int compute_estimates(const struct transfers *transfers, const struct curve *curve,
                             struct estimates *ret) {
    const struct curve_problem *problem = &transfers->problem;
    double n = (double)problem->rows, weight = 0, mean = 0, squares = 0, logarithms = 0;
    *ret = (struct estimates){.latency = curve->latency, .inverse = curve->inverse};
    for (size_t i = 0; i < problem->rows; i++) {
        double s = problem->size[i], t = problem->duration[i], w = problem->weight[i];
        double u = explained(problem->criterion, s, t), away = u - mean;
        weight += w;
        mean += w / weight * away;
        ret->total += w * away * (u - mean);
        squares += w * u * u;
        /* log |du/dT| makes the likelihoods of the criteria comparable */
        logarithms += log(w) / 2 + (problem->criterion == CURVE_TIME  ? 0
                                    : problem->criterion == CURVE_LOG ? -log(t)
                                                                      : log(s / t / t));
    }
    ret->saturated = problem->rows == 2;
    ret->perfect = curve->rss <= 1e-24 * squares;
    ret->rss = ret->perfect ? 0 : curve->rss;
    ret->total = ret->total > 1e-24 * squares ? ret->total : NAN;
    ret->sigma = ret->saturated ? NAN : sqrt(ret->rss / (n - 2));
    ret->log_likelihood =
        ret->perfect || ret->saturated ? NAN : logarithms - n / 2 * (log(2 * M_PI) + 1 + log(ret->rss / n));
    int code = ret->perfect ? -EDOM : scatter_find(problem, curve, &ret->scatter);
    if (code == -EDOM) {
        double known = ret->perfect && !ret->saturated ? 0 : NAN;
        ret->scatter = (struct scatter){known, 0, n - 2, {known, known, known}};
        code = 0;
    }
    return code;
}

/* Records the terms in the form of the response: T = t0 + b s, or s/T = 1 / (1/B0 + 1/(s/t0)). */
static void record_terms(const struct fit_request *request, const struct estimates *e,
                         struct fit_result *result) {
    char size[512];
    const double *v = e->scatter.covariance, reversed[] = {v[2], v[1], v[0]};
    double values[2] = {e->latency, e->inverse}, slopes[2] = {1, 1}, covariance[4];
    snprintf(size, sizeof size, "`%s`", request->values[SIZE].text);
    if (request->response_choice == RESPONSE_BANDWIDTH) {
        fit_result_kind(result, "harmonic", NULL, NULL);
        values[0] = 1 / e->inverse, values[1] = 1 / e->latency;
        slopes[0] = -1 / e->inverse / e->inverse, slopes[1] = -1 / e->latency / e->latency;
        v = reversed;
    }
    const char *const names[] = {"1", size};
    for (size_t i = 0; i < 2; i++)
        if (isfinite(values[i]))
            fit_result_term(result, names[i], values[i], sqrt(v[2 * i]) * fabs(slopes[i]));
        else
            fit_result_dropped(result, names[i]); /* it takes no time */
    for (size_t i = 0; i < 4; i++)
        covariance[i] = v[i / 2 + i % 2] * slopes[i / 2] * slopes[i % 2];
    if (isfinite(v[0]) && isfinite(covariance[0]) && isfinite(covariance[3]))
        fit_result_covariance(result, covariance);
}

/* Records the noise, where the response is a time, or a bandwidth that is also the criterion. */
static void record_noise(const struct transfers *transfers, const struct fit_request *request,
                         const struct estimates *e, struct fit_result *result) {
    static char method[] = "maximum-likelihood";
    bool is_time = request->response_choice == RESPONSE_TIME;
    double coefficients[2] = {0, e->scatter.share};
    if (!(e->sigma > 0))
        return;
    if (transfers->problem.criterion == (is_time ? CURVE_TIME : CURVE_BANDWIDTH))
        fit_result_value(result, "sigma", e->sigma, NULL);
    if (!is_time && transfers->problem.criterion == CURVE_BANDWIDTH)
        fit_result_noise(result, e->sigma);
    else if (is_time && isfinite(e->scatter.constant))
        fit_result_noise_model(
            result, &(struct model_noise){.kind = e->scatter.share > 0 ? MODEL_NOISE_HETEROSCEDASTIC
                                                                       : MODEL_NOISE_HOMOSCEDASTIC,
                                          .method = method,
                                          .constant = e->scatter.constant,
                                          .coefficients = e->scatter.share > 0 ? coefficients : NULL});
}

static double defined(double value) {
    return isfinite(value) ? value : NAN;
}

/* Records bandwidth, latency and half size with standard errors, and the quality of the fit. */
static void record_values(const struct transfers *transfers, const struct estimates *e,
                          struct fit_result *result) {
    static const char *const units[][2] = {{"s", "s2"}, {"By/s", "By2/s2"}, {"1", "1"}};
    const double *v = e->scatter.covariance;
    double n = (double)transfers->problem.rows, b = e->inverse, half = e->latency / b;
    double half_variance = (v[0] - 2 * half * v[1] + half * half * v[2]) / b / b;
    fit_result_value(result, "bandwidth", defined(1 / b), "By/s");
    fit_result_value(result, "bandwidth_standard_error", defined(sqrt(v[2]) / b / b), "By/s");
    fit_result_value(result, "latency", e->latency, "s");
    fit_result_value(result, "latency_standard_error", sqrt(v[0]), "s");
    fit_result_value(result, "half_size", defined(half), "By");
    fit_result_value(result, "half_size_standard_error", defined(sqrt(half_variance)), "By");
    fit_result_value(result, "rss", e->rss, units[transfers->problem.criterion][1]);
    fit_result_value(result, "degrees_of_freedom", e->scatter.freedom, "1");
    fit_result_value(result, "criterion_sigma", e->sigma, units[transfers->problem.criterion][0]);
    fit_result_value(result, "r2", 1 - e->rss / e->total, "1");
    fit_result_value(result, "log_likelihood", e->log_likelihood, "1");
    fit_result_value(result, "aic", 2 * 3 - 2 * e->log_likelihood, "1"); /* sigma is a parameter, too */
    fit_result_value(result, "bic", log(n) * 3 - 2 * e->log_likelihood, "1");
}

/* Notes rows that were left out, and estimates that are not defined. */
static void record_notes(const struct transfers *transfers, const struct estimates *e,
                         struct fit_result *result) {
    static const char *const needs[] = {"a size below 0", "a size or a duration that is not above 0",
                                        "a size below 0 or a duration that is not above 0"};
    if (transfers->left_out > 0)
        fit_result_note(result, "%zu row%s left out: %s", transfers->left_out,
                        transfers->left_out == 1 ? "" : "s", needs[transfers->problem.criterion]);
    if (transfers->negative > 0)
        fit_result_note(result, "%zu durations are below 0; check these rows", transfers->negative);
    if (e->saturated)
        fit_result_note(result, "there are as many rows as terms: standard errors cannot be estimated; "
                                "measure more sizes");
    else if (e->perfect)
        fit_result_note(result, "the curve passes through all rows: the likelihood is not defined");
    else if (isnan(e->scatter.constant))
        fit_result_note(result, "the scatter of the durations could not be estimated: there are no "
                                "standard errors");
    else if (transfers->problem.rows < FEW_ROWS)
        fit_result_note(result,
                        "%zu rows are few: the growth of the noise with the size, and so the "
                        "standard errors, are rough; measure %d rows or more",
                        transfers->problem.rows, FEW_ROWS);
    if (e->inverse < 0)
        fit_result_note(result, "the durations do not grow with the size: no bandwidth can be estimated");
    if (e->inverse == 0)
        fit_result_note(result, "the durations do not grow with the size: the best fit has 1/B0 = 0, "
                                "an infinite bandwidth");
    if (e->latency < 0)
        fit_result_note(result, "the estimated latency is below 0");
    if (e->latency == 0)
        fit_result_note(result, "the best fit has a latency of 0");
}

/* Fits latency, bandwidth and their thresholds to one group's rows. -EDOM: the rows do not suffice;
 * -ENOMEM. */
static int fit_transfer(const struct fit_rows *rows, const struct fit_request *request,
                        struct fit_result *result, struct plugin_message *message) {
    struct transfers transfers;
    struct curve curve;
    struct estimates estimates;
    int r = read_rows(rows, request, &transfers);
    r = r < 0 ? r : fit_curve(&transfers, request->values[SIZE].text, &curve, message);
    r = r < 0 ? r : compute_estimates(&transfers, &curve, &estimates);
    if (r == 0) {
        record_terms(request, &estimates, result);
        record_noise(&transfers, request, &estimates, result);
        record_values(&transfers, &estimates, result);
        record_notes(&transfers, &estimates, result);
        fit_result_rows(result, transfers.problem.rows);
    }
    free(transfers.memory);
    return r;
}

/* Where the response has no unit the host takes it for a time. */
static int check_transfer(const struct fit_request *request, struct plugin_message *message) {
    if (request->response_choice == RESPONSE_TIME && strcmp(request->response, "bandwidth") == 0)
        return plugin_refuse(
            message, -EINVAL,
            "the response 'bandwidth' has no unit; expected one in By/s, or a duration, such "
            "as --response 'size / bandwidth'");
    return 0;
}

ASSAY_FIT_PLUGIN("transfer", "0.2.0", "latency and bandwidth of transfers", .fit = fit_transfer,
                 .check = check_transfer, .parameters = parameters, .response_units = response_units,
                 .rows_min = 1,
                 .main_values = (const char *const[]){"r2", "bandwidth", "latency", "half_size", NULL});
