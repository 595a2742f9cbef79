#include "plugins/fit-linear/linear.h"

#include "engine/numerics/robust.h"

#include <stdlib.h>
#include <string.h>

/* Residuals up to this share of the response are rounding. */
static const double perfect = 1e-12;
/* Squares of values below it, and the rounding of their sums, are below the range of a double. */
static const double tiny = 1e-140;

static void find_range(size_t count, const double *values, double *ret_least, double *ret_most) {
    *ret_least = INFINITY;
    *ret_most = -INFINITY;
    for (size_t i = 0; i < count; i++) {
        *ret_least = fmin(*ret_least, values[i]);
        *ret_most = fmax(*ret_most, values[i]);
    }
}

static bool has_intercept(const struct problem *problem, const struct least_squares_fit *fit) {
    for (size_t t = 0; t < problem->terms; t++)
        if (problem->request->terms[t].factor_count == 0 && fit->state[t] == LEAST_SQUARES_FREE)
            return true;
    return false;
}

/* The sum of w y^2, and the residual sum of squares again from the rows, where it has more digits.
 * -ENOMEM. */
static int sum_squares(const struct problem *problem, struct linear *linear, double *ret_squares) {
    double *residuals = malloc((problem->rows + 1) * sizeof *residuals);
    if (!residuals)
        return -ENOMEM;
    least_squares_residuals(&linear->fit, problem->rows, problem->x, problem->stride, problem->y, residuals);
    linear->rss = *ret_squares = 0;
    for (size_t i = 0; i < problem->rows; i++) {
        double w = problem->w ? problem->w[i] : 1;
        linear->rss += w * residuals[i] * residuals[i];
        *ret_squares += w * problem->y[i] * problem->y[i];
    }
    free(residuals);
    return 0;
}

/* -EDOM if all VALUES are so near 0 that their squares underflow. */
static int refuse_tiny(size_t count, const double *values, const char *name, struct plugin_message *message) {
    double least, most;
    find_range(count, values, &least, &most);
    most = fmax(most, -least);
    return most > 0 && most < tiny
               ? plugin_refuse(message, -EDOM,
                               "the largest value of '%.200s' is %g; expected %g or more: use a "
                               "larger unit of measurement",
                               name, most, tiny)
               : 0;
}

/* Fails because a sum is not a normal double. Returns -EDOM. */
static int refuse_range(const struct problem *problem, struct plugin_message *message) {
    for (size_t t = 0; t < problem->terms; t++)
        if (refuse_tiny(problem->rows, problem->x + t * problem->stride, problem->request->terms[t].name,
                        message) < 0)
            return -EDOM;
    return plugin_refuse(message, -EDOM, "sums over the rows exceed the range of a double");
}

/* Computes sums of squares, R2, likelihood and constant noise of a fit. -EDOM, -ENOMEM. */
int linear_describe(const struct problem *problem, struct linear *linear, struct plugin_message *message) {
    static char method[] = "least-squares";
    const struct least_squares *sums = &problem->sums;
    double squares = 0, n = (double)sums->rows;
    int r = sum_squares(problem, linear, &squares);
    r = r == 0 && squares < 1 ? refuse_tiny(problem->rows, problem->y, problem->request->response, message)
                              : r;
    if (r < 0)
        return r;
    bool intercept = has_intercept(problem, &linear->fit);
    double total = intercept ? sums->total : squares;
    linear->freedom = n - (double)linear->fit.rank;
    bool is_perfect = linear->rss <= perfect * perfect * squares * n;
    if (is_perfect)
        linear->rss = 0;
    linear->sigma = linear->freedom > 0 ? sqrt(linear->rss / linear->freedom) : NAN;
    linear->variance = linear->sigma * linear->sigma;
    linear->r2 = total > perfect * perfect * squares ? 1 - linear->rss / total : NAN;
    linear->adjusted_r2 =
        linear->freedom > 0 ? 1 - (1 - linear->r2) * (n - (intercept ? 1 : 0)) / linear->freedom : NAN;
    linear->log_likelihood =
        is_perfect ? NAN : (sums->log_weights - n * (log(2 * M_PI) + 1 + log(linear->rss / n))) / 2;
    linear->scale_parameters = 1;
    linear->noise =
        (struct model_noise){.kind = linear->sigma > 0 ? MODEL_NOISE_HOMOSCEDASTIC : MODEL_NOISE_NONE,
                             .constant = linear->sigma,
                             .method = method};
    return problem->request->is_fold ? 0 : least_squares_condition(sums, &linear->fit, &linear->condition);
}

/* The one factor that LONGER has besides all factors of SHORTER; NULL: there is none, or several. */
static const struct model_factor *find_extra(const struct model_term *shorter,
                                             const struct model_term *longer) {
    const struct model_factor *extra = NULL;
    if (longer->factor_count != shorter->factor_count + 1)
        return NULL;
    for (size_t i = 0, k = 0; i < longer->factor_count; i++) {
        const struct model_factor *factor = &longer->factors[i];
        bool is_same = k < shorter->factor_count && strcmp(factor->column, shorter->factors[k].column) == 0 &&
                       factor->power == shorter->factors[k].power && !factor->level &&
                       !shorter->factors[k].level && !factor->function && !shorter->factors[k].function;
        if (!is_same && extra)
            return NULL;
        extra = is_same ? extra : factor;
        k += is_same;
    }
    return extra && extra->power == 1 && !extra->level && !extra->function ? extra : NULL;
}

/* The column that has one value in all rows, which makes a term a multiple of another; NULL: there is
 * none. */
static const char *find_constant(const struct problem *problem, double *ret_value) {
    const struct model_term *terms = problem->request->terms;
    for (size_t a = 0; a < problem->terms; a++)
        for (size_t b = 0; b < problem->terms; b++) {
            const struct model_factor *extra = find_extra(&terms[a], &terms[b]);
            const double *shorter = problem->x + a * problem->stride,
                         *longer = problem->x + b * problem->stride;
            bool is_constant = extra && problem->rows > 0;
            *ret_value = longer[0] / shorter[0];
            for (size_t i = 0; is_constant && i < problem->rows; i++)
                is_constant = fabs(longer[i] - *ret_value * shorter[i]) <= 1e-12 * fabs(longer[i]);
            if (is_constant)
                return extra->column;
        }
    return NULL;
}

/* Fails because a term depends linearly on others; the message says by which column. Returns -EDOM. */
static int refuse_dependent(const struct problem *problem, const struct linear *linear,
                            struct plugin_message *message) {
    size_t t = linear->fit.dependent;
    const char *name = problem->request->terms[t].name;
    double least, most, constant;
    const char *column = find_constant(problem, &constant);
    if (column)
        return plugin_refuse(message, -EDOM,
                             "only %zu of %zu terms can be estimated: '%.200s' is %.9g in all rows; "
                             "vary it, or remove the term",
                             linear->fit.rank, problem->terms, column, constant);
    find_range(problem->rows, problem->x + t * problem->stride, &least, &most);
    if (least == most)
        return plugin_refuse(message, -EDOM,
                             "only %zu of %zu terms can be estimated: '%.200s' is %.9g in all rows; "
                             "vary it, or remove the term",
                             linear->fit.rank, problem->terms, name, least);
    if (fmax(most, -least) < tiny)
        return refuse_range(problem, message);
    return plugin_refuse(message, -EDOM,
                         "only %zu of %zu terms can be estimated: '%.200s' is a linear "
                         "combination of the terms before it (to 1e-7 of its size); remove one",
                         linear->fit.rank, problem->terms, name);
}

/* Fits the terms of ROLES, and describes the fit if DESCRIBED. -EDOM: too few rows, or dependent terms. RET
 * is to be cleared after failures too. */
int linear_solve(const struct problem *problem, const enum least_squares_role *roles, bool described,
                 struct linear *ret, struct plugin_message *message) {
    size_t terms = 0;
    for (size_t t = 0; t < problem->terms; t++)
        terms += roles[t] != LEAST_SQUARES_LEFT_OUT;
    *ret = (struct linear){0};
    if (problem->rows < terms)
        return plugin_refuse(message, -EDOM, "%zu row%s for %zu terms", problem->rows,
                             problem->rows == 1 ? "" : "s", terms);
    int r = least_squares_solve(&problem->sums, roles, &ret->fit);
    if (r == 0 && ret->fit.dependent < problem->terms)
        r = refuse_dependent(problem, ret, message);
    if (r == -EAGAIN)
        r = plugin_refuse(message, -EDOM, "non-negative least squares did not converge; set bounds=none");
    if (r == -ERANGE)
        r = refuse_range(problem, message);
    return r < 0 || !described ? r : linear_describe(problem, ret, message);
}

/* Records rows with less than half of their weight as outliers. -ENOMEM. */
static int record_weighted_down(const struct problem *problem, const double *factors,
                                struct fit_result *result) {
    bool *flags = calloc(problem->rows + 1, sizeof *flags);
    if (!flags)
        return -ENOMEM;
    for (size_t i = 0; i < problem->rows; i++)
        flags[i] = factors[i] < 0.5;
    fit_result_outliers(result, flags);
    free(flags);
    return 0;
}

/* Replaces LINEAR by a robust fit (robust.h); a note tells if that is not possible. */
int linear_reweight(const struct problem *problem, enum robust_choice kind,
                    const enum least_squares_role *roles, struct linear *linear, struct fit_result *result,
                    struct plugin_message *message) {
    static char method[] = "robust";
    struct robust robust;
    if (!(linear->sigma > 0)) /* all rows are on the fit */
        return 0;
    double *factors = calloc(problem->rows + 1, sizeof *factors);
    if (!factors)
        return -ENOMEM;
    int r =
        robust_fit(kind == ROBUST_BY_HUBER ? ROBUST_HUBER : ROBUST_BISQUARE, problem->rows, problem->terms,
                   problem->x, problem->stride, problem->y, problem->w, roles, factors, &robust);
    if (r == 0 && robust.weighted_down > 0)
        r = record_weighted_down(problem, factors, result);
    free(factors);
    if (r == -EDOM)
        fit_result_note(result, "robust estimation is not possible: more than half of the rows lie "
                                "exactly on the fit, so that the scale is 0");
    else if (r == -EAGAIN)
        fit_result_note(result, "the robust weights did not converge within %zu iterations",
                        robust.iterations);
    else if (r < 0) {
        least_squares_fit_clear(&robust.fit);
        return r == -ERANGE ? refuse_range(problem, message) : r;
    }
    least_squares_fit_clear(&linear->fit);
    linear->fit = robust.fit;
    r = linear_describe(problem, linear, message);
    linear->sigma = linear->noise.constant = robust.scale;
    linear->variance = robust.covariance;
    linear->log_likelihood = NAN;
    linear->noise.kind = robust.scale > 0 ? MODEL_NOISE_HOMOSCEDASTIC : MODEL_NOISE_NONE;
    linear->noise.method = method;
    fit_result_value(result, "robust_iterations", (double)robust.iterations, "1");
    fit_result_value(result, "rows_weighted_down", (double)robust.weighted_down, "1");
    return r;
}

bool linear_has_few_rows(const struct problem *problem, size_t rank) {
    enum { ROWS_A_COEFFICIENT = 8 };
    return problem->rows < ROWS_A_COEFFICIENT * rank;
}

void linear_clear(struct linear *linear) {
    least_squares_fit_clear(&linear->fit);
    free(linear->noise.coefficients);
    free(linear->floor_covariance);
    *linear = (struct linear){0};
}

/* ---- Problems */

int problem_sum(struct problem *problem) {
    int r = least_squares_init(&problem->sums, problem->terms);
    return r < 0 ? r
                 : least_squares_append(&problem->sums, problem->rows, problem->x, problem->stride,
                                        problem->y, problem->w);
}

/* The problem of COUNT of the rows, which owns its memory. -ENOMEM. To be cleared in any case. */
int problem_select(const struct problem *problem, const size_t *rows, size_t count, struct problem *ret) {
    size_t p = problem->terms;
    double *numbers = malloc(((p + 3) * count + 1) * sizeof *numbers), *y = numbers + p * count;
    uint32_t *settings = (uint32_t *)(y + 2 * count), *places = settings + count;
    *ret = *problem;
    ret->sums = (struct least_squares){0};
    ret->rows = ret->stride = count;
    ret->x = ret->owned = numbers;
    ret->y = y;
    ret->w = problem->w ? y + count : NULL;
    ret->settings = settings;
    ret->places = places;
    if (!numbers)
        return -ENOMEM;
    for (size_t t = 0; t < p; t++)
        for (size_t i = 0; i < count; i++)
            numbers[t * count + i] = problem->x[t * problem->stride + rows[i]];
    for (size_t i = 0; i < count; i++) {
        y[i] = problem->y[rows[i]];
        y[count + i] = problem->w ? problem->w[rows[i]] : 1;
        settings[i] = problem->settings[rows[i]];
        places[i] = problem->places ? problem->places[rows[i]] : (uint32_t)rows[i];
    }
    return problem_sum(ret);
}

void problem_clear(struct problem *problem) {
    least_squares_clear(&problem->sums);
    free(problem->owned);
    *problem = (struct problem){0};
}
