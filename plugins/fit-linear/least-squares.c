#include "plugins/fit-linear/least-squares.h"

#include <gsl/gsl_cdf.h>
#include <gsl/gsl_eigen.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* A column whose part that no other column explains is below 2^-40 of its own spread (1e-12; its square, the
 * pivot, below 2^-80) is a combination of the others: data in double precision cannot show otherwise. */
static const double dependent = 0x1p-80;
/* The same against the sum of squares from which the spread was had by subtracting the mean. */
static const double cancelled = 0x1p-94;
/* A residual sum of squares below this share of the response's own is rounding of the response, not noise. */
static const double perfect = 0x1p-96;

/* Matrices are square, row by row, as wide as the columns that are fitted: the constant, the slopes, the
 * response. Without an intercept row and column 0 are not used. */
struct least_squares_workspace {
    size_t most;                                                 /* columns */
    size_t width;                                                /* of the last fit, */
    size_t columns[SUMS_COLUMNS_MAX];                            /* its columns in the sums */
    double means[SUMS_COLUMNS_MAX], means_low[SUMS_COLUMNS_MAX]; /* 0 without an intercept */
    double weight;                                               /* sum of weights; 0 without an intercept */
    struct dd *normal;                                           /* centred (or raw) sums of products */
    struct dd *lower;                                            /* L, unit diagonal left out */
    struct dd *inverse;                                          /* of L, then of the normal matrix */
    struct dd *pivots, *slopes;
    bool *independent;
    gsl_matrix *symmetric;
    gsl_vector *eigenvalues;
    gsl_eigen_symm_workspace *eigen;
};

struct problem {
    const struct sums *sums;
    const struct sums_layout *layout;
    bool intercept;
    size_t width, slopes; /* the constant, the slopes, y */
    size_t terms;         /* that are fitted: the slopes and the intercept */
    struct dd weight;     /* sum of weights, or the number of rows */
    struct least_squares_workspace *work;
};

void least_squares_workspace_free(struct least_squares_workspace *workspace) {
    if (!workspace)
        return;
    free(workspace->normal);
    free(workspace->lower);
    free(workspace->inverse);
    free(workspace->pivots);
    free(workspace->slopes);
    free(workspace->independent);
    if (workspace->symmetric)
        gsl_matrix_free(workspace->symmetric);
    if (workspace->eigenvalues)
        gsl_vector_free(workspace->eigenvalues);
    if (workspace->eigen)
        gsl_eigen_symm_free(workspace->eigen);
    free(workspace);
}

struct least_squares_workspace *least_squares_workspace_new(size_t terms) {
    struct least_squares_workspace *work = calloc(1, sizeof *work);
    if (!work)
        return NULL;
    size_t width = work->most = terms + 2;
    work->normal = calloc(width * width, sizeof *work->normal);
    work->lower = calloc(width * width, sizeof *work->lower);
    work->inverse = calloc(width * width, sizeof *work->inverse);
    work->pivots = calloc(width, sizeof *work->pivots);
    work->slopes = calloc(width, sizeof *work->slopes);
    work->independent = calloc(width, sizeof *work->independent);
    work->symmetric = gsl_matrix_alloc(terms, terms);
    work->eigenvalues = gsl_vector_alloc(terms);
    work->eigen = gsl_eigen_symm_alloc(terms);
    if (work->normal && work->lower && work->inverse && work->pivots && work->slopes && work->independent &&
        work->symmetric && work->eigenvalues && work->eigen)
        return work;
    least_squares_workspace_free(work);
    return NULL;
}

static struct dd *at(struct dd *matrix, const struct problem *problem, size_t row, size_t column) {
    return &matrix[row * problem->width + column];
}

static struct dd raw_sum(const struct problem *problem, size_t a, size_t b) {
    return sums_at(problem->sums, problem->work->columns[a], problem->work->columns[b]);
}

static size_t term_of(const struct problem *problem, size_t a) {
    return problem->layout->term_of[problem->work->columns[a]];
}

static int exponent_of(const struct problem *problem, size_t a) {
    return problem->sums->exponents[problem->work->columns[a]];
}

static void range_of(const struct problem *problem, size_t a, double *ret_minimum, double *ret_maximum) {
    *ret_minimum = problem->sums->minimum[problem->work->columns[a]];
    *ret_maximum = problem->sums->maximum[problem->work->columns[a]];
}

static const char *term_name(const struct problem *problem, size_t a) {
    return problem->layout->expansion->terms[term_of(problem, a)].name;
}

/* ---- Normal equations */

/* Sums of squares and products, about the means when there is an intercept. False when one is not finite. */
static bool form_normal(struct problem *problem) {
    bool finite = true;
    for (size_t a = 1; a < problem->width; a++)
        for (size_t b = a; b < problem->width; b++) {
            struct dd sum = raw_sum(problem, a, b);
            if (problem->intercept)
                sum = dd_subtract(sum, dd_divide(dd_multiply(raw_sum(problem, 0, a), raw_sum(problem, 0, b)),
                                                 problem->weight));
            *at(problem->work->normal, problem, a, b) = *at(problem->work->normal, problem, b, a) = sum;
            finite = finite && isfinite(sum.high) && isfinite(sum.low);
        }
    return finite && isfinite(problem->weight.high);
}

/* The pivot of column A below which it is taken for a combination of the others. */
static double negligible(const struct problem *problem, size_t a) {
    double own = dependent * at(problem->work->normal, problem, a, a)->high;
    double raw = cancelled * raw_sum(problem, a, a).high;
    return own > raw ? own : raw;
}

/* normal = L D L'. Columns that depend on earlier ones are marked and passed over; the last one, y, gets its
 * pivot too: the residual sum of squares. Returns how many slopes are independent. */
static size_t factorise(struct problem *problem) {
    struct least_squares_workspace *work = problem->work;
    size_t rank = 0;
    for (size_t j = 1; j < problem->width; j++) {
        for (size_t i = 1; i <= j; i++) {
            if (i < j && !work->independent[i])
                continue;
            /* L_ji D_i = A_ji - sum_k L_jk D_k L_ik; for i = j this is the pivot. */
            struct dd sum = *at(work->normal, problem, j, i);
            for (size_t k = 1; k < i; k++)
                if (work->independent[k])
                    sum = dd_subtract(sum, dd_multiply(dd_multiply(*at(work->lower, problem, j, k),
                                                                   *at(work->lower, problem, i, k)),
                                                       work->pivots[k]));
            if (i < j)
                *at(work->lower, problem, j, i) = dd_divide(sum, work->pivots[i]);
            else
                work->pivots[j] = sum;
        }
        work->independent[j] = work->pivots[j].high > negligible(problem, j);
        rank += j + 1 < problem->width && work->independent[j];
    }
    return rank;
}

/* Solves L' x = row J of L, so that column J ~ sum x_i column i over the independent i < J. */
static void regress_on_earlier(struct problem *problem, size_t j, struct dd *x) {
    struct least_squares_workspace *work = problem->work;
    for (size_t i = j; i-- > 1;) {
        x[i] = dd_from(0);
        if (!work->independent[i])
            continue;
        x[i] = *at(work->lower, problem, j, i);
        for (size_t k = i + 1; k < j; k++)
            if (work->independent[k])
                x[i] = dd_subtract(x[i], dd_multiply(*at(work->lower, problem, k, i), x[k]));
    }
}

/* ---- Saying why not */

struct sentence {
    char *text;
    size_t size, length;
};

__attribute__((format(printf, 2, 3))) static void say(struct sentence *sentence, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    int written =
        vsnprintf(sentence->text + sentence->length, sentence->size - sentence->length, format, arguments);
    va_end(arguments);
    size_t left = sentence->size - sentence->length - 1;
    sentence->length += written < 0 ? 0 : (size_t)written < left ? (size_t)written : left;
}

static double length_of(const struct problem *problem, size_t a) {
    return sqrt(raw_sum(problem, a, a).high);
}

/* "m*k is a linear combination of 1 and m*n": the terms that matter by more than 1e-9 of the column itself.
 */
static void say_combination(struct problem *problem, size_t j, struct sentence *sentence) {
    struct least_squares_workspace *work = problem->work;
    double minimum, maximum;
    range_of(problem, j, &minimum, &maximum);
    if (minimum == maximum && (problem->intercept || minimum == 0)) {
        say(sentence, "%s is always %.6g", term_name(problem, j), minimum);
        return;
    }
    regress_on_earlier(problem, j, work->slopes);
    struct dd constant = raw_sum(problem, 0, j);
    size_t parts[SUMS_COLUMNS_MAX], count = 0;
    double size = length_of(problem, j);
    for (size_t i = 1; i < j; i++) {
        if (!work->independent[i])
            continue;
        constant = dd_subtract(constant, dd_multiply(work->slopes[i], raw_sum(problem, 0, i)));
        if (fabs(work->slopes[i].high) * length_of(problem, i) > 1e-9 * size)
            parts[count++] = i;
    }
    bool shifted = problem->intercept && fabs(constant.high) / sqrt(problem->weight.high) > 1e-9 * size;
    if (shifted) {
        memmove(parts + 1, parts, count * sizeof *parts);
        parts[0] = 0;
        count++;
    }
    if (count == 1 && parts[0] != 0)
        say(sentence, "%s is a multiple of %s", term_name(problem, j), term_name(problem, parts[0]));
    else
        say(sentence, "%s is a linear combination of ", term_name(problem, j));
    for (size_t i = 0; i < count && !(count == 1 && parts[0] != 0); i++)
        say(sentence, "%s%s", i == 0 ? "" : i + 1 < count ? ", " : " and ", term_name(problem, parts[i]));
}

static void say_rank(struct problem *problem, size_t rank, size_t terms, char *reason) {
    struct sentence sentence = {reason, LEAST_SQUARES_REASON_SIZE, 0};
    say(&sentence, "rank %zu of %zu: ", rank + problem->intercept, terms);
    bool first = true;
    for (size_t j = 1; j <= problem->slopes; j++) {
        if (problem->work->independent[j])
            continue;
        say(&sentence, "%s", first ? "" : "; ");
        say_combination(problem, j, &sentence);
        first = false;
    }
}

/* ---- Results */

/* inverse = (L D L')^-1 over the slopes. */
static void invert(struct problem *problem) {
    struct least_squares_workspace *work = problem->work;
    size_t count = problem->slopes;
    /* Column by column, the inverse of L below the diagonal, into `inverse`. */
    for (size_t j = 1; j <= count; j++)
        for (size_t i = j; i <= count; i++) {
            struct dd sum = dd_from(i == j);
            for (size_t k = j; k < i; k++)
                sum = dd_subtract(
                    sum, dd_multiply(*at(work->lower, problem, i, k), *at(work->inverse, problem, k, j)));
            *at(work->inverse, problem, i, j) = sum;
        }
    /* A^-1 = L^-T D^-1 L^-1. Element (i, j) needs rows max(i, j) and below: overwriting upwards is safe in
     * the upper triangle, which L^-1 does not use. The diagonal is 1 in L^-1 and needs to be kept until the
     * end. */
    for (size_t i = 1; i <= count; i++)
        for (size_t j = i; j <= count; j++) {
            struct dd sum = dd_from(0);
            for (size_t k = j; k <= count; k++) {
                struct dd left = k == i ? dd_from(1) : *at(work->inverse, problem, k, i);
                struct dd right = k == j ? dd_from(1) : *at(work->inverse, problem, k, j);
                sum = dd_add(sum, dd_divide(dd_multiply(left, right), work->pivots[k]));
            }
            *at(work->inverse, problem, i, j) = sum;
        }
    for (size_t i = 2; i <= count; i++)
        for (size_t j = 1; j < i; j++)
            *at(work->inverse, problem, i, j) = *at(work->inverse, problem, j, i);
}

/* Row and column 0 of the inverse, for the intercept: -A^-1 m and 1/W + m' A^-1 m, m the means. */
static void invert_intercept(struct problem *problem) {
    struct least_squares_workspace *work = problem->work;
    struct dd corner = dd_divide(dd_from(1), problem->weight);
    for (size_t i = 1; i <= problem->slopes; i++) {
        struct dd sum = dd_from(0);
        for (size_t j = 1; j <= problem->slopes; j++)
            sum = dd_add(sum, dd_multiply(*at(work->inverse, problem, i, j), raw_sum(problem, 0, j)));
        sum = dd_divide(sum, problem->weight);
        corner = dd_add(corner, dd_divide(dd_multiply(sum, raw_sum(problem, 0, i)), problem->weight));
        *at(work->inverse, problem, 0, i) = *at(work->inverse, problem, i, 0) = dd_negate(sum);
    }
    *at(work->inverse, problem, 0, 0) = corner;
}

static void estimate(struct problem *problem, struct least_squares *ret) {
    struct least_squares_workspace *work = problem->work;
    size_t y = problem->width - 1;
    double minimum, maximum;
    range_of(problem, y, &minimum, &maximum);
    regress_on_earlier(problem, y, work->slopes);
    for (size_t i = 1; problem->intercept && minimum == maximum && i <= problem->slopes; i++)
        work->slopes[i] =
            dd_from(0); /* a constant is explained by the constant alone, without a trace of rounding */
    struct dd intercept = raw_sum(problem, 0, y);
    int response = exponent_of(problem, y);
    for (size_t i = 1; i <= problem->slopes; i++) {
        intercept = dd_subtract(intercept, dd_multiply(work->slopes[i], raw_sum(problem, 0, i)));
        ret->estimates[term_of(problem, i)].estimate =
            ldexp(dd_to_double(work->slopes[i]), response - exponent_of(problem, i));
    }
    if (problem->intercept)
        ret->estimates[term_of(problem, 0)].estimate =
            ldexp(dd_to_double(dd_divide(intercept, problem->weight)), response);
}

/* Covariance, standard errors, t and p, from sigma^2 in the scaled response's unit. */
static void judge(struct problem *problem, double variance, struct least_squares *ret) {
    int response = exponent_of(problem, problem->width - 1);
    size_t first = problem->intercept ? 0 : 1;
    for (size_t i = first; i <= problem->slopes; i++) {
        for (size_t j = first; j <= problem->slopes; j++) {
            int exponent = 2 * response - exponent_of(problem, i) - exponent_of(problem, j);
            ret->covariance[term_of(problem, i) * ret->term_count + term_of(problem, j)] =
                ldexp(variance * dd_to_double(*at(problem->work->inverse, problem, i, j)), exponent);
        }
        struct fit_estimate *estimate = &ret->estimates[term_of(problem, i)];
        double square = variance * dd_to_double(*at(problem->work->inverse, problem, i, i));
        estimate->standard_error = ldexp(sqrt(square), response - exponent_of(problem, i));
        estimate->t = estimate->p = NAN;
        if (estimate->standard_error > 0) {
            estimate->t = estimate->estimate / estimate->standard_error;
            estimate->p = 2 * gsl_cdf_tdist_Q(fabs(estimate->t), ret->degrees);
        }
    }
    ret->has_covariance = true;
}

static double greatest_eigenvalue(struct least_squares_workspace *work) {
    gsl_eigen_symm(work->symmetric, work->eigenvalues, work->eigen);
    return gsl_vector_max(work->eigenvalues);
}

/* The 2-norm condition number of the design with its columns scaled to length 1, intercept included (Belsley,
 * Kuh, Welsch 1980): the root of the greatest eigenvalue of G = S X'X S times that of its inverse, which is
 * known to all digits, so that it is right beyond 1e8 as well. And the greatest variance inflation factor. */
static void judge_collinearity(struct problem *problem, struct least_squares *ret) {
    struct least_squares_workspace *work = problem->work;
    size_t first = problem->intercept ? 0 : 1;
    double length[SUMS_COLUMNS_MAX];
    for (size_t i = first; i <= problem->slopes; i++)
        length[i] = i == 0 ? sqrt(problem->weight.high) : length_of(problem, i);
    gsl_matrix_set_zero(work->symmetric);
    for (size_t i = first; i <= problem->slopes; i++)
        for (size_t j = first; j <= problem->slopes; j++)
            gsl_matrix_set(work->symmetric, i - first, j - first,
                           (i + j == 0 ? problem->weight.high : raw_sum(problem, i, j).high) / length[i] /
                               length[j]);
    double greatest = greatest_eigenvalue(work); /* that of columns which are not fitted are 0 */
    gsl_matrix_set_zero(work->symmetric);
    for (size_t i = first; i <= problem->slopes; i++)
        for (size_t j = first; j <= problem->slopes; j++)
            gsl_matrix_set(work->symmetric, i - first, j - first,
                           at(work->inverse, problem, i, j)->high * length[i] * length[j]);
    ret->condition = sqrt(greatest * greatest_eigenvalue(work));
    ret->variance_inflation = 1;
    for (size_t i = 1; i <= problem->slopes; i++) {
        double factor = at(work->normal, problem, i, i)->high * at(work->inverse, problem, i, i)->high;
        if (factor > ret->variance_inflation) {
            ret->variance_inflation = factor;
            ret->inflated_term = term_of(problem, i);
        }
    }
}

/* What is said of the whole fit; RSS and TOTAL in the scaled response's unit squared. */
static void judge_fit(struct problem *problem, struct dd rss, struct dd total, struct least_squares *ret) {
    double n = (double)ret->rows, count = (double)problem->terms;
    int response = exponent_of(problem, problem->width - 1);
    double scaled = ret->perfect || ret->saturated ? 0 : dd_to_double(rss);
    ret->rss = ldexp(scaled, 2 * response);
    ret->total = ldexp(dd_to_double(total), 2 * response);
    ret->degrees = n - count;
    ret->sigma = ret->r2 = ret->adjusted_r2 = ret->log_likelihood = ret->aic = ret->bic = NAN;
    if (!ret->constant_response)
        ret->r2 = problem->slopes == 0 ? 0 : 1 - dd_to_double(dd_divide(dd_from(scaled), total));
    if (ret->saturated)
        return;
    ret->sigma = ldexp(sqrt(scaled / ret->degrees), response);
    ret->adjusted_r2 = 1 - (1 - ret->r2) * ((n - problem->intercept) / ret->degrees);
    if (scaled <= 0)
        return;
    double log_weights = problem->layout->weighted ? problem->sums->log_weights : 0;
    double log_mean_square = log(scaled / n) + 2 * response * M_LN2;
    ret->log_likelihood = 0.5 * (log_weights - n * (log(2 * M_PI) + 1 + log_mean_square));
    /* As in R, sigma counts as one of the parameters. */
    ret->aic = 2 * (count + 1) - 2 * ret->log_likelihood;
    ret->bic = log(n) * (count + 1) - 2 * ret->log_likelihood;
}

static void begin(struct problem *problem, const bool *kept, struct least_squares *ret) {
    struct least_squares_workspace *work = problem->work;
    const struct sums_layout *layout = problem->layout;
    problem->intercept = layout->intercept;
    work->columns[0] = 0;
    work->width = 1;
    for (size_t a = 1; a < layout->width; a++)
        if (!kept || kept[a] || a + 1 == layout->width)
            work->columns[work->width++] = a;
    problem->width = work->width;
    problem->slopes = problem->width - 2;
    problem->terms = problem->slopes + problem->intercept;
    ret->rows = problem->sums->rows;
    ret->term_count = layout->expansion->count;
    ret->fitted_terms = problem->terms;
    ret->has_covariance = ret->saturated = ret->perfect = ret->constant_response = false;
    ret->inflated_term = 0;
    for (size_t t = 0; t < ret->term_count; t++)
        ret->estimates[t] =
            (struct fit_estimate){.estimate = 0, .standard_error = NAN, .t = NAN, .p = NAN, .dropped = true};
    size_t first = problem->intercept ? 0 : 1;
    for (size_t i = first; i <= problem->slopes; i++)
        ret->estimates[term_of(problem, i)] =
            (struct fit_estimate){.estimate = NAN, .standard_error = NAN, .t = NAN, .p = NAN};
    memset(ret->covariance, 0, ret->term_count * ret->term_count * sizeof *ret->covariance);
}

/* What least_squares_row needs besides the factors. */
static void keep_means(const struct problem *problem) {
    struct least_squares_workspace *work = problem->work;
    work->weight = problem->intercept ? problem->weight.high : 0;
    for (size_t a = 1; a < problem->width; a++) {
        struct dd mean = problem->intercept ? dd_divide(raw_sum(problem, 0, a), problem->weight) : dd_from(0);
        work->means[a] = mean.high;
        work->means_low[a] = mean.low;
    }
}

/* Sums are scaled, so they may hold where what is to be told of them, in the columns' own units, does not. */
static bool can_be_told(const struct problem *problem, const struct least_squares *result,
                        const char **ret_what) {
    for (size_t a = 1; a < problem->width; a++) {
        double least, greatest;
        range_of(problem, a, &least, &greatest);
        *ret_what = a <= problem->slopes ? term_name(problem, a) : "the response";
        if (!isfinite(least) || !isfinite(greatest))
            return false;
    }
    *ret_what = "the residual sum of squares";
    if (!isfinite(result->rss))
        return false;
    for (size_t t = 0; t < result->term_count; t++) {
        const struct fit_estimate *estimate = &result->estimates[t];
        if (estimate->dropped)
            continue;
        *ret_what = problem->layout->expansion->terms[t].name;
        if (!isfinite(estimate->estimate))
            return false;
        /* 0 where there are residuals: it fell below the smallest double. */
        if (result->has_covariance &&
            (!isfinite(estimate->standard_error) || (estimate->standard_error == 0 && !result->perfect)))
            return false;
        for (size_t u = 0; result->has_covariance && u < result->term_count; u++)
            if (!isfinite(result->covariance[t * result->term_count + u]))
                return false;
    }
    return true;
}

/* The number of rows, the sums, or the rank do not do: why, into REASON. */
static bool can_be_fitted(struct problem *problem, char *reason) {
    uint64_t rows = problem->sums->rows;
    if (rows < problem->terms) {
        snprintf(reason, LEAST_SQUARES_REASON_SIZE, "%llu row%s for %zu term%s", (unsigned long long)rows,
                 rows == 1 ? "" : "s", problem->terms, problem->terms == 1 ? "" : "s");
        return false;
    }
    problem->weight = raw_sum(problem, 0, 0);
    if (!form_normal(problem)) {
        snprintf(reason, LEAST_SQUARES_REASON_SIZE,
                 "the sums of its products are beyond the range of a double");
        return false;
    }
    size_t rank = factorise(problem);
    if (rank < problem->slopes) {
        say_rank(problem, rank, problem->terms, reason);
        return false;
    }
    return true;
}

enum least_squares_outcome least_squares_fit(const struct sums *sums, const bool *kept,
                                             struct least_squares_workspace *workspace,
                                             struct least_squares *ret,
                                             char reason[static LEAST_SQUARES_REASON_SIZE]) {
    struct problem problem = {.sums = sums, .layout = sums->layout, .work = workspace};
    begin(&problem, kept, ret);
    if (!can_be_fitted(&problem, reason))
        return LEAST_SQUARES_SKIPPED;
    size_t y = problem.width - 1;
    invert(&problem);
    if (problem.intercept)
        invert_intercept(&problem);
    estimate(&problem, ret);
    keep_means(&problem);
    double raw = raw_sum(&problem, y, y).high;
    struct dd total = *at(workspace->normal, &problem, y, y);
    ret->saturated = ret->rows == problem.terms;
    ret->constant_response = total.high <= cancelled * raw;
    ret->perfect = workspace->pivots[y].high <= perfect * raw;
    judge_fit(&problem, workspace->pivots[y], total, ret);
    if (!ret->saturated)
        judge(&problem, ldexp(ret->rss, -2 * exponent_of(&problem, y)) / ret->degrees, ret);
    const char *what;
    if (!can_be_told(&problem, ret, &what)) {
        snprintf(reason, LEAST_SQUARES_REASON_SIZE,
                 "%.200s or its coefficient is beyond the range of a double", what);
        return LEAST_SQUARES_SKIPPED;
    }
    judge_collinearity(&problem, ret);
    return LEAST_SQUARES_FITTED;
}

/* What the columns before it leave of each column of the row, scaled. */
static void substitute(const struct least_squares_workspace *workspace, const struct sums *sums,
                       const double *row, double *ret) {
    size_t width = workspace->width;
    for (size_t i = 1; i < width; i++) {
        size_t column = workspace->columns[i];
        ret[i] = ldexp(row[column], -sums->exponents[column]) - workspace->means[i] - workspace->means_low[i];
        for (size_t k = 1; k < i; k++)
            ret[i] -= workspace->lower[i * width + k].high * ret[k];
    }
}

void least_squares_row(const struct least_squares_workspace *workspace, const struct sums *sums,
                       const double *row, double *ret_residual, double *ret_leverage) {
    size_t width = workspace->width;
    double v[SUMS_COLUMNS_MAX];
    double leverage = workspace->weight > 0 ? 1 / workspace->weight : 0;
    substitute(workspace, sums, row, v);
    for (size_t i = 1; i + 1 < width; i++)
        leverage += v[i] * v[i] / workspace->pivots[i].high;
    *ret_residual = ldexp(v[width - 1], sums->exponents[workspace->columns[width - 1]]);
    *ret_leverage = leverage;
}

size_t least_squares_coordinates(const struct least_squares_workspace *workspace, const struct sums *sums,
                                 const double *row, double *ret, double *ret_residual) {
    size_t width = workspace->width, count = 0;
    double v[SUMS_COLUMNS_MAX];
    substitute(workspace, sums, row, v);
    if (workspace->weight > 0)
        ret[count++] = 1 / sqrt(workspace->weight);
    for (size_t i = 1; i + 1 < width; i++)
        ret[count++] = v[i] / sqrt(workspace->pivots[i].high);
    *ret_residual = ldexp(v[width - 1], sums->exponents[workspace->columns[width - 1]]);
    return count;
}
