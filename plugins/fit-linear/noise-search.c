#include "plugins/fit-linear/noise-search.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STEPS_MAX = 200,
    HALVINGS_MAX = 40,
    REGRESSIONS = 5,
    GUIDE_ROWS = 30,   /* of a fold, by column */
    SEVERAL_ROWS = 40, /* of all, by column: with fewer the likelihood has several maxima */
};

/* A step that would raise log L by no more is the last. Newton's then leaves about its square: 1e-5 standard
 * errors. */
static const double last_newton = 1e-5, last_fisher = 1e-10;
/* A fold's step that promises more, by parameter, is not trusted alone. */
static const double long_step = 0.3;

struct noise_search {
    struct noise_design *design;
    size_t width, capacity, first; /* first: column of the mean */
    double floor[SUMS_COLUMNS_MAX];
    bool bound[SUMS_COLUMNS_MAX], fixed[SUMS_COLUMNS_MAX];
    struct noise_sums *sums, *trial, *folds[MOMENTS_FOLDS_MAX];
    bool at_maximum; /* folds, and sums of all of them, are those at the maximum that was run last */
    double *curvature, *solved, *mean_factor; /* capacity * capacity */
    double *factor;
    double db[SUMS_COLUMNS_MAX], dc[SUMS_COLUMNS_MAX], gradient[SUMS_COLUMNS_MAX];
};

static const unsigned regression_grams = 1u << NOISE_GRAM_ONE | 1u << NOISE_GRAM_WEIGHT;
static const unsigned all_grams =
    1u << NOISE_GRAM_ONE | 1u << NOISE_GRAM_OBSERVED | 1u << NOISE_GRAM_CROSS | 1u << NOISE_GRAM_WEIGHT;

/* ---- Room */

static void clear_room(struct noise_search *search) {
    noise_sums_free(search->sums);
    noise_sums_free(search->trial);
    for (size_t f = 0; f < MOMENTS_FOLDS_MAX; f++)
        noise_sums_free(search->folds[f]);
    free(search->curvature);
    *search = (struct noise_search){0};
}

int noise_search_new(struct noise_search **ret) {
    *ret = calloc(1, sizeof **ret);
    return *ret ? 0 : -ENOMEM;
}

void noise_search_free(struct noise_search *search) {
    if (!search)
        return;
    clear_room(search);
    free(search);
}

static int take_up(struct noise_search *search, struct noise_design *design) {
    size_t width = design->width;
    if (!search->sums || search->width != width) {
        clear_room(search);
        search->curvature = calloc(4 * width * width, sizeof(double));
        int r = search->curvature ? 0 : -ENOMEM;
        r = r < 0 ? r : noise_sums_new(width, &search->sums);
        r = r < 0 ? r : noise_sums_new(width, &search->trial);
        for (uint32_t f = 0; r == 0 && f < design->folds; f++)
            r = noise_sums_new(width, &search->folds[f]);
        if (r < 0) {
            clear_room(search);
            return r;
        }
        search->solved = search->curvature + width * width;
        search->mean_factor = search->solved + width * width;
        search->factor = search->mean_factor + width * width;
        search->width = width;
    }
    search->design = design;
    search->at_maximum = false;
    search->first = design->intercept ? 0 : 1;
    for (size_t q = 0; q < width; q++) {
        search->floor[q] = 0;
        search->fixed[q] = !design->columns[q].signless;
    }
    double sigma = sqrt(design->settled->result.rss / (double)design->count) / design->unit;
    search->floor[0] = NOISE_FLOOR * sigma;
    return 0;
}

/* Without weights one gram is as the other. */
static unsigned needed_grams(const struct noise_search *search, unsigned grams) {
    return search->design->weighted ? grams : grams & ~(1u << NOISE_GRAM_WEIGHT);
}

/* ---- Linear algebra */

/* The lower triangle of the rows and columns of MATRIX that are in LIST becomes its Cholesky factor, in
 * FACTOR, COUNT * COUNT. A hair is added to the diagonal, so that columns that depend on each other share
 * what there is. False when it is not positive. */
static bool factorise(const double *matrix, size_t width, const size_t *list, size_t count, double *factor) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            size_t a = list[i] > list[j] ? list[i] : list[j], b = list[i] > list[j] ? list[j] : list[i];
            double value = matrix[a * width + b];
            factor[i * count + j] = i == j ? value * (1 + 1e-13) : value;
        }
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            double sum = factor[i * count + j];
            for (size_t k = 0; k < j; k++)
                sum -= factor[i * count + k] * factor[j * count + k];
            if (i == j && !(sum > 0 && isfinite(sum)))
                return false;
            factor[i * count + j] = i == j ? sqrt(sum) : sum / factor[j * count + j];
        }
    return true;
}

/* The matrices are as small as the formula: what a library does before it begins is more than the work. */
static void solve(const double *factor, size_t count, double *right) {
    for (size_t i = 0; i < count; i++) {
        for (size_t k = 0; k < i; k++)
            right[i] -= factor[i * count + k] * right[k];
        right[i] /= factor[i * count + i];
    }
    for (size_t i = count; i-- > 0;) {
        for (size_t k = i + 1; k < count; k++)
            right[i] -= factor[k * count + i] * right[k];
        right[i] /= factor[i * count + i];
    }
}

static double element(const double *lower, size_t width, size_t a, size_t b) {
    return a >= b ? lower[a * width + b] : lower[b * width + a];
}

/* d of the free columns, those that are bound going to their floor. False when the matrix is not positive. */
static bool solve_free(struct noise_search *search, const double *matrix, const double *c) {
    size_t width = search->width, list[SUMS_COLUMNS_MAX], count = 0;
    double right[SUMS_COLUMNS_MAX];
    for (size_t q = 0; q < width; q++)
        search->dc[q] = search->fixed[q] ? 0 : search->floor[q] - c[q];
    for (size_t q = 0; q < width; q++)
        if (!search->bound[q] && !search->fixed[q])
            list[count++] = q;
    if (count == 0)
        return true;
    for (size_t i = 0; i < count; i++) {
        right[i] = -search->gradient[list[i]];
        for (size_t q = 0; q < width; q++)
            if (search->bound[q] && !search->fixed[q])
                right[i] -= element(matrix, width, list[i], q) * search->dc[q];
    }
    if (!factorise(matrix, width, list, count, search->factor))
        return false;
    solve(search->factor, count, right);
    for (size_t i = 0; i < count; i++)
        search->dc[list[i]] = right[i];
    return true;
}

/* The bound that holds back most, or `width` when none does. */
static size_t find_release(const struct noise_search *search, const double *matrix) {
    size_t width = search->width, best = width;
    double least = 0;
    for (size_t q = 0; q < width; q++) {
        if (!search->bound[q] || search->fixed[q])
            continue;
        double slope = search->gradient[q], size = fabs(slope);
        for (size_t i = 0; i < width; i++) {
            double part = element(matrix, width, q, i) * search->dc[i];
            slope += part;
            size += fabs(part);
        }
        double scaled = slope / sqrt(element(matrix, width, q, q));
        if (slope < -1e-9 * size && scaled < least) {
            least = scaled;
            best = q;
        }
    }
    return best;
}

/* The d that makes gradient'd + d'matrix d/2 least with c + d >= floor: an active set, entered by all that
 * leave the bounds and left one by one. */
static bool solve_bounded(struct noise_search *search, const double *matrix, const double *c) {
    size_t width = search->width;
    for (size_t q = 0; q < width; q++)
        search->bound[q] = c[q] <= search->floor[q] && search->gradient[q] > 0;
    for (size_t round = 0; round < 4 * width + 16; round++) {
        if (!solve_free(search, matrix, c))
            return false;
        bool left = false;
        for (size_t q = 0; q < width; q++)
            if (!search->bound[q] && !search->fixed[q] && c[q] + search->dc[q] < search->floor[q])
                left = search->bound[q] = true;
        if (left)
            continue;
        size_t release = find_release(search, matrix);
        if (release == width)
            return true;
        search->bound[release] = false;
    }
    for (size_t q = 0; q < width; q++) /* it cycles: what there is will do for a step */
        search->dc[q] = fmax(search->dc[q], search->fixed[q] ? 0 : search->floor[q] - c[q]);
    return true;
}

/* ---- Steps */

static size_t list_mean(const struct noise_search *search, size_t *list) {
    size_t count = 0;
    for (size_t q = search->first; q < search->width; q++)
        list[count++] = q;
    return count;
}

static const double *mean_gram(const struct noise_search *search, const struct noise_sums *sums) {
    return sums->grams[search->design->weighted ? NOISE_GRAM_WEIGHT : NOISE_GRAM_ONE];
}

/* mean_factor becomes that of b's curvature; db the step that b alone would take. */
static bool factorise_mean(struct noise_search *search, const struct noise_sums *sums) {
    size_t list[SUMS_COLUMNS_MAX], count = list_mean(search, list);
    if (count == 0)
        return true;
    if (!factorise(mean_gram(search, sums), search->width, list, count, search->mean_factor))
        return false;
    double right[SUMS_COLUMNS_MAX];
    for (size_t i = 0; i < count; i++)
        right[i] = -sums->mean[list[i]];
    solve(search->mean_factor, count, right);
    search->db[0] = 0;
    for (size_t i = 0; i < count; i++)
        search->db[list[i]] = right[i];
    return true;
}

/* curvature = that of c when b follows: H_cc - H_cb H_bb^-1 H_bc; solved = H_bb^-1 H_bc by row of c. */
static void eliminate_mean(struct noise_search *search, const struct noise_sums *sums) {
    size_t width = search->width, list[SUMS_COLUMNS_MAX], count = list_mean(search, list);
    const double *cross = sums->grams[NOISE_GRAM_CROSS];
    for (size_t q = 0; q < width; q++) {
        double *right = search->solved + q * width;
        for (size_t i = 0; i < count; i++)
            right[i] = element(cross, width, list[i], q);
        if (count > 0)
            solve(search->mean_factor, count, right);
    }
    for (size_t a = 0; a < width; a++)
        for (size_t b = 0; b <= a; b++) {
            double value = sums->grams[NOISE_GRAM_OBSERVED][a * width + b];
            for (size_t i = 0; i < count; i++)
                value -= element(cross, width, list[i], a) * search->solved[b * width + i];
            search->curvature[a * width + b] = value;
        }
    for (size_t q = 0; q < width; q++) {
        search->gradient[q] = sums->spread[q];
        for (size_t i = 0; i < count; i++)
            search->gradient[q] -= search->solved[q * width + i] * sums->mean[list[i]];
    }
}

static double promised(const struct noise_search *search, const struct noise_sums *sums) {
    double sum = 0;
    for (size_t q = 0; q < search->width; q++)
        sum -= sums->spread[q] * search->dc[q] + (q >= search->first ? sums->mean[q] * search->db[q] : 0);
    return sum;
}

/* Newton's step on b and c. False where the likelihood is not convex, or the step leads nowhere. */
static bool newton_step(struct noise_search *search, const struct noise_sums *sums, const double *c) {
    if (!factorise_mean(search, sums))
        return false;
    eliminate_mean(search, sums);
    if (!solve_bounded(search, search->curvature, c))
        return false;
    size_t list[SUMS_COLUMNS_MAX], count = list_mean(search, list);
    for (size_t i = 0; i < count; i++)
        for (size_t q = 0; q < search->width; q++)
            search->db[list[i]] -= search->solved[q * search->width + i] * search->dc[q];
    return promised(search, sums) >= 0;
}

/* The same with the curvature that is expected, which is never concave. */
static bool fisher_step(struct noise_search *search, const struct noise_sums *sums, const double *c) {
    size_t cells = search->width * search->width;
    if (!factorise_mean(search, sums))
        return false;
    for (size_t i = 0; i < cells; i++)
        search->curvature[i] = 2 * sums->grams[NOISE_GRAM_ONE][i];
    memcpy(search->gradient, sums->spread, search->width * sizeof *search->gradient);
    return solve_bounded(search, search->curvature, c);
}

/* c becomes the regression of |residual| sqrt(pi/2) on the columns, b that of y, both weighted by the present
 * c. */
static bool regression_step(struct noise_search *search, const struct noise_sums *sums, const double *c) {
    size_t width = search->width;
    const double *gram = sums->grams[NOISE_GRAM_ONE];
    if (!factorise_mean(search, sums))
        return false;
    for (size_t a = 0; a < width; a++) {
        search->gradient[a] = -sqrt(M_PI_2) * sums->absolute[a];
        for (size_t b = 0; b < width; b++)
            search->gradient[a] += element(gram, width, a, b) * c[b];
    }
    return solve_bounded(search, gram, c);
}

static void step_from(const struct noise_search *search, const struct noise_point *from, double length,
                      struct noise_point *ret) {
    for (size_t q = 0; q < search->width; q++) {
        ret->b[q] = from->b[q] + (q >= search->first ? length * search->db[q] : 0);
        double c = from->c[q] + length * search->dc[q];
        bool held = search->fixed[q] || (length == 1 && search->bound[q]) || !(c > search->floor[q]);
        ret->c[q] = held ? search->floor[q] : c;
    }
}

static void evaluate(struct noise_search *search, uint32_t folds, bool whole, struct noise_point *point,
                     struct noise_sums *sums) {
    noise_design_sum(search->design, folds, point->b, point->c, whole,
                     whole ? needed_grams(search, all_grams) : 0, sums);
    point->objective = sums->objective;
}

/* ---- The search */

/* Where it begins: b by least squares, c constant, or in the mean's proportions with a little of the
 * constant.
 */
static void begin(const struct noise_search *search, bool proportional, struct noise_point *ret) {
    const struct noise_design *design = search->design;
    double sigma = sqrt(design->settled->result.rss / (double)design->count) / design->unit, sum = 0;
    *ret = (struct noise_point){.steps = 0};
    for (size_t q = search->first; q < search->width; q++)
        ret->b[q] = design->settled->result.estimates[design->columns[q].term].estimate *
                    design->columns[q].scale / design->unit;
    for (size_t q = search->first; proportional && q < search->width; q++)
        if (!search->fixed[q] && ret->b[q] > 0)
            sum += ret->c[q] = ret->b[q];
    for (size_t q = 0; sum > 0 && q < search->width; q++)
        ret->c[q] *= sigma / sum;
    ret->c[0] = sum > 0 ? fmax(ret->c[0], 0.001 * sigma) : sigma;
}

static uint32_t every_fold(const struct noise_search *search) {
    return (uint32_t)((UINT64_C(1) << search->design->folds) - 1);
}

/* From the mean's proportions, made better by regressions over FOLDS. */
static void start(struct noise_search *search, uint32_t folds, struct noise_point *ret) {
    begin(search, true, ret);
    for (int i = 0; i < REGRESSIONS; i++) {
        noise_design_sum(search->design, folds, ret->b, ret->c, true, needed_grams(search, regression_grams),
                         search->sums);
        if (!isfinite(search->sums->objective) || !regression_step(search, search->sums, ret->c))
            return;
        step_from(search, ret, 1, ret);
        ret->c[0] = fmax(ret->c[0], search->floor[0] * 1024);
    }
}

/* Steps from *POINT on, whose sums over FOLDS are those of the search, until there is nothing to gain. */
static void climb(struct noise_search *search, uint32_t folds, struct noise_point *point) {
    for (unsigned step = 0; step < STEPS_MAX; step++) {
        bool newton = newton_step(search, search->sums, point->c);
        if (!newton && !fisher_step(search, search->sums, point->c))
            return;
        double gain = promised(search, search->sums);
        if (gain < (newton ? last_newton : last_fisher)) {
            step_from(search, point, 1, point);
            point->converged = true;
            return;
        }
        struct noise_point next;
        double length = 1, rounding = 1e-14 * ((double)search->design->count + fabs(point->objective));
        for (int halving = 0;; halving++, length /= 2) {
            step_from(search, point, length, &next);
            evaluate(search, folds, true, &next, search->trial);
            if (next.objective <= point->objective - 1e-4 * length * gain + rounding)
                break;
            if (halving == HALVINGS_MAX) { /* rounding is all that is left */
                point->converged = gain < 1e-4;
                return;
            }
        }
        next.steps = point->steps + 1;
        next.converged = false;
        *point = next;
        struct noise_sums *sums = search->sums;
        search->sums = search->trial;
        search->trial = sums;
    }
}

/* Least squares, and a standard deviation in proportion to COLUMN with a little of the constant. */
static void begin_along(const struct noise_search *search, size_t column, struct noise_point *ret) {
    begin(search, false, ret);
    double sigma = ret->c[0];
    ret->c[0] *= 0.001;
    ret->c[column] = sigma;
}

/* Climbs from elsewhere too, and keeps the highest. */
static void climb_elsewhere(struct noise_search *search, uint32_t folds, struct noise_point *point) {
    for (size_t q = 0; q < search->width; q++) {
        struct noise_point other;
        if (search->fixed[q])
            continue;
        begin_along(search, q, &other);
        evaluate(search, folds, true, &other, search->sums);
        climb(search, folds, &other);
        if (other.objective < point->objective && (other.converged || !point->converged))
            *point = other;
    }
}

int noise_search_run(struct noise_search *search, struct noise_design *design, struct noise_point *ret) {
    int r = take_up(search, design);
    if (r < 0)
        return r;
    uint32_t folds = every_fold(search);
    struct noise_point constant;
    begin(search, false, &constant);
    double count = (double)design->count;
    constant.objective = count * (log(constant.c[0]) + 0.5);
    /* Where a fold has rows enough it is nearly as good a guide as all, and costs less. */
    uint32_t guide = design->folds > 1 && design->fold_counts[0] >= GUIDE_ROWS * design->width ? 1 : folds;
    start(search, guide, ret);
    if (guide != folds) {
        evaluate(search, guide, true, ret, search->sums);
        climb(search, guide, ret);
        ret->converged = false;
    }
    evaluate(search, folds, true, ret, search->sums);
    if (!(ret->objective < constant.objective)) {
        *ret = constant;
        evaluate(search, folds, true, ret, search->sums);
    }
    climb(search, folds, ret);
    if (design->count <= SEVERAL_ROWS * design->width)
        climb_elsewhere(search, folds, ret);
    return 0;
}

size_t noise_search_free_count(const struct noise_search *search, const struct noise_point *point) {
    size_t count = 0;
    for (size_t q = 0; q < search->width; q++)
        count += !search->fixed[q] && point->c[q] > search->floor[q];
    return count;
}

/* The sums of every fold at the maximum, and of all. */
static void sum_maximum(struct noise_search *search, const struct noise_point *maximum) {
    if (search->at_maximum)
        return;
    struct noise_point point = *maximum;
    noise_sums_clear(search->sums);
    for (uint32_t f = 0; f < search->design->folds; f++) {
        evaluate(search, UINT32_C(1) << f, true, &point, search->folds[f]);
        noise_sums_add(search->sums, search->folds[f], 1);
    }
    search->at_maximum = true;
}

bool noise_search_covariance(struct noise_search *search, const struct noise_point *point, double *ret) {
    size_t width = search->width, list[SUMS_COLUMNS_MAX], count = list_mean(search, list);
    sum_maximum(search, point);
    memset(ret, 0, width * width * sizeof *ret);
    if (!factorise_mean(search, search->sums))
        return false;
    for (size_t i = 0; i < count; i++) {
        double column[SUMS_COLUMNS_MAX] = {0};
        column[i] = 1;
        solve(search->mean_factor, count, column);
        for (size_t j = 0; j < count; j++)
            ret[list[j] * width + list[i]] = column[j];
    }
    return true;
}

/* ---- Cross-validation */

/* What all folds but one give, from the maximum of all and the sums there. */
static int leave_out(struct noise_search *search, const struct noise_point *maximum, uint32_t fold,
                     struct noise_point *ret) {
    struct noise_sums *train = search->trial;
    *ret = *maximum;
    noise_sums_clear(train);
    noise_sums_add(train, search->sums, 1);
    noise_sums_add(train, search->folds[fold], -1);
    double parameters = (double)(2 * search->width);
    if (newton_step(search, train, maximum->c) && promised(search, train) < long_step * parameters) {
        step_from(search, maximum, 1, ret);
        return 0;
    }
    struct noise_sums *all = NULL; /* the search overwrites both that it has */
    int r = noise_sums_new(search->width, &all);
    if (r < 0)
        return r;
    noise_sums_clear(all);
    noise_sums_add(all, search->sums, 1);
    uint32_t folds = every_fold(search) & ~(UINT32_C(1) << fold);
    evaluate(search, folds, true, ret, search->sums);
    climb(search, folds, ret);
    noise_sums_free(search->sums);
    search->sums = all;
    return 0;
}

int noise_search_leave_out(struct noise_search *search, const struct noise_point *maximum,
                           noise_search_function each, void *context) {
    const struct noise_design *design = search->design;
    struct noise_point point;
    sum_maximum(search, maximum);
    int r = 0;
    for (uint32_t f = 0; r == 0 && f < design->folds; f++) {
        if (design->fold_counts[f] == 0)
            continue;
        r = leave_out(search, maximum, f, &point);
        if (r == 0)
            each(context, f, &point);
    }
    return r;
}

/* ---- A constant spread */

int noise_search_least_squares(struct noise_search *search, struct noise_design *design, uint32_t folds,
                               struct noise_point *ret) {
    int r = take_up(search, design);
    if (r < 0)
        return r;
    begin(search, false, ret);
    ret->c[0] = 1;
    evaluate(search, folds, true, ret, search->sums);
    if (!factorise_mean(search, search->sums))
        return 0;
    memset(search->dc, 0, sizeof search->dc);
    memset(search->bound, 0, sizeof search->bound);
    step_from(search, ret, 1, ret);
    evaluate(search, folds, false, ret, search->sums); /* now the sum of squares, halved: log 1 is 0 */
    uint64_t rows = 0, terms = search->width - search->first;
    for (uint32_t f = 0; f < design->folds; f++)
        rows += folds >> f & 1 ? design->fold_counts[f] : 0;
    ret->converged = rows > terms && ret->objective > 0;
    ret->c[0] = ret->converged ? sqrt(2 * ret->objective / (double)(rows - terms)) : 1;
    return 0;
}
