/*
 * Samples of several columns over time, thinned while they are read, in bounded memory: neighbouring samples
 * share a bucket, of which each column keeps its least and its greatest value, so that no peak is lost. While
 * the samples are few, each has a bucket of its own; whenever the buckets are full, two and two become one.
 */
#ifndef ASSAY_ANALYSIS_SAMPLE_FOLD_H
#define ASSAY_ANALYSIS_SAMPLE_FOLD_H

#include <stdbool.h>
#include <stddef.h>

struct sample_extremes {
    float low, high; /* NaN: no sample has a value */
    bool high_is_later;
};

struct sample_fold {
    size_t columns, points;           /* points: the most of a column in the end; at least 4 */
    size_t per_bucket;                /* samples: 1, 2, 4, ... */
    size_t count, in_last;            /* buckets; samples in the last of them */
    double *from, *to;                /* of each bucket, the times of its first and last sample */
    struct sample_extremes *extremes; /* of bucket B and column C: [B * columns + C] */
};

void sample_fold_init(struct sample_fold *fold, size_t columns, size_t points);
void sample_fold_clear(struct sample_fold *fold);
/* Adds a sample with a value for each column; NaN: not known. TIME does not decrease. */
void sample_fold_add(struct sample_fold *fold, double time, const double *values);
/* The number of points of a column: a sample alone in its bucket is one point, other buckets are two. */
size_t sample_fold_points(const struct sample_fold *fold);
/* Sets X to the times of the points and Y to the values of COLUMN; NULL: not wanted. */
void sample_fold_read(const struct sample_fold *fold, size_t column, double *x, double *y);

#endif
