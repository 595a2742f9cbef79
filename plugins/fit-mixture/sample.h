/*
 * A sample in one dimension, as the fitting of mixtures wants it: sorted, equal values together, moved and
 * scaled to mean 0 and standard deviation 1, so that seconds of 1e-12 and sizes of 1e12 are the same to it;
 * and a coarse copy of it, for searching.
 */
#ifndef ASSAY_FIT_MIXTURE_SAMPLE_H
#define ASSAY_FIT_MIXTURE_SAMPLE_H

#include <stddef.h>

/* Weighted points. Arrays have a multiple of LANES entries, those after COUNT of weight 0. */
struct points {
    size_t count, padded;
    double *at;     /* ascending */
    double *weight; /* how many values, or the sum of their weights */
    double *spread; /* variance of the values that a point stands for; NULL: they are all equal */
};

struct sample {
    double mean, deviation; /* of the values: value = mean + deviation x at; deviation with divisor n */
    double weight;          /* in all */
    double resolution;    /* the least difference between two values, in deviations, but for rounding errors;
                             0: there are no two */
    struct points points; /* the distinct values */
    struct points fine;   /* at most FINE_MAX, made of those; empty where there are no more than that */
    struct points coarse; /* at most COARSE_MAX */
};

enum { COARSE_MAX = 1024, FINE_MAX = 32768 };

/* Takes COUNT > 0 finite values and their weights (NULL: 1 each; none negative, not all 0). 0 or -ENOMEM. */
int sample_init(struct sample *sample, const double *values, const double *weights, size_t count);
void sample_clear(struct sample *sample);

#endif
