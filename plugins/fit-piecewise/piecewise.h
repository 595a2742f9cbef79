/*
 * Segmented lines of one group: its rows as points over one column x, where to break them, and the lines
 * between the breaks. README.md has the formulas.
 */
#ifndef ASSAY_FIT_PIECEWISE_PIECEWISE_H
#define ASSAY_FIT_PIECEWISE_PIECEWISE_H

#include "engine/numerics/segments.h"

#include <assay/fit.h>

enum parameter { SIZE, BREAKS, NAMES, CRITERION, PER_BREAK, SEGMENTS, MINIMUM, EQUAL, BETWEEN, CONFIDENCE };
enum criterion { CRITERION_RELATIVE, CRITERION_BIC, CRITERION_AIC };
enum equal { EQUAL_AVERAGED, EQUAL_RAW };

static inline double piecewise_number(const struct fit_request *request, enum parameter parameter) {
    return request->values[parameter].number;
}

/* Whether errors are divided by the response. */
static inline bool is_relative(const struct fit_request *request) {
    return piecewise_number(request, CRITERION) == CRITERION_RELATIVE;
}

/* A point for each x, ascending. A line sees of the measurements of one x, a row each or their mean, the
 * weight, the mean and how they scatter about it:  sum of w (y - f(x))^2  =  weight (mean - f(x))^2 +
 * scatter.
 */
struct points {
    size_t count;
    bool is_raw;                      /* each row is a measurement */
    struct segments_problem problem;  /* x, y and weight as the criterion sees them; the number of points */
    double *x, *y, *weight, *scatter; /* the same, to write */
    double *mean, *copies, *within;   /* of the table's rows of that x: mean, number, sum (y - mean)^2 */
    double log_weights;               /* sum of the logarithms of the measurements' weights */
    size_t used, not_positive;        /* rows of the table; left out: relative errors need y above 0 */
};

/* 0 or -ENOMEM; to be cleared in any case. */
int points_make(const struct fit_rows *rows, const struct fit_request *request, struct points *ret);
void points_clear(struct points *points);

struct part {
    size_t begin, end; /* points */
    double from;       /* the first x; of a given break that */
    const char *name;  /* or NULL */
    bool is_given;
    double estimates[2], covariance[4]; /* covariance: NaN where there are no degrees of freedom */
    double rss, freedom, sigma, r2;
    double low, high; /* the interval of the break at `from`; NaN: given, or the first */
    double noise; /* standard deviation of one row, relative to the line where errors are; NaN: not known */
};

struct segmentation {
    struct points points;
    struct part *parts;
    size_t count;
    double rss, log_likelihood, parameters;
    size_t breaks_outside; /* given ones beside all points */
    size_t places;         /* between which breaks were searched; 0: everywhere */
};

static inline double part_at(const struct part *part, double x) {
    return part->estimates[0] + part->estimates[1] * x;
}

/* 0; -EDOM: this group has none, for the reason in MESSAGE; -ENOMEM. To be cleared in any case. */
int segmentation_fit(const struct fit_rows *rows, const struct fit_request *request, struct segmentation *ret,
                     struct plugin_message *message);
void segmentation_clear(struct segmentation *segmentation);

#endif
