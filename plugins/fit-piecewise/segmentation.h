/* The segmented lines of one group: where the breaks are, and the line of each segment. README.md has
 * formulas. */
#ifndef ASSAY_FIT_PIECEWISE_SEGMENTATION_H
#define ASSAY_FIT_PIECEWISE_SEGMENTATION_H

#include "plugins/fit-piecewise/line.h"
#include "plugins/fit-piecewise/request.h"

enum {
    SEGMENTATION_REASON_SIZE = 256,
    SEGMENTATION_POINTS_MAX = 1 << 20, /* different sizes of a group */
    SEGMENTATION_ROUNDS_MAX = 30,      /* of the log error */
};

struct segment {
    size_t first, end; /* points */
    double from;       /* where it begins: its first point, or the break that is given */
    struct line line;
    bool given;                   /* the terms say that it begins here */
    const char *name;             /* that the terms give it, or NULL; the request's */
    double break_low, break_high; /* the confidence interval of where it begins; NaN where there is none */
    double noise;                 /* standard deviation of one row about the line, see README.md; NaN where
                                     no rows are left to tell it */
};

/* Measured sizes at which the lines are not above 0 while all responses are. */
struct sunken_line {
    size_t segments; /* that have such sizes */
    size_t first;    /* the first of these */
    double low, high;
};

struct segmentation {
    struct point *points;     /* owned; as the error that is minimised bends them */
    struct segment *segments; /* owned */
    size_t point_count, segment_count;
    double observations; /* points, or rows where they are raw */
    double rss, log_likelihood, aic, bic;
    size_t given_left_out; /* breaks of the terms with no size on one of their sides */
    size_t rounds;         /* of the log error; 0: of no other */
    bool settled;          /* the last two rounds found the same breaks */
    size_t below_zero;     /* sizes at which a line of the log error is not above 0 */
    bool greatest;         /* there is no room for more segments */
    struct sunken_line sunken;
};

enum segmentation_outcome { SEGMENTATION_FITTED, SEGMENTATION_SKIPPED };

/* Sorts ROWS, COUNT of them, whose weights are above 0 and, for relative and log errors, whose y. Fills *RET,
 * or says why not in REASON; -ENOMEM. The caller clears *RET in any case. */
int segmentation_fit(const struct request *request, struct point_row *rows, size_t count,
                     struct segmentation *ret, char reason[static SEGMENTATION_REASON_SIZE]);
void segmentation_clear(struct segmentation *segmentation);

#endif
