/* Cutting outliers off measured durations. */
#include "plugins/fit-smpi/smpi.h"

#include "engine/numerics/quantile.h"

#include <stdlib.h>

static int compare_calls(const void *a, const void *b) {
    const struct call *x = a, *y = b;
    int order = (x->size > y->size) - (x->size < y->size);
    return order ? order : (x->duration > y->duration) - (x->duration < y->duration);
}

static double quantile_of_r(const double *sorted, size_t count, double p, bool old_r) {
    double index = 1 + (double)(count - 1) * p; /* counted from 1: the rounding of R is part of the rule */
    double below = floor(index), rest = index - below;
    size_t low = (size_t)below - 1;
    if (!(rest > 0) || low + 1 >= count || (!old_r && sorted[low] == sorted[low + 1]))
        return sorted[low];
    return (1 - rest) * sorted[low] + rest * sorted[low + 1];
}

static void sort_durations(const struct call *calls, size_t count, double *ret) {
    for (size_t i = 0; i < count; i++)
        ret[i] = calls[i].duration;
    quantile_sort(ret, count);
}

/* Keeps the calls BEGIN to END - 1 whose durations lie between the quantiles SHARE and 1 - SHARE, and appends
 * these to CALLS, which has at most BEGIN calls yet. */
static void keep_block(struct calls *calls, size_t begin, size_t end, double share, bool old_r,
                       double *scratch) {
    size_t count = end - begin;
    sort_durations(calls->calls + begin, count, scratch);
    double least = quantile_of_r(scratch, count, share, old_r),
           most = quantile_of_r(scratch, count, 1 - share, old_r);
    for (size_t i = begin; i < end; i++)
        if (!(calls->calls[i].duration < least || calls->calls[i].duration > most))
            calls->calls[calls->count++] = calls->calls[i];
}

void trim_by_rows(struct calls *calls, size_t block, double share, bool old_r, double *scratch) {
    size_t count = calls->count;
    calls->count = 0;
    for (size_t begin = 0; begin < count; begin += block)
        keep_block(calls, begin, count - begin < block ? count : begin + block, share, old_r, scratch);
}

/* Trims the calls of each size; sizes with fewer than three calls are not trimmed. */
void trim_by_size(struct calls *calls, double share, bool old_r, double *scratch) {
    size_t count = calls->count;
    qsort(calls->calls, count, sizeof *calls->calls, compare_calls);
    calls->count = 0;
    for (size_t begin = 0, end; begin < count; begin = end) {
        for (end = begin + 1; end < count && calls->calls[end].size == calls->calls[begin].size;)
            end++;
        keep_block(calls, begin, end, end - begin < 3 ? 0 : share, old_r,
                   scratch); /* of two both would be cut */
    }
}

/* The number of blocks of BLOCK calls that hold several sizes. */
size_t trim_mixed_blocks(const struct calls *calls, size_t block) {
    size_t mixed = 0;
    for (size_t begin = 0; begin < calls->count; begin += block) {
        bool differ = false;
        for (size_t i = begin + 1; i < calls->count && i < begin + block; i++)
            differ = differ || calls->calls[i].size != calls->calls[begin].size;
        mixed += differ;
    }
    return mixed;
}

/* Mean and standard deviation of the durations without the share SHARE at each end; NaN for too few calls. */
void trim_mean(const struct calls *calls, double share, double *scratch, double *ret_mean,
               double *ret_sigma) {
    size_t first = (size_t)floor((double)calls->count * share), kept = calls->count - 2 * first;
    long double sum = 0, squares = 0;
    sort_durations(calls->calls, calls->count, scratch);
    for (size_t i = 0; i < kept; i++)
        sum += scratch[first + i];
    *ret_mean = kept > 0 ? (double)(sum / (long double)kept) : NAN;
    for (size_t i = 0; i < kept; i++)
        squares += powl(scratch[first + i] - sum / (long double)kept, 2);
    *ret_sigma = kept > 1 ? (double)sqrtl(squares / (long double)(kept - 1)) : NAN;
}
