#include "plugins/fit-linear/linear.h"

#include "engine/numerics/distribution.h"
#include "engine/numerics/noise.h"

#include <stdlib.h>

/* Of a half of the rows, below which the choice of a noise is left to chance: with half as many rows it is
 * worse, in the mean of the rows left out, than homoscedastic noise always is, even where the scatter is not
 * the same. */
enum { ROWS_A_TERM = 8 };

/* A half-normal's edge is moved by rounding, so that its least row is not beyond it. */
static const double edge = 1 + 1e-12;

/* The standard deviation of a row; NaN where the sum is not above 0. */
static double sigma_of(const struct problem *problem, const struct model_noise *noise, size_t row) {
    double sigma = noise->constant;
    for (size_t t = 0; noise->coefficients && t < problem->terms; t++)
        sigma += noise->coefficients[t] * problem->x[t * problem->stride + row];
    return sigma > 0 ? sigma / (problem->w ? sqrt(problem->w[row]) : 1) : NAN;
}

static double residual_of(const struct problem *problem, const struct least_squares_fit *fit, size_t row) {
    double residual = problem->y[row];
    for (size_t t = 0; t < problem->terms; t++)
        residual -= fit->estimate[t] * problem->x[t * problem->stride + row];
    return residual;
}

static double log_density(const struct problem *problem, const struct least_squares_fit *fit,
                          const struct model_noise *noise, size_t row) {
    double residual = residual_of(problem, fit, row), sigma = sigma_of(problem, noise, row);
    return noise->half_normal ? distribution_half_normal_log_density(residual, 0, sigma)
                              : distribution_normal_log_density(residual, 0, sigma);
}

/* ---- Of greatest likelihood */

/* The mean, of the terms of ROLES, and the noise that make Y likeliest. SCATTERS: the terms that may have a
 * part in the noise; NULL: those of the mean. */
static int fit_noise(const struct problem *problem, const double *y, const enum least_squares_role *roles,
                     const bool *scatters, bool rough, struct noise *ret) {
    const struct noise_problem search = {.rows = problem->rows,
                                         .columns = problem->terms,
                                         .x = problem->x,
                                         .stride = problem->stride,
                                         .y = y,
                                         .weights = problem->w,
                                         .roles = roles,
                                         .scatters = scatters,
                                         .rough = rough};
    int r = noise_fit(&search, ret);
    return r == 0 && ret->mean.dependent < problem->terms ? -EDOM : r;
}

/* Whether each half of the rows is enough for the search of the coefficients. */
static bool has_enough_rows(const struct problem *problem, const enum least_squares_role *roles) {
    size_t terms = 0;
    for (size_t t = 0; t < problem->terms; t++)
        terms += roles[t] != LEAST_SQUARES_LEFT_OUT;
    return problem->sums.rows >= 2 * ROWS_A_TERM * terms;
}

/* Whether a term can have a part in the scatter; otherwise N-2 is N-1. */
static bool has_scale(const struct problem *problem, const enum least_squares_role *roles) {
    bool has = false;
    for (size_t t = 0; t < problem->terms; t++)
        has |= roles[t] != LEAST_SQUARES_LEFT_OUT && problem->request->terms[t].factor_count > 0;
    return has;
}

/* LINEAR gets the noise that was found. */
static void take_noise(const struct problem *problem, struct noise *found, struct linear *linear) {
    static char method[] = "maximum-likelihood";
    linear->log_likelihood = found->log_likelihood;
    linear->noise = (struct model_noise){.kind = MODEL_NOISE_HETEROSCEDASTIC,
                                         .constant = found->constant,
                                         .coefficients = found->coefficients,
                                         .method = method};
    found->coefficients = NULL;
    for (size_t t = 0; t < problem->terms; t++)
        linear->scale_parameters += linear->noise.coefficients[t] != 0;
}

static int find_likelihood(const struct problem *problem, const enum least_squares_role *roles,
                           struct linear *linear, struct fit_result *result, struct plugin_message *message) {
    struct noise found = {0};
    if (linear->sigma > 0 && !has_enough_rows(problem, roles)) {
        fit_result_note(result,
                        "the noise is homoscedastic, not heteroscedastic: it takes %d rows for each term",
                        2 * ROWS_A_TERM);
        return 0;
    }
    int r = linear->sigma > 0 ? fit_noise(problem, problem->y, roles, NULL, false, &found) : -EDOM;
    if (r == 0) {
        double condition = linear->condition;
        least_squares_fit_clear(&linear->fit);
        linear->fit = found.mean;
        found.mean = (struct least_squares_fit){0};
        r = linear_describe(problem, linear, message);
        linear->condition = condition;
        linear->variance = 1;
        take_noise(problem, &found, linear);
    } else if (r != -ENOMEM) {
        fit_result_note(result, "the noise is homoscedastic, not heteroscedastic: %s",
                        r == -EDOM ? "there are no residuals" : "its search does not settle");
        r = 0;
    }
    noise_clear(&found);
    return r;
}

/* ---- Whether it predicts better */

/* The noise of greatest likelihood about FIT, which stays as it is: the residuals' own, with a mean of 0. */
static int fit_scale(const struct problem *problem, const struct least_squares_fit *fit, bool rough,
                     struct noise *ret) {
    double *residuals = malloc((problem->rows + 1) * sizeof *residuals);
    enum least_squares_role roles[LEAST_SQUARES_COLUMNS_MAX];
    bool scatters[LEAST_SQUARES_COLUMNS_MAX];
    if (!residuals)
        return -ENOMEM;
    for (size_t t = 0; t < problem->terms; t++) {
        roles[t] = LEAST_SQUARES_LEFT_OUT;
        scatters[t] = fit->state[t] != LEAST_SQUARES_LEFT_OUT;
    }
    for (size_t i = 0; i < problem->rows; i++)
        residuals[i] = residual_of(problem, fit, i);
    int r = fit_noise(problem, residuals, roles, scatters, rough, ret);
    free(residuals);
    return r;
}

/* By how much the rows of ALL from FIRST to END - 1 are likelier by heteroscedastic than by homoscedastic
 * noise about the fit of the other rows. -EDOM: these have not both. */
static int compare_half(const struct problem *all, const struct problem *others,
                        const enum least_squares_role *roles, size_t first, size_t end, double *advantage) {
    struct linear plain;
    struct noise found = {0};
    struct plugin_message ignored;
    int r = linear_solve(others, roles, true, &plain, &ignored);
    r = r == 0 && !(plain.sigma > 0) ? -EDOM : r;
    r = r == 0 ? fit_scale(others, &plain.fit, true, &found) : r;
    const struct model_noise scaled = {.constant = found.constant, .coefficients = found.coefficients};
    for (size_t i = first; r == 0 && i < end; i++)
        advantage[i] =
            log_density(all, &plain.fit, &scaled, i) - log_density(all, &plain.fit, &plain.noise, i);
    linear_clear(&plain);
    noise_clear(&found);
    return r;
}

/* The mean advantage over all rows, and its standard error when whole settings are drawn. */
static void judge(const struct settings *settings, size_t rows, const double *advantage, double *ret_gain,
                  double *ret_error) {
    double n = (double)rows, count = 0, squares = 0;
    *ret_gain = 0;
    for (size_t i = 0; i < rows; i++)
        *ret_gain += advantage[i] / n;
    for (size_t s = 0; s < settings->count; s++) {
        double sum = 0;
        for (size_t i = settings->first[s]; i < settings->first[s + 1]; i++)
            sum += advantage[i] - *ret_gain;
        squares += sum * sum;
        count += settings->first[s + 1] > settings->first[s];
    }
    *ret_error = sqrt(squares * count / (count - 1)) / n;
}

/* Half of the settings is predicted by the fit of the other half, and the reverse. */
static int compare(const struct problem *problem, const enum least_squares_role *roles, double *ret_gain,
                   double *ret_error) {
    struct settings settings;
    struct problem all = {0}, others = {0};
    double *advantage = calloc(problem->rows + 1, sizeof *advantage);
    int r = settings_find(problem, &settings);
    r = r == 0 && !advantage ? -ENOMEM : r;
    r = r == 0 && settings.count < 2 ? -EDOM : r;
    r = r == 0 ? problem_select(problem, settings.rows, problem->rows, &all) : r;
    size_t half = r == 0 ? settings.first[settings.count / 2] : 0;
    for (int side = 0; r == 0 && side < 2; side++) {
        size_t first = side ? half : 0, end = side ? problem->rows : half;
        others = (struct problem){.rows = problem->rows - (end - first),
                                  .terms = all.terms,
                                  .stride = all.stride,
                                  .x = all.x + (side ? 0 : half),
                                  .y = all.y + (side ? 0 : half),
                                  .w = all.w ? all.w + (side ? 0 : half) : NULL,
                                  .request = all.request};
        r = problem_sum(&others);
        r = r == 0 ? compare_half(&all, &others, roles, first, end, advantage) : r;
        problem_clear(&others);
    }
    if (r == 0)
        judge(&settings, problem->rows, advantage, ret_gain, ret_error);
    settings_clear(&settings);
    problem_clear(&all);
    free(advantage);
    return r;
}

/* Heteroscedastic where rows that are left out are likelier by it, by more than a standard error; the
 * estimates stay those of least squares. */
static int choose(const struct problem *problem, const enum least_squares_role *roles, struct linear *linear,
                  struct fit_result *result) {
    double gain = NAN, error = NAN;
    struct noise found = {0};
    if (!(linear->sigma > 0) || !has_scale(problem, roles) || !has_enough_rows(problem, roles))
        return 0;
    int r = compare(problem, roles, &gain, &error);
    if (r == -ENOMEM)
        return r;
    fit_result_value(result, "log_score_gain", gain, "1");
    fit_result_value(result, "log_score_gain_error", error, "1");
    r = gain > error ? fit_scale(problem, &linear->fit, false, &found) : -EDOM;
    if (r == 0)
        take_noise(problem, &found, linear);
    noise_clear(&found);
    return r == -ENOMEM ? r : 0;
}

/* ---- The rule, and half-normals */

static int find_rule(const struct problem *problem, const enum least_squares_role *roles,
                     struct linear *linear, struct fit_result *result) {
    static char method[] = "rule";
    const char *reason = "there are no residuals";
    double constant = 0, *coefficients = calloc(problem->terms + 1, sizeof *coefficients);
    if (!coefficients)
        return -ENOMEM;
    int r = linear->sigma > 0 ? rule_follow(problem, roles, &constant, coefficients, &reason) : -EDOM;
    if (r < 0) {
        free(coefficients);
        if (r != -ENOMEM)
            fit_result_note(result, "the noise is homoscedastic, not by the rule: %s", reason);
        return r == -ENOMEM ? r : 0;
    }
    linear->noise = (struct model_noise){.kind = MODEL_NOISE_HETEROSCEDASTIC,
                                         .constant = constant,
                                         .coefficients = coefficients,
                                         .method = method};
    linear->scale_parameters = constant != 0;
    for (size_t t = 0; t < problem->terms; t++)
        linear->scale_parameters += coefficients[t] != 0;
    size_t undefined = 0;
    for (size_t i = 0; i < problem->rows; i++)
        undefined += isnan(sigma_of(problem, &linear->noise, i));
    if (undefined > 0)
        fit_result_note(result, "the rule's sigma is not above 0, so not defined, in %zu of %zu rows",
                        undefined, problem->rows);
    return 0;
}

/* Scales sigma to the half-normal's greatest likelihood. */
static void scale_half_normal(const struct problem *problem, struct linear *linear) {
    double sum = 0, squares = 0, least = INFINITY;
    for (size_t i = 0; i < problem->rows; i++) {
        double t = residual_of(problem, &linear->fit, i) / sigma_of(problem, &linear->noise, i);
        sum += t;
        squares += t * t;
        least = fmin(least, t);
    }
    double factor = edge * distribution_half_normal_factor((double)problem->rows, sum, squares, least);
    linear->noise.constant *= factor;
    for (size_t t = 0; linear->noise.coefficients && t < problem->terms; t++)
        linear->noise.coefficients[t] *= factor;
}

int scatter_find(const struct problem *problem, const enum least_squares_role *roles, struct linear *linear,
                 struct fit_result *result, struct plugin_message *message) {
    const struct fit_request *request = problem->request;
    enum noise_choice choice = (enum noise_choice)linear_number(request, NOISE);
    bool half_normal = (enum distribution)linear_number(request, DISTRIBUTION) == HALF_NORMAL;
    int r = choice == NOISE_AUTO              ? choose(problem, roles, linear, result)
            : choice == NOISE_HETEROSCEDASTIC ? find_likelihood(problem, roles, linear, result, message)
            : choice == NOISE_RULE            ? find_rule(problem, roles, linear, result)
                                              : 0;
    if (r < 0)
        return r;
    bool by_rule = choice == NOISE_RULE && linear->noise.coefficients;
    linear->noise.kind = choice == NOISE_NONE ? MODEL_NOISE_NONE : linear->noise.kind;
    if (linear->noise.kind == MODEL_NOISE_NONE || !(half_normal || by_rule))
        return 0;
    linear->noise.half_normal = half_normal;
    if (!by_rule)
        scale_half_normal(problem, linear);
    linear->log_likelihood = 0;
    for (size_t i = 0; i < problem->rows; i++)
        linear->log_likelihood += log_density(problem, &linear->fit, &linear->noise, i);
    return 0;
}
