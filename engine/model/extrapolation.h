/*
 * Whether a row lies outside of the rows that a model was fitted to, and how far: by the ranges of the
 * part's domain, by the levels of categories, by the convex hull of the rows.
 */
#ifndef ASSAY_MODEL_EXTRAPOLATION_H
#define ASSAY_MODEL_EXTRAPOLATION_H

#include "engine/model/evaluator.h"

enum { EXTRAPOLATION_SENTENCE_SIZE = 768 };

/*
 * Sets the extrapolation of RET: 1 inside; else the greatest factor by which a range is left (value/maximum
 * or minimum/value), INFINITY where that has no sense: a sign, a zero, a level that was never seen. A term's
 * range counts only where no column's is left: it says the same with a larger number. Of segments the range
 * of the column that they are over is that of the group. Beyond the hull: in widths of it.
 */
void extrapolation_find(const struct evaluator *evaluator, const struct model_group *group,
                        const double *inputs, struct evaluator_value *ret);
/* Whether the domain may have a range of the term that no column has: it has no dummy, and is not of the
 * segments' column alone. */
bool extrapolation_has_range(const struct model *model, const struct model_term *term);
/* How far the row is beyond the hull of all rows, in widths of the hull; 0: inside, or there is no hull. */
double extrapolation_beyond_hull(const struct evaluator *evaluator, const double *inputs);
bool extrapolation_is_outside(const struct evaluator_value *value);
/* One clause on that: "'m' is 3.2 times the greatest value that was measured". Returns BUFFER. */
const char *extrapolation_describe(const struct evaluator_value *value,
                                   char buffer[static EXTRAPOLATION_SENTENCE_SIZE]);

/* Counts of rows outside the domain, with the one that is furthest out, and of predictions of 0 or less.
 * To be zeroed but for IS_TIME. */
struct extrapolation_tally {
    uint64_t rows, outside, not_positive;
    bool is_time; /* the response is a time, which must be above 0 */
    struct evaluator_value furthest;
};

void extrapolation_count(struct extrapolation_tally *tally, const struct evaluator_value *value);
/* "3 of 7 rows are outside of what the model was fitted to; of the one furthest out, ...; a time of 0 or less
 * is predicted for 2 of 7 rows", into BUFFER; NULL where there is neither. */
const char *extrapolation_summarise(const struct extrapolation_tally *tally,
                                    char buffer[static EXTRAPOLATION_SENTENCE_SIZE]);

#endif
