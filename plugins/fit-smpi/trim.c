#include "plugins/fit-smpi/trim.h"

#include "plugins/numerics/double-double.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static int compare_calls(const void *a, const void *b) {
    const struct call *x = a, *y = b;
    if (x->size != y->size)
        return (x->size > y->size) - (x->size < y->size);
    return (x->duration > y->duration) - (x->duration < y->duration);
}

double trim_quantile(const double *sorted, size_t count, double p, enum trim_rule rule) {
    double index = 1 + (double)(count - 1) * p; /* counted from 1: the rounding of R is part of the rule */
    double below = floor(index), rest = index - below;
    size_t low = (size_t)below - 1;
    if (!(rest > 0) || low + 1 >= count)
        return sorted[low];
    if (rule == TRIM_EXACT && sorted[low] == sorted[low + 1])
        return sorted[low];
    return (1 - rest) * sorted[low] + rest * sorted[low + 1];
}

/* The calls of one block that are kept go to TO, which may be the block itself. */
static size_t keep_block(const struct call *block, size_t count, double share, enum trim_rule rule,
                         double *scratch, struct call *to) {
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        scratch[i] = block[i].duration;
    qsort(scratch, count, sizeof *scratch, compare_doubles);
    double least = trim_quantile(scratch, count, share, rule);
    double greatest = trim_quantile(scratch, count, 1 - share, rule);
    for (size_t i = 0; i < count; i++)
        if (!(block[i].duration < least || block[i].duration > greatest))
            to[kept++] = block[i];
    return kept;
}

size_t trim_by_rows(struct call *calls, size_t count, size_t block, double share, enum trim_rule rule,
                    double *scratch) {
    size_t kept = 0;
    for (size_t start = 0; start < count; start += block)
        kept += keep_block(calls + start, count - start < block ? count - start : block, share, rule, scratch,
                           calls + kept);
    return kept;
}

size_t trim_by_size(struct call *calls, size_t count, double share, enum trim_rule rule, double *scratch) {
    size_t kept = 0;
    qsort(calls, count, sizeof *calls, compare_calls);
    for (size_t start = 0, end; start < count; start = end) {
        end = start + 1;
        while (end < count && calls[end].size == calls[start].size)
            end++;
        /* Of two different ones both would be cut. */
        double cut = end - start < 3 ? 0 : share;
        kept += keep_block(calls + start, end - start, cut, rule, scratch, calls + kept);
    }
    return kept;
}

size_t trim_mixed_blocks(const struct call *calls, size_t count, size_t block) {
    size_t mixed = 0;
    for (size_t start = 0; start < count; start += block) {
        bool differ = false;
        for (size_t i = start + 1; i < count && i < start + block; i++)
            differ |= calls[i].size != calls[start].size;
        mixed += differ;
    }
    return mixed;
}

/* The durations without the floor(SHARE COUNT) shortest and as many longest, from SCRATCH[first] on. */
static size_t keep_middle(const struct call *calls, size_t count, double share, double *scratch,
                          size_t *ret_first) {
    for (size_t i = 0; i < count; i++)
        scratch[i] = calls[i].duration;
    qsort(scratch, count, sizeof *scratch, compare_doubles);
    *ret_first = (size_t)floor((double)count * share);
    return count - 2 * *ret_first;
}

double trim_mean(const struct call *calls, size_t count, double share, double *scratch) {
    size_t first, kept = keep_middle(calls, count, share, scratch, &first);
    struct dd sum = {0, 0};
    for (size_t i = 0; i < kept; i++)
        sum = dd_add(sum, dd_from(scratch[first + i]));
    return dd_to_double(dd_divide(sum, dd_from((double)kept)));
}

double trim_deviation(const struct call *calls, size_t count, double share, double *scratch) {
    double mean = trim_mean(calls, count, share, scratch), squares = 0;
    size_t first = (size_t)floor((double)count * share), kept = count - 2 * first;
    for (size_t i = 0; i < kept; i++)
        squares += (scratch[first + i] - mean) * (scratch[first + i] - mean);
    return kept > 1 ? sqrt(squares / (double)(kept - 1)) : NAN;
}
