#include "plugins/fit-linear/reweighting.h"

#include "plugins/numerics/lanes.h"

#include <errno.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Vectors are passed to functions that are inlined only: there is no ABI to break. */
#pragma GCC diagnostic ignored "-Wpsabi"

static const double huber = 1.345, bisquare = 4.685;
/* Residuals that change by less of their own length stay. */
static const double converged = 1e-12;
/* Steps are accelerated where residuals change by less of their scale. Before, there may be several fits to
 * which they lead, and the one to which plain steps go is meant. */
static const double near = 0.01;

enum {
    ALIGNMENT = 64,
    TILE = 256, /* rows: a column of them and its weighted copy stay in the first cache */
};

/* ---- Weights */

double robust_weight(enum robust robust, double u) {
    if (robust == ROBUST_HUBER)
        return fabs(u) <= huber ? 1 : huber / fabs(u);
    double share = fmin(1, fabs(u) / bisquare);
    return (1 - share * share) * (1 - share * share);
}

double robust_slope(enum robust robust, double u) {
    if (robust == ROBUST_HUBER)
        return fabs(u) <= huber;
    double square = u / bisquare * (u / bisquare);
    return square < 1 ? (1 - square) * (1 - 5 * square) : 0;
}

LANES_INLINE lanes load(const double *at) {
    return *(const lanes *)(const void *)at;
}

LANES_INLINE void store(double *at, lanes value) {
    *(lanes *)(void *)at = value;
}

LANES_INLINE lanes magnitude(lanes value) {
    return lanes_maximum(value, -value);
}

LANES_INLINE lanes weigh(enum robust robust, lanes u) {
    if (robust == ROBUST_HUBER)
        return lanes_choose(u <= huber, lanes_of(1), huber / u);
    lanes share = u / bisquare, rest = 1 - share * share;
    rest = lanes_maximum(rest, lanes_of(0));
    return rest * rest;
}

/* ---- Sums, a tile at a time */

/* The residuals at POINT; returns their sum of squares. */
LANES_INLINE double find_residuals(struct reweighting *work, const double *point) {
    lanes squares = lanes_of(0);
    for (size_t first = 0; first < work->padded; first += TILE) {
        size_t end = work->padded - first < TILE ? work->padded : first + TILE;
        memcpy(work->residuals + first, work->start + first, (end - first) * sizeof(double));
        for (size_t k = 0; k < work->width; k++) {
            const double *column = work->columns + k * work->padded;
            for (size_t i = first; i < end; i += LANES)
                store(work->residuals + i, load(work->residuals + i) - point[k] * load(column + i));
        }
        for (size_t i = first; i < end; i += LANES)
            squares += load(work->residuals + i) * load(work->residuals + i);
    }
    return lanes_sum(squares);
}

LANES_INLINE double dot(const double *a, const double *b, size_t count) {
    lanes even = lanes_of(0), odd = lanes_of(0);
    size_t i = 0;
    for (; i + 2 * LANES <= count; i += 2 * LANES) {
        even += load(a + i) * load(b + i);
        odd += load(a + i + LANES) * load(b + i + LANES);
    }
    for (; i < count; i += LANES)
        even += load(a + i) * load(b + i);
    return lanes_sum(even + odd);
}

/* Factors, and with them the normal equations of the residuals: the lower half of the gram. */
LANES_INLINE void add_up(struct reweighting *work, enum robust robust, double scale, double *gradient) {
    _Alignas(ALIGNMENT) double weighted[TILE];
    size_t width = work->width;
    memset(work->gram, 0, width * width * sizeof *work->gram);
    memset(gradient, 0, width * sizeof *gradient);
    for (size_t first = 0; first < work->padded; first += TILE) {
        size_t count = work->padded - first < TILE ? work->padded - first : TILE;
        double *factors = work->factors + first;
        const double *residuals = work->residuals + first;
        for (size_t i = 0; i < count; i += LANES)
            store(factors + i, weigh(robust, magnitude(load(residuals + i)) / scale));
        for (size_t a = 0; a < width; a++) {
            const double *column = work->columns + a * work->padded + first;
            for (size_t i = 0; i < count; i += LANES)
                store(weighted + i, load(factors + i) * load(column + i));
            gradient[a] += dot(weighted, residuals, count);
            for (size_t b = 0; b <= a; b++)
                work->gram[a * width + b] += dot(weighted, work->columns + b * work->padded + first, count);
        }
    }
}

static double find_residuals_portable(struct reweighting *work, const double *point) {
    return find_residuals(work, point);
}

static void add_up_portable(struct reweighting *work, enum robust robust, double scale, double *gradient) {
    if (robust == ROBUST_HUBER)
        add_up(work, ROBUST_HUBER, scale, gradient);
    else
        add_up(work, ROBUST_BISQUARE, scale, gradient);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static double find_residuals_avx2(struct reweighting *work,
                                                                  const double *point) {
    return find_residuals(work, point);
}

__attribute__((target("avx2"))) static void add_up_avx2(struct reweighting *work, enum robust robust,
                                                        double scale, double *gradient) {
    if (robust == ROBUST_HUBER)
        add_up(work, ROBUST_HUBER, scale, gradient);
    else
        add_up(work, ROBUST_BISQUARE, scale, gradient);
}
#endif

static double residuals_at(struct reweighting *work, const double *point) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        return find_residuals_avx2(work, point);
#endif
    return find_residuals_portable(work, point);
}

static void form_equations(struct reweighting *work, enum robust robust, double scale, double *gradient) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_up_avx2(work, robust, scale, gradient);
        return;
    }
#endif
    add_up_portable(work, robust, scale, gradient);
}

/* The gram's Cholesky factor, in its place, and the step by it. False where there is none. */
static bool solve(struct reweighting *work, double *step) {
    size_t width = work->width;
    double *lower = work->gram;
    for (size_t i = 0; i < width; i++)
        for (size_t j = 0; j <= i; j++) {
            double own = lower[i * width + j], sum = own;
            for (size_t k = 0; k < j; k++)
                sum -= lower[i * width + k] * lower[j * width + k];
            if (i == j && !(sum > 1e-10 * own))
                return false;
            lower[i * width + j] = i == j ? sqrt(sum) : sum / lower[j * width + j];
        }
    for (size_t i = 0; i < width; i++) {
        for (size_t k = 0; k < i; k++)
            step[i] -= lower[i * width + k] * step[k];
        step[i] /= lower[i * width + i];
    }
    for (size_t i = width; i-- > 0;) {
        for (size_t k = i + 1; k < width; k++)
            step[i] -= lower[k * width + i] * step[k];
        step[i] /= lower[i * width + i];
    }
    return true;
}

/* ---- Scale */

/* Half of the rows have residuals below it. It changes little from one iteration to the next, so that few
 * magnitudes have to be looked at: those near LAST, where the median is among them. */
static double find_scale(struct reweighting *work, double last) {
    double low = 0.9 * last * 0.6745, high = 1.1 * last * 0.6745;
    size_t below = 0, count = 0, first = (work->rows - 1) / 2, second = work->rows / 2;
    double *found = work->magnitudes;
    for (size_t i = 0; i < work->rows; i++) {
        double value = fabs(work->residuals[i]);
        below += value < low;
        found[count] = value;
        count += value >= low && value < high;
    }
    if (first < below || second >= below + count) {
        for (count = 0; count < work->rows; count++)
            found[count] = fabs(work->residuals[count]);
        below = 0;
    }
    double median = gsl_stats_select(found, 1, count, first - below);
    if (second > first)
        median = 0.5 * (median + gsl_stats_select(found, 1, count, second - below));
    return median / 0.6745;
}

/* ---- Steps */

/* The last steps: how far each went, and where it led, as differences to the one after it, newest first. */
struct memory {
    size_t count;
    double step[REWEIGHTING_COLUMNS_MAX], point[REWEIGHTING_COLUMNS_MAX]; /* the last one, as it was */
    double steps[REWEIGHTING_MEMORY][REWEIGHTING_COLUMNS_MAX];
    double points[REWEIGHTING_MEMORY][REWEIGHTING_COLUMNS_MAX];
};

static double length_of(const double *vector, size_t width) {
    double squares = 0;
    for (size_t k = 0; k < width; k++)
        squares += vector[k] * vector[k];
    return sqrt(squares);
}

static double product_of(const double *a, const double *b, size_t width) {
    double sum = 0;
    for (size_t k = 0; k < width; k++)
        sum += a[k] * b[k];
    return sum;
}

/* STEP led to POINT. */
static void remember(struct memory *memory, size_t width, size_t most, const double *step,
                     const double *point, bool first) {
    if (!first) {
        size_t kept = memory->count < most ? memory->count : most - 1;
        memmove(memory->steps + 1, memory->steps, kept * sizeof *memory->steps);
        memmove(memory->points + 1, memory->points, kept * sizeof *memory->points);
        for (size_t k = 0; k < width; k++) {
            memory->steps[0][k] = step[k] - memory->step[k];
            memory->points[0][k] = point[k] - memory->point[k];
        }
        memory->count = kept + 1;
    }
    memcpy(memory->step, step, width * sizeof *step);
    memcpy(memory->point, point, width * sizeof *point);
}

/* Takes from POINT the mixture of the remembered differences that would make the step as short as it can be,
 * were the map linear. */
static void extrapolate(const struct memory *memory, size_t width, double *point) {
    double basis[REWEIGHTING_MEMORY][REWEIGHTING_COLUMNS_MAX],
        to[REWEIGHTING_MEMORY][REWEIGHTING_COLUMNS_MAX];
    double rest[REWEIGHTING_COLUMNS_MAX], better[REWEIGHTING_COLUMNS_MAX];
    size_t used = 0;
    memcpy(rest, memory->step, width * sizeof *rest);
    memcpy(better, point, width * sizeof *better);
    for (size_t m = 0; m < memory->count; m++) {
        double *direction = basis[used], *image = to[used], own = length_of(memory->steps[m], width);
        memcpy(direction, memory->steps[m], width * sizeof *direction);
        memcpy(image, memory->points[m], width * sizeof *image);
        for (size_t j = 0; j < used; j++) {
            double share = product_of(basis[j], direction, width);
            for (size_t k = 0; k < width; k++) {
                direction[k] -= share * basis[j][k];
                image[k] -= share * to[j][k];
            }
        }
        double length = length_of(direction, width);
        if (!(length > 1e-6 * own))
            continue;
        for (size_t k = 0; k < width; k++) {
            direction[k] /= length;
            image[k] /= length;
        }
        double share = product_of(direction, rest, width);
        for (size_t k = 0; k < width; k++) {
            rest[k] -= share * direction[k];
            better[k] -= share * image[k];
        }
        used++;
    }
    /* Far away it is no more than a guess. */
    for (size_t k = 0; k < width; k++)
        rest[k] = better[k] - point[k];
    if (length_of(rest, width) < 20 * length_of(memory->step, width))
        memcpy(point, better, width * sizeof *point);
}

struct reweighting_outcome reweighting_run(struct reweighting *work, enum robust robust, double floor) {
    struct reweighting_outcome outcome = {0};
    struct memory memory = {0};
    size_t width = work->width, most = width < REWEIGHTING_MEMORY ? width : REWEIGHTING_MEMORY;
    double point[REWEIGHTING_COLUMNS_MAX] = {0}, step[REWEIGHTING_COLUMNS_MAX], last = INFINITY;
    while (outcome.iterations < REWEIGHTING_ITERATIONS_MAX && !outcome.settled) {
        double length = sqrt(residuals_at(work, point));
        outcome.scale = find_scale(work, outcome.scale);
        outcome.settled = outcome.scale == 0; /* more than half are fitted exactly: that is the fit */
        if (outcome.settled)
            break;
        form_equations(work, robust, outcome.scale, step);
        if (!solve(work, step))
            break;
        outcome.iterations++;
        double moved = length_of(step, width);
        outcome.settled = moved <= converged * length + floor;
        for (size_t k = 0; k < width; k++)
            point[k] += step[k];
        bool is_near = moved < near * outcome.scale * sqrt((double)work->rows);
        if (!is_near || moved > 2 * last)
            memory.count = 0;
        remember(&memory, width, most, step, point, outcome.iterations == 1);
        if (is_near)
            extrapolate(&memory, width, point);
        last = moved;
    }
    return outcome;
}

/* ---- Life */

int reweighting_begin(struct reweighting *work, size_t rows, size_t width) {
    size_t padded = (rows + LANES - 1) / LANES * LANES, doubles = (width + 4) * (padded + LANES);
    if (doubles > work->capacity) {
        free(work->memory);
        work->capacity = 0;
        work->memory =
            aligned_alloc(ALIGNMENT, (doubles * sizeof(double) + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
        if (!work->memory)
            return -ENOMEM;
        work->capacity = doubles;
    }
    if (!work->gram)
        work->gram = calloc((size_t)REWEIGHTING_COLUMNS_MAX * REWEIGHTING_COLUMNS_MAX, sizeof(double));
    if (!work->gram)
        return -ENOMEM;
    work->rows = rows;
    work->padded = padded;
    work->width = width;
    work->columns = work->memory;
    work->start = work->columns + width * padded;
    work->residuals = work->start + padded;
    work->factors = work->residuals + padded;
    work->magnitudes = work->factors + padded; /* one more than rows */
    memset(work->memory, 0, (width + 1) * padded * sizeof(double));
    return 0;
}

void reweighting_clear(struct reweighting *work) {
    free(work->memory);
    free(work->gram);
    *work = (struct reweighting){0};
}

void reweighting_set_row(struct reweighting *work, size_t i, const double *coordinates, double residual,
                         double root) {
    for (size_t k = 0; k < work->width; k++)
        work->columns[k * work->padded + i] = root * coordinates[k];
    work->start[i] = root * residual;
}
