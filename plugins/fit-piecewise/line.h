/* The best line over a run of points, with all that is said of it. Conventions of R's lm. */
#ifndef ASSAY_FIT_PIECEWISE_LINE_H
#define ASSAY_FIT_PIECEWISE_LINE_H

#include "plugins/interface/fit.h"
#include "plugins/numerics/points.h"

struct line {
    struct fit_estimate estimates[2]; /* intercept, slope */
    double covariance[4];
    bool has_covariance;
    double rss, sigma, degrees, r2;
    double rows; /* that count: points, or raw rows */
};

/* POINTS: COUNT, at least 2, of different sizes. RAW: every row counts, not every point. */
void line_fit(const struct point *points, size_t count, bool raw, struct line *ret);

/* Intercept and slope alone, in 16 digits: a step on the way to where line_fit is asked. */
void line_estimate(const struct point *points, size_t count, struct line *ret);

/* Standard errors, t and p of ESTIMATES from their COVARIANCE and degrees of freedom. */
void line_judge(struct line *line);

double line_at(const struct line *line, double x);

#endif
