#include "plugins/fit-linear/linear.h"

#include "engine/numerics/distribution.h"
#include "engine/numerics/noise.h"

#include <stdlib.h>
#include <string.h>

/* Rows per term that a search of the noise term by term needs: with fewer, it predicts rows that were left
 * out worse than noise with two parameters. */
enum { ROWS_A_TERM = 16 };

/* A half-normal's edge is moved by rounding, so that its least row is not beyond it. */
static const double edge = 1 + 1e-12;

double linear_sigma(const struct problem *problem, const struct model_noise *noise, size_t row) {
    double sigma = noise->constant;
    for (size_t t = 0; noise->coefficients && t < problem->terms; t++)
        sigma += noise->coefficients[t] * problem->x[t * problem->stride + row];
    sigma = fmax(sigma, noise->floor.sigma);
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
    double residual = residual_of(problem, fit, row), sigma = linear_sigma(problem, noise, row);
    return noise->half_normal ? distribution_half_normal_log_density(residual, 0, sigma)
                              : distribution_normal_log_density(residual, 0, sigma);
}

static void set_log_likelihood(const struct problem *problem, struct linear *linear) {
    linear->log_likelihood = 0;
    for (size_t i = 0; i < problem->rows; i++)
        linear->log_likelihood += log_density(problem, &linear->fit, &linear->noise, i);
}

static void scale_noise(const struct problem *problem, struct linear *linear, double factor) {
    linear->noise.constant *= factor;
    linear->noise.floor.sigma *= factor;
    for (size_t t = 0; linear->noise.coefficients && t < problem->terms; t++)
        linear->noise.coefficients[t] *= factor;
}

/* ---- Noise by maximum likelihood */

/* Fits mean, of the terms of ROLES, and noise by maximum likelihood. -EDOM: a term depends on others. */
static int fit_noise(const struct problem *problem, const enum least_squares_role *roles, bool rough,
                     struct noise *ret) {
    const struct noise_problem search = {.rows = problem->rows,
                                         .columns = problem->terms,
                                         .x = problem->x,
                                         .stride = problem->stride,
                                         .y = problem->y,
                                         .weights = problem->w,
                                         .roles = roles,
                                         .rough = rough};
    int r = noise_fit(&search, ret);
    return r == 0 && ret->mean.dependent < problem->terms ? -EDOM : r;
}

static size_t count_terms(const struct problem *problem, const enum least_squares_role *roles) {
    size_t terms = 0;
    for (size_t t = 0; t < problem->terms; t++)
        terms += roles[t] != LEAST_SQUARES_LEFT_OUT;
    return terms;
}

/* Whether the rows are enough for the search of the coefficients. */
static bool has_enough_rows(const struct problem *problem, const enum least_squares_role *roles) {
    return problem->sums.rows >= ROWS_A_TERM * count_terms(problem, roles);
}

/* Moves the noise that was found to LINEAR. */
static void move_noise(const struct problem *problem, struct noise *found, struct linear *linear) {
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

/* Replaces LINEAR by the fit of maximum likelihood. -EDOM or -EAGAIN: there is none, and LINEAR is
 * unchanged. */
static int maximise(const struct problem *problem, const enum least_squares_role *roles, bool rough,
                    struct linear *linear, struct plugin_message *message) {
    struct noise found = {0};
    int r = linear->sigma > 0 ? fit_noise(problem, roles, rough, &found) : -EDOM;
    if (r == 0) {
        double condition = linear->condition;
        least_squares_fit_clear(&linear->fit);
        linear->fit = found.mean;
        found.mean = (struct least_squares_fit){0};
        r = linear_describe(problem, linear, message);
        linear->condition = condition;
        linear->variance = 1;
        move_noise(problem, &found, linear);
    }
    noise_clear(&found);
    return r;
}

/* Finds heteroscedastic noise by maximum likelihood; if there is none, a note says why and LINEAR keeps its
 * noise. -ENOMEM. */
static int find_likelihood(const struct problem *problem, const enum least_squares_role *roles,
                           struct linear *linear, struct fit_result *result, struct plugin_message *message) {
    if (linear->sigma > 0 && !has_enough_rows(problem, roles)) {
        fit_result_note(result,
                        "homoscedastic noise was used: heteroscedastic noise needs at least %d "
                        "rows for each term; measure more, or set noise=auto",
                        ROWS_A_TERM);
        return 0;
    }
    int r = maximise(problem, roles, false, linear, message);
    if (r < 0 && r != -ENOMEM)
        fit_result_note(result,
                        "homoscedastic noise was used: heteroscedastic noise could not be "
                        "estimated, since %s",
                        r == -EDOM ? "there are no residuals"
                                   : "the maximum-likelihood search does not converge");
    return r == -ENOMEM ? r : 0;
}

/* ---- noise=auto */

/* Replaces LINEAR's noise, which grows with the mean, by noise of the terms, if BIC prefers it (G. Schwarz,
 * Ann. Statist. 6 (1978), 461) and there are enough rows. Each coefficient of the noise counts, also those
 * that are 0. Deviations and errors get the factor sqrt(n / (n - p)), since those of maximum likelihood are
 * too small. -ENOMEM. */
static int find_by_terms(const struct problem *problem, const enum least_squares_role *roles,
                         struct linear *linear, struct plugin_message *message) {
    struct linear other = {.sigma = linear->sigma, .condition = linear->condition};
    double n = (double)problem->rows;
    if (!has_enough_rows(problem, roles))
        return 0;
    int r = maximise(problem, roles, true, &other, message);
    double parameters = (double)count_terms(problem, roles);
    if (r == 0 && other.noise.coefficients &&
        2 * (other.log_likelihood - linear->log_likelihood) > parameters * log(n)) {
        double factor = sqrt(n / (n - (double)other.fit.rank));
        if (!problem->request->is_fold) { /* with all digits */
            linear_clear(&other);
            other = (struct linear){.sigma = linear->sigma, .condition = linear->condition};
            r = maximise(problem, roles, false, &other, message);
        }
        if (r < 0) {
            linear_clear(&other);
            return r == -ENOMEM ? r : 0;
        }
        linear_clear(linear);
        *linear = other;
        linear->variance = factor * factor;
        scale_noise(problem, linear, factor);
        return 0;
    }
    linear_clear(&other);
    return r == -ENOMEM ? r : 0;
}

/* Finds the noise for noise=auto: constant, growing with the mean, or by terms. -ENOMEM. */
static int find_auto(const struct problem *problem, const enum least_squares_role *roles,
                     struct linear *linear, struct fit_result *result, struct plugin_message *message) {
    if (!(linear->sigma > 0))
        return 0;
    if (linear_has_few_rows(problem, linear->fit.rank) && !problem->request->is_fold)
        fit_result_note(result,
                        "%zu rows are few for %zu coefficients: with fewer than 8 rows a "
                        "coefficient, intervals are wide; measure more",
                        problem->rows, linear->fit.rank);
    int r = growth_find(problem, roles, linear, message);
    if (r < 0 || !linear->noise.coefficients)
        return r;
    set_log_likelihood(problem, linear);
    return find_by_terms(problem, roles, linear, message);
}

/* ---- The rule, and half-normals */

/* Finds the noise for noise=rule; if the rule cannot be applied, a note says why and LINEAR keeps its noise.
 * -ENOMEM. */
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
            fit_result_note(
                result,
                "noise=rule could not be applied, and the noise is taken as constant (homoscedastic): %s",
                reason);
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
        undefined += isnan(linear_sigma(problem, &linear->noise, i));
    if (undefined > 0)
        fit_result_note(result,
                        "noise=rule gives no standard deviation above 0 in %zu of %zu rows, "
                        "where the noise is then undefined",
                        undefined, problem->rows);
    return 0;
}

/* Scales sigma to the maximum likelihood of a half-normal. */
static void scale_half_normal(const struct problem *problem, struct linear *linear) {
    double sum = 0, squares = 0, least = INFINITY;
    for (size_t i = 0; i < problem->rows; i++) {
        double t = residual_of(problem, &linear->fit, i) / linear_sigma(problem, &linear->noise, i);
        sum += t;
        squares += t * t;
        least = fmin(least, t);
    }
    scale_noise(problem, linear,
                edge * distribution_half_normal_factor((double)problem->rows, sum, squares, least));
}

/* Replaces the covariance by that of the fit without bounds, with weights by the noise if WEIGHTED.
 * -ENOMEM. */
static int set_covariance_without_bounds(const struct problem *problem, bool weighted,
                                         struct linear *linear) {
    enum least_squares_role roles[LEAST_SQUARES_COLUMNS_MAX];
    struct problem other = *problem;
    struct least_squares_fit fit = {0};
    size_t bound = 0;
    for (size_t t = 0; t < problem->terms; t++) {
        bool is_bound = linear->fit.state[t] == LEAST_SQUARES_BOUND;
        roles[t] = is_bound || linear->fit.state[t] == LEAST_SQUARES_FREE ? LEAST_SQUARES_FREE
                                                                          : LEAST_SQUARES_LEFT_OUT;
        bound += is_bound;
    }
    if (bound == 0)
        return 0;
    double *weights = malloc((problem->rows + 1) * sizeof *weights);
    for (size_t i = 0; weights && i < problem->rows; i++)
        weights[i] = weighted     ? pow(linear_sigma(problem, &linear->noise, i), -2)
                     : problem->w ? problem->w[i]
                                  : 1;
    other.w = weights;
    int r = weights ? problem_sum(&other) : -ENOMEM;
    r = r < 0 ? r : least_squares_solve(&other.sums, roles, &fit);
    if (r == 0 && weighted)
        linear->variance = 1;
    if (r == 0)
        memcpy(linear->fit.covariance, fit.covariance,
               problem->terms * problem->terms * sizeof *fit.covariance);
    if (weights)
        least_squares_clear(&other.sums);
    least_squares_fit_clear(&fit);
    free(weights);
    return r;
}

/* Finds the noise and covariance of a fit by the parameters (linear.h). -ENOMEM. */
int scatter_find(const struct problem *problem, const enum least_squares_role *roles, struct linear *linear,
                 struct fit_result *result, struct plugin_message *message) {
    const struct fit_request *request = problem->request;
    enum noise_choice choice = (enum noise_choice)linear_number(request, NOISE);
    bool half_normal = (enum distribution)linear_number(request, DISTRIBUTION) == HALF_NORMAL;
    int r = choice == NOISE_AUTO              ? find_auto(problem, roles, linear, result, message)
            : choice == NOISE_HETEROSCEDASTIC ? find_likelihood(problem, roles, linear, result, message)
            : choice == NOISE_RULE            ? find_rule(problem, roles, linear, result)
                                              : 0;
    if (r < 0)
        return r;
    bool by_rule = choice == NOISE_RULE && linear->noise.coefficients;
    if (!linear->has_free_covariance)
        r = set_covariance_without_bounds(problem, linear->noise.coefficients && !by_rule, linear);
    if (r < 0)
        return r;
    linear->noise.kind = choice == NOISE_NONE ? MODEL_NOISE_NONE : linear->noise.kind;
    if (linear->noise.kind == MODEL_NOISE_NONE || !(half_normal || by_rule))
        return 0;
    linear->noise.half_normal = half_normal;
    if (!by_rule)
        scale_half_normal(problem, linear);
    set_log_likelihood(problem, linear);
    return 0;
}
