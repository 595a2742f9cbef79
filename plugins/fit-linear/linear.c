#include "plugins/fit-linear/linear.h"

#include <stdlib.h>
#include <string.h>

/* A fit whose residuals are this much of the response, and less, has none but rounding. */
static const double perfect = 1e-12;

static bool is_constant(const struct model_term *term) {
    return term->factor_count == 0;
}

static bool has_intercept(const struct problem *problem, const struct least_squares_fit *fit) {
    for (size_t t = 0; t < problem->terms; t++)
        if (is_constant(&problem->request->terms[t]) && fit->state[t] == LEAST_SQUARES_FREE)
            return true;
    return false;
}

/* sum w y^2, and the residuals' sum of squares again from the rows, where it has more digits. */
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

static int describe(const struct problem *problem, struct linear *linear) {
    const struct least_squares *sums = &problem->sums;
    double squares = 0, n = (double)sums->rows;
    int r = sum_squares(problem, linear, &squares);
    if (r < 0)
        return r;
    bool intercept = has_intercept(problem, &linear->fit);
    linear->freedom = n - (double)linear->fit.rank;
    linear->total = intercept ? sums->total : squares;
    bool is_perfect = linear->rss <= perfect * perfect * squares * n;
    if (is_perfect)
        linear->rss = 0;
    linear->sigma = linear->freedom > 0 ? sqrt(linear->rss / linear->freedom) : NAN;
    linear->r2 = linear->total > perfect * perfect * squares ? 1 - linear->rss / linear->total : NAN;
    linear->adjusted_r2 =
        linear->freedom > 0 ? 1 - (1 - linear->r2) * (n - (intercept ? 1 : 0)) / linear->freedom : NAN;
    linear->log_likelihood =
        is_perfect ? NAN : (sums->log_weights - n * (log(2 * M_PI) + 1 + log(linear->rss / n))) / 2;
    return least_squares_condition(sums, &linear->fit, &linear->condition);
}

static int refuse_dependent(const struct problem *problem, const struct linear *linear,
                            struct plugin_message *message) {
    const struct model_term *term = &problem->request->terms[linear->fit.dependent];
    return plugin_refuse(message, -EDOM, "rank %zu of %zu: '%.200s' is a combination of the terms before it",
                         linear->fit.rank, problem->terms, term->name);
}

static size_t asked(const struct problem *problem, const enum least_squares_role *roles) {
    size_t count = 0;
    for (size_t t = 0; t < problem->terms; t++)
        count += roles[t] != LEAST_SQUARES_LEFT_OUT;
    return count;
}

int linear_solve(const struct problem *problem, const enum least_squares_role *roles, bool described,
                 struct linear *ret, struct plugin_message *message) {
    size_t terms = asked(problem, roles);
    *ret = (struct linear){0};
    if (problem->rows < terms)
        return plugin_refuse(message, -EDOM, "%zu row%s for %zu terms", problem->rows,
                             problem->rows == 1 ? "" : "s", terms);
    int r = least_squares_solve(&problem->sums, roles, &ret->fit);
    if (r == 0 && ret->fit.dependent < problem->terms)
        r = refuse_dependent(problem, ret, message);
    if (r == -ERANGE || r == -EAGAIN)
        r = plugin_refuse(message, -EDOM, "its sums are beyond the range of a double");
    return r < 0 || !described ? r : describe(problem, ret);
}

int problem_sum(struct problem *problem, struct plugin_message *message) {
    int r = least_squares_init(&problem->sums, problem->terms);
    r = r < 0 ? r
              : least_squares_append(&problem->sums, problem->rows, problem->x, problem->stride, problem->y,
                                     problem->w);
    return r == -ERANGE ? plugin_refuse(message, -EDOM, "its sums are beyond the range of a double") : r;
}

void problem_clear(struct problem *problem) {
    least_squares_clear(&problem->sums);
    free(problem->owned);
    *problem = (struct problem){0};
}

void linear_clear(struct linear *linear) {
    least_squares_fit_clear(&linear->fit);
    *linear = (struct linear){0};
}
