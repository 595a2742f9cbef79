#include "engine/plugin/optimal-rows.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/portable-math.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    SWEEPS_MAX = 100,    /* of exchanges; each looks at every row */
    ROUNDS_MAX = 20,     /* of exchanging and filling what became free */
    PRIOR_EXPONENT = 20, /* of two: how much wider than a unit what is not known is */
};

/* An exchange must gain by so much: else rounding could go on for ever. */
static const double least_improvement = 1e-9;

/* Everything here is scaled: terms by powers of two, so that the largest value of each is about one, and with
 * the root of the weight in them; covariances are in units of sigma^2. A unit then adds z z' to the
 * information, whatever the units of measurement. */
struct search {
    const struct optimal_problem *problem;
    size_t terms, square; /* TERMS x TERMS */
    double *scales;       /* by term: what it was multiplied by */
    double *z;            /* by candidate */
    double *priors;       /* by group */
    double *now;          /* by group: the prior and the rows that were taken */
    double *moments;      /* by kind: the average of z z' over its candidates; of I */
    double *forms;        /* by group: NOW x MOMENTS x NOW; of I */
    double *work;         /* a square and a vector */
    double *factors;      /* by group: its share in the gain */
    uint32_t *taken;      /* by candidate: how often */
    size_t count;
    double cost, log_det; /* by how much that grew */
    size_t exchanges;
    bool per_cost, regularised;
};

static void search_clear(struct search *search) {
    free(search->scales);
    free(search->z);
    free(search->priors);
    free(search->now);
    free(search->moments);
    free(search->forms);
    free(search->work);
    free(search->factors);
    free(search->taken);
}

static uint32_t kind_of(const struct optimal_problem *problem, size_t candidate) {
    return problem->kinds ? problem->kinds[candidate] : 0;
}

static double share_of(const struct optimal_problem *problem, size_t candidate) {
    return problem->shares ? problem->shares[candidate] : 1;
}

static double cost_of(const struct optimal_problem *problem, size_t candidate) {
    return problem->costs ? problem->costs[candidate] : 1;
}

/* ---- Small dense algebra, of symmetric matrices row by row */

/* v' M v */
static double quadratic(const double *matrix, const double *vector, size_t n) {
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        double below = 0;
        for (size_t j = 0; j < i; j++)
            below += matrix[i * n + j] * vector[j];
        sum += vector[i] * (matrix[i * n + i] * vector[i] + 2 * below);
    }
    return sum;
}

static void multiply_vector(const double *matrix, const double *vector, size_t n, double *ret) {
    for (size_t i = 0; i < n; i++) {
        ret[i] = 0;
        for (size_t j = 0; j < n; j++)
            ret[i] += matrix[i * n + j] * vector[j];
    }
}

static void multiply(const double *a, const double *b, size_t n, double *ret) {
    memset(ret, 0, n * n * sizeof *ret);
    for (size_t i = 0; i < n; i++)
        for (size_t k = 0; k < n; k++)
            for (size_t j = 0; j < n; j++)
                ret[i * n + j] += a[i * n + k] * b[k * n + j];
}

/* Whether the correlations of MATRIX, with LIFT added to each of their ones, are positive definite: whether
 * they have a Cholesky factor, which is written into FACTOR. */
static bool is_definite(const double *matrix, size_t n, double lift, double *factor) {
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j <= i; j++) {
            double scale = sqrt(matrix[i * n + i]) * sqrt(matrix[j * n + j]);
            double sum = i == j ? 1 + lift : scale > 0 ? matrix[i * n + j] / scale : 0;
            for (size_t k = 0; k < j; k++)
                sum -= factor[i * n + k] * factor[j * n + k];
            if (i == j && !(sum > 0))
                return false;
            factor[i * n + j] = i == j ? sqrt(sum) : sum / factor[j * n + j];
        }
    }
    return true;
}

/* Whether MATRIX may be a covariance at all: variances that are not negative, and covariances that are the
 * same both ways, within rounding, and no larger than they allow. */
static bool is_covariance(const double *matrix, size_t n) {
    static const double rounding = 1e-6;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j <= i; j++) {
            double scale = sqrt(matrix[i * n + i]) * sqrt(matrix[j * n + j]), one = matrix[i * n + j],
                   other = matrix[j * n + i];
            if (!isfinite(scale) || !isfinite(one) || !(fabs(one - other) <= rounding * scale) ||
                !(fabs(one) <= (1 + rounding) * scale))
                return false;
        }
    return true;
}

/* Makes sure that rounding has left a covariance positive; false when it never was. */
static bool regularise(double *matrix, size_t n, double *factor, bool *regularised) {
    if (!is_covariance(matrix, n))
        return false;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < i; j++)
            matrix[j * n + i] = matrix[i * n + j];
    double lift = 0;
    while (!is_definite(matrix, n, lift, factor)) {
        lift = lift > 0 ? 10 * lift : 1e-12;
        if (lift > 1e-6)
            return false;
    }
    for (size_t i = 0; lift > 0 && i < n; i++)
        matrix[i * n + i] *= 1 + lift;
    *regularised = *regularised || lift > 0;
    return true;
}

/* ---- What rows gain */

/* The information of TIMES units more at Z: C - C z z'C n / (1 + n z'C z). Returns n z'C z. */
static double add_information(double *covariance, const double *z, double times, size_t n, double *work) {
    multiply_vector(covariance, z, n, work);
    double known = 0;
    for (size_t i = 0; i < n; i++)
        known += z[i] * work[i];
    known = known > 0 ? known : 0; /* rounding */
    double factor = times / (1 + times * known);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            covariance[i * n + j] -= factor * work[i] * work[j];
    return times * known;
}

static void add_units(struct search *search, size_t candidate, double times) {
    const struct optimal_problem *problem = search->problem;
    for (size_t g = 0; g < problem->group_count; g++) {
        if (problem->groups[g].kind != kind_of(problem, candidate))
            continue;
        double known =
            add_information(search->now + g * search->square, search->z + candidate * search->terms, times,
                            search->terms, search->work);
        if (problem->criterion == OPTIMAL_D)
            search->log_det += search->factors[g] * portable_log(1 + known);
    }
}

/* The gain of I at z is z' C W C z / (1 + z'C z), W being the moments. */
static void update_forms(struct search *search) {
    const struct optimal_problem *problem = search->problem;
    for (size_t g = 0; problem->criterion == OPTIMAL_I && g < problem->group_count; g++) {
        const double *now = search->now + g * search->square;
        multiply(now, search->moments + problem->groups[g].kind * search->square, search->terms,
                 search->work);
        multiply(search->work, now, search->terms, search->forms + g * search->square);
    }
}

static void take(struct search *search, size_t candidate) {
    search->taken[candidate]++;
    search->count++;
    search->cost += cost_of(search->problem, candidate);
    add_units(search, candidate, 1);
    update_forms(search);
}

/* The covariances of what is taken, from the beginning: no rounding is carried along. */
static void recompute(struct search *search) {
    const struct optimal_problem *problem = search->problem;
    memcpy(search->now, search->priors, problem->group_count * search->square * sizeof *search->now);
    search->count = 0;
    search->cost = search->log_det = 0;
    for (size_t i = 0; i < problem->candidate_count; i++) {
        if (search->taken[i] == 0)
            continue;
        search->count += search->taken[i];
        search->cost += search->taken[i] * cost_of(problem, i);
        add_units(search, i, search->taken[i]);
    }
    update_forms(search);
}

static double gain_of(const struct search *search, size_t candidate) {
    const struct optimal_problem *problem = search->problem;
    const double *z = search->z + candidate * search->terms;
    double gain = 0;
    for (size_t g = 0; g < problem->group_count; g++) {
        if (problem->groups[g].kind != kind_of(problem, candidate))
            continue;
        double known = quadratic(search->now + g * search->square, z, search->terms);
        known = known > 0 ? known : 0;
        gain += search->factors[g] *
                (problem->criterion == OPTIMAL_D
                     ? portable_log(1 + known)
                     : quadratic(search->forms + g * search->square, z, search->terms) / (1 + known));
    }
    return gain;
}

/* The average variance, in the response's unit squared. */
static double average_variance(const struct search *search) {
    const struct optimal_problem *problem = search->problem;
    double sum = 0;
    for (size_t g = 0; g < problem->group_count; g++) {
        const double *now = search->now + g * search->square,
                     *moments = search->moments + problem->groups[g].kind * search->square;
        double trace = 0;
        for (size_t i = 0; i < search->square; i++)
            trace += now[i] * moments[i]; /* both symmetric */
        sum += search->factors[g] * trace;
    }
    return sum;
}

/* ---- Taking rows */

static bool fits(const struct search *search, size_t candidate) {
    const struct optimal_problem *problem = search->problem;
    return search->count < problem->rows_most && !(problem->barred && problem->barred[candidate]) &&
           search->cost + cost_of(problem, candidate) <= problem->budget * (1 + 1e-12) &&
           !(problem->distinct && search->taken[candidate]);
}

/* The candidate that gains most among those that fit, or SIZE_MAX; of equal ones the first. */
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
        take(search, i);
    return filled;
}

/* Each row for the candidate that gains most in its place. */
static bool exchange_each(struct search *search) {
    bool improved = false;
    for (size_t i = 0; i < search->problem->candidate_count; i++) {
        if (search->taken[i] == 0)
            continue;
        search->taken[i]--;
        recompute(search);
        double own = gain_of(search, i), gain = 0;
        size_t best = find_best(search, false, &gain);
        bool better = best != SIZE_MAX && best != i && gain > own * (1 + least_improvement);
        take(search, better ? best : i);
        search->exchanges += better;
        improved = improved || better;
    }
    return improved;
}

static void improve(struct search *search) {
    for (size_t round = 0; round < ROUNDS_MAX && fill(search); round++)
        for (size_t sweep = 0; sweep < SWEEPS_MAX && exchange_each(search); sweep++)
            ;
    recompute(search);
}

/* ---- Scaling */

static int check(const struct optimal_problem *problem, struct failure *failure) {
    bool good = problem->candidate_count >= 1 && problem->candidate_count <= OPTIMAL_CANDIDATES_MAX &&
                problem->term_count >= 1 && problem->term_count <= OPTIMAL_TERMS_MAX &&
                problem->group_count >= 1 && problem->group_count <= OPTIMAL_GROUPS_MAX &&
                problem->rows_most >= 1 && problem->rows_most <= OPTIMAL_ROWS_MAX && problem->budget > 0;
    if (!good)
        return failure_input(
            failure, NULL, 0, 0,
            "%zu rows to choose %zu from, %zu terms, %zu groups; expected 1 to %d, 1 to %d, 1 "
            "to %d, 1 to %d",
            problem->candidate_count, problem->rows_most, problem->term_count, problem->group_count,
            OPTIMAL_CANDIDATES_MAX, OPTIMAL_ROWS_MAX, OPTIMAL_TERMS_MAX, OPTIMAL_GROUPS_MAX);
    for (size_t i = 0; i < problem->candidate_count; i++) {
        double weight = problem->weights ? problem->weights[i] : 1;
        if (!isfinite(weight) || weight <= 0)
            return failure_input(failure, NULL, 0, 0, "candidate %zu has the weight %g, expected one above 0",
                                 i + 1, weight);
        if (!isfinite(cost_of(problem, i)) || cost_of(problem, i) <= 0)
            return failure_input(failure, NULL, 0, 0, "candidate %zu has the cost %g, expected one above 0",
                                 i + 1, cost_of(problem, i));
    }
    for (size_t i = 0; i < problem->candidate_count * problem->term_count; i++)
        if (!isfinite(problem->terms[i]))
            return failure_input(failure, NULL, 0, 0,
                                 "term %zu of candidate %zu is beyond the range of a double",
                                 i % problem->term_count + 1, i / problem->term_count + 1);
    for (size_t g = 0; g < problem->group_count; g++) {
        const struct optimal_group *group = &problem->groups[g];
        if (!isfinite(group->sigma) || group->sigma <= 0 || !isfinite(group->share) || group->share <= 0)
            return failure_input(
                failure, NULL, 0, 0,
                "group %zu has the standard deviation %g and the share %g, expected both above 0", g + 1,
                group->sigma, group->share);
    }
    return 0;
}

static void scale_terms(struct search *search) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    for (size_t t = 0; t < n; t++) {
        double largest = 0;
        for (size_t i = 0; i < problem->candidate_count; i++) {
            double *z = &search->z[i * n + t];
            *z = problem->terms[i * n + t] * (problem->weights ? sqrt(problem->weights[i]) : 1);
            largest = fabs(*z) > largest ? fabs(*z) : largest;
        }
        int exponent = 0;
        frexp(largest, &exponent);
        search->scales[t] = ldexp(1, largest > 0 ? -exponent : 0);
        for (size_t i = 0; i < problem->candidate_count; i++)
            search->z[i * n + t] = search->z[i * n + t] * search->scales[t];
    }
}

static int scale_priors(struct search *search, struct failure *failure) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    for (size_t g = 0; g < problem->group_count; g++) {
        const struct optimal_group *group = &problem->groups[g];
        double *prior = search->priors + g * search->square;
        for (size_t i = 0; i < search->square; i++)
            prior[i] = group->covariance ? group->covariance[i] / group->sigma / search->scales[i / n] /
                                               group->sigma / search->scales[i % n]
                       : i % (n + 1) == 0 ? ldexp(1, PRIOR_EXPONENT)
                                          : 0;
        if (!regularise(prior, n, search->work, &search->regularised))
            return failure_input(failure, NULL, 0, 0,
                                 "the covariance of group %zu is none: it is not symmetric and positive, by "
                                 "more than rounding",
                                 g + 1);
    }
    return 0;
}

static int measure_moments(struct search *search, size_t kinds) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    cleanup_free double *sums = xcalloc(kinds, sizeof *sums);
    for (size_t i = 0; i < problem->candidate_count; i++) {
        const double *z = search->z + i * n;
        double share = share_of(problem, i),
               *moments = search->moments + kind_of(problem, i) * search->square;
        sums[kind_of(problem, i)] += share;
        for (size_t j = 0; j < n; j++)
            for (size_t k = 0; k < n; k++)
                moments[j * n + k] += share * z[j] * z[k];
    }
    for (size_t kind = 0; kind < kinds; kind++)
        for (size_t i = 0; sums[kind] > 0 && i < search->square; i++)
            search->moments[kind * search->square + i] /= sums[kind];
    return 0;
}

static size_t count_kinds(const struct optimal_problem *problem) {
    uint32_t most = 0;
    for (size_t i = 0; i < problem->candidate_count; i++)
        most = kind_of(problem, i) > most ? kind_of(problem, i) : most;
    for (size_t g = 0; g < problem->group_count; g++)
        most = problem->groups[g].kind > most ? problem->groups[g].kind : most;
    return (size_t)most + 1;
}

static int search_init(struct search *search, const struct optimal_problem *problem,
                       struct failure *failure) {
    size_t n = problem->term_count, square = n * n, kinds = count_kinds(problem);
    *search = (struct search){
        .problem = problem,
        .terms = n,
        .square = square,
        .scales = calloc(n, sizeof *search->scales),
        .z = calloc(problem->candidate_count * n, sizeof *search->z),
        .priors = calloc(problem->group_count * square, sizeof *search->priors),
        .now = calloc(problem->group_count * square, sizeof *search->now),
        .moments = calloc(kinds * square, sizeof *search->moments),
        .forms = calloc(problem->group_count * square, sizeof *search->forms),
        .work = calloc(square + n, sizeof *search->work),
        .factors = calloc(problem->group_count, sizeof *search->factors),
        .taken = calloc(problem->candidate_count, sizeof *search->taken),
    };
    if (!search->scales || !search->z || !search->priors || !search->now || !search->moments ||
        !search->forms || !search->work || !search->factors || !search->taken)
        return failure_memory(failure);
    scale_terms(search);
    double shares = 0;
    for (size_t g = 0; g < problem->group_count; g++)
        shares += problem->groups[g].share;
    for (size_t g = 0; g < problem->group_count; g++) {
        const struct optimal_group *group = &problem->groups[g];
        search->factors[g] = group->share / shares;
        if (problem->criterion == OPTIMAL_I)
            search->factors[g] *= group->sigma * group->sigma;
    }
    int r = measure_moments(search, kinds);
    return r < 0 ? r : scale_priors(search, failure);
}

/* ---- The result */

/* Takes the rows again, the one first that gains most, and so on. */
static void put_in_order(struct search *search, uint32_t *left, struct optimal_rows *rows) {
    const struct optimal_problem *problem = search->problem;
    memset(search->taken, 0, problem->candidate_count * sizeof *search->taken);
    recompute(search);
    for (size_t at = 0; at < rows->count; at++) {
        size_t best = SIZE_MAX;
        double most = -1;
        for (size_t i = 0; i < problem->candidate_count; i++) {
            double gain = left[i] ? gain_of(search, i) : -1;
            if (gain > most) {
                most = gain;
                best = i;
            }
        }
        left[best]--;
        rows->items[at] = best;
        rows->gains[at] = most;
        take(search, best);
    }
}

static int write_result(struct search *search, struct optimal_rows *ret, struct failure *failure) {
    const struct optimal_problem *problem = search->problem;
    size_t n = search->terms;
    cleanup_free uint32_t *left = calloc(problem->candidate_count, sizeof *left);
    cleanup(optimal_rows_clear) struct optimal_rows rows = {
        .items = calloc(search->count + 1, sizeof *rows.items),
        .gains = calloc(search->count + 1, sizeof *rows.gains),
        .covariances = calloc(problem->group_count * search->square, sizeof *rows.covariances),
        .count = search->count,
        .exchanges = search->exchanges,
        .regularised = search->regularised,
    };
    if (!left || !rows.items || !rows.gains || !rows.covariances)
        return failure_memory(failure);
    memcpy(left, search->taken, problem->candidate_count * sizeof *left);
    put_in_order(search, left, &rows);
    rows.cost = search->cost;
    for (size_t i = 0; i < rows.count; i++)
        rows.gain += rows.gains[i];
    for (size_t i = 0; i < problem->group_count * search->square; i++) {
        double sigma = problem->groups[i / search->square].sigma;
        size_t within = i % search->square;
        rows.covariances[i] =
            search->now[i] * sigma * search->scales[within / n] * sigma * search->scales[within % n];
    }
    *ret = rows;
    rows = (struct optimal_rows){0};
    return 0;
}

/* How good what is taken is; more is better. */
static double score_of(const struct search *search) {
    return search->problem->criterion == OPTIMAL_D ? search->log_det : -average_variance(search);
}

int optimal_rows_find(const struct optimal_problem *problem, struct optimal_rows *ret,
                      struct failure *failure) {
    cleanup(search_clear) struct search search = {0};
    int r = check(problem, failure);
    r = r < 0 ? r : search_init(&search, problem, failure);
    if (r < 0)
        return r;
    recompute(&search);
    improve(&search);
    if (!isfinite(problem->budget))
        return write_result(&search, ret, failure);
    cleanup_free uint32_t *first = xcalloc(problem->candidate_count, sizeof *first);
    double score = score_of(&search);
    memcpy(first, search.taken, problem->candidate_count * sizeof *first);
    memset(search.taken, 0, problem->candidate_count * sizeof *first);
    search.per_cost = true;
    recompute(&search);
    improve(&search);
    if (score_of(&search) <= score) {
        memcpy(search.taken, first, problem->candidate_count * sizeof *first);
        recompute(&search);
    }
    return write_result(&search, ret, failure);
}

void optimal_rows_clear(struct optimal_rows *rows) {
    free(rows->items);
    free(rows->gains);
    free(rows->covariances);
    *rows = (struct optimal_rows){0};
}
