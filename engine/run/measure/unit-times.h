/*
 * How long a unit will take, from what is known so far; for a caller that may start nothing that cannot
 * end in time. In this order, what is there first:
 *
 *   1. the longest unit of that row, and a tenth
 *   2. what was expected of the row (by a model, or the experiment's own estimate) times the largest ratio of
 *      took / expected of all units so far; times 1 while there are none
 *   3. the longest unit so far
 *
 * And how long all units that are left will take, for people: a unit of a row of which some have ended takes
 * their mean; any other takes its expected duration times the sum of the durations so far over the sum of
 * what was expected of them. Where nothing is expected, all rows are taken to be alike.
 *
 * Pure: it sees no clock.
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
void unit_times_add(struct unit_times *times, size_t row, int64_t took_ns);

/* So many more units of ROW are to be measured; negative: fewer. */
void unit_times_plan(struct unit_times *times, size_t row, int64_t units);
/* No units are to be measured. */
void unit_times_plan_none(struct unit_times *times);
/* A unit of ROW that was to be measured has ended. It kept its lane busy for SECONDS since the end of the
 * unit before; negative: not known. */
void unit_times_end(struct unit_times *times, size_t row, double seconds);
/* Seconds that one lane would need for one unit of ROW, and for all that are left; negative: not known. */
double unit_times_mean(const struct unit_times *times, size_t row);
double unit_times_left(const struct unit_times *times);

/* ns; negative: not known. */
int64_t unit_times_predict(const struct unit_times *times, size_t row);

#endif
