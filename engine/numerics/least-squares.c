#include "engine/numerics/least-squares.h"

#include "engine/foundation/cleanup.h"
#include "engine/numerics/gsl.h"
#include "engine/numerics/logarithm.h"

#include <errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Rows of a block: few enough that a block of some columns stays in the first cache, and more than a triangle
 * has. LANES sums run beside each other, so that the compiler uses vectors without changing the order of
 * additions. */
enum { BLOCK_ROWS = 256, LANES = 16 };
_Static_assert((int)LEAST_SQUARES_COLUMNS_MAX < (int)BLOCK_ROWS,
               "a triangle must fit into a block, to be merged");

static const double dependence = 1e-7; /* R's lm */

/* COUNT rounded up to full lanes: rows of a block, with rows of 0 at its end. */
static size_t padded(size_t count) {
    return (count + LANES - 1) / LANES * LANES;
}

/* COUNT is a multiple of LANES. */
static inline double dot(size_t count, const double *restrict a, const double *restrict b) {
    double lanes[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < count; i += LANES)
        for (size_t l = 0; l < LANES; l++)
            lanes[l] += a[i + l] * b[i + l];
    for (size_t l = 0; l < LANES; l++)
        sum += lanes[l];
    return sum;
}

/* Folds the first ROWS rows (a multiple of LANES) of a block of ORDER columns, BLOCK_ROWS apart, into the
 * upper triangle by Householder reflections (QR). Vectors of any width add in the same order, for the same
 * bits. */
__attribute__((target_clones("avx2", "default"))) static void fold_rows(double *triangle, size_t order,
                                                                        size_t rows, double *block) {
    for (size_t j = 0; j < order; j++) {
        double *column = block + j * BLOCK_ROWS, *diagonal = &triangle[j + j * order];
        double below = dot(rows, column, column);
        if (below == 0)
            continue;
        double reflected = -copysign(sqrt(*diagonal * *diagonal + below), *diagonal);
        double head = *diagonal - reflected, factor = -head / reflected, inverse = 1 / head;
        *diagonal = reflected;
        if (isfinite(inverse))
            for (size_t i = 0; i < rows; i++)
                column[i] *= inverse;
        else
            for (size_t i = 0; i < rows; i++)
                column[i] /= head;
        for (size_t k = j + 1; k < order; k++) {
            double *restrict other = block + k * BLOCK_ROWS;
            double share = factor * (triangle[j + k * order] + dot(rows, column, other));
            triangle[j + k * order] -= share;
            for (size_t i = 0; i < rows; i++)
                other[i] -= share * column[i];
        }
    }
}

/* Folds the upper triangle OTHER, of as many columns, into TRIANGLE. */
static void fold_triangle(double *triangle, size_t order, const double *other, double *block) {
    size_t rows = padded(order);
    for (size_t j = 0; j < order; j++) {
        memcpy(block + j * BLOCK_ROWS, other + j * order, (j + 1) * sizeof *block);
        memset(block + j * BLOCK_ROWS + j + 1, 0, (rows - j - 1) * sizeof *block);
    }
    fold_rows(triangle, order, rows, block);
}

/* Prepares empty sums over COLUMNS columns. -EINVAL: too many; -ENOMEM. */
int least_squares_init(struct least_squares *ret, size_t columns) {
    *ret = (struct least_squares){.columns = columns};
    if (columns > LEAST_SQUARES_COLUMNS_MAX)
        return -EINVAL;
    ret->triangle = calloc((columns + 1) * (columns + 1), sizeof *ret->triangle);
    ret->block = malloc((columns + 1) * BLOCK_ROWS * sizeof *ret->block);
    if (ret->triangle && ret->block)
        return 0;
    least_squares_clear(ret);
    return -ENOMEM;
}

void least_squares_reset(struct least_squares *sums) {
    size_t order = sums->columns + 1;
    memset(sums->triangle, 0, order * order * sizeof *sums->triangle);
    *sums =
        (struct least_squares){.columns = sums->columns, .triangle = sums->triangle, .block = sums->block};
}

void least_squares_clear(struct least_squares *sums) {
    free(sums->triangle);
    free(sums->block);
    *sums = (struct least_squares){0};
}

/* Adds a sum of WEIGHT with this MEAN and sum of squares about it (T. Chan, G. Golub, R. LeVeque 1983). */
static void add_total(struct least_squares *sums, double weight, double mean, double total) {
    if (weight == 0)
        return;
    double away = mean - sums->mean, share = weight / (sums->weight + weight);
    sums->total += total + away * away * sums->weight * share;
    sums->mean += away * share;
    sums->weight += weight;
}

/* The roots of the weights into ROOTS (NULL: 1), counting rows of weight above 0. -EINVAL: a weight is
 * negative or not finite. */
static inline int add_weights(struct least_squares *sums, size_t count, const double *weights,
                              double *roots) {
    size_t above = 0, valid = 0;
    memset(roots, 0, padded(count) * sizeof *roots);
    for (size_t i = 0; i < count; i++)
        roots[i] = weights ? sqrt(weights[i]) : 1;
    for (size_t i = 0; i < count; i++) {
        valid += roots[i] < INFINITY ? 1 : 0;
        above += roots[i] > 0 ? 1 : 0;
    }
    sums->rows += above;
    return valid == count ? 0 : -EINVAL;
}

/* Fills the block with sqrt(w) [X y] of COUNT rows; rows of weight 0, whose values may be anything,
 * become 0. */
static inline void fill_block(struct least_squares *sums, size_t count, const double *x, size_t stride,
                              const double *y, const double *roots, bool has_zeros) {
    for (size_t j = 0; j <= sums->columns; j++) {
        const double *from = j < sums->columns ? x + j * stride : y;
        double *restrict column = sums->block + j * BLOCK_ROWS;
        for (size_t i = 0; i < count; i++)
            column[i] = roots[i] * from[i];
        for (size_t i = 0; has_zeros && i < count; i++)
            column[i] = roots[i] > 0 ? column[i] : 0;
        memset(column + count, 0, (padded(count) - count) * sizeof *column);
    }
}

/* Loads COUNT rows into the block, and adds them to the totals of weight and y. -EINVAL: a weight is not
 * valid. */
__attribute__((target_clones("avx2", "default"))) static int load_block(struct least_squares *sums,
                                                                        size_t count, const double *x,
                                                                        size_t stride, const double *y,
                                                                        const double *weights) {
    double roots[BLOCK_ROWS], scatter[BLOCK_ROWS];
    size_t before = sums->rows;
    if (add_weights(sums, count, weights, roots) < 0)
        return -EINVAL;
    fill_block(sums, count, x, stride, y, roots, sums->rows - before < count);
    const double *scaled = sums->block + sums->columns * BLOCK_ROWS; /* sqrt(w) y */
    size_t rows = padded(count);
    double weight = dot(rows, roots, roots), mean = weight > 0 ? dot(rows, roots, scaled) / weight : 0;
    for (size_t i = 0; i < rows; i++)
        scatter[i] = scaled[i] - roots[i] * mean;
    add_total(sums, weight, mean, dot(rows, scatter, scatter));
    return 0;
}

/* Adds rows by Householder reflections. -EINVAL: a weight is not valid. */
int least_squares_append(struct least_squares *sums, size_t rows, const double *x, size_t stride,
                         const double *y, const double *weights) {
    for (size_t begin = 0; begin < rows; begin += BLOCK_ROWS) {
        size_t count = rows - begin < BLOCK_ROWS ? rows - begin : BLOCK_ROWS;
        int code = load_block(sums, count, x + begin, stride, y + begin, weights ? weights + begin : NULL);
        if (code < 0)
            return code;
        sums->log_weights += weights ? logarithm_sum(weights + begin, count) : 0;
        fold_rows(sums->triangle, sums->columns + 1, padded(count), sums->block);
    }
    return 0;
}

/* Adds the products of the block's columns to the upper triangle of PRODUCTS. */
__attribute__((target_clones("avx2", "default"))) static void add_products(double *products, size_t order,
                                                                           const double *block, size_t rows) {
    for (size_t k = 0; k < order; k++)
        for (size_t j = 0; j <= k; j++)
            products[j + k * order] += dot(rows, block + j * BLOCK_ROWS, block + k * BLOCK_ROWS);
}

/* Replaces the upper triangle of R'R by R (Cholesky); the row of a column that depends on earlier ones is
 * 0. */
static void factorise_products(double *products, size_t order) {
    for (size_t k = 0; k < order; k++) {
        double whole = products[k + k * order];
        for (size_t j = 0; j <= k; j++) {
            double *element = &products[j + k * order], pivot = products[j + j * order];
            for (size_t i = 0; i < j; i++)
                *element -= products[i + j * order] * products[i + k * order];
            if (j < k)
                *element = pivot > 0 ? *element / pivot : 0;
            else
                *element = *element > dependence * dependence * whole ? sqrt(*element) : 0;
        }
    }
}

/* Adds rows by sums of products, faster than least_squares_append(), with half of the digits. -EINVAL: a
 * weight is not valid; -ENOMEM. */
int least_squares_append_products(struct least_squares *sums, size_t rows, const double *x, size_t stride,
                                  const double *y, const double *weights) {
    size_t order = sums->columns + 1;
    cleanup_free double *products = calloc(order * order, sizeof *products);
    if (!products)
        return -ENOMEM;
    for (size_t begin = 0; begin < rows; begin += BLOCK_ROWS) {
        size_t count = rows - begin < BLOCK_ROWS ? rows - begin : BLOCK_ROWS;
        int code = load_block(sums, count, x + begin, stride, y + begin, weights ? weights + begin : NULL);
        if (code < 0)
            return code;
        add_products(products, order, sums->block, padded(count));
    }
    factorise_products(products, order);
    fold_triangle(sums->triangle, order, products, sums->block);
    return 0;
}

/* ---- Solution */

/* The triangle of the columns that are being estimated. */
struct solver {
    const struct least_squares *sums;
    size_t set[LEAST_SQUARES_COLUMNS_MAX], count; /* the columns that are factorised */
    double *triangle;                             /* of these and y: order count + 1 */
    double *block;
};

static int solver_init(struct solver *ret, const struct least_squares *sums) {
    size_t order = sums->columns + 1;
    *ret = (struct solver){.sums = sums};
    ret->triangle = malloc(order * order * sizeof *ret->triangle);
    ret->block = malloc(order * BLOCK_ROWS * sizeof *ret->block);
    return ret->triangle && ret->block ? 0 : -ENOMEM;
}

static void solver_clear(struct solver *solver) {
    free(solver->triangle);
    free(solver->block);
}

/* Computes the triangle of the columns whose state is FREE, and of y. */
static void factorise(struct solver *solver, const enum least_squares_role *state) {
    const struct least_squares *sums = solver->sums;
    size_t order = sums->columns + 1, rows = padded(order);
    solver->count = 0;
    for (size_t j = 0; j < order; j++) {
        if (j < sums->columns && state[j] != LEAST_SQUARES_FREE)
            continue;
        double *column = solver->block + solver->count * BLOCK_ROWS;
        memcpy(column, sums->triangle + j * order, order * sizeof *column);
        memset(column + order, 0, (rows - order) * sizeof *column);
        if (j < sums->columns)
            solver->set[solver->count++] = j;
    }
    memset(solver->triangle, 0, (solver->count + 1) * (solver->count + 1) * sizeof *solver->triangle);
    fold_rows(solver->triangle, solver->count + 1, rows, solver->block);
}

static double length(const double *column, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        sum += column[i] * column[i];
    return sqrt(sum);
}

/* Marks columns that depend linearly on earlier ones as DEPENDENT; the others are factorised. */
static void find_dependent(struct solver *solver, struct least_squares_fit *fit) {
    fit->dependent = fit->columns;
    for (size_t j = 0; factorise(solver, fit->state), j < solver->count;) {
        size_t order = solver->count + 1;
        for (j = 0; j < solver->count; j++)
            if (!(fabs(solver->triangle[j + j * order]) >
                  dependence * length(solver->triangle + j * order, j + 1)))
                break;
        if (j == solver->count)
            return;
        fit->state[solver->set[j]] = LEAST_SQUARES_DEPENDENT;
        if (fit->dependent == fit->columns)
            fit->dependent = solver->set[j];
    }
}

/* Back substitution: estimates of the factorised columns into RET, 0 for others. */
static void substitute(const struct solver *solver, size_t columns, double *ret) {
    size_t order = solver->count + 1;
    memset(ret, 0, columns * sizeof *ret);
    for (size_t i = solver->count; i-- > 0;) {
        double sum = solver->triangle[i + solver->count * order];
        for (size_t j = i + 1; j < solver->count; j++)
            sum -= solver->triangle[i + j * order] * ret[solver->set[j]];
        ret[solver->set[i]] = sum / solver->triangle[i + i * order];
    }
}

/* The bound column along which the sum of squares falls most steeply; the number of columns if there is none.
 * Columns marked in REFUSED are left out, as they fell below 0 when they were last freed. */
static size_t find_steepest_column(const struct least_squares *sums, const struct least_squares_fit *fit,
                                   const bool *refused, double *residual) {
    size_t order = sums->columns + 1, best = sums->columns;
    double most = 1e-12; /* a cosine; below it there is nothing but rounding */
    for (size_t i = 0; i < order; i++) {
        residual[i] = sums->triangle[i + sums->columns * order];
        for (size_t j = i; j < sums->columns; j++)
            residual[i] -= sums->triangle[i + j * order] * fit->estimate[j];
    }
    double far = length(residual, order);
    for (size_t j = 0; j < sums->columns; j++) {
        if (fit->state[j] != LEAST_SQUARES_BOUND || refused[j])
            continue;
        double product = 0;
        for (size_t i = 0; i <= j; i++)
            product += sums->triangle[i + j * order] * residual[i];
        double cosine = product / (far * length(sums->triangle + j * order, j + 1));
        if (cosine > most) {
            most = cosine;
            best = j;
        }
    }
    return best;
}

/* How far column J can go from its estimate towards TRIED: 1 is all the way. */
static double feasible_step(const struct least_squares_fit *fit, const enum least_squares_role *roles,
                            const double *tried, size_t j) {
    if (fit->state[j] != LEAST_SQUARES_FREE || roles[j] != LEAST_SQUARES_NONNEGATIVE || tried[j] > 0)
        return 1;
    return fit->estimate[j] > 0 ? fit->estimate[j] / (fit->estimate[j] - tried[j]) : 0;
}

/* Moves the estimates towards TRIED as far as all stay at 0 or more, and binds the columns that reach 0.
 * true: TRIED was reached. */
static bool step_towards(struct least_squares_fit *fit, const enum least_squares_role *roles,
                         const double *tried) {
    double step = 1;
    for (size_t j = 0; j < fit->columns; j++)
        step = fmin(step, feasible_step(fit, roles, tried, j));
    bool arrived = true;
    for (size_t j = 0; j < fit->columns; j++) {
        bool ends = tried[j] <= 0 && fit->state[j] == LEAST_SQUARES_FREE &&
                    roles[j] == LEAST_SQUARES_NONNEGATIVE && feasible_step(fit, roles, tried, j) <= step;
        fit->estimate[j] = ends ? 0 : fit->estimate[j] + step * (tried[j] - fit->estimate[j]);
        if (ends)
            fit->state[j] = LEAST_SQUARES_BOUND;
        arrived &= !ends;
    }
    return arrived;
}

/* Least squares with estimates of 0 or more (NNLS, C. Lawson, R. Hanson 1974). -EAGAIN: no solution within
 * the limit of rounds; -ENOMEM. */
static int solve_bounded(struct solver *solver, const enum least_squares_role *roles,
                         struct least_squares_fit *fit) {
    size_t columns = fit->columns;
    cleanup_free double *scratch = calloc(2 * columns + 1, sizeof *scratch);
    cleanup_free bool *refused = calloc(columns + 1, sizeof *refused);
    if (!scratch || !refused)
        return -ENOMEM;
    double *tried = scratch, *residual = scratch + columns;
    for (size_t j = 0; j < columns; j++)
        if (fit->state[j] == LEAST_SQUARES_FREE && roles[j] == LEAST_SQUARES_NONNEGATIVE)
            fit->state[j] = LEAST_SQUARES_BOUND;
    factorise(solver, fit->state);
    substitute(solver, columns, fit->estimate);
    for (size_t round = 0; round < 10 * columns + 10; round++) {
        size_t added = find_steepest_column(solver->sums, fit, refused, residual);
        if (added == columns)
            return 0;
        fit->state[added] = LEAST_SQUARES_FREE;
        do {
            factorise(solver, fit->state);
            substitute(solver, columns, tried);
        } while (!step_towards(fit, roles, tried));
        if (fit->state[added] == LEAST_SQUARES_FREE)
            memset(refused, 0, columns * sizeof *refused);
        refused[added] = fit->state[added] != LEAST_SQUARES_FREE;
    }
    return -EAGAIN;
}

/* Computes R^-1 of the factorised columns, and their covariance R^-1 R^-T. */
static void invert(const struct solver *solver, struct least_squares_fit *fit) {
    size_t order = solver->count + 1, p = fit->columns;
    for (size_t c = 0; c < solver->count; c++)
        for (size_t i = c + 1; i-- > 0;) {
            double sum = i == c;
            for (size_t j = i + 1; j <= c; j++)
                sum -= solver->triangle[i + j * order] * fit->inverse[solver->set[j] + solver->set[c] * p];
            fit->inverse[solver->set[i] + solver->set[c] * p] = sum / solver->triangle[i + i * order];
        }
    for (size_t a = 0; a < p; a++)
        for (size_t b = 0; b < p; b++)
            for (size_t c = 0; c < p; c++)
                fit->covariance[a + b * p] += fit->inverse[a + c * p] * fit->inverse[b + c * p];
}

/* Solves for the estimates (least-squares.h). -ERANGE: values beyond the range of a double; -EAGAIN;
 * -ENOMEM. */
int least_squares_solve(const struct least_squares *sums, const enum least_squares_role *roles,
                        struct least_squares_fit *ret) {
    size_t p = sums->columns;
    *ret = (struct least_squares_fit){.columns = p, .dependent = p};
    cleanup(solver_clear) struct solver solver = {0};
    ret->state = calloc(p + 1, sizeof *ret->state);
    ret->estimate = calloc(p + 1, sizeof *ret->estimate);
    ret->inverse = calloc(p * p + 1, sizeof *ret->inverse);
    ret->covariance = calloc(p * p + 1, sizeof *ret->covariance);
    if (!ret->state || !ret->estimate || !ret->inverse || !ret->covariance || solver_init(&solver, sums) < 0)
        return -ENOMEM;
    bool bounded = false;
    for (size_t j = 0; j < p; j++) {
        enum least_squares_role role = roles ? roles[j] : LEAST_SQUARES_FREE;
        ret->state[j] = role == LEAST_SQUARES_LEFT_OUT ? LEAST_SQUARES_LEFT_OUT : LEAST_SQUARES_FREE;
        bounded |= role == LEAST_SQUARES_NONNEGATIVE;
    }
    for (size_t i = 0; i < (p + 1) * (p + 1); i++)
        if (!isfinite(sums->triangle[i]))
            return -ERANGE;
    find_dependent(&solver, ret);
    int code = bounded ? solve_bounded(&solver, roles, ret) : 0;
    if (code < 0)
        return code;
    factorise(&solver, ret->state);
    substitute(&solver, p, ret->estimate);
    invert(&solver, ret);
    ret->rank = solver.count;
    ret->rss = pow(solver.triangle[(solver.count + 1) * (solver.count + 1) - 1], 2);
    for (size_t j = 0; j < p; j++)
        if (!isfinite(ret->estimate[j]) || !isfinite(ret->covariance[j + j * p]))
            return -ERANGE;
    return isfinite(ret->rss) ? 0 : -ERANGE;
}

void least_squares_fit_clear(struct least_squares_fit *fit) {
    free(fit->state);
    free(fit->estimate);
    free(fit->inverse);
    free(fit->covariance);
    *fit = (struct least_squares_fit){0};
}

void least_squares_residuals(const struct least_squares_fit *fit, size_t rows, const double *x, size_t stride,
                             const double *y, double *ret) {
    memcpy(ret, y, rows * sizeof *ret);
    for (size_t j = 0; j < fit->columns; j++)
        if (fit->state[j] == LEAST_SQUARES_FREE)
            for (size_t i = 0; i < rows; i++)
                ret[i] -= fit->estimate[j] * x[i + j * stride];
}

/* The leverage of each row: its weight times x' (X'WX)^-1 x. */
void least_squares_leverages(const struct least_squares_fit *fit, size_t rows, const double *x, size_t stride,
                             const double *weights, double *ret) {
    size_t p = fit->columns;
    for (size_t i = 0; i < rows; i++) {
        ret[i] = 0;
        for (size_t c = 0; c < p; c++) {
            double sum = 0;
            for (size_t j = 0; j <= c; j++)
                sum += fit->inverse[j + c * p] * x[i + j * stride];
            ret[i] += sum * sum;
        }
        ret[i] *= weights ? weights[i] : 1;
    }
}

/* The condition number of the scaled columns, by singular values. -ERANGE: not finite; -ENOMEM. */
int least_squares_condition(const struct least_squares *sums, const struct least_squares_fit *fit,
                            double *ret) {
    cleanup(solver_clear) struct solver solver = {0};
    if (solver_init(&solver, sums) < 0)
        return -ENOMEM;
    factorise(&solver, fit->state);
    size_t n = solver.count, order = n + 1;
    *ret = 1;
    if (n == 0)
        return 0;
    /* The scaled triangle and the right singular vectors, which are not of interest. */
    cleanup_free double *scratch = calloc(2 * n * n + n, sizeof *scratch);
    if (!scratch)
        return -ENOMEM;
    for (size_t j = 0; j < n; j++)
        for (size_t i = 0; i <= j; i++)
            scratch[i * n + j] = solver.triangle[i + j * order] / length(solver.triangle + j * order, j + 1);
    gsl_matrix_view scaled = gsl_matrix_view_array(scratch, n, n);
    gsl_matrix_view vectors = gsl_matrix_view_array(scratch + n * n, n, n);
    gsl_vector_view values = gsl_vector_view_array(scratch + 2 * n * n, n);
    if (gsl_linalg_SV_decomp_jacobi(&scaled.matrix, &vectors.matrix, &values.vector))
        return -ERANGE;
    *ret = gsl_vector_get(&values.vector, 0) / gsl_vector_get(&values.vector, n - 1);
    return isfinite(*ret) ? 0 : -ERANGE;
}
