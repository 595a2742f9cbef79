/*
 * When a row of a design is known well enough (engine/design/repeat.h): the mean of each row over groups of
 * its measurements, and the confidence interval of that mean.
 *
 * A group's value is the mean of its measurements. With k groups of values x_i the half width of the interval
 * is t s / sqrt(k), s^2 = sum (x_i - mean)^2 / (k - 1), t being student_t_two_sided(k - 1, confidence). The
 * row is settled when the half width is at most ci |mean|, and at least as many repetitions as are wanted
 * have been measured. So:
 *   - one group, or none, settles nothing;
 *   - equal values are settled, with a half width of 0, whatever they are, 0 too;
 *   - a mean of 0 of values that differ is never settled, however close to it they lie;
 *   - nor is a row one of whose values is not finite, or too large for its square.
 *
 * Of a unit that was measured several times the last value counts. One that is going to be measured again is
 * kept aside until that has happened, or the round is over without it. Groups of a node in a block, or of a
 * block, are closed when a later repetition of their row comes: what comes late for a closed one (a unit that
 * failed, and was tried again in a later part of the run) is left out.
 *
 * Sums are Welford's, in the order in which values are taken: the same values in the same order give the same
 * verdicts, whether they were just measured or are read again. Memory: some 40 bytes a row, 16 to 32 bytes
 * for each row on each node (on one, where groups are of blocks), and 40 for each value that is kept aside.
 */
#ifndef ASSAY_MEASURE_REPETITION_RULE_H
#define ASSAY_MEASURE_REPETITION_RULE_H

#include "engine/design/repeat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct repetition_rule;

enum {
    REPETITION_CELLS_MOST = 1 << 26, /* rows times nodes */
    REPETITION_ASIDE_MOST = 1 << 24, /* values that wait for their unit to be measured again */
};

/* REPEAT says what is wanted, and is kept; ROWS are those of the design. */
int repetition_rule_new(const struct design_repeat *repeat, size_t rows, struct repetition_rule **ret);
void repetition_rule_free(struct repetition_rule *rule); /* NULL is fine */

/* A measurement. */
struct repetition_value {
    size_t row, repetition; /* from 0 */
    const char *node;       /* by whose name nodes are told apart */
    const char *core;       /* the same of a unit's place on its node */
    unsigned attempt;       /* at the unit, from 1 */
    bool again;             /* the unit is to be measured again */
    double value;
};
/* 0, -ENOMEM, or -EFBIG past a limit. */
int repetition_rule_take(struct repetition_rule *rule, const struct repetition_value *value);

struct repetition_estimate {
    size_t repetitions; /* with a value */
    size_t groups;      /* with a value */
    double mean;        /* nan: no group */
    double half_width;  /* nan: fewer than two groups */
    double relative;    /* half width / |mean|: 0 for equal values, else inf for a mean of 0 */
    bool narrow;        /* it is as narrow as is wanted, after as many repetitions */
};
/* What is known of ROW from the repetitions before number BEFORE, all with SIZE_MAX. Of those that were taken
 * only the last one, which may not be over, can be left out so. */
struct repetition_estimate repetition_rule_estimate(struct repetition_rule *rule, size_t row, size_t before);

/* The repetitions before number BEFORE are over for ROW: if what is known is enough, it is settled, and no
 * repetition from BEFORE on is needed. True when that is new. What is aside counts first: call
 * repetition_rule_gather() before a number of these. */
bool repetition_rule_settle(struct repetition_rule *rule, size_t row, size_t before);
/* Values that are aside from repetitions before BEFORE will not be measured again: they count. */
void repetition_rule_gather(struct repetition_rule *rule, size_t before);
/* Is ROW settled, and REPETITION not needed any more? */
bool repetition_rule_leaves_out(const struct repetition_rule *rule, size_t row, size_t repetition);
bool repetition_rule_is_settled(const struct repetition_rule *rule, size_t row);
size_t repetition_rule_settled_count(const struct repetition_rule *rule);

#endif
