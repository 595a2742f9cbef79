/*
 * Sequential stopping: when a row of a design is known well enough to be measured no more
 * (engine/design/repeat.h). It looks at the mean of each row over groups of its measurements, and at the
 * confidence interval of that mean.
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
 * Values wait in memory until their repetition is over, and of a unit that was measured several times the
 * last one counts. What comes later for a group of a block that is over (a unit that failed, and was tried
 * again in a later part of the run) is left out; a group of a node takes it.
 *
 * Sums are Welford's, in the order of repetitions, rows and nodes: the same values in the same order give the
 * same verdicts, whether they were just measured or are read again. Memory: some 40 bytes a row, 24 bytes for
 * each row on each node (on one, where groups are of blocks), and 32 for each value that waits.
 */
#ifndef ASSAY_MEASURE_STOPPING_RULE_H
#define ASSAY_MEASURE_STOPPING_RULE_H

#include "engine/design/repeat.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct stopping_rule;

enum {
    STOPPING_CELLS_MAX = 1 << 26
}; /* rows times nodes; the caller checks it, who knows how many nodes there are */

/* REPEAT says what is wanted; ROWS are those of the design. */
struct stopping_rule *stopping_rule_new(const struct design_repeat *repeat, size_t rows);
void stopping_rule_free(struct stopping_rule *rule); /* NULL is fine */

/* The response of a unit that was measured. */
struct stopping_value {
    size_t row, repetition; /* from 0 */
    const char *node;       /* by whose name nodes differ */
    const char *core;       /* the same of a unit's place on its node */
    double value;
};
/* 0, or negative when there are too many different nodes and cores. */
int stopping_rule_add(struct stopping_rule *rule, const struct stopping_value *value);
/* The repetitions before number BEFORE are over, all with SIZE_MAX: their values count from now on. */
void stopping_rule_close(struct stopping_rule *rule, size_t before);

struct stopping_estimate {
    size_t repetitions; /* with a value */
    size_t groups;      /* with a value */
    double mean;        /* nan: no group */
    double half_width;  /* nan: fewer than two groups */
    double relative;    /* half width / |mean|: 0 for equal values, else inf for a mean of 0 */
    bool narrow;        /* it is as narrow as is wanted, after as many repetitions */
};
/* The mean of ROW and its interval, from the repetitions that are over. */
struct stopping_estimate stopping_rule_estimate(struct stopping_rule *rule, size_t row);

/* If what is known of ROW is enough, it is settled. Returns the number of the first repetition, from BEFORE
 * on, that is not needed then; 0 when ROW is not settled, or was before. */
size_t stopping_rule_settle(struct stopping_rule *rule, size_t row, size_t before);
/* Is ROW settled, and REPETITION not needed any more? */
bool stopping_rule_skips(const struct stopping_rule *rule, size_t row, size_t repetition);
bool stopping_rule_is_settled(const struct stopping_rule *rule, size_t row);
size_t stopping_rule_settled_count(const struct stopping_rule *rule);

/*
 * The value that |T| exceeds with probability 1 - CONFIDENCE, T having Student's distribution with FREEDOM
 * degrees of freedom: the half width of a confidence interval of a mean, in standard errors. FREEDOM is 1 or
 * more, CONFIDENCE above 0 and below 1; nan for others.
 *
 * The probability of |T| <= t is a finite sum of positive terms in cos^2 and sin of atan(t / sqrt(FREEDOM))
 * (Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 26.7.3 and 26.7.4), solved by
 * bisection. Relative error below 1e-9 up to STUDENT_FREEDOM_MAX degrees; more count as so many, which makes
 * the interval wider by less than a thousandth.
 */
double student_t_two_sided(uint64_t freedom, double confidence);
enum { STUDENT_FREEDOM_MAX = 10000 };

#endif
