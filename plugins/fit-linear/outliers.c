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
                    struct problem *ret, size_t *ret_deleted, struct plugin_message *message) {
    size_t n = problem->rows, p = problem->terms, kept = 0;
    double *numbers = malloc(((p + 4) * n + 1) * sizeof *numbers);
    *ret = (struct problem){0};
    if (!numbers)
        return -ENOMEM;
    double *x = numbers, *y = x + p * n, *w = y + n, *residuals = w + n, *leverages = residuals + n;
    least_squares_residuals(&linear->fit, n, problem->x, problem->stride, problem->y, residuals);
    least_squares_leverages(&linear->fit, n, problem->x, problem->stride, problem->w, leverages);
    for (size_t i = 0; i < n; i++) {
        double weight = problem->w ? problem->w[i] : 1;
        if (linear->freedom > 1 && studentised(linear, residuals[i], weight, leverages[i]) > limit)
            continue;
        for (size_t t = 0; t < p; t++)
            x[t * n + kept] = problem->x[t * problem->stride + i];
        y[kept] = problem->y[i];
        w[kept++] = weight;
    }
    *ret = (struct problem){.rows = kept,
                            .terms = p,
                            .stride = n,
                            .x = x,
                            .y = y,
                            .w = problem->w ? w : NULL,
                            .request = problem->request,
                            .owned = numbers};
    *ret_deleted = n - kept;
    return problem_sum(ret, message);
}
