#include "engine/numerics/mixture.h"

#include "engine/foundation/cleanup.h"
#include "engine/numerics/cholesky.h"
#include "engine/numerics/random.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    COARSE_POINTS = 1024,
    SHORT_STEPS = 60,
    LONG_STEPS = 20000,
    SWAPS_A_START = 20,
    CHAINS = 5,
    REPEATS_MAX = 16
};

/* Neighbours on each side of a value from which its rounding step is found. */
enum { STEP_NEIGHBOURS = 8, CLOSE_NEIGHBOURS = 4 };
/* A normal as wide as half a step has the sum 1 over the values it can take, times the step, within 1.4 %:
 * its density is a probability. One that is narrower has more, so that rounding alone makes it likely. */
static const double least_of_step = 0.5;
static const double log_root_2pi = 0.91893853320467274178;
/* A share of a point below which it adds nothing to a component. */
static const double rounding_of_value = 1e-12; /* relative to the greatest: the rounding of one value */
static const double negligible = 1e-12, log_negligible = -28;

/* Points of p scaled values, a row each. */
struct points {
    size_t count;
    double *at, *weight;
    double *spread; /* variance of the rows that a point stands for; p = 1 */
    double *step;   /* p = 1: difference of values here, where they are rounded; else next to nothing */
    double total;   /* of the weights */
};

struct search {
    const struct mixture_request *request;
    size_t p, k, size; /* size: doubles of a mixture's parameters */
    struct points all, coarse;
    struct random_stream random;
    double *least;   /* p > 1: factor of the least covariance of a component */
    double *sums;    /* of a step: like the parameters */
    double *scratch; /* p + k + 2 p p */
    size_t *nearest; /* by point: the component that it begins in */
};

/* Parameters of a mixture in the scaled space, in one piece of memory: k weights, k p means, k p p
 * covariances. */
struct state {
    double *weight, *mean, *covariance, *factor, *height;
    double log_likelihood;
};

static struct state state_at(const struct search *search, double *memory) {
    double *mean = memory + search->k, *covariance = mean + search->k * search->p;
    double *factor = covariance + search->k * search->p * search->p;
    return (struct state){.weight = memory,
                          .mean = mean,
                          .covariance = covariance,
                          .factor = factor,
                          .height = memory + search->size - search->k,
                          .log_likelihood = -INFINITY};
}

static int state_init(const struct search *search, struct state *ret) {
    double *memory = calloc(search->size, sizeof *memory);
    *ret = state_at(search, memory);
    return memory ? 0 : -ENOMEM;
}

static void state_copy(const struct search *search, const struct state *from, struct state *to) {
    memcpy(to->weight, from->weight, search->size * sizeof *from->weight);
    to->log_likelihood = from->log_likelihood;
}

static void state_clear(struct state *state) {
    free(state->weight);
}

/* Logarithm of weight times greatest density of a component. */
static double height_of(size_t p, double weight, const double *factor) {
    return log(weight) - cholesky_log_determinant(p, factor) / 2 - (double)p * log_root_2pi;
}

/* The log density at X, and the share of each component in it into RET (the E-step of EM). SCRATCH has p
 * numbers. */
static double component_shares(size_t k, size_t p, const double *height, const double *mean,
                               const double *factor, const double *x, double *scratch, double *ret) {
    double most = -INFINITY, sum = 0;
    for (size_t c = 0; c < k; c++) {
        const double *f = factor + c * p * p;
        double squares = 0;
        for (size_t i = 0; i < p; i++) {
            double away = x[i] - mean[c * p + i];
            for (size_t j = 0; j < i; j++)
                away -= f[i + j * p] * scratch[j];
            scratch[i] = away / f[i + i * p];
            squares += scratch[i] * scratch[i];
        }
        ret[c] = height[c] - squares / 2;
        most = fmax(most, ret[c]);
    }
    for (size_t c = 0; c < k; c++)
        sum += ret[c] = exp(ret[c] - most);
    for (size_t c = 0; c < k; c++)
        ret[c] /= sum;
    return most + log(sum);
}

/* ---- A step */

/* The least variance of a component at MEAN, by the floor and the rounding step there; p = 1. */
static double least_variance(const struct search *search, double mean) {
    const struct points *all = &search->all;
    size_t low = 0, high = all->count - 1;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (all->at[middle] < mean)
            low = middle + 1;
        else
            high = middle;
    }
    return pow(fmax(search->request->floor, least_of_step * all->step[low]), 2);
}

/* Eigenvalues, ascending, and eigenvectors of a covariance relative to the least covariance; p > 1. Values
 * are 1 or more where that is respected. */
static int relative_eigen(const struct search *search, const double *covariance, double *values,
                          double *vectors) {
    size_t p = search->p;
    double half[MIXTURE_DIMENSIONS_MAX * MIXTURE_DIMENSIONS_MAX],
        ratio[MIXTURE_DIMENSIONS_MAX * MIXTURE_DIMENSIONS_MAX];
    memcpy(half, covariance, p * p * sizeof *half);
    for (size_t j = 0; j < p; j++)
        cholesky_forward(p, search->least, half + j * p);
    for (size_t j = 0; j < p; j++) {
        for (size_t i = 0; i < p; i++)
            ratio[i + j * p] = half[j + i * p];
        cholesky_forward(p, search->least, ratio + j * p);
    }
    return cholesky_eigen(p, ratio, values, vectors);
}

/* Raises a covariance to the least covariance, and factorises it. false: it is not positive definite. */
static bool factorise(const struct search *search, double mean, double *covariance, double *factor) {
    size_t p = search->p;
    if (p == 1) {
        *covariance = fmax(*covariance, least_variance(search, mean));
        *factor = sqrt(*covariance);
        return isfinite(*factor);
    }
    double values[MIXTURE_DIMENSIONS_MAX], vectors[MIXTURE_DIMENSIONS_MAX * MIXTURE_DIMENSIONS_MAX];
    if (relative_eigen(search, covariance, values, vectors) < 0)
        return false;
    for (size_t e = 0; e < p && values[e] < 1; e++) {
        double way[MIXTURE_DIMENSIONS_MAX] = {0};
        for (size_t i = 0; i < p * p; i++)
            way[i % p] += search->least[i] * vectors[i / p + e * p];
        for (size_t i = 0; i < p * p; i++)
            covariance[i] += (1 - values[e]) * way[i % p] * way[i / p];
    }
    return cholesky_factor(p, covariance, factor) == 0;
}

/* Factorises all components. false: one has no weight or no valid covariance. */
static bool factorise_all(const struct search *search, struct state *state) {
    size_t square = search->p * search->p;
    for (size_t c = 0; c < search->k; c++) {
        double *factor = state->factor + c * square;
        if (!(state->weight[c] > 0) ||
            !factorise(search, state->mean[c * search->p], state->covariance + c * square, factor))
            return false;
        state->height[c] = height_of(search->p, state->weight[c], factor);
    }
    return true;
}

/* Adds weight W of the point at X to the sums of component C: weight, first and second powers about ORIGIN,
 * with the SPREAD of the point. */
static void add_to_sums(const struct search *search, const struct state *sums, size_t c, const double *x,
                        const double *origin, double w, double spread) {
    size_t p = search->p;
    sums->weight[c] += w;
    for (size_t i = 0; i < p; i++) {
        double away = x[i] - origin[i];
        sums->mean[c * p + i] += w * away;
        for (size_t j = 0; j <= i; j++)
            sums->covariance[(c * p + j) * p + i] += w * (away * (x[j] - origin[j]) + (i == j ? spread : 0));
    }
}

/* The M-step of EM: the most likely parameters for the sums, which are about the means of ORIGIN. false: a
 * component has too little weight or no valid covariance. */
static bool maximise(const struct search *search, const struct state *sums, const double *origin,
                     double total, struct state *ret) {
    size_t p = search->p, k = search->k;
    for (size_t c = 0; c < k; c++) {
        double weight = sums->weight[c];
        if (!(weight > 1e-9 * total))
            return false;
        ret->weight[c] = weight / total;
        for (size_t i = 0; i < p * p; i++) {
            size_t row = i % p > i / p ? i % p : i / p, column = i % p > i / p ? i / p : i % p;
            double shift = sums->mean[c * p + row] * sums->mean[c * p + column] / (weight * weight);
            ret->covariance[c * p * p + i] = sums->covariance[(c * p + column) * p + row] / weight - shift;
        }
        for (size_t i = 0; i < p; i++)
            ret->mean[c * p + i] = origin[c * p + i] + sums->mean[c * p + i] / weight;
    }
    for (size_t i = 0; search->request->shared && i < p * p; i++) {
        double pooled = 0;
        for (size_t c = 0; c < k; c++)
            pooled += ret->weight[c] * ret->covariance[c * p * p + i];
        for (size_t c = 0; c < k; c++)
            ret->covariance[c * p * p + i] = pooled;
    }
    return factorise_all(search, ret);
}

/* The E-step of EM: returns the log likelihood of POINTS, and adds the shares of all points to SUMS. */
static double sum_shares(const struct search *search, const struct points *points, const struct state *state,
                         const struct state *sums) {
    size_t p = search->p, k = search->k;
    double *shares = search->scratch + p, log_likelihood = 0;
    for (size_t i = 0; i < points->count; i++) {
        const double *x = points->at + i * p;
        log_likelihood += points->weight[i] * component_shares(k, p, state->height, state->mean,
                                                               state->factor, x, search->scratch, shares);
        for (size_t c = 0; c < k; c++)
            if (shares[c] > negligible)
                add_to_sums(search, sums, c, x, state->mean + c * p, points->weight[i] * shares[c],
                            points->spread ? points->spread[i] : 0);
    }
    return log_likelihood;
}

/* The E-step in one dimension, where a search spends most of its time: one loop, without exponentials that
 * are negligible. */
static double sum_shares_on_line(const struct search *search, const struct points *points,
                                 const struct state *state, const struct state *sums) {
    size_t k = search->k;
    double inverse[MIXTURE_COMPONENTS_MAX], shares[MIXTURE_COMPONENTS_MAX], log_likelihood = 0;
    double product = 1,
           of_product = 0; /* of totals, each 1 to k, of points of that weight: one logarithm for many */
    for (size_t c = 0; c < k; c++)
        inverse[c] = 1 / state->factor[c];
    for (size_t i = 0; i < points->count; i++) {
        double x = points->at[i], weight = points->weight[i], most = -INFINITY, total = 0;
        double spread = points->spread ? points->spread[i] : 0;
        for (size_t c = 0; c < k; c++) {
            double away = (x - state->mean[c]) * inverse[c];
            shares[c] = state->height[c] - away * away / 2;
            most = shares[c] > most ? shares[c] : most;
        }
        for (size_t c = 0; c < k; c++) {
            double below = shares[c] - most;
            shares[c] = below == 0 ? 1 : below > log_negligible ? exp(below) : 0;
            total += shares[c];
        }
        if (weight != of_product || product > 1e290) {
            log_likelihood += of_product * log(product);
            product = 1;
            of_product = weight;
        }
        product *= total;
        log_likelihood += weight * most;
        weight /= total;
        for (size_t c = 0; c < k; c++)
            if (shares[c] > 0) {
                double share = weight * shares[c], away = x - state->mean[c];
                sums->weight[c] += share;
                sums->mean[c] += share * away;
                sums->covariance[c] += share * (away * away + spread);
            }
    }
    return log_likelihood + of_product * log(product);
}

/* One step of expectation and maximisation, from STATE to RET; the log likelihood of STATE is set. */
static bool step(const struct search *search, const struct points *points, struct state *state,
                 struct state *ret) {
    struct state sums = state_at(search, search->sums);
    memset(search->sums, 0, search->size * sizeof *search->sums);
    state->log_likelihood = (search->p == 1 ? sum_shares_on_line : sum_shares)(search, points, state, &sums);
    return isfinite(state->log_likelihood) && maximise(search, &sums, state->mean, points->total, ret);
}

/* Runs EM from STATE, with steps lengthened while the likelihood grows, for at most STEPS steps; ends when
 * three in a row gain less than TOLERANCE, or when GOAL is out of reach. log_likelihood is -infinity if a
 * component has too little weight. -ENOMEM. */
static int climb(const struct search *search, const struct points *points, int steps, double tolerance,
                 double goal, struct state *state) {
    cleanup(state_clear) struct state plain = {0}, safe = {0};
    if (state_init(search, &plain) < 0 || state_init(search, &safe) < 0)
        return -ENOMEM;
    double reached = -INFINITY, length = 1;
    state_copy(search, state, &safe);
    for (int i = 0, idle = 0; i < steps && idle < 3; i++) {
        bool stepped = step(search, points, state, &plain);
        if (!stepped || state->log_likelihood < reached) {
            if (length == 1)
                break;
            state_copy(search, &safe, state);
            length = 1;
            continue;
        }
        double gain = state->log_likelihood - reached;
        idle = gain < tolerance ? idle + 1 : 0;
        reached = state->log_likelihood;
        if (reached + 2 * gain * (steps - i) < goal)
            break;
        state_copy(search, &plain, &safe);
        length *= 1.2;
        for (size_t j = 0; j < (size_t)(state->factor - state->weight); j++)
            state->weight[j] += length * (plain.weight[j] - state->weight[j]);
        if (!factorise_all(search, state)) {
            state_copy(search, &safe, state);
            length = 1;
        }
    }
    state_copy(search, &safe, state);
    state->log_likelihood = reached;
    for (size_t c = 0; c < search->k; c++)
        if (!(state->weight[c] * points->total >= search->request->least))
            state->log_likelihood = -INFINITY;
    return 0;
}

/* ---- Starts */

/* Makes parameters from the parts of the points in `nearest`. false: a part has no valid covariance. */
static bool from_parts(struct search *search, const struct points *points, struct state *ret) {
    struct state sums = state_at(search, search->sums);
    double *origin = calloc(search->k * search->p, sizeof *origin);
    memset(search->sums, 0, search->size * sizeof *search->sums);
    for (size_t i = 0; origin && i < points->count; i++)
        add_to_sums(search, &sums, search->nearest[i], points->at + i * search->p, origin, points->weight[i],
                    points->spread ? points->spread[i] : 0);
    bool made = origin && maximise(search, &sums, origin, points->total, ret);
    free(origin);
    return made;
}

/* A random point, with probability in proportion to its weight times FACTORS (NULL: 1). */
static size_t draw_point(struct search *search, const struct points *points, const double *factors) {
    double total = 0;
    for (size_t i = 0; i < points->count; i++)
        total += points->weight[i] * (factors ? factors[i] : 1);
    double at = total * random_stream_uniform(&search->random);
    for (size_t i = 0; i < points->count; i++)
        if ((at -= points->weight[i] * (factors ? factors[i] : 1)) <= 0)
            return i;
    return points->count - 1;
}

/* Divides the points into parts around centres drawn by k-means++ (D. Arthur, S. Vassilvitskii 2007); with
 * DISTANCES NULL, into parts of equal weight along the first dimension. */
static void make_parts(struct search *search, const struct points *points, double *distances) {
    double below = 0;
    for (size_t i = 0; i < points->count; i++) {
        search->nearest[i] = (size_t)fmin(below / points->total * (double)search->k, (double)search->k - 1);
        below += points->weight[i];
        if (distances)
            distances[i] = INFINITY;
    }
    for (size_t c = 0; distances && c < search->k; c++) {
        const double *centre = points->at + search->p * draw_point(search, points, c ? distances : NULL);
        for (size_t i = 0; i < points->count; i++) {
            double distance = 0;
            for (size_t d = 0; d < search->p; d++)
                distance += pow(points->at[i * search->p + d] - centre[d], 2);
            if (distance < distances[i]) {
                distances[i] = distance;
                search->nearest[i] = c;
            }
        }
    }
}

/* Moves a random component, narrow or wide, to a random point, to leave a local maximum. */
static void move_component(struct search *search, const struct points *points, struct state *state) {
    size_t p = search->p, c = (size_t)random_stream_below(&search->random, search->k);
    const double *x = points->at + p * draw_point(search, points, NULL);
    double deviation =
        pow(search->request->floor, fmin(1, 0.05 + 1.25 * random_stream_uniform(&search->random)));
    memcpy(state->mean + c * p, x, p * sizeof *x);
    for (size_t i = 0; !search->request->shared && i < p * p; i++)
        state->covariance[c * p * p + i] = i % p == i / p ? deviation * deviation : 0;
    factorise_all(search, state);
}

/* Tries STARTS random starts, then up to SWAPS moves of components from the best, until IDLE_MAX moves in a
 * row gained nothing. CURRENT is the best found; TRIED is scratch. -ENOMEM. */
static int search_chain(struct search *search, const struct points *points, size_t starts, size_t swaps,
                        size_t idle_max, double *distances, struct state *tried, struct state *current) {
    for (size_t i = 0, idle = 0; i < starts || (i < starts + swaps && idle < idle_max); i++) {
        if (i < starts) {
            make_parts(search, points, i ? distances : NULL);
            if (!from_parts(search, points, tried))
                continue;
        } else if (isfinite(current->log_likelihood)) {
            state_copy(search, current, tried);
            move_component(search, points, tried);
            if (random_stream_below(&search->random, 4) == 0) /* some maxima are two swaps away */
                move_component(search, points, tried);
        } else {
            return 0;
        }
        if (climb(search, points, SHORT_STEPS, 1e-3, current->log_likelihood, tried) < 0)
            return -ENOMEM;
        idle = i < starts || tried->log_likelihood > current->log_likelihood + 1e-2 ? 0 : idle + 1;
        if (tried->log_likelihood > current->log_likelihood)
            state_copy(search, tried, current);
    }
    return 0;
}

/* Finds the best maximum from several chains of random starts and moves, on coarse points, and finishes it on
 * all points. -EDOM: none has valid covariances; -ENOMEM. */
static int search_starts(struct search *search, struct state *best) {
    const struct points *points = search->coarse.count ? &search->coarse : &search->all;
    cleanup_free double *distances = malloc((points->count + 1) * sizeof *distances);
    cleanup(state_clear) struct state tried = {0}, current = {0};
    if (!distances || state_init(search, &tried) < 0 || state_init(search, &current) < 0)
        return -ENOMEM;
    size_t starts = search->k > 1 ? search->request->starts : 0;
    size_t repeats = COARSE_POINTS / points->count; /* few points are quick to try */
    size_t swaps = starts * SWAPS_A_START, idle_max = 2 * swaps;
    swaps *= (repeats < 1 ? 1 : repeats > REPEATS_MAX ? REPEATS_MAX : repeats);
    size_t chains =
        starts < 2 * CHAINS ? 1 : CHAINS; /* a chain of swaps may end in a maximum that none leads out of */
    for (size_t chain = 0; chain < chains; chain++) {
        current.log_likelihood = -INFINITY;
        if (search_chain(search, points, starts / chains + 1, swaps / chains / 2, idle_max / chains / 2,
                         distances, &tried, &current) < 0)
            return -ENOMEM;
        if (current.log_likelihood > best->log_likelihood)
            state_copy(search, &current, best);
    }
    /* The other half of the swaps begins at the best of them. */
    if (search_chain(search, points, 0, swaps / 2, idle_max / 2, distances, &tried, best) < 0)
        return -ENOMEM;
    if (!isfinite(best->log_likelihood))
        return -EDOM;
    if (points == &search->coarse && climb(search, points, LONG_STEPS, 1e-6, -INFINITY, best) < 0)
        return -ENOMEM;
    if (climb(search, &search->all, LONG_STEPS, 1e-7, -INFINITY, best) < 0)
        return -ENOMEM;
    return isfinite(best->log_likelihood) ? 0 : -EDOM;
}

/* ---- Scaling */

static int by_first(const void *a, const void *b) {
    const double left = **(double *const *)a, right = **(double *const *)b;
    return (left > right) - (left < right);
}

/* The least difference of COUNT ascending values that is not the rounding of one; 0: there is none. */
static double least_difference(const double *values, size_t count, double rounding) {
    double ret = INFINITY;
    for (size_t i = 1; i < count; i++)
        if (values[i] - values[i - 1] > rounding)
            ret = fmin(ret, values[i] - values[i - 1]);
    return isfinite(ret) ? ret : 0;
}

/* The distance of values I to I + 2, if it is the same and all are repeated, as rounded values are; else 0.
 */
static double common_step(const struct points *all, size_t i) {
    double step = all->at[i + 1] - all->at[i], next = all->at[i + 2] - all->at[i + 1];
    bool is_repeated = all->weight[i] >= 2 && all->weight[i + 1] >= 2 && all->weight[i + 2] >= 2;
    return is_repeated && fabs(next - step) <= 1e-6 * step ? step : 0;
}

/* In one dimension, finds the rounding step of each point: the least difference among its neighbours, or a
 * common step of close ones if that is more, since steps of significant digits change. ROUNDING is in the
 * scaled space. -ENOMEM. */
static int find_steps(struct points *all, double rounding) {
    all->step = malloc((all->count + 1) * sizeof *all->step);
    for (size_t i = 0; all->step && i < all->count; i++) {
        size_t from = i > STEP_NEIGHBOURS ? i - STEP_NEIGHBOURS : 0, to = i + STEP_NEIGHBOURS + 1;
        all->step[i] = least_difference(all->at + from, (to < all->count ? to : all->count) - from, rounding);
        for (size_t j = i > CLOSE_NEIGHBOURS ? i - CLOSE_NEIGHBOURS : 0;
             j + 2 <= i + CLOSE_NEIGHBOURS && j + 2 < all->count; j++)
            all->step[i] = fmax(all->step[i], common_step(all, j));
    }
    return all->step ? 0 : -ENOMEM;
}

static int by_value(const void *a, const void *b) {
    const double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* In several dimensions: makes search->least, the Cholesky factor of the least covariance that a component
 * may have: floor^2 plus the squared half rounding step of each column, in the coordinates in which the data
 * have covariance
 * 1. -ENOMEM; -EDOM: it is not positive definite. */
static int find_least(struct search *search, size_t rows, const double *x, size_t stride,
                      const double *factor) {
    size_t p = search->p;
    cleanup_free double *values = malloc((rows + 1) * sizeof *values);
    search->least = calloc(p * p, sizeof *search->least);
    if (!values || !search->least)
        return -ENOMEM;
    for (size_t j = 0; j < p; j++) {
        double way[MIXTURE_DIMENSIONS_MAX] = {0};
        memcpy(values, x + j * stride, rows * sizeof *values);
        qsort(values, rows, sizeof *values, by_value);
        way[j] =
            least_of_step *
            least_difference(values, rows, rounding_of_value * fmax(fabs(values[0]), fabs(values[rows - 1])));
        cholesky_forward(p, factor, way);
        search->least[j + j * p] += pow(search->request->floor, 2);
        for (size_t i = 0; i < p * p; i++)
            search->least[i] += way[i % p] * way[i / p];
    }
    return cholesky_factor(p, search->least, search->least);
}

/* Scales rows of weight above 0 to points of mean 0 and covariance 1, ordered by their first value; equal
 * rows become one point. MEAN and FACTOR are the transformation. -EINVAL: a value is not finite; -EDOM: no
 * variance. */
static int scale_rows(struct search *search, size_t rows, const double *x, size_t stride,
                      const double *weights, double *mean, double *factor) {
    size_t p = search->p, n = 0;
    struct points *all = &search->all;
    cleanup_free double *values =
        malloc((rows + 1) * (p + 1) * sizeof *values); /* a row: p values and the weight */
    cleanup_free double **order = malloc((rows + 1) * sizeof *order);
    cleanup_free double *covariance = calloc(p * p, sizeof *covariance);
    all->at = malloc((rows + 1) * p * sizeof *all->at);
    all->weight = malloc((rows + 1) * sizeof *all->weight);
    search->nearest = malloc((rows + 1) * sizeof *search->nearest);
    if (!values || !order || !covariance || !all->at || !all->weight || !search->nearest)
        return -ENOMEM;
    for (size_t i = 0; i < rows; i++) {
        double w = weights ? weights[i] : 1;
        if (!(w >= 0 && isfinite(w)))
            return -EINVAL;
        if (w == 0)
            continue;
        order[n] = values + n * (p + 1);
        order[n][p] = w;
        all->total += w;
        for (size_t d = 0; d < p; d++) {
            if (!isfinite(order[n][d] = x[i + d * stride]))
                return -EINVAL;
            mean[d] += (order[n][d] - mean[d]) * (w / all->total);
        }
        n++;
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < p * p; j++)
            covariance[j] +=
                order[i][p] * (order[i][j % p] - mean[j % p]) * (order[i][j / p] - mean[j / p]) / all->total;
    if (cholesky_factor(p, covariance, factor) < 0)
        return -EDOM;
    qsort(order, n, sizeof *order, by_first);
    for (size_t i = 0; i < n; i++) {
        double *to = all->at + all->count * p;
        for (size_t d = 0; d < p; d++)
            to[d] = order[i][d] - mean[d];
        cholesky_forward(p, factor, to);
        if (all->count > 0 && memcmp(to, to - p, p * sizeof *to) == 0)
            all->weight[all->count - 1] += order[i][p]; /* equal values are one point */
        else
            all->weight[all->count++] = order[i][p];
    }
    double largest = fmax(fabs(order[0][0]), fabs(order[n - 1][0]));
    return p > 1 ? find_least(search, rows, x, stride, factor)
                 : find_steps(all, rounding_of_value * largest / factor[0]);
}

/* In one dimension, joins neighbours to COARSE_POINTS points of about equal weight; few points are left as
 * they are. -ENOMEM. */
static int make_coarse(struct search *search) {
    const struct points *all = &search->all;
    struct points *coarse = &search->coarse;
    if (search->p > 1 || all->count <= COARSE_POINTS)
        return 0;
    coarse->at = calloc(3 * (COARSE_POINTS + 1), sizeof *coarse->at);
    if (!coarse->at)
        return -ENOMEM;
    coarse->weight = coarse->at + COARSE_POINTS + 1;
    coarse->spread = coarse->weight + COARSE_POINTS + 1;
    coarse->total = all->total;
    double below = 0;
    for (size_t i = 0; i < all->count; i++) {
        size_t at = (size_t)(below / all->total * COARSE_POINTS);
        if (coarse->count == 0 || at > (size_t)((below - all->weight[i - 1]) / all->total * COARSE_POINTS))
            coarse->count += coarse->count < COARSE_POINTS;
        double *mean = &coarse->at[coarse->count - 1], *weight = &coarse->weight[coarse->count - 1];
        double away = all->at[i] - *mean;
        *weight += all->weight[i];
        *mean += away * all->weight[i] / *weight;
        coarse->spread[coarse->count - 1] += all->weight[i] * away * (all->at[i] - *mean);
        below += all->weight[i];
    }
    for (size_t i = 0; i < coarse->count; i++)
        coarse->spread[i] /= coarse->weight[i];
    return 0;
}

static void search_clear(struct search *search) {
    free(search->all.at);
    free(search->all.weight);
    free(search->all.step);
    free(search->least);
    free(search->coarse.at);
    free(search->nearest);
    free(search->sums);
    free(search->scratch);
}

/* ---- Results */

/* Transforms the parameters back, x = mean + F z, into RET, components by ascending mean. */
static int unscale(const struct search *search, const struct state *state, const double *mean,
                   const double *factor, struct mixture *ret) {
    size_t p = search->p, k = search->k, order[MIXTURE_COMPONENTS_MAX];
    double z[MIXTURE_DIMENSIONS_MAX * MIXTURE_DIMENSIONS_MAX];
    for (size_t c = 0; c < k; c++) {
        size_t at = c;
        for (; at > 0 && state->mean[order[at - 1] * p] > state->mean[c * p]; at--)
            order[at] = order[at - 1];
        order[at] = c;
    }
    for (size_t o = 0; o < k; o++) {
        size_t c = order[o];
        double *to = ret->factor + o * p * p, values[MIXTURE_DIMENSIONS_MAX];
        ret->weight[o] = state->weight[c];
        memset(z, 0, sizeof z);
        for (size_t i = 0; i < p; i++) {
            ret->mean[o * p + i] = mean[i];
            for (size_t j = 0; j <= i; j++) {
                ret->mean[o * p + i] += factor[i + j * p] * state->mean[c * p + j];
                for (size_t l = 0; l <= j; l++)
                    z[i + l * p] += factor[i + j * p] * state->factor[(c * p + l) * p + j];
            }
        }
        memcpy(to, z, p * p * sizeof *to);
        for (size_t i = 0; i < p * p; i++)
            for (size_t j = 0; j < p; j++)
                ret->covariance[o * p * p + i] += to[i % p + j * p] * to[i / p + j * p];
        if (p == 1)
            values[0] = state->covariance[c] / least_variance(search, state->mean[c]);
        int code = p > 1 ? relative_eigen(search, state->covariance + c * p * p, values, NULL) : 0;
        if (code < 0)
            return code;
        ret->floored += values[0] <= 1 + 1e-9;
    }
    ret->log_likelihood = state->log_likelihood - search->all.total * cholesky_log_determinant(p, factor) / 2;
    return 0;
}

/* Fits a mixture of normals by EM with random starts (mixture.h). -EINVAL: not a valid request or data;
 * -EDOM: no mixture found; -ENOMEM. */
int mixture_fit(size_t rows, size_t dimensions, const double *x, size_t stride, const double *weights,
                const struct mixture_request *request, struct mixture *ret) {
    size_t p = dimensions, k = request->components;
    *ret = (struct mixture){.components = k, .dimensions = p};
    if (p == 0 || p > MIXTURE_DIMENSIONS_MAX || k == 0 || k > MIXTURE_COMPONENTS_MAX || !(request->floor > 0))
        return -EINVAL;
    cleanup(search_clear) struct search search = {
        .request = request, .p = p, .k = k, .size = k * (2 + p + 2 * p * p)};
    cleanup(state_clear) struct state best = {0};
    double mean[MIXTURE_DIMENSIONS_MAX] = {0}, factor[MIXTURE_DIMENSIONS_MAX * MIXTURE_DIMENSIONS_MAX];
    search.sums = malloc(search.size * sizeof *search.sums);
    search.scratch = malloc((p + k) * sizeof *search.scratch);
    ret->weight = calloc(search.size, sizeof *ret->weight);
    if (!search.sums || !search.scratch || !ret->weight || state_init(&search, &best) < 0)
        return -ENOMEM;
    ret->mean = ret->weight + k;
    ret->covariance = ret->mean + k * p;
    ret->factor = ret->covariance + k * p * p;
    random_stream_init(&search.random, request->seed, "mixture", k);
    int code = scale_rows(&search, rows, x, stride, weights, mean, factor);
    if (code == 0)
        code = make_coarse(&search);
    if (code == 0)
        code = search_starts(&search, &best);
    return code < 0 ? code : unscale(&search, &best, mean, factor, ret);
}

void mixture_clear(struct mixture *mixture) {
    free(mixture->weight);
    *mixture = (struct mixture){0};
}

double mixture_log_density(const struct mixture *mixture, const double *x, double *posterior) {
    double scratch[MIXTURE_DIMENSIONS_MAX], heights[MIXTURE_COMPONENTS_MAX], shares[MIXTURE_COMPONENTS_MAX];
    size_t k = mixture->components, p = mixture->dimensions;
    for (size_t c = 0; c < k; c++)
        heights[c] = height_of(p, mixture->weight[c], mixture->factor + c * p * p);
    return component_shares(k, p, heights, mixture->mean, mixture->factor, x, scratch,
                            posterior ? posterior : shares);
}
