/*
 * Where to begin with TRANSFER_BANDWIDTH, whose criterion may have several lows when durations scatter much:
 * in one pass the least value of the criterion at each of a ladder of half sizes h = t0 B0, for
 * B(s) = B0 s/(s + h) is linear in B0.
 */
#ifndef ASSAY_FIT_TRANSFER_SCOUT_H
#define ASSAY_FIT_TRANSFER_SCOUT_H

enum { SCOUT_STEPS = 48 };

struct scout {
    double lowest, ratio;                               /* h of step i is lowest ratio^i */
    double products[SCOUT_STEPS], squares[SCOUT_STEPS]; /* sum w g s/T and sum w g^2, g = s/(s + h) */
};

/* The ladder reaches from a tenth of the least size to ten times the greatest. */
void scout_begin(struct scout *scout, double size_minimum, double size_maximum);
void scout_add(struct scout *scout, double size, double duration, double w);
/* The latency and 1/B0 of the best step, and its criterion; SQUARES is sum w (s/T)^2. */
double scout_best(const struct scout *scout, double squares, double *ret_latency, double *ret_inverse);

#endif
