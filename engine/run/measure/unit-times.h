/*
 * How long a unit will take, from what is known so far; for whoever may start nothing that cannot end in
 * time. Pure: it sees no clock. In this order, what is there first:
 *
 *   1. the longest unit of that row on that node, and a tenth
 *   2. the longest unit of that row on any node, and a tenth
 *   3. what was expected of the row (by a model, or the experiment's own estimate) times the 90 % quantile of
 *      took / expected over all units so far; times 1 while there are none
 *   4. the longest unit so far
 *   5. nothing
 *
 * The quantile is read from a histogram of 8 bins an octave, at the upper edge of its bin, so that it is at
 * most 9 % too high and never too low.
 *
 * Memory: 4 bytes a row, and 4 a row and node as long as these are UNIT_TIMES_PAIRS_MOST at most; of more, 1.
 * is left out.
 */
#ifndef ASSAY_MEASURE_UNIT_TIMES_H
#define ASSAY_MEASURE_UNIT_TIMES_H

#include <stddef.h>
#include <stdint.h>

enum { UNIT_TIMES_PAIRS_MOST = 8 << 20 };

enum unit_times_basis {
    UNIT_TIMES_UNKNOWN,
    UNIT_TIMES_LONGEST,
    UNIT_TIMES_EXPECTED,
    UNIT_TIMES_ROW,
    UNIT_TIMES_ROW_ON_NODE,
};

struct unit_times;

/* EXPECTED: seconds for each row, NAN or not positive where nothing is; copied; NULL: nothing is. NULL when
 * out of memory. */
struct unit_times *unit_times_new(size_t rows, size_t nodes, const double *expected);
void unit_times_free(struct unit_times *times); /* NULL is fine */

/* A unit of ROW on NODE, from 0, took so long. What is not positive, or of a row or node that is not there,
 * is left out. */
void unit_times_take(struct unit_times *times, size_t row, size_t node, int64_t took_ns);

/* ns; negative: not known. */
int64_t unit_times_predict(const struct unit_times *times, size_t row, size_t node,
                           enum unit_times_basis *ret_basis);

#endif
