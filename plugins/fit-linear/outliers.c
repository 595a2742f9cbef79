/* Rows that are far from the fit. */
#include "plugins/fit-linear/linear.h"

#include <stdlib.h>

/* sqrt(w) r / (s_(i) sqrt(1 - h)), s_(i) the sigma of a fit without the row. */
static double studentised(const struct linear *linear, double residual, double w, double leverage) {
    double square = w * residual * residual, spare = 1 - leverage;
    double without = (linear->rss - square / spare) / (linear->freedom - 1);
    return spare > 1e-12 && without > 0 ? sqrt(square / spare / without) : 0;
}

int outliers_delete(const struct problem *problem, const struct linear *linear, double limit,
                    struct problem *ret, size_t *ret_deleted) {
    size_t n = problem->rows, count = 0;
    double *residuals = malloc((2 * n + 1) * sizeof *residuals), *leverages = residuals + n;
    size_t *kept = malloc((n + 1) * sizeof *kept);
    int r = residuals && kept ? 0 : -ENOMEM;
    *ret = (struct problem){0};
    if (r == 0) {
        least_squares_residuals(&linear->fit, n, problem->x, problem->stride, problem->y, residuals);
        least_squares_leverages(&linear->fit, n, problem->x, problem->stride, problem->w, leverages);
    }
    for (size_t i = 0; r == 0 && i < n; i++) {
        double w = problem->w ? problem->w[i] : 1;
        if (!(linear->freedom > 1 && studentised(linear, residuals[i], w, leverages[i]) > limit))
            kept[count++] = i;
    }
    *ret_deleted = n - count;
    r = r < 0 ? r : problem_select(problem, kept, count, ret);
    free(residuals);
    free(kept);
    return r;
}
