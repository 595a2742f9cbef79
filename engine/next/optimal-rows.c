#include "engine/next/optimal-rows.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/portable-math.h"
#include "engine/numerics/cholesky.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SWEEPS_MAX = 100, /* of exchanges; each looks at every row */
    ROUNDS_MAX = 20,  /* of exchanging and filling what became free */
};

/* An exchange must gain by so much: else rounding could go on for ever. */
static const double least_improvement = 1e-9;

/* The search works on scaled terms z: times powers of two, so that the largest value of each is about one,
 * and times the root of the weight. Covariances are in units of sigma^2. A unit then adds z z' to the
 * information matrix, whatever the units of measurement. */
struct search {
    const struct optimal_problem *problem;
    size_t terms, square; /* TERMS x TERMS */
    double *memory;       /* owned: all arrays of doubles */
    double *scales;       /* by term: what it was multiplied by */
    double *z;            /* by candidate */
    double *priors;       /* by group */
    double *covariances;  /* by group: the prior and the rows that were chosen */
    double *moments;      /* by group: the average of z z' over its candidates; of I */
    double *work;         /* two squares */
    double *factors;      /* by group: its share in the gain */
    uint32_t *chosen;     /* owned; by candidate: how often */
    bool *barred;         /* owned; by candidate: it may not be chosen */
    double budget;        /* that rows may cost so far */
    size_t rows_most;
    double repeats_share; /* of the problem; 0 where no row is within it */
    bool *is_lack;        /* owned; by candidate: it is chosen for lack of fit */
    size_t count;
    double cost, gain; /* of what was chosen */
    bool per_cost;
};

static void search_clear(struct search *search) {
    free(search->memory);
    free(search->chosen);
    free(search->barred);
    free(search->is_lack);
}

/* Whether a candidate is measured in group G. */
static bool is_measured(const struct optimal_problem *problem, size_t candidate, size_t g) {
    return problem->groups[g].kind == (problem->kinds ? problem->kinds[candidate] : 0);
}

static double cost_of(const struct optimal_problem *problem, size_t candidate) {
    return problem->costs ? problem->costs[candidate] : 1;
}

/* The rows that are for lack of fit, at most. */
static size_t lack_rows(const struct optimal_problem *problem) {
    return (size_t)(problem->lack_share * (double)problem->rows_most);
}

/* ---- Small symmetric matrices, row by row */

/* M v into RET. Returns v' M v, at least 0 despite rounding. */
static double multiply(const double *matrix, const double *vector, size_t n, double *ret) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        ret[i] = 0;
        for (size_t j = 0; j < n; j++)
            ret[i] += matrix[i * n + j] * vector[j];
        sum += vector[i] * ret[i];
    }
    return sum > 0 ? sum : 0;
}

void optimal_rows_add(double *covariance, const double *z, size_t n, double *work) {
    double factor = 1 / (1 + multiply(covariance, z, n, work));
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            covariance[i * n + j] -= factor * work[i] * work[j];
}

/* ---- Choosing rows */

/* The gain of one more unit of a candidate: log(1 + z'C z) for criterion D; z'C W C z / (1 + z'C z), with the
 * moments W, for criterion I (V. Fedorov 1972). */
static double gain_of(const struct search *search, size_t candidate) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    double *along = search->work, gain = 0;
    for (size_t g = 0; g < problem->group_count; g++) {
        if (!is_measured(problem, candidate, g))
            continue;
        double known =
            multiply(search->covariances + g * search->square, search->z + candidate * n, n, along);
        gain += search->factors[g] *
                (problem->criterion == OPTIMAL_D
                     ? portable_log(1 + known)
                     : multiply(search->moments + g * search->square, along, n, along + n) / (1 + known));
    }
    return gain;
}

static void add_unit(struct search *search, size_t candidate) {
    search->count++;
    search->cost += cost_of(search->problem, candidate);
    search->gain += gain_of(search, candidate);
    for (size_t g = 0; g < search->problem->group_count; g++)
        if (is_measured(search->problem, candidate, g))
            optimal_rows_add(search->covariances + g * search->square, search->z + candidate * search->terms,
                             search->terms, search->work);
}

static void choose(struct search *search, size_t candidate) {
    search->chosen[candidate]++;
    add_unit(search, candidate);
}

/* Computes the covariances of the chosen rows from the beginning, without accumulated rounding. */
static void recompute(struct search *search) {
    const struct optimal_problem *problem = search->problem;
    memcpy(search->covariances, search->priors,
           problem->group_count * search->square * sizeof *search->covariances);
    search->count = 0;
    search->cost = search->gain = 0;
    for (size_t i = 0; i < problem->candidate_count; i++)
        for (uint32_t k = 0; k < search->chosen[i]; k++)
            add_unit(search, i);
}

/* Whether a candidate may be chosen TIMES times. */
static bool may_repeat(const struct search *search, size_t candidate, uint32_t times) {
    const struct optimal_problem *problem = search->problem;
    double share = search->repeats_share;
    return (problem->repeats_most == 0 || times <= problem->repeats_most) &&
           (share == 0 || (times * cost_of(problem, candidate) <= share * problem->budget &&
                           times <= share * (double)problem->rows_most));
}

static bool fits(const struct search *search, size_t candidate) {
    const struct optimal_problem *problem = search->problem;
    return search->count < search->rows_most && !search->barred[candidate] &&
           search->cost + cost_of(problem, candidate) <= search->budget * (1 + 1e-12) &&
           may_repeat(search, candidate, search->chosen[candidate] + 1);
}

/* The candidate that gains most (per cost, if PER_COST) among those within the limits, the first of equal
 * ones; SIZE_MAX: there is none. */
static size_t find_best(const struct search *search, bool per_cost, double *ret_gain) {
    size_t best = SIZE_MAX;
    double best_score = 0;
    for (size_t i = 0; i < search->problem->candidate_count; i++) {
        if (!fits(search, i))
            continue;
        double gain = gain_of(search, i), score = per_cost ? gain / cost_of(search->problem, i) : gain;
        if (!(score > best_score))
            continue;
        best = i;
        best_score = score;
        *ret_gain = gain;
    }
    return best;
}

static bool fill(struct search *search) {
    bool filled = false;
    double gain;
    for (size_t i; (i = find_best(search, search->per_cost, &gain)) != SIZE_MAX; filled = true)
        choose(search, i);
    return filled;
}

/* Replaces each chosen row by the candidate that gains most in its place (Fedorov's exchange). Returns
 * whether any was replaced. */
static bool exchange_each(struct search *search) {
    bool improved = false;
    for (size_t i = 0; i < search->problem->candidate_count; i++) {
        if (search->chosen[i] == 0)
            continue;
        search->chosen[i]--;
        recompute(search);
        double own = gain_of(search, i), gain = 0;
        size_t best = find_best(search, false, &gain);
        bool better = best != SIZE_MAX && best != i && gain > own * (1 + least_improvement);
        choose(search, better ? best : i);
        improved = improved || better;
    }
    return improved;
}

static void exchange(struct search *search) {
    recompute(search);
    for (size_t round = 0; round < ROUNDS_MAX && fill(search); round++)
        for (size_t sweep = 0; sweep < SWEEPS_MAX && exchange_each(search); sweep++)
            ;
    recompute(search);
}

/* The loss without one unit of each chosen candidate, into RET by candidate. */
static void measure_gains(struct search *search, double *ret) {
    for (size_t i = 0; i < search->problem->candidate_count; i++) {
        if (search->chosen[i] == 0)
            continue;
        search->chosen[i]--;
        recompute(search);
        ret[i] = gain_of(search, i);
        search->chosen[i]++;
    }
    recompute(search);
}

/* Removes and bars candidates whose units together gain less than least_gain of the best. Returns whether
 * there were any. */
static bool drop_little_gains(struct search *search) {
    cleanup_free double *gains = xcalloc(search->problem->candidate_count + 1, sizeof *gains);
    double most = 0;
    bool any = false;
    measure_gains(search, gains);
    for (size_t i = 0; i < search->problem->candidate_count; i++)
        most = fmax(most, gains[i] * search->chosen[i]);
    for (size_t i = 0; i < search->problem->candidate_count; i++) {
        if (search->chosen[i] == 0 || !(gains[i] * search->chosen[i] < search->problem->least_gain * most) ||
            search->is_lack[i])
            continue;
        search->chosen[i] = 0;
        search->barred[i] = any = true;
    }
    recompute(search);
    return any;
}

/* Bars the candidates that the problem bars, and no others. */
static void reset_barred(struct search *search) {
    for (size_t i = 0; i < search->problem->candidate_count; i++)
        search->barred[i] = search->problem->barred && search->problem->barred[i];
}

static void improve(struct search *search) {
    reset_barred(search);
    do
        exchange(search);
    while (drop_little_gains(search));
}

/* ---- Lack of fit */

/* Updates the squared distance of each candidate to the nearest chosen row, now that TO is chosen. */
static void update_distances(const struct optimal_problem *problem, size_t to, double *distances) {
    size_t count = problem->place_count;
    for (size_t i = 0; i < problem->candidate_count; i++) {
        double square = 0;
        for (size_t j = 0; j < count; j++) {
            double off = problem->places[i * count + j] - problem->places[to * count + j];
            square += off * off;
        }
        if (!problem->kinds || problem->kinds[i] == problem->kinds[to])
            distances[i] = fmin(distances[i], square);
    }
}

/* Chooses rows for the test of lack of fit: the farthest candidates (R. Kennard, L. Stone 1969) while their
 * share of the budget lasts; twice each while the design has fewer repetitions. */
static void choose_farthest(struct search *search) {
    const struct optimal_problem *problem = search->problem;
    cleanup_free double *distances = xcalloc(problem->candidate_count + 1, sizeof *distances);
    size_t repeats = search->count, settings = 0;
    search->budget = fmin(problem->budget, search->cost + problem->lack_share * problem->budget);
    search->rows_most = search->count + lack_rows(problem);
    reset_barred(search);
    for (size_t i = 0; i < problem->candidate_count; i++)
        distances[i] = INFINITY;
    for (size_t i = 0; i < problem->candidate_count; i++)
        if (search->chosen[i] > 0) {
            repeats--;
            update_distances(problem, i, distances);
        }
    while (search->count < search->rows_most) {
        size_t best = SIZE_MAX;
        for (size_t i = 0; i < problem->candidate_count; i++)
            if (distances[i] > 0 && fits(search, i) && (best == SIZE_MAX || distances[i] > distances[best]))
                best = i;
        if (best == SIZE_MAX)
            return;
        choose(search, best);
        search->is_lack[best] = true;
        update_distances(problem, best, distances);
        settings++;
        if (repeats < settings && fits(search, best)) {
            choose(search, best);
            repeats++;
        }
    }
}

/* ---- Scaling */

/* Scales the terms of all candidates. */
static void scale_terms(struct search *search) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    for (size_t t = 0; t < n; t++) {
        double largest = 0;
        int exponent = 0;
        for (size_t i = 0; i < problem->candidate_count; i++) {
            double *z = &search->z[i * n + t];
            *z = problem->terms[i * n + t] * (problem->weights ? sqrt(problem->weights[i]) : 1);
            largest = fmax(largest, fabs(*z));
        }
        frexp(largest, &exponent);
        search->scales[t] = ldexp(1, largest > 0 ? -exponent : 0);
        for (size_t i = 0; i < problem->candidate_count; i++)
            search->z[i * n + t] *= search->scales[t];
    }
}

/* Scales the covariances of the groups. -EINVAL: one is not positive semidefinite. */
static int scale_priors(struct search *search, struct failure *failure) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    double shares = 0;
    for (size_t g = 0; g < problem->group_count; g++)
        shares += problem->groups[g].share;
    for (size_t g = 0; g < problem->group_count; g++) {
        const struct optimal_group *group = &problem->groups[g];
        double *prior = search->priors + g * search->square;
        for (size_t i = 0; i < search->square; i++)
            prior[i] = group->covariance[i] / group->sigma / search->scales[i / n] / group->sigma /
                       search->scales[i % n];
        if (cholesky_factor_semidefinite(n, prior, search->work) < 0)
            return failure_input(failure, NULL, 0, 0,
                                 "the covariance of group %zu is not positive semidefinite", g + 1);
        search->factors[g] = group->share / shares;
        if (problem->criterion == OPTIMAL_I)
            search->factors[g] *= group->sigma * group->sigma;
    }
    return 0;
}

/* Computes the average of z z' over the candidates of each group. */
static void measure_moments(struct search *search) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    for (size_t g = 0; g < problem->group_count; g++) {
        double *moments = search->moments + g * search->square, sum = 0;
        for (size_t i = 0; i < problem->candidate_count; i++) {
            const double *z = search->z + i * n, share = problem->shares ? problem->shares[i] : 1;
            if (!is_measured(problem, i, g))
                continue;
            sum += share;
            for (size_t j = 0; j < search->square; j++)
                moments[j] += share * z[j / n] * z[j % n];
        }
        for (size_t j = 0; sum > 0 && j < search->square; j++)
            moments[j] /= sum;
    }
}

static double *carve(double **memory, size_t count) {
    double *piece = *memory;
    *memory += count;
    return piece;
}

/* Allocates and scales the search. To be cleared in any case. */
static int search_init(struct search *search, const struct optimal_problem *problem,
                       struct failure *failure) {
    size_t n = problem->term_count, square = n * n, groups = problem->group_count,
           candidates = problem->candidate_count;
    double *at = xcalloc(n + candidates * n + (3 * groups + 2) * square + 2 * n + groups, sizeof *at);
    *search = (struct search){.problem = problem, .terms = n, .square = square, .memory = at};
    search->chosen = xcalloc(candidates + 1, sizeof *search->chosen);
    search->barred = xcalloc(candidates + 1, sizeof *search->barred);
    search->is_lack = xcalloc(candidates + 1, sizeof *search->is_lack);
    search->budget = problem->budget * (1 - problem->lack_share);
    search->rows_most = problem->rows_most - lack_rows(problem);
    search->repeats_share = problem->repeats_share;
    search->scales = carve(&at, n);
    search->z = carve(&at, candidates * n);
    search->priors = carve(&at, groups * square);
    search->covariances = carve(&at, groups * square);
    search->moments = carve(&at, groups * square);
    search->work = carve(&at, 2 * square + 2 * n);
    search->factors = carve(&at, groups);
    scale_terms(search);
    measure_moments(search);
    return scale_priors(search, failure);
}

/* ---- The result */

/* Orders the chosen rows by their gain, rows for lack of fit last, into RET. */
static void write_result(struct search *search, struct optimal_rows *ret) {
    size_t candidates = search->problem->candidate_count, best = 0, lack_count = 0;
    cleanup_free double *gains = xcalloc(candidates + 1, sizeof *gains);
    measure_gains(search, gains);
    cleanup_free uint32_t *left = search->chosen;
    for (size_t i = 0; i < candidates; i++)
        lack_count += search->is_lack[i] ? left[i] : 0;
    *ret = (struct optimal_rows){.items = xcalloc(search->count + 1, sizeof *ret->items),
                                 .gains = xcalloc(search->count + 1, sizeof *ret->gains),
                                 .count = search->count,
                                 .lack_count = lack_count};
    search->chosen = xcalloc(candidates + 1, sizeof *search->chosen);
    recompute(search);
    for (size_t at = 0; at < ret->count; at++) {
        double most = -1;
        bool is_lack = at + lack_count >= ret->count;
        for (size_t i = 0; i < candidates; i++) {
            double gain = left[i] && search->is_lack[i] == is_lack ? gain_of(search, i) : -1;
            best = gain > most ? i : best;
            most = fmax(gain, most);
        }
        left[best]--;
        ret->items[at] = best;
        ret->gains[at] = gains[best];
        choose(search, best);
    }
    ret->gain = search->gain;
    ret->cost = search->cost;
}

/* Finds a design by greedy choice and exchanges, once by gain and once by gain per cost, the better one
 * (optimal-rows.h). */
int optimal_rows_find(const struct optimal_problem *problem, struct optimal_rows *ret,
                      struct failure *failure) {
    cleanup(search_clear) struct search search = {0};
    int r = search_init(&search, problem, failure);
    if (r < 0)
        return r;
    improve(&search);
    if (isfinite(problem->budget)) {
        cleanup_free uint32_t *first = search.chosen;
        size_t size = problem->candidate_count * sizeof *first;
        double gain = search.gain;
        search.chosen = xcalloc(problem->candidate_count + 1, sizeof *first);
        search.per_cost = true;
        improve(&search);
        if (search.gain <= gain)
            memcpy(search.chosen, first, size);
        recompute(&search);
    }
    if (search.count == 0) { /* one row needs more than its share of the budget */
        search.budget = problem->budget;
        search.repeats_share = 0;
        improve(&search);
    }
    if (search.count > 0)
        choose_farthest(&search);
    while (drop_little_gains(&search))
        ;
    write_result(&search, ret);
    return 0;
}

void optimal_rows_clear(struct optimal_rows *rows) {
    free(rows->items);
    free(rows->gains);
    *rows = (struct optimal_rows){0};
}
