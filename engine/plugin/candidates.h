/*
 * Candidates: places in a box from which rows of a design may be chosen (optimal-rows.h).
 *
 * Points are spread by the sequence of R. D. Richtmyer (1951; H. Niederreiter, "Random Number Generation and
 * Quasi-Monte Carlo Methods", 1992, chapter 3): coordinate j of point i is the fraction of i sqrt(p_j) + s_j,
 * p_j being the j-th prime and s_j drawn from the seed; it fills a box more evenly than random points do. A
 * range that begins above 0 and ends at CANDIDATES_DECADES times its beginning or above is filled evenly in
 * the logarithm, any other one as it is; whole numbers are rounded down.
 *
 * Best rows lie at the borders, where no drawn point does: so the corners of the box come too, and the
 * middles between them while there are not too many. One that is not admitted is moved towards each of the
 * first admitted points until it is: there the border of what is admitted lies.
 */
#ifndef ASSAY_PLUGIN_CANDIDATES_H
#define ASSAY_PLUGIN_CANDIDATES_H

#include "engine/design/design.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CANDIDATES_FACTORS_MAX = 32,
    CANDIDATES_MAX = 1 << 16,
    CANDIDATES_DECADES = 100,
    CANDIDATES_ATTEMPTS = 500, /* points looked at for each that is wanted */
};

struct candidate_range {
    const char *name;
    bool whole;
    double low, high; /* finite; whole ones are whole, and low <= high */
};

/* Whether a point may be one; VALUES are those of the ranges. */
typedef bool (*candidate_admits)(void *context, const double *values);

struct candidates {
    struct design *design; /* owned: a column a range, every row once */
    double *shares;        /* owned: how many of the drawn points each row is; 0 for a corner */
};

/* Draws COUNT points, or as many as are found; none at all is refused. With no ranges there is one row
 * without columns. */
int candidates_draw(const struct candidate_range *ranges, size_t range_count, size_t count, uint64_t seed,
                    candidate_admits admits, void *context, struct candidates *ret, struct failure *failure);
/* Fine on zeroed memory. */
void candidates_clear(struct candidates *candidates);

/* Whether a range is filled evenly in the logarithm. */
bool candidate_range_is_logarithmic(const struct candidate_range *range);

/* The ROWS (COUNT, in that order, repeated or not) of a design as a design of their own. */
int design_pick(const struct design *design, const size_t *rows, size_t count, struct design **ret,
                struct failure *failure);

#endif
