/* Deletion of rows that are far from the fit. */
#include "plugins/fit-linear/linear.h"

#include <stdlib.h>

/* Marks in DELETED the rows whose studentised residual sqrt(w) r / (s_(i) sqrt(1 - h)) is above LIMIT: w is
 * the weight by the noise, h the leverage, s_(i) the sigma of a fit without the row. RESIDUALS, WEIGHTS and
 * LEVERAGES are scratch. */
static void find_outliers(const struct problem *problem, const struct linear *linear, double limit,
                          double *residuals, double *weights, double *leverages, bool *deleted) {
    size_t n = problem->rows;
    double rss = 0;
    for (size_t i = 0; i < n; i++)
        weights[i] = fmax(linear->variance / pow(linear_sigma(problem, &linear->noise, i), 2), 0);
    least_squares_residuals(&linear->fit, n, problem->x, problem->stride, problem->y, residuals);
    least_squares_leverages(&linear->fit, n, problem->x, problem->stride, weights, leverages);
    for (size_t i = 0; i < n; i++)
        rss += weights[i] * residuals[i] * residuals[i];
    for (size_t i = 0; i < n; i++) {
        double spare = 1 - leverages[i], square = weights[i] * residuals[i] * residuals[i] / spare;
        double without = (rss - square) / (linear->freedom - 1);
        deleted[i] = spare > 1e-12 && without > 0 && square > limit * limit * without;
    }
}

/* The problem without outliers into RET, which the caller clears; *RET_DELETED is their number. LINEAR gets
 * noise that grows with the mean if the settings ask for noise. -ENOMEM. */
int outliers_delete(const struct problem *problem, const enum least_squares_role *roles, double limit,
                    struct linear *linear, struct problem *ret, size_t *ret_deleted,
                    struct plugin_message *message) {
    size_t n = problem->rows, count = 0;
    enum noise_choice noise = (enum noise_choice)linear_number(problem->request, NOISE);
    double *values = malloc((3 * n + 1) * sizeof *values);
    size_t *kept = malloc((n + 1) * sizeof *kept);
    bool *deleted = calloc(n + 1, sizeof *deleted);
    int r = values && kept && deleted ? 0 : -ENOMEM;
    *ret = (struct problem){0};
    if (r == 0 && noise != NOISE_NONE && noise != NOISE_HOMOSCEDASTIC)
        r = growth_find(problem, roles, linear, message);
    if (r == 0 && linear->freedom > 1)
        find_outliers(problem, linear, limit, values, values + n, values + 2 * n, deleted);
    for (size_t i = 0; r == 0 && i < n; i++)
        if (!deleted[i])
            kept[count++] = i;
    *ret_deleted = n - count;
    r = r < 0 ? r : problem_select(problem, kept, count, ret);
    free(values);
    free(kept);
    free(deleted);
    return r;
}
