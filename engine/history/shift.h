/*
 * Whether a series has moved to another level, at a row that is not known: the most likely row, by how much,
 * and the probability of as much under no change. Made for few false alarms, also where neighbouring rows are
 * alike and some are far off:
 *
 *   1. The row: where the ranks' normal scores (B. van der Waerden, 1952) of both sides differ most.
 *   2. The sizes of the levels: means after each side's rows are moved to within 2.5 standard deviations of
 *      its median, with the deviation from the median absolute residual.
 *   3. Rows that are alike count for fewer: the variance of a mean is (1 + rho) / (1 - rho) times that of
 *      independent rows, where rho is the residuals' lag-1 correlation, plus its bias 2 (1 + 3 rho) / n and
 * one standard error 1 / sqrt(n), so that it is seldom too small.
 *   4. p, for the greatest of all rows' test values z between the rows h n and (1 - h) n (B. James, K. James,
 *      D. Siegmund, Biometrika 74(1), 1987): z phi(z) ((1 - 1/z^2) 2 log((1 - h) / h) + 4 / z^2).
 */
#ifndef ASSAY_HISTORY_SHIFT_H
#define ASSAY_HISTORY_SHIFT_H

#include <stddef.h>

enum { SHIFT_ROWS_LEAST = 12, SHIFT_SIDE_LEAST = 5 /* rows on either side, or a twentieth of all */ };

struct shift {
    size_t row;           /* the first after the change */
    double before, after; /* the levels, in the unit of the series */
    double low, high;     /* of after - before: with 95 % between them, if the row is right */
    double p;             /* between 0 and 1; 1 where all rows are equal */
};

/* VALUES in order of time, finite. -EDOM: fewer than SHIFT_ROWS_LEAST. */
int shift_find(const double *values, size_t count, struct shift *ret);

#endif
