#include "engine/analysis/sample-fold.h"

#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>

enum { POINTS_LEAST = 4 };

void sample_fold_init(struct sample_fold *fold, size_t columns, size_t points) {
    points = points < POINTS_LEAST ? POINTS_LEAST : points;
    *fold = (struct sample_fold){.columns = columns, .points = points, .per_bucket = 1};
    fold->from = xcalloc(points, sizeof *fold->from);
    fold->to = xcalloc(points, sizeof *fold->to);
    fold->extremes = xcalloc(points * columns + 1, sizeof *fold->extremes);
}

void sample_fold_clear(struct sample_fold *fold) {
    free(fold->from), free(fold->to), free(fold->extremes);
    *fold = (struct sample_fold){0};
}

/* Merges the extremes of the samples LATER into those before them. */
static void merge_extremes(struct sample_extremes *into, const struct sample_extremes *later) {
    if (isnan(into->low)) {
        *into = *later;
    } else if (!isnan(later->low)) {
        bool is_higher = later->high > into->high, is_lower = later->low < into->low;
        if (is_higher && is_lower)
            into->high_is_later = later->high_is_later;
        else if (is_higher || is_lower)
            into->high_is_later = is_higher;
        into->high = is_higher ? later->high : into->high;
        into->low = is_lower ? later->low : into->low;
    }
}

/* Merges neighbouring buckets, two into one. */
static void halve_buckets(struct sample_fold *fold) {
    size_t columns = fold->columns, count = 0;
    for (size_t b = 0; b < fold->count; b += 2, count++) {
        bool has_second = b + 1 < fold->count;
        fold->from[count] = fold->from[b];
        fold->to[count] = fold->to[has_second ? b + 1 : b];
        for (size_t c = 0; c < columns; c++) {
            struct sample_extremes extremes = fold->extremes[b * columns + c];
            if (has_second)
                merge_extremes(&extremes, &fold->extremes[(b + 1) * columns + c]);
            fold->extremes[count * columns + c] = extremes;
        }
    }
    fold->in_last += fold->count % 2 == 0 ? fold->per_bucket : 0;
    fold->per_bucket *= 2;
    fold->count = count;
}

/* Makes room for one more sample, in the last bucket or in a new one. */
static void make_room(struct sample_fold *fold) {
    while (fold->count > 0 && fold->in_last == fold->per_bucket &&
           fold->count >= (fold->per_bucket == 1 ? fold->points : fold->points / 2))
        halve_buckets(fold);
    if (fold->count == 0 || fold->in_last == fold->per_bucket) {
        fold->count++;
        fold->in_last = 0;
    }
}

void sample_fold_add(struct sample_fold *fold, double time, const double *values) {
    make_room(fold);
    size_t last = fold->count - 1;
    bool is_first = fold->in_last++ == 0;
    if (is_first)
        fold->from[last] = time;
    fold->to[last] = time;
    for (size_t c = 0; c < fold->columns; c++) {
        float value = (float)values[c];
        struct sample_extremes *of = &fold->extremes[last * fold->columns + c];
        const struct sample_extremes now = {value, value, false};
        if (is_first)
            *of = now;
        else
            merge_extremes(of, &now);
    }
}

size_t sample_fold_points(const struct sample_fold *fold) {
    return fold->per_bucket == 1 ? fold->count : 2 * fold->count;
}

/* Reads the points of a column: a bucket gives its two extremes, at its two times, in the order in which they
 * came. */
void sample_fold_read(const struct sample_fold *fold, size_t column, double *x, double *y) {
    size_t each = fold->per_bucket == 1 ? 1 : 2;
    for (size_t b = 0; b < fold->count; b++) {
        const struct sample_extremes *of = &fold->extremes[b * fold->columns + column];
        const double times[] = {fold->from[b], fold->to[b]},
                     values[] = {of->high_is_later ? of->low : of->high,
                                 of->high_is_later ? of->high : of->low};
        for (size_t i = 0; i < each; i++) {
            if (x)
                x[each * b + i] = times[i];
            if (y)
                y[each * b + i] = values[i];
        }
    }
}
