#include "plugins/fit-linear/linear.h"

#include <stdlib.h>
#include <string.h>

static const double small_volumes = 100; /* times the least */

static double deviation(const struct problem *problem, const size_t *rows, size_t count) {
    double mean = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        mean += problem->y[rows[i]] / (double)count;
    for (size_t i = 0; i < count; i++)
        squares += (problem->y[rows[i]] - mean) * (problem->y[rows[i]] - mean);
    return sqrt(squares / (double)(count - 1));
}

/* Makes a problem with one row for each setting that has several rows: its terms, and the standard deviation
 * of its rows. -ENOMEM. */
static int gather_settings(const struct problem *problem, const struct settings *settings,
                           struct problem *ret) {
    size_t stride = settings->count, count = 0, p = problem->terms;
    double *x = malloc(((p + 1) * stride + 1) * sizeof *x), *y = x + p * stride;
    for (size_t s = 0; x && s < settings->count; s++) {
        const size_t *rows = settings->rows + settings->first[s];
        size_t repeats = settings->first[s + 1] - settings->first[s];
        if (repeats < 2)
            continue;
        for (size_t t = 0; t < p; t++)
            x[t * stride + count] = problem->x[t * problem->stride + rows[0]];
        y[count++] = deviation(problem, rows, repeats);
    }
    *ret = (struct problem){.rows = count, .terms = p, .stride = stride, .x = x, .y = y, .owned = x};
    return x ? 0 : -ENOMEM;
}

/* The first of the terms of the highest degree. */
static size_t find_volume(const struct problem *problem, const enum least_squares_role *roles) {
    size_t best = 0;
    int most = INT32_MIN;
    for (size_t t = 0; t < problem->terms; t++) {
        const struct model_term *term = &problem->request->terms[t];
        int degree = 0;
        for (size_t f = 0; f < term->factor_count; f++)
            degree += term->factors[f].power;
        if (roles[t] != LEAST_SQUARES_LEFT_OUT && degree > most) {
            most = degree;
            best = t;
        }
    }
    return best;
}

/* The mean of VALUES where the volume is at most small_volumes times the least. */
static double mean_of_small(const double *volumes, const double *values, size_t count) {
    double least = INFINITY, sum = 0, small = 0;
    for (size_t i = 0; i < count; i++)
        least = fmin(least, volumes[i]);
    for (size_t i = 0; i < count; i++)
        if (volumes[i] <= small_volumes * least) {
            sum += values[i];
            small++;
        }
    return sum > 0 ? sum / small : 0;
}

/* Fits the deviations of ROWS less the constant to the terms. -EDOM with a reason: terms are dependent. ROWS
 * is changed. */
static int fit_slopes(struct problem *rows, const enum least_squares_role *roles, double constant,
                      double *coefficients, const char **ret_reason) {
    struct least_squares_fit fit = {0};
    for (size_t i = 0; i < rows->rows; i++)
        rows->owned[rows->terms * rows->stride + i] -= constant;
    *ret_reason = "the terms are linearly dependent over the settings that have two rows "
                  "or more";
    int r = problem_sum(rows);
    r = r < 0 ? r : least_squares_solve(&rows->sums, roles, &fit);
    r = r == 0 && fit.dependent < rows->terms ? -EDOM : r;
    if (r == 0)
        memcpy(coefficients, fit.estimate, rows->terms * sizeof *coefficients);
    least_squares_fit_clear(&fit);
    return r;
}

/* Chooses the terms that the noise may depend on, all but the constant. Returns their number. */
static size_t choose_terms(const struct problem *problem, const enum least_squares_role *roles,
                           enum least_squares_role *ret) {
    size_t count = 0;
    for (size_t t = 0; t < problem->terms; t++) {
        bool is_one = roles[t] != LEAST_SQUARES_LEFT_OUT && problem->request->terms[t].factor_count > 0;
        ret[t] = is_one ? LEAST_SQUARES_FREE : LEAST_SQUARES_LEFT_OUT;
        count += is_one;
    }
    return count;
}

/* Finds the noise by the rule of README.md: a constant from small settings, then slopes by least squares.
 * -EDOM with *RET_REASON: it cannot be applied; -ENOMEM. */
int rule_follow(const struct problem *problem, const enum least_squares_role *roles, double *ret_constant,
                double *coefficients, const char **ret_reason) {
    struct settings settings;
    struct problem rows = {0};
    enum least_squares_role of_terms[LEAST_SQUARES_COLUMNS_MAX];
    int r = settings_find(problem, &settings);
    r = r == 0 ? gather_settings(problem, &settings, &rows) : r;
    size_t terms = r == 0 ? choose_terms(problem, roles, of_terms) : 0;
    *ret_reason = terms == 0 ? "the formula has no term except the constant"
                             : "too few settings have two rows or more: expected more of these "
                               "settings than terms";
    if (r == 0 && (terms == 0 || rows.rows <= terms))
        r = -EDOM;
    if (r == 0) {
        const double *volumes = rows.x + find_volume(problem, of_terms) * rows.stride;
        *ret_constant = mean_of_small(volumes, rows.y, rows.rows);
        r = fit_slopes(&rows, of_terms, *ret_constant, coefficients, ret_reason);
    }
    problem_clear(&rows);
    settings_clear(&settings);
    return r;
}
