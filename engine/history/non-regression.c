#include "engine/history/non-regression.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/cholesky.h"
#include "engine/numerics/distribution.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { P_MAX = NON_REGRESSION_FACTORS_MAX };
static const double RELATIVE_SIGMA_LEAST = 1e-4;

/* Mean and covariance of COUNT rows. COUNT is 0 where there are too few rows for a comparison. */
struct reference {
    size_t count;
    double mean[P_MAX], covariance[P_MAX * P_MAX];
};

/* The rows since a cut: their moments (by B. Welford, Technometrics 4(3), 1962), and what the last rows were
 * compared with. */
struct segment {
    size_t count;
    double mean[P_MAX], products[P_MAX * P_MAX];
    struct reference before[NON_REGRESSION_WINDOW_MAX]; /* of normal row K: at K % window */
};

struct checker {
    const struct non_regression_rule *rule;
    size_t factors;
    struct segment previous, current;
    bool has_previous;
    size_t kept;                        /* rows after the cut that were compared with `previous` */
    size_t previous_cut, cut;           /* the rows where `previous` and `current` began */
    struct reference last, last_lagged; /* the last that rows were compared with */
    double *quantiles;                  /* of F(1, N - 1) by N; 0: not computed yet */
};

/* Updates mean and products of SEGMENT with a row (Welford). */
static void add_row(struct segment *segment, size_t factors, const double *values) {
    double above[P_MAX];
    segment->count++;
    for (size_t i = 0; i < factors; i++) {
        above[i] = values[i] - segment->mean[i];
        segment->mean[i] += above[i] / (double)segment->count;
    }
    for (size_t i = 0; i < factors; i++)
        for (size_t j = 0; j < factors; j++)
            segment->products[i * factors + j] += above[i] * (values[j] - segment->mean[j]);
}

/* Sets RET to the mean and covariance of SEGMENT's rows; count 0: they are fewer than the rule needs. */
static void make_reference(const struct checker *checker, const struct segment *segment,
                           struct reference *ret) {
    size_t factors = checker->factors;
    ret->count = segment->count >= checker->rule->least ? segment->count : 0;
    memcpy(ret->mean, segment->mean, factors * sizeof *ret->mean);
    for (size_t i = 0; i < factors * factors; i++)
        ret->covariance[i] = segment->products[i] / (double)(segment->count - 1);
    for (size_t i = 0; i < factors; i++) {
        double *variance = &ret->covariance[i * factors + i], least = RELATIVE_SIGMA_LEAST * ret->mean[i];
        *variance = fmax(*variance, least * least);
    }
}

/* Squared two-sided quantile of Student's t with COUNT - 1 degrees of freedom, which is F(confidence; 1,
 * COUNT - 1). */
static double squared_quantile(struct checker *checker, size_t count) {
    double *cached = &checker->quantiles[count];
    if (*cached == 0) {
        double t = distribution_student_two_sided_quantile(1 - checker->rule->confidence, (double)count - 1);
        *cached = t * t;
    }
    return *cached;
}

/* Compares X, the mean of REPEATS rows, with REFERENCE; the interval is that of COUNT earlier rows. X NULL:
 * only the interval. RET stays as it is if there is no reference. */
static void test_row(struct checker *checker, const struct reference *reference, size_t count, size_t repeats,
                     const double *x, struct non_regression_test *ret) {
    size_t factors = checker->factors;
    double n = (double)count, r = (double)repeats, p = (double)factors;
    double factor[P_MAX * P_MAX], above[P_MAX], scratch[P_MAX];
    if (reference->count == 0 || cholesky_factor(factors, reference->covariance, factor) != 0)
        return;
    ret->sign = NON_REGRESSION_NORMAL;
    if (factors == 1) {
        double half = factor[0] * sqrt(squared_quantile(checker, count) * (n + r) / (n * r));
        ret->mean = reference->mean[0];
        ret->sigma = factor[0];
        ret->low = ret->mean - half;
        ret->high = ret->mean + half;
    }
    if (!x)
        return;
    for (size_t i = 0; i < factors; i++)
        above[i] = x[i] - reference->mean[i];
    double distance = cholesky_mahalanobis(factors, factor, above, scratch);
    ret->p = distribution_f_upper(distance * n * r * (n - p) / ((n + r) * (n - 1) * p), p, n - p);
    ret->value = factors == 1 ? x[0] : NAN;
    if (ret->p < 1 - checker->rule->confidence)
        ret->sign = factors == 1 && above[0] < 0 ? NON_REGRESSION_LOW : NON_REGRESSION_HIGH;
}

/* Adds a row to SEGMENT. RET gets the reference of this row, RET_LAGGED that of the first row of the window
 * that ends with it. */
static void extend_segment(const struct checker *checker, struct segment *segment, const double *values,
                           struct reference *ret, struct reference *ret_lagged) {
    size_t window = checker->rule->window, at = segment->count;
    make_reference(checker, segment, ret);
    segment->before[at % window] = *ret;
    ret_lagged->count = 0;
    if (at + 1 >= window)
        *ret_lagged = segment->before[(at + 1) % window];
    add_row(segment, checker->factors, values);
}

static bool is_kept(const struct checker *checker) {
    return checker->has_previous && checker->kept < checker->rule->keep;
}

/* Begins a new segment at the cut ROW. The segment before it becomes the previous one, unless all its rows
 * were compared with the one before: such few rows are no reference. */
static void begin_segment(struct checker *checker, size_t row) {
    if (!is_kept(checker)) {
        checker->previous = checker->current;
        checker->previous_cut = checker->cut;
        checker->has_previous = true;
        checker->kept = 0;
    }
    checker->cut = row;
    checker->current = (struct segment){0};
}

/* Adds the row and finds its references. COMPARES_PREVIOUS: the row comes soon after a cut, and is compared
 * with the rows before it. */
static void find_references(struct checker *checker, const double *values, bool compares_previous,
                            struct reference *ret, struct reference *ret_lagged) {
    extend_segment(checker, &checker->current, values, ret, ret_lagged);
    checker->kept += compares_previous;
    if (compares_previous)
        extend_segment(checker, &checker->previous, values, ret, ret_lagged);
    if (ret->count > 0)
        checker->last = *ret;
    if (ret_lagged->count > 0)
        checker->last_lagged = *ret_lagged;
}

/* The mean of the last `window` rows up to ROW since the cut, outliers included. A row that is compared with
 * the rows before the cut takes rows from there too, without the outliers after the cut. False: there are too
 * few rows. */
static bool find_rolling_mean(const struct checker *checker, const double *values,
                              const struct non_regression_row *marks, size_t row, bool compares_previous,
                              double *ret) {
    size_t factors = checker->factors, left = checker->rule->window;
    size_t begin = compares_previous ? checker->previous_cut : checker->cut;
    memset(ret, 0, factors * sizeof *ret);
    for (size_t k = row + 1; left > 0 && k-- > begin;) {
        if (compares_previous && k >= checker->cut && marks[k].is_outlier)
            continue;
        for (size_t i = 0; i < factors; i++)
            ret[i] += values[k * factors + i] / (double)checker->rule->window;
        left--;
    }
    return left == 0;
}

static const struct non_regression_test no_test = {NON_REGRESSION_NONE, NAN, NAN, NAN, NAN, NAN, NAN};

/* Tests one row, and the mean of the window that ends with it. An outlier is tested but changes no reference.
 */
static void check_row(struct checker *checker, const double *values, const struct non_regression_row *marks,
                      size_t row, struct non_regression_verdict *ret) {
    const double *x = values + row * checker->factors;
    struct reference now, lagged;
    double rolling[P_MAX];
    bool is_outlier = marks[row].is_outlier, compares_previous = !is_outlier && is_kept(checker);
    if (is_outlier) {
        now = checker->last;
        lagged = checker->last_lagged;
    } else {
        find_references(checker, x, compares_previous, &now, &lagged);
    }
    bool has_rolling = find_rolling_mean(checker, values, marks, row, compares_previous, rolling);
    bool use_current = checker->rule->published_count && now.count > 0;
    *ret = (struct non_regression_verdict){now.count, no_test, no_test};
    test_row(checker, &now, now.count, 1, x, &ret->single);
    test_row(checker, &lagged, use_current ? now.count : lagged.count, checker->rule->window,
             has_rolling ? rolling : NULL, &ret->windowed);
}

static bool is_valid(const struct non_regression_rule *rule, size_t factors) {
    return factors >= 1 && factors <= P_MAX && rule->confidence > 0 && rule->confidence < 1 &&
           rule->window >= 1 && rule->window <= NON_REGRESSION_WINDOW_MAX && rule->least > factors &&
           rule->keep <= rule->least && rule->least >= 2;
}

int non_regression_check(const struct non_regression_rule *rule, size_t rows, size_t factors,
                         const double *values, const struct non_regression_row *marks,
                         struct non_regression_verdict *ret) {
    if (!is_valid(rule, factors))
        return -EINVAL;
    cleanup_free double *quantiles = xcalloc(rows + 1, sizeof *quantiles);
    cleanup_free struct checker *checker = xcalloc(1, sizeof *checker);
    checker->rule = rule;
    checker->factors = factors;
    checker->quantiles = quantiles;
    for (size_t row = 0; row < rows; row++) {
        if (marks[row].is_cut)
            begin_segment(checker, row);
        check_row(checker, values, marks, row, &ret[row]);
    }
    return 0;
}
