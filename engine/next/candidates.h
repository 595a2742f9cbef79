/*
 * Candidates: places in a box from which rows of a design may be chosen (optimal-rows.h): a grid over the
 * box, ends included, of as many levels in each range as CANDIDATES_GRID allows. A range that begins above 0
 * and ends at CANDIDATES_DECADES times its beginning or above is divided evenly in its logarithm, any other
 * one as it is; whole numbers are rounded.
 *
 * Best rows lie at borders: a point of the grid that is not admitted is moved towards an admitted one until
 * it is, and so lies on the border of what is admitted.
 */
#ifndef ASSAY_NEXT_CANDIDATES_H
#define ASSAY_NEXT_CANDIDATES_H

#include "engine/design/design.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CANDIDATES_FACTORS_MAX = 12,
    CANDIDATES_GRID =
        8192, /* points; of more than 8 ranges fewer than 3 levels each, and as many as 2 make */
    CANDIDATES_LEVELS_MAX = 257,
    CANDIDATES_DECADES = 100,
};

struct candidate_range {
    const char *name;
    bool whole;
    double low, high; /* finite; whole ones are whole, and low <= high */
};

/* Whether a point may be one; VALUES are those of the ranges. */
typedef bool (*candidate_admits)(void *context, const double *values);

/* The points into *RET: a column a range, every row once, by value. The caller frees *RET_SHARES: what each
 * row counts in an average over what is admitted, by the trapezoidal rule; 0 on borders to which it was
 * moved. With no ranges there is one row without columns. No point at all, and more than
 * CANDIDATES_FACTORS_MAX ranges, are refused. */
int candidates_make(const struct candidate_range *ranges, size_t range_count, candidate_admits admits,
                    void *context, struct design **ret, double **ret_shares, struct failure *failure);

/* Where VALUE lies in a range: 0 at its beginning, 1 at its end. */
double candidate_range_place(const struct candidate_range *range, double value);

/* Whether a range is divided evenly in the logarithm. */
bool candidate_range_is_logarithmic(const struct candidate_range *range);

#endif
