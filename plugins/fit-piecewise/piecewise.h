/*
 * Segmented lines of one group: its rows as points over one column x, where to break them, and the lines
 * between the breaks. README.md has the formulas.
 */
#ifndef ASSAY_FIT_PIECEWISE_PIECEWISE_H
#define ASSAY_FIT_PIECEWISE_PIECEWISE_H

#include "engine/numerics/segments.h"

#include <assay/fit.h>

enum parameter {
    SIZE,
    BREAKS,
    NAMES,
    CRITERION,
    PER_BREAK,
    SEGMENTS,
    MINIMUM,
    EQUAL,
    BETWEEN,
    CONTINUOUS,
    CONFIDENCE
};
enum criterion { CRITERION_RELATIVE, CRITERION_BIC, CRITERION_AIC, CRITERION_LOG };
enum equal { EQUAL_AVERAGED, EQUAL_WEIGHTED, EQUAL_RAW };

static inline double piecewise_number(const struct fit_request *request, enum parameter parameter) {
    return request->values[parameter].number;
}

/* Whether errors are divided by the response. */
static inline bool is_relative(const struct fit_request *request) {
    double criterion = piecewise_number(request, CRITERION);
    return criterion == CRITERION_RELATIVE || criterion == CRITERION_LOG;
}

/* A measurement as it counts: a row, or the mean of the rows of one x. */
struct row {
    double x, y, weight;
};

/* A point for each x, ascending. A line sees of the measurements of one x their weight, their mean and how
 * they scatter about it:  sum of w (y - f(x))^2  =  weight (mean - f(x))^2 + scatter. */
struct points {
    struct row *rows; /* measurements, by x */
    size_t row_count, count;
    size_t *first;                    /* of each point its first measurement; and the end */
    struct segments_problem problem;  /* x, y and weight as the criterion sees them; the number of points */
    double *x, *y, *weight, *scatter; /* the same, to write */
    double *mean, *copies, *within;   /* of the table's rows of that x: mean, number, sum (y - mean)^2 */
    size_t used, not_positive;        /* rows of the table; left out: relative errors need y above 0 */
};

/* 0 or -ENOMEM. The points are those of relative errors, or of plain ones. */
int points_make(const struct fit_rows *rows, const struct fit_request *request, struct points *ret);
void points_clear(struct points *points);
/* Sets y, weight and scatter to those of the log error to first order about the line whose value at each
 * point is ABOUT: log y - log f ~ (F (1 + log(y / F)) - f) / F. NaN (or ABOUT is NULL): relative error there.
 */
void points_linearise(struct points *points, bool relative, const double *about);

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
    size_t not_above;      /* points at which the log error's line is not above 0 */
};

static inline double part_at(const struct part *part, double x) {
    return part->estimates[0] + part->estimates[1] * x;
}

/* 0; -EDOM: this group has none, for the reason in MESSAGE; -ENOMEM. To be cleared in any case. */
int segmentation_fit(const struct fit_rows *rows, const struct fit_request *request, struct segmentation *ret,
                     struct plugin_message *message);
void segmentation_clear(struct segmentation *segmentation);

/* The lines of the parts, whose places are set. -EDOM: lines that meet need more points. */
int lines_fit(struct segmentation *segmentation, bool are_joined, struct plugin_message *message);

#endif
