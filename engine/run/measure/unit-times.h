/*
 * How long a unit will take, from what is known so far; for a caller that may start nothing that cannot
 * end in time. Pure: it sees no clock. In this order, what is there first:
 *
 *   1. the longest unit of that row, and a tenth
 *   2. what was expected of the row (by a model, or the experiment's own estimate) times the largest ratio of
 *      took / expected of all units so far; times 1 while there are none
 *   3. the longest unit so far
 */
#ifndef ASSAY_MEASURE_UNIT_TIMES_H
#define ASSAY_MEASURE_UNIT_TIMES_H

#include <stddef.h>
#include <stdint.h>

struct unit_times;

/* EXPECTED: seconds for each row, NAN or not positive where nothing is; copied; NULL: nothing is. */
struct unit_times *unit_times_new(size_t rows, const double *expected);
void unit_times_free(struct unit_times *times); /* NULL is fine */

/* A unit of ROW, from 0, took so long; not positive: nothing is known of it. */
void unit_times_take(struct unit_times *times, size_t row, int64_t took_ns);

/* ns; negative: not known. */
int64_t unit_times_predict(const struct unit_times *times, size_t row);

#endif
