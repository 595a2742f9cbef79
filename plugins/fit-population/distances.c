#include "plugins/fit-population/distances.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Of a variance, scaled to 1: below it a direction has none. */
static const double flattest = 1e-12;

/* A covariance as its root, in units in which all variances are 1. */
struct root {
    size_t p;
    bool good; /* it is not singular */
    double scale[COEFFICIENTS_MAX], lower[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    double log_determinant;
};

static struct root root_of(size_t p, const double *covariance) {
    struct root root = {.p = p, .good = true};
    for (size_t i = 0; i < p; i++) {
        root.good = root.good && covariance[i * p + i] > 0;
        root.scale[i] = root.good ? sqrt(covariance[i * p + i]) : 1;
    }
    for (size_t i = 0; i < p * p; i++)
        root.lower[i] = covariance[i] / root.scale[i / p] / root.scale[i % p];
    gsl_matrix_view view = gsl_matrix_view_array(root.lower, p, p);
    root.good = root.good && gsl_linalg_cholesky_decomp1(&view.matrix) == 0;
    for (size_t i = 0; root.good && i < p; i++) {
        root.good = root.lower[i * p + i] * root.lower[i * p + i] > flattest;
        root.log_determinant += 2 * log(root.lower[i * p + i] * root.scale[i]);
    }
    return root;
}

/* (at - mu)' covariance^-1 (at - mu) */
static double square_of(const struct root *root, const double *at, const double *mu) {
    double z[COEFFICIENTS_MAX], square = 0;
    for (size_t i = 0; i < root->p; i++) {
        z[i] = (at[i] - mu[i]) / root->scale[i];
        for (size_t j = 0; j < i; j++)
            z[i] -= root->lower[i * root->p + j] * z[j];
        z[i] /= root->lower[i * root->p + i];
        square += z[i] * z[i];
    }
    return square;
}

/* ---- Lists */

void distances_clear(struct distances *distances) {
    for (size_t s = 0; s < DISTANCES_SETS; s++)
        free(distances->items[s]);
    *distances = (struct distances){0};
}

static int add(struct distances *distances, enum distances_set set, const struct fit_distance *item) {
    if (!isfinite(item->square)) {
        distances->left_out[set]++;
        return 0;
    }
    size_t count = distances->counts[set];
    distances->too_many[set] |= count == FIT_DISTANCES_MAX;
    if (distances->too_many[set])
        return 0;
    if (count == distances->capacities[set]) {
        size_t capacity = count ? 2 * count : 256;
        struct fit_distance *items = realloc(distances->items[set], capacity * sizeof *items);
        if (!items)
            return -ENOMEM;
        distances->items[set] = items;
        distances->capacities[set] = capacity;
    }
    distances->items[set][distances->counts[set]++] = *item;
    return 0;
}

static int compare(const void *left, const void *right) {
    const struct fit_distance *const *a = left, *const *b = right;
    double x = (*a)->square, y = (*b)->square;
    if (x != y)
        return x < y ? -1 : 1;
    return (*a)->row < (*b)->row ? -1 : (*a)->row > (*b)->row;
}

/* The probabilities, and the quantiles by rank, of what a group added from FIRST on. */
static int rank(struct distances *distances, enum distances_set set, size_t first, size_t freedom) {
    size_t count = distances->counts[set] - first;
    struct fit_distance **sorted = malloc((count + 1) * sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        sorted[i] = &distances->items[set][first + i];
    qsort(sorted, count, sizeof *sorted, compare);
    for (size_t i = 0; i < count; i++) {
        sorted[i]->p = gsl_cdf_chisq_Q(sorted[i]->square, (double)freedom);
        sorted[i]->quantile = gsl_cdf_chisq_Pinv(((double)i + 0.5) / (double)count, (double)freedom);
    }
    free(sorted);
    return 0;
}

/* ---- Machines and runs */

/* Which population the machine is most likely of; NaN in *RET_SQUARE where one of them is singular. */
static size_t population_of(const struct components *components, const struct root *roots, const double *at,
                            double *ret_square) {
    size_t best = 0;
    double most = -INFINITY;
    *ret_square = NAN;
    for (size_t k = 0; k < components->count; k++) {
        if (!roots[k].good)
            return 0;
        double square = square_of(&roots[k], at, components->of[k].mu);
        double likely = log(components->of[k].weight) - 0.5 * (roots[k].log_determinant + square);
        if (likely <= most)
            continue;
        most = likely;
        best = k;
        *ret_square = square;
    }
    return best;
}

/* Where MACHINE is. */
static void find_mean(const struct moments *moments, size_t machine, double *ret) {
    for (size_t i = 0; i < moments->p; i++)
        ret[i] = moments->mu[i] + moments->means[machine * moments->p + i];
}

static int add_machine(struct distances *distances, const struct moments *moments, size_t machine,
                       const struct components *components, const struct root *roots,
                       const char *const *parts, const struct distances_rows *rows) {
    double mean[COEFFICIENTS_MAX];
    find_mean(moments, machine, mean);
    uint32_t code = rows->codes[machine];
    struct fit_distance item = {
        .row = rows->numbers[rows->starts[code]], .name = rows->names[code], .value = mean[0]};
    size_t k = population_of(components, roots, mean, &item.square);
    item.part = parts[k];
    item.expected = components->of[k].mu[0];
    return add(distances, DISTANCES_MACHINES, &item);
}

/* A run is nearer to the mean that it is a part of than to where its machine is: n / (n - 1) makes up for
 * that. */
static int add_runs(struct distances *distances, const struct moments *moments, size_t machine,
                    const struct root *days, const struct distances_rows *rows) {
    double mean[COEFFICIENTS_MAX];
    find_mean(moments, machine, mean);
    uint32_t code = rows->codes[machine];
    size_t first = rows->starts[code], end = rows->starts[code + 1];
    double more = (double)(end - first) / (double)(end - first - 1); /* of one run infinite */
    int r = 0;
    for (size_t row = first; r == 0 && row < end; row++) {
        double at[COEFFICIENTS_MAX];
        for (size_t i = 0; i < moments->p; i++)
            at[i] = rows->columns[i][row];
        struct fit_distance item = {
            .row = rows->numbers[row],
            .name = rows->names[code],
            .value = at[0],
            .expected = mean[0],
            .square = days->good && end - first > 1 ? square_of(days, at, mean) * more : NAN,
        };
        r = add(distances, DISTANCES_RUNS, &item);
    }
    return r;
}

int distances_add(struct distances *distances, const struct moments *moments,
                  const struct components *components, const char *const *parts,
                  const struct distances_rows *rows) {
    struct root roots[POPULATIONS_MAX], days = root_of(moments->p, moments->days);
    size_t machines = distances->counts[DISTANCES_MACHINES], runs = distances->counts[DISTANCES_RUNS];
    for (size_t k = 0; k < components->count; k++)
        roots[k] = root_of(moments->p, components->of[k].sigma);
    int r = 0;
    for (size_t i = 0; r == 0 && i < moments->machines; i++) {
        r = add_machine(distances, moments, i, components, roots, parts, rows);
        r = r < 0 ? r : add_runs(distances, moments, i, &days, rows);
    }
    r = r < 0 ? r : rank(distances, DISTANCES_MACHINES, machines, moments->p);
    return r < 0 ? r : rank(distances, DISTANCES_RUNS, runs, moments->p);
}

void distances_tell(const struct distances *distances, enum distances_set set, size_t freedom,
                    struct fit_distances *ret) {
    bool machines = set == DISTANCES_MACHINES;
    bool told = !distances->too_many[set];
    *ret = (struct fit_distances){
        .size = sizeof *ret,
        .what = machines ? "machine" : "run",
        .whats = machines ? "machines" : "runs",
        .from = machines ? "their population's mean" : "their machine's mean",
        .freedom = (uint32_t)freedom,
        .left_out = distances->left_out[set] + (told ? 0 : distances->counts[set]),
        .items = distances->items[set],
        .count = told ? distances->counts[set] : 0,
    };
}
