#include "plugins/fit-population/moments.h"

#include <errno.h>
#include <gsl/gsl_eigen.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

void moments_clear(struct moments *moments) {
    free(moments->means);
    *moments = (struct moments){0};
}

/* Of the distances of COUNT numbers from ORIGIN, which lies among them; the second pass takes away what
 * rounding left in the first. */
static double mean_from(double origin, const double *values, size_t count, size_t stride) {
    double mean = 0, rest = 0;
    for (size_t i = 0; i < count; i++)
        mean += (values[i * stride] - origin) / (double)count;
    for (size_t i = 0; i < count; i++)
        rest += (values[i * stride] - origin - mean) / (double)count;
    return mean + rest;
}

/* Adds, below the diagonal and on it, the products of the distances of the rows FIRST to before END from
 * ORIGIN + MEAN, divided by DIVISOR. */
static void add_products(size_t p, const double *const *columns, size_t first, size_t end,
                         const double *origin, const double *mean, double divisor, double *matrix) {
    for (size_t row = first; row < end; row++)
        for (size_t i = 0; i < p; i++)
            for (size_t j = 0; j <= i; j++)
                matrix[i * p + j] += (columns[i][row] - origin[i] - mean[i]) / divisor *
                                     (columns[j][row] - origin[j] - mean[j]);
}

int moments_init(struct moments *moments, size_t p, const double *const *columns, const size_t *starts,
                 const uint32_t *codes, size_t machines, enum days_rule rule) {
    *moments = (struct moments){.p = p, .machines = machines};
    moments->means = calloc(machines * p + 1, sizeof *moments->means);
    if (!moments->means)
        return -ENOMEM;
    double origin[COEFFICIENTS_MAX]; /* what machines differ by is small beside the coefficients */
    for (size_t i = 0; i < p; i++) {
        origin[i] = machines > 0 ? columns[i][starts[codes[0]]] : 0;
        moments->least[i] = INFINITY;
        moments->greatest[i] = -INFINITY;
    }
    size_t spare = 0; /* rows that are more than their machine's mean needs */
    for (size_t c = 0; c < machines; c++) {
        size_t days = starts[codes[c] + 1] - starts[codes[c]];
        for (size_t i = 0; i < p; i++)
            moments->means[c * p + i] = mean_from(origin[i], columns[i] + starts[codes[c]], days, 1);
        for (size_t i = 0; i < p; i++)
            for (size_t row = starts[codes[c]]; row < starts[codes[c] + 1]; row++) {
                moments->least[i] = fmin(moments->least[i], columns[i][row]);
                moments->greatest[i] = fmax(moments->greatest[i], columns[i][row]);
            }
        moments->rows += days;
        moments->repeated += days > 1;
        spare += days - 1;
        moments->inverse_days += 1 / (double)days / (double)machines;
    }
    for (size_t c = 0; c < machines; c++) {
        size_t first = starts[codes[c]], end = starts[codes[c] + 1];
        double divisor =
            rule == DAYS_POOLED ? (double)spare : (double)(end - first - 1) * (double)moments->repeated;
        if (end - first > 1)
            add_products(p, columns, first, end, origin, moments->means + c * p, divisor, moments->days);
    }
    for (size_t i = 0; i < p; i++)
        for (size_t j = 0; j < i; j++)
            moments->days[j * p + i] = moments->days[i * p + j];
    for (size_t i = 0; i < p; i++) {
        double mean = mean_from(0, moments->means + i, machines, p);
        moments->mu[i] = origin[i] + mean;
        for (size_t c = 0; c < machines; c++)
            moments->means[c * p + i] -= mean;
    }
    return 0;
}

bool moments_make_definite(size_t p, double *matrix, const double *scale, double least) {
    double scaled[COEFFICIENTS_MAX * COEFFICIENTS_MAX], kept[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    for (size_t i = 0; i < p; i++)
        for (size_t j = 0; j < p; j++)
            scaled[i * p + j] = kept[i * p + j] = matrix[i * p + j] / scale[i] / scale[j];
    gsl_eigen_symmv_workspace *workspace = gsl_eigen_symmv_alloc(p);
    if (!workspace)
        return false;
    double values[COEFFICIENTS_MAX], vectors[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    gsl_matrix_view a = gsl_matrix_view_array(scaled, p, p), v = gsl_matrix_view_array(vectors, p, p);
    gsl_vector_view l = gsl_vector_view_array(values, p);
    gsl_eigen_symmv(&a.matrix, &l.vector, &v.matrix, workspace);
    gsl_eigen_symmv_free(workspace);
    bool changed = false;
    for (size_t k = 0; k < p; k++) {
        if (values[k] >= least)
            continue;
        /* Only what is missing is added: what was right keeps its digits. */
        changed |= values[k] < least - 1e-13;
        for (size_t i = 0; i < p; i++)
            for (size_t j = 0; j < p; j++)
                kept[i * p + j] += (least - values[k]) * vectors[i * p + k] * vectors[j * p + k];
    }
    for (size_t i = 0; changed && i < p; i++)
        for (size_t j = 0; j < p; j++)
            matrix[i * p + j] = 0.5 * (kept[i * p + j] + kept[j * p + i]) * scale[i] * scale[j];
    return changed;
}
