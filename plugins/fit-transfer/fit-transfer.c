/* The plugin fit-transfer: see README.md for what it computes. */
#include "engine/numerics/curve.h"

#include <assay/fit.h>

#include <stdlib.h>
#include <string.h>

enum parameter { SIZE, CRITERION };
enum criterion { BY_TIME, BY_BANDWIDTH, BY_LOG };
enum { HALF_SIZES = 48 }; /* from a tenth of the least size to ten times the greatest */

static const char *const size_names[] = {"size", "msg_size", "message_size", "bytes", NULL};
static const char *const criterion_words[] = {"time", "bandwidth", "log", NULL};
static const char *const response_units[] = {"s", "By/s", NULL};
enum { RESPONSE_TIME, RESPONSE_BANDWIDTH };

static const struct plugin_parameter parameters[] = {
    [SIZE] = {"size", PLUGIN_COLUMN, "By", .words = size_names, .required = true, .help = "of a transfer"},
    [CRITERION] = {"criterion", PLUGIN_WORD, .words = criterion_words, .fallback = "bandwidth",
                   .help = "whose squared errors are minimised: of times, of bandwidths or of logarithms"},
    {0},
};

/* The transfers of one group: sizes s in By, durations T in s, weights w. */
struct transfers {
    enum criterion criterion;
    size_t count;
    double *size, *duration, *weight;
    double least, greatest; /* of the sizes */
    size_t left_out, negative;
};

static void transfers_clear(struct transfers *transfers) {
    free(transfers->size);
}

static int take_rows(const struct fit_rows *rows, const struct fit_request *request, struct transfers *ret) {
    enum criterion criterion = (enum criterion)request->values[CRITERION].number;
    *ret = (struct transfers){.criterion = criterion, .least = INFINITY, .greatest = -INFINITY};
    if (!(ret->size = malloc((3 * rows->count + 1) * sizeof *ret->size)))
        return -ENOMEM;
    ret->duration = ret->size + rows->count;
    ret->weight = ret->duration + rows->count;
    for (size_t i = 0; i < rows->count; i++) {
        double s = rows->columns[0][i], t = rows->response[i];
        if (request->response_choice == RESPONSE_BANDWIDTH)
            t = s / t;
        if (!(s >= 0) || (criterion == BY_BANDWIDTH && s == 0) || !isfinite(t) ||
            (criterion != BY_TIME && t <= 0)) {
            ret->left_out++;
            continue;
        }
        ret->negative += t < 0;
        ret->least = fmin(ret->least, s);
        ret->greatest = fmax(ret->greatest, s);
        ret->size[ret->count] = s;
        ret->duration[ret->count] = t;
        ret->weight[ret->count++] = rows->weights ? rows->weights[i] : 1;
    }
    return 0;
}

/* ---- Least squares ------------------------------------------------------------------------------------- */

/* What is explained: T, s/T or log T. */
static double explained(enum criterion criterion, double size, double duration) {
    return criterion == BY_TIME ? duration : criterion == BY_LOG ? log(duration) : size / duration;
}

/* The residual of a row at t0 and b = 1/B0, p = {t0, b}. */
static double residual(const void *context, const double *p, size_t row, double *gradient) {
    const struct transfers *transfers = context;
    double s = transfers->size[row], t = transfers->duration[row], m = p[0] + s * p[1];
    double root = sqrt(transfers->weight[row]);
    double slope = transfers->criterion == BY_TIME ? 1 : transfers->criterion == BY_LOG ? 1 / m : -s / m / m;
    gradient[0] = root * slope;
    gradient[1] = root * slope * s;
    if (transfers->criterion != BY_TIME && !(m > 0))
        return NAN;
    return root * (transfers->criterion == BY_LOG
                       ? log(m / t)
                       : explained(transfers->criterion, s, m) - explained(transfers->criterion, s, t));
}

static double sum_squares(const struct transfers *transfers, const double *p) {
    double rss = 0, gradient[2];
    for (size_t i = 0; i < transfers->count; i++) {
        double r = residual(transfers, p, i, gradient);
        rss += r * r;
    }
    return rss;
}

/* The best t0 and b for a given half size h = t0 B0: the criterion has one free factor, with m = b (s + h).
 */
static void try_half_size(const struct transfers *transfers, double half, double *ret) {
    double products = 0, squares = 0;
    for (size_t i = 0; i < transfers->count; i++) {
        double s = transfers->size[i], t = transfers->duration[i], w = transfers->weight[i], g = s + half;
        if (transfers->criterion == BY_LOG) {
            products += w * log(t / g);
            squares += w;
        } else if (transfers->criterion == BY_TIME) {
            products += w * t * g;
            squares += w * g * g;
        } else {
            products += w * (s / g) * (s / g);
            squares += w * (s / g) * (s / t);
        }
    }
    ret[1] = transfers->criterion == BY_LOG ? exp(products / squares) : products / squares;
    ret[0] = half * ret[1];
}

/* The criterion of bandwidths has several minima where durations scatter much: the search begins at the best
 * of a row of half sizes. */
static void find_start(const struct transfers *transfers, double *ret) {
    double lowest = fmax(transfers->least, 1e-9 * transfers->greatest) / 10, best = INFINITY;
    double ratio = pow(10 * transfers->greatest / lowest, 1.0 / (HALF_SIZES - 1)), half = lowest;
    for (size_t i = 0; i < HALF_SIZES; i++, half *= ratio) {
        double tried[2];
        try_half_size(transfers, half, tried);
        double rss = sum_squares(transfers, tried);
        if (i == 0 || rss < best) {
            memcpy(ret, tried, sizeof tried);
            best = rss;
        }
    }
}

static int fit_curve(const struct transfers *transfers, const char *size, struct curve *ret,
                     struct plugin_message *message) {
    double start[2];
    if (transfers->count < 2)
        return plugin_refuse(message, -EDOM, "%zu row%s for 2 terms", transfers->count,
                             transfers->count == 1 ? "" : "s");
    if (transfers->least == transfers->greatest)
        return plugin_refuse(message, -EDOM, "rank 1 of 2: %.64s is always %.6g", size, transfers->least);
    find_start(transfers, start);
    int r = curve_fit(transfers->count, 2, residual, transfers, start, ret);
    if (r == -EDOM)
        return plugin_refuse(message, -EDOM, "rank 1 of 2: %.64s hardly changes: %.17g to %.17g", size,
                             transfers->least, transfers->greatest);
    if (r == -EINVAL || r == -ERANGE || (r == 0 && !isfinite(ret->rss)))
        return plugin_refuse(message, -EDOM, "its sums are beyond the range of a double");
    if (r == -EAGAIN)
        return plugin_refuse(message, -EDOM, "no minimum of the criterion was found in %zu steps",
                             ret->steps);
    return r;
}

/* ---- Results ------------------------------------------------------------------------------------------- */

struct estimates {
    double latency, inverse;
    double covariance[3];                     /* of t0 t0, t0 b, b b; NaN where it is not defined */
    double rss, sigma, total, log_likelihood; /* of what is explained; the likelihood is of the durations */
    bool saturated, perfect;
};

static void estimate(const struct transfers *transfers, const struct curve *curve, struct estimates *ret) {
    double n = (double)transfers->count, weight = 0, mean = 0, squares = 0, logarithms = 0;
    *ret = (struct estimates){.latency = curve->estimate[0], .inverse = curve->estimate[1]};
    for (size_t i = 0; i < transfers->count; i++) {
        double s = transfers->size[i], t = transfers->duration[i], w = transfers->weight[i];
        double u = explained(transfers->criterion, s, t), away = u - mean;
        weight += w;
        mean += w / weight * away;
        ret->total += w * away * (u - mean);
        squares += w * u * u;
        /* log |du/dT| makes the likelihoods of the criteria comparable */
        logarithms += log(w) / 2 + (transfers->criterion == BY_TIME  ? 0
                                    : transfers->criterion == BY_LOG ? -log(t)
                                                                     : log(s / t / t));
    }
    ret->saturated = transfers->count == 2;
    ret->perfect = curve->rss <= 1e-24 * squares;
    ret->rss = ret->perfect || ret->saturated ? 0 : curve->rss;
    ret->total = ret->total > 1e-24 * squares ? ret->total : NAN;
    ret->sigma = ret->saturated ? NAN : sqrt(ret->rss / (n - 2));
    for (size_t i = 0; i < 3; i++)
        ret->covariance[i] = curve->covariance[i == 2 ? 3 : i] * ret->sigma * ret->sigma;
    ret->log_likelihood =
        ret->perfect || ret->saturated ? NAN : logarithms - n / 2 * (log(2 * M_PI) + 1 + log(ret->rss / n));
}

/* The terms are those of the response: T = t0 + b s, or s/T = 1 / (1/B0 + 1/(s/t0)). */
static void give_terms(const struct fit_request *request, const struct estimates *e,
                       struct fit_result *result) {
    char size[512];
    const double *v = e->covariance, reversed[] = {v[2], v[1], v[0]};
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

static void give_noise(const struct transfers *transfers, const struct fit_request *request,
                       const struct estimates *e, struct fit_result *result) {
    static char method[] = "least-squares";
    bool is_time = request->response_choice == RESPONSE_TIME;
    double coefficients[2] = {0, e->sigma * e->inverse};
    if (!(e->sigma > 0))
        return;
    if (transfers->criterion == (is_time ? BY_TIME : BY_BANDWIDTH)) {
        fit_result_value(result, "sigma", e->sigma, NULL);
        fit_result_noise(result, e->sigma);
    } else if (transfers->criterion == BY_LOG && is_time && e->latency >= 0 && e->inverse >= 0) {
        fit_result_noise_model(result, &(struct model_noise){.kind = MODEL_NOISE_HETEROSCEDASTIC,
                                                             .method = method,
                                                             .constant = e->sigma * e->latency,
                                                             .coefficients = coefficients});
    }
}

static double defined(double value) {
    return isfinite(value) ? value : NAN;
}

static void give_values(const struct transfers *transfers, const struct estimates *e,
                        struct fit_result *result) {
    static const char *const units[][2] = {{"s", "s2"}, {"By/s", "By2/s2"}, {"1", "1"}};
    const double *v = e->covariance;
    double n = (double)transfers->count, b = e->inverse, half = e->latency / b;
    double half_variance = (v[0] - 2 * half * v[1] + half * half * v[2]) / b / b;
    fit_result_value(result, "bandwidth", defined(1 / b), "By/s");
    fit_result_value(result, "bandwidth_standard_error", defined(sqrt(v[2]) / b / b), "By/s");
    fit_result_value(result, "latency", e->latency, "s");
    fit_result_value(result, "latency_standard_error", sqrt(v[0]), "s");
    fit_result_value(result, "half_size", defined(half), "By");
    fit_result_value(result, "half_size_standard_error", defined(sqrt(half_variance)), "By");
    fit_result_value(result, "rss", e->rss, units[transfers->criterion][1]);
    fit_result_value(result, "degrees_of_freedom", n - 2, "1");
    fit_result_value(result, "criterion_sigma", e->sigma, units[transfers->criterion][0]);
    fit_result_value(result, "r2", 1 - e->rss / e->total, "1");
    fit_result_value(result, "log_likelihood", e->log_likelihood, "1");
    fit_result_value(result, "aic", 2 * 3 - 2 * e->log_likelihood, "1"); /* sigma is a parameter, too */
    fit_result_value(result, "bic", log(n) * 3 - 2 * e->log_likelihood, "1");
}

static void give_notes(const struct transfers *transfers, const struct estimates *e,
                       struct fit_result *result) {
    static const char *const needs[] = {"a size below 0", "a size or a duration that is not above 0",
                                        "a size below 0 or a duration that is not above 0"};
    if (transfers->left_out > 0)
        fit_result_note(result, "%zu row%s left out: %s", transfers->left_out,
                        transfers->left_out == 1 ? "" : "s", needs[transfers->criterion]);
    if (transfers->negative > 0)
        fit_result_note(result, "%zu durations are below 0", transfers->negative);
    if (e->saturated)
        fit_result_note(result, "as many rows as terms: no standard errors");
    else if (e->perfect)
        fit_result_note(result, "every row is on the curve: no likelihood");
    if (e->inverse <= 0)
        fit_result_note(result, "durations do not grow with the size: there is no bandwidth");
    if (e->latency < 0)
        fit_result_note(result, "the latency is below 0");
}

static int fit_transfer(const struct fit_rows *rows, const struct fit_request *request,
                        struct fit_result *result, struct plugin_message *message) {
    struct transfers transfers;
    struct curve curve;
    struct estimates estimates;
    int r = take_rows(rows, request, &transfers);
    r = r < 0 ? r : fit_curve(&transfers, request->values[SIZE].text, &curve, message);
    if (r == 0) {
        estimate(&transfers, &curve, &estimates);
        give_terms(request, &estimates, result);
        give_noise(&transfers, request, &estimates, result);
        give_values(&transfers, &estimates, result);
        give_notes(&transfers, &estimates, result);
        fit_result_rows(result, transfers.count);
    }
    transfers_clear(&transfers);
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
                 .rows_min = 1);
