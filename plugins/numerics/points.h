/*
 * The rows of one group as points: the rows of one size are one point. A line over sizes sees of the rows of
 * one size only their weight, their mean and how they scatter about it, so a point is all of them:
 *
 *     sum over rows of w (y - f(x))^2  =  weight (y - f(x))^2 + within
 *
 * Points are in ascending order of size, whatever order the rows came in.
 */
#ifndef ASSAY_NUMERICS_POINTS_H
#define ASSAY_NUMERICS_POINTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct point_row {
    double x, y, weight;
};

struct point {
    double x, y;   /* y: weighted mean of the rows */
    double weight; /* their sum; their mean where equal sizes are averaged */
    double within; /* sum of weight x squared distance of the rows from y; 0 where they are averaged */
    size_t rows;   /* that it is made of */
};

enum points_equal {
    POINTS_AVERAGED, /* the mean of the rows of one size counts as one measurement */
    POINTS_WEIGHTED, /* the mean counts as often as there are rows (or as their weights add up to) */
    POINTS_RAW,      /* every row counts on its own: the same lines, but the scatter within a size counts */
    POINTS_PRECISE,  /* as weighted, times the variance of the rows of all sizes over that of the size's own:
                        the  inverse variance of the mean. A size of one row, or whose rows are equal, has the
                        variance of all; where no size has any they are weighted */
    POINTS_PRECISE_RELATIVE, /* the same of variances over squared means */
};

enum points_error {
    POINTS_PLAIN,    /* y - f */
    POINTS_RELATIVE, /* (y - f) / y */
    POINTS_LOG,      /* log y - log f, to first order about `about` */
};

/* Sorts the COUNT ROWS (by x, then y, then weight, so that their order does not matter) and makes points of
 * them: at most COUNT in RET. Returns how many. ABOUT: for POINTS_LOG the line's value for each point, NULL
 * for the measurement itself (which is POINTS_RELATIVE); otherwise NULL. */
size_t points_make(struct point_row *rows, size_t count, enum points_equal equal, enum points_error error,
                   const double *about, struct point *ret);

/* The rows are in order already. */
size_t points_make_sorted(const struct point_row *rows, size_t count, enum points_equal equal,
                          enum points_error error, const double *about, struct point *ret);

#endif
