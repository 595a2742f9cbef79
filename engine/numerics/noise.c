#include "engine/numerics/noise.h"

#include "engine/foundation/cleanup.h"
#include "engine/numerics/logarithm.h"
#include "engine/numerics/range.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK = 2048, STEPS_MAX = 200, FEW_ROWS = 40 };

static const double log_root_2pi = 0.91893853320467274178;
static const double floor_share = 0x1p-30;
/* Of -log likelihood by s, times s^2: 3 (u/s)^2 - 1, in the mean 2. Where the mean is not found too, so may
 * be far off, that of each row is taken, but at least this much. */
static const double least_curvature = 0.5;
static const double settled = 1e-10;  /* mean square of the relative change of the deviations */
static const double nearly = 1e-6;    /* the same, of a rough search */
static const double tame = 1e4;       /* a condition number whose square costs half of the digits */
static const double rounding = 1e-13; /* of a log likelihood, which is a sum */

/* The search for the coefficients of the deviation: of the constant, then of each column. */
struct search {
    const struct noise_problem *problem;
    size_t order;                     /* columns + 1 */
    struct least_squares mean, size;  /* of y on x, and of the residuals' size on 1 and x */
    double *sign;                     /* of each coefficient: 1, -1, or 0 without a part */
    double *now, *tried;              /* the coefficients, times sign */
    double *sigma, *square;           /* of each row: s sqrt(w), and u^2 */
    double *before, *weights, *chunk; /* scratch: sigma of the step before; of each row; CHUNK x order */
    enum least_squares_role *roles;   /* of the coefficients */
    double floor;                     /* of the constant */
    double logarithms;                /* sum log sigma */
    bool is_tame;  /* well conditioned: sums of products do for the mean of all steps but the LAST */
    bool has_mean; /* some column has a part in the mean */
};

/* Prepares the search: which columns the deviation may grow with, and with which sign. -ENOMEM, -EINVAL. */
static int search_init(struct search *ret, const struct noise_problem *problem) {
    size_t order = problem->columns + 1, n = problem->rows;
    *ret = (struct search){.problem = problem, .order = order};
    ret->sign = calloc(3 * order + 4 * n + CHUNK * order, sizeof *ret->sign);
    ret->roles = calloc(order, sizeof *ret->roles);
    int code = least_squares_init(&ret->mean, problem->columns);
    if (code == 0)
        code = least_squares_init(&ret->size, order);
    if (code < 0 || !ret->sign || !ret->roles)
        return code < 0 ? code : -ENOMEM;
    ret->now = ret->sign + order;
    ret->tried = ret->now + order;
    ret->sigma = ret->tried + order;
    ret->square = ret->sigma + n;
    ret->weights = ret->square + n;
    ret->before = ret->weights + n;
    ret->chunk = ret->before + n;
    for (size_t j = 0; j < order; j++) {
        const double *column = problem->x + (j ? j - 1 : 0) * problem->stride;
        double least = 1, most = 1;
        if (j > 0)
            range_find(column, n, &least, &most);
        bool wanted = j == 0 || (problem->scatters
                                     ? problem->scatters[j - 1]
                                     : !problem->roles || problem->roles[j - 1] != LEAST_SQUARES_LEFT_OUT);
        bool parts = j == 0 || (least < most && (least >= 0 || most <= 0));
        ret->sign[j] = !wanted || !parts ? 0 : most > 0 ? 1 : -1;
        ret->has_mean |= j > 0 && (!problem->roles || problem->roles[j - 1] != LEAST_SQUARES_LEFT_OUT);
        ret->roles[j] = ret->sign[j] != 0 ? LEAST_SQUARES_NONNEGATIVE : LEAST_SQUARES_LEFT_OUT;
    }
    return 0;
}

static void search_clear(struct search *search) {
    free(search->sign);
    free(search->roles);
    least_squares_clear(&search->mean);
    least_squares_clear(&search->size);
}

/* The log likelihood with the deviations and squares in hand. */
static double likelihood(const struct search *search) {
    double sum = search->mean.log_weights / 2 - search->logarithms;
    for (size_t i = 0; i < search->problem->rows; i++)
        sum -= search->square[i] / (2 * search->sigma[i] * search->sigma[i]);
    return sum - (double)search->problem->rows * log_root_2pi;
}

/* Sets the deviation of each row by COEFFICIENTS. Returns the log likelihood. */
__attribute__((target_clones("avx2", "default"))) static double set_sigma(struct search *search,
                                                                          const double *coefficients) {
    const struct noise_problem *problem = search->problem;
    for (size_t i = 0; i < problem->rows; i++)
        search->sigma[i] = coefficients[0];
    for (size_t j = 1; j < search->order; j++)
        if (coefficients[j] > 0)
            for (size_t i = 0; i < problem->rows; i++)
                search->sigma[i] += coefficients[j] * fabs(problem->x[i + (j - 1) * problem->stride]);
    search->logarithms = logarithm_sum(search->sigma, problem->rows);
    return likelihood(search);
}

/* Fits the mean with weights 1/sigma^2 (equal ones if not WEIGHTED), and squares its residuals. LAST: with
 * all digits, since it is no intermediate step. 0 or a negative errno. */
static int find_mean(struct search *search, bool weighted, bool last, struct least_squares_fit *fit) {
    const struct noise_problem *problem = search->problem;
    bool by_products = search->is_tame && !last;
    if (weighted && !search->has_mean)
        return 0;
    for (size_t i = 0; i < problem->rows; i++)
        search->weights[i] = (problem->weights ? problem->weights[i] : 1) /
                             (weighted ? search->sigma[i] * search->sigma[i] : 1);
    least_squares_fit_clear(fit);
    least_squares_reset(&search->mean);
    int code = (by_products ? least_squares_append_products : least_squares_append)(
        &search->mean, problem->rows, problem->x, problem->stride, problem->y, search->weights);
    if (code == 0)
        code = least_squares_solve(&search->mean, problem->roles, fit);
    if (code < 0)
        return code;
    least_squares_residuals(fit, problem->rows, problem->x, problem->stride, problem->y, search->square);
    double log_weights = 0;
    for (size_t i = 0; i < problem->rows; i++) {
        double w = problem->weights ? problem->weights[i] : 1;
        search->square[i] *= search->square[i] * w;
        log_weights += problem->weights ? log(w) : 0;
    }
    search->mean.log_weights = log_weights; /* of the problem's weights, not of this step's */
    return 0;
}

/* Regresses TARGETS on 1 and the columns, with weights curvature/sigma^2, into `tried`: one Fisher scoring
 * step of the deviation. 0 or a negative errno. */
static int regress(struct search *search, const double *targets) {
    const struct noise_problem *problem = search->problem;
    double y[CHUNK], w[CHUNK];
    least_squares_reset(&search->size);
    for (size_t set_start = 0; set_start < problem->rows; set_start += CHUNK) {
        size_t count = problem->rows - set_start < CHUNK ? problem->rows - set_start : CHUNK;
        for (size_t i = 0; i < count; i++) {
            y[i] = targets[set_start + i] - search->floor;
            w[i] =
                search->before[set_start + i] / (search->sigma[set_start + i] * search->sigma[set_start + i]);
            search->chunk[i] = 1;
        }
        for (size_t j = 1; j < search->order; j++)
            for (size_t i = 0; i < count; i++)
                search->chunk[i + j * CHUNK] = fabs(problem->x[set_start + i + (j - 1) * problem->stride]);
        int code = least_squares_append_products(&search->size, count, search->chunk, CHUNK, y, w);
        if (code < 0)
            return code;
    }
    struct least_squares_fit fit;
    int code = least_squares_solve(&search->size, search->roles, &fit);
    if (code == 0) {
        memcpy(search->tried, fit.estimate, search->order * sizeof *fit.estimate);
        search->tried[0] += search->floor;
    }
    least_squares_fit_clear(&fit);
    return code;
}

/* Climbs from the coefficients in `now` to a maximum of the likelihood nearby, alternating mean and
 * deviation. -EAGAIN: not settled within STEPS_MAX; other negative errno. */
__attribute__((target_clones("avx2", "default"))) static int climb(struct search *search, struct noise *ret) {
    size_t n = search->problem->rows;
    double end = (search->problem->rough ? nearly : settled) * (double)n;
    double *targets = search->weights, reached = set_sigma(search, search->now), moved = INFINITY;
    for (ret->steps = 1; ret->steps <= STEPS_MAX; ret->steps++) {
        int code = find_mean(search, true, moved < end, &ret->mean);
        if (code < 0)
            return code;
        reached = likelihood(search);
        if (moved < end) {
            ret->log_likelihood = reached;
            return isfinite(reached) ? 0 : -ERANGE;
        }
        for (size_t i = 0; i < n; i++) {
            double square = search->square[i] / (search->sigma[i] * search->sigma[i]);
            double curvature = search->has_mean ? 2 : 3 * square - 1;
            search->before[i] = curvature > least_curvature ? curvature : least_curvature;
            targets[i] = search->sigma[i] * (1 + (square - 1) / search->before[i]);
        }
        code = regress(search, targets);
        if (code < 0)
            return code;
        memcpy(search->before, search->sigma, n * sizeof *search->sigma);
        for (double step = 1; step > 1e-9; step /= 2) {
            for (size_t j = 0; j < search->order; j++)
                search->tried[j] = step < 1 ? (search->now[j] + search->tried[j]) / 2 : search->tried[j];
            if (set_sigma(search, search->tried) >= reached - rounding * (fabs(reached) + (double)n))
                break;
        }
        moved = 0;
        for (size_t i = 0; i < n; i++)
            moved += pow(search->sigma[i] / search->before[i] - 1, 2);
        memcpy(search->now, search->tried, search->order * sizeof *search->now);
    }
    return -EAGAIN;
}

/* Sets the coefficients of start number START: 0 regresses the size of the residuals (|u| is sqrt(2/pi) sigma
 * in the mean), 1 is constant, others are in proportion to a column. 0 or a negative errno. */
static int set_start(struct search *search, size_t start, double deviation) {
    const struct noise_problem *problem = search->problem;
    memset(search->now, 0, search->order * sizeof *search->now);
    search->now[0] = start < 2 ? deviation : deviation / 16;
    if (start >= 2) {
        double mean = 0;
        for (size_t i = 0; i < problem->rows; i++)
            mean += fabs(problem->x[i + (start - 2) * problem->stride]) / (double)problem->rows;
        search->now[start - 1] = deviation / mean;
    }
    double *targets = search->weights;
    for (size_t round = 0; start == 0 && round < 2; round++) {
        set_sigma(search, search->now);
        for (size_t i = 0; i < problem->rows; i++) {
            targets[i] = sqrt(search->square[i] * 1.57079632679489661923);
            search->before[i] = 1;
        }
        int code = regress(search, targets);
        if (code < 0)
            return code;
        search->tried[0] = fmax(search->tried[0], deviation / 1024); /* not yet at the floor */
        memcpy(search->now, search->tried, search->order * sizeof *search->now);
    }
    return 0;
}

/* Fits mean and deviation by maximum likelihood (noise.h), from several starts if there are few rows. -EDOM:
 * the residuals are 0; -EINVAL, -ENOMEM. */
int noise_fit(const struct noise_problem *problem, struct noise *ret) {
    *ret = (struct noise){0};
    cleanup(search_clear) struct search search;
    cleanup(least_squares_fit_clear) struct least_squares_fit plain = {0};
    int code = search_init(&search, problem);
    if (code == 0)
        code = find_mean(&search, false, true, &plain);
    if (code < 0)
        return code;
    double squares = search.mean.total + search.mean.weight * search.mean.mean * search.mean.mean;
    if (search.mean.rows < problem->rows)
        return -EINVAL;
    double condition;
    code = least_squares_condition(&search.mean, &plain, &condition);
    if (code == -ENOMEM)
        return code;
    search.is_tame = code == 0 && search.has_mean && condition < tame;
    if (problem->rows <= plain.rank || plain.rss <= 1e-24 * squares)
        return -EDOM;
    double deviation = sqrt(plain.rss / (double)(problem->rows - plain.rank));
    search.floor = floor_share * deviation;
    ret->coefficients = calloc(search.order, sizeof *ret->coefficients);
    if (!ret->coefficients)
        return -ENOMEM;
    size_t starts = problem->rows <= FEW_ROWS * search.order && !problem->rough ? search.order + 1 : 1;
    ret->log_likelihood = -INFINITY;
    int worst = 0;
    for (size_t start = 0; start < starts; start++) {
        if (start >= 2 && search.sign[start - 1] == 0)
            continue;
        struct noise found = {0};
        code = start == 0 && search.has_mean ? 0
                                             : find_mean(&search, false, true, &found.mean); /* it is plain */
        if (code == 0)
            code = set_start(&search, start, deviation);
        if (code == 0)
            code = climb(&search, &found);
        if (code == 0 && found.log_likelihood > ret->log_likelihood) {
            least_squares_fit_clear(&ret->mean);
            *ret = (struct noise){search.now[0], ret->coefficients, found.log_likelihood, found.steps,
                                  found.mean};
            for (size_t j = 1; j < search.order; j++)
                ret->coefficients[j - 1] = search.sign[j] * search.now[j];
            continue;
        }
        least_squares_fit_clear(&found.mean);
        worst = code < 0 ? code : worst;
    }
    return isfinite(ret->log_likelihood) ? 0 : worst;
}

void noise_clear(struct noise *noise) {
    free(noise->coefficients);
    least_squares_fit_clear(&noise->mean);
    *noise = (struct noise){0};
}
