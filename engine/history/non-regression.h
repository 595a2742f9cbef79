/*
 * Non-regression tests of a series of measurements, one row after the other: is this row, or the mean of the
 * last rows, where the rows before it say that it should be? The prediction intervals are those of V. Chew
 * (J. Am. Stat. Assoc. 61, 1966), used as in T. Cornebize, thesis, Grenoble 2021, chapter 9: with N earlier
 * rows of P factors, their mean m and covariance S, and the mean x of R new rows,
 *
 *     T2 = N R (N - P) / ((N + R) (N - 1) P) (x - m)' S^-1 (x - m)     is distributed as F(P, N - P).
 *
 * With one factor the interval is m +- s sqrt(F(confidence; 1, N - 1) (N + R) / (N R)). A standard deviation
 * counts as at least 1e-4 of the mean.
 *
 * A cut (a known change of the machine or the protocol) ends what rows are compared with. The first `keep`
 * rows after it are still compared with the rows before it, so that what the change did is seen; then there
 * is no verdict until `least` rows have come.
 */
#ifndef ASSAY_HISTORY_NON_REGRESSION_H
#define ASSAY_HISTORY_NON_REGRESSION_H

#include <stdbool.h>
#include <stddef.h>

enum { NON_REGRESSION_FACTORS_MAX = 16, NON_REGRESSION_WINDOW_MAX = 64 };

struct non_regression_rule {
    double confidence; /* of one verdict: 0.9999 */
    size_t least;      /* earlier rows that a verdict needs: 10, and more than there are factors */
    size_t keep;       /* rows after a cut that are still compared with those before it: 5; at most `least` */
    size_t window;     /* rows of the windowed verdict: 5; at most NON_REGRESSION_WINDOW_MAX */
    /* The N of the windowed interval counts all earlier rows, as the published code does, instead of the rows
     * before the window, from which mean and deviation are. */
    bool published_count;
};

struct non_regression_row {
    bool is_cut;     /* a change came between the row before and this one */
    bool is_outlier; /* known to be wrong: judged, but nothing is compared with it */
};

enum non_regression_sign {
    NON_REGRESSION_NONE,
    NON_REGRESSION_NORMAL,
    NON_REGRESSION_LOW,
    NON_REGRESSION_HIGH
};

/* The result of one test. NaN where it could not be made. */
struct non_regression_test {
    /* NONE: too few rows to compare with. NORMAL, too, where there is an interval and nothing to compare. Of
     * several factors HIGH stands for any deviation. */
    enum non_regression_sign sign;
    double p; /* probability of a deviation as large or larger, if nothing has changed */
    /* For one factor only, in its unit: */
    double value;       /* that is compared: the row, or the mean of the last rows */
    double mean, sigma; /* of the earlier rows */
    double low, high;   /* the interval */
};

struct non_regression_verdict {
    size_t count; /* earlier rows that the row is compared with; 0: none */
    struct non_regression_test single, windowed;
};

/* VALUES has FACTORS numbers a row, in order of time; RET a verdict a row. -EINVAL: a rule or number of
 * factors outside of its limits. Values must be finite. */
int non_regression_check(const struct non_regression_rule *rule, size_t rows, size_t factors,
                         const double *values, const struct non_regression_row *marks,
                         struct non_regression_verdict *ret);

#endif
