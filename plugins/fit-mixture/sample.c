#include "plugins/fit-mixture/sample.h"

#include "plugins/numerics/double-double.h"
#include "plugins/numerics/lanes.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Values that differ by less (in deviations) do so by the rounding of whoever computed them. */
static const double rounding = 1e-9;

struct value {
    double value, weight;
};

static int compare(const void *left, const void *right) {
    double a = ((const struct value *)left)->value, b = ((const struct value *)right)->value;
    return (a > b) - (a < b);
}

static int points_new(struct points *points, size_t count, bool spread) {
    *points = (struct points){.count = count, .padded = (count + LANES - 1) / LANES * LANES};
    size_t bytes = points->padded * sizeof(double);
    points->at = aligned_alloc(sizeof(lanes), bytes);
    points->weight = aligned_alloc(sizeof(lanes), bytes);
    points->spread = spread ? aligned_alloc(sizeof(lanes), bytes) : NULL;
    if (!points->at || !points->weight || (spread && !points->spread))
        return -ENOMEM;
    memset(points->at, 0, bytes);
    memset(points->weight, 0, bytes);
    if (spread)
        memset(points->spread, 0, bytes);
    return 0;
}

static void points_clear(struct points *points) {
    free(points->at);
    free(points->weight);
    free(points->spread);
    *points = (struct points){0};
}

void sample_clear(struct sample *sample) {
    points_clear(&sample->points);
    points_clear(&sample->fine);
    points_clear(&sample->coarse);
}

/* Sums of the values and of their squares about the mean, with errors of 1e-32: a mean of 1 with deviations
 * of 1e-9 keeps all its digits. Scaled by a power of two, so that no square over- or underflows. COUNT
 * values, sorted. */
static void measure(struct sample *sample, const struct value *values, size_t count) {
    int exponent;
    frexp(fmax(fabs(values[0].value), fabs(values[count - 1].value)), &exponent);
    struct dd weight = {0, 0}, sum = {0, 0}, squares = {0, 0};
    for (size_t i = 0; i < count; i++) {
        weight = dd_add(weight, dd_from(values[i].weight));
        sum = dd_add(sum, dd_two_product(values[i].weight, ldexp(values[i].value, -exponent)));
    }
    sample->weight = dd_to_double(weight);
    struct dd mean = dd_divide(sum, weight);
    for (size_t i = 0; i < count; i++) {
        struct dd away = dd_subtract(dd_from(ldexp(values[i].value, -exponent)), mean);
        squares = dd_add(squares, dd_multiply(dd_multiply(away, away), dd_from(values[i].weight)));
    }
    sample->mean = ldexp(dd_to_double(mean), exponent);
    sample->deviation = ldexp(sqrt(dd_to_double(squares) / sample->weight), exponent);
}

/* (a - b) / scale, also where the difference is beyond a double. */
static double distance(double a, double b, double scale) {
    double away = a - b;
    return isfinite(away) ? away / scale : a / scale - b / scale;
}

/* Equal values become one point. COUNT values, sorted. */
static int gather(struct sample *sample, const struct value *values, size_t count) {
    size_t distinct = 0;
    for (size_t i = 0; i < count; i++)
        distinct += i == 0 || values[i].value != values[i - 1].value;
    int r = points_new(&sample->points, distinct, false);
    if (r < 0)
        return r;
    double scale = sample->deviation > 0 ? sample->deviation : 1;
    size_t at = 0;
    sample->resolution = 0;
    for (size_t i = 0; i < count; i++) {
        if (i > 0 && values[i].value != values[i - 1].value) {
            double gap = distance(values[i].value, values[i - 1].value, scale);
            if (gap > rounding && (sample->resolution == 0 || gap < sample->resolution))
                sample->resolution = gap;
            at++;
        }
        sample->points.at[at] = distance(values[i].value, sample->mean, scale);
        sample->points.weight[at] += values[i].weight;
    }
    return 0;
}

/* Neighbours together, about as much weight in each of MOST points. */
static int coarsen(const struct points *fine, double all, size_t most, struct points *ret) {
    bool merged = fine->count > most;
    most = merged ? most : fine->count;
    int r = points_new(ret, most, merged);
    if (r < 0)
        return r;
    double share = all / (double)most, passed = 0;
    size_t count = 0;
    for (size_t i = 0; i < fine->count; count++) {
        double weight = 0, sum = 0, squares = 0, first = fine->at[i];
        do {
            double away = fine->at[i] - first;
            weight += fine->weight[i];
            sum += fine->weight[i] * away;
            squares += fine->weight[i] * away * away;
            passed += fine->weight[i++];
        } while (merged && i < fine->count && (count + 1 == most || passed < share * ((double)count + 1)));
        double mean = weight > 0 ? sum / weight : 0;
        ret->at[count] = first + mean;
        ret->weight[count] = weight;
        if (merged && weight > 0)
            ret->spread[count] = fmax(0, squares / weight - mean * mean);
    }
    ret->count = count;
    ret->padded = (count + LANES - 1) / LANES * LANES;
    return 0;
}

int sample_init(struct sample *sample, const double *values, const double *weights, size_t count) {
    *sample = (struct sample){0};
    struct value *sorted = malloc(count * sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    size_t kept = 0; /* a weight of 0 leaves a value out */
    for (size_t i = 0; i < count; i++)
        if (!weights || weights[i] > 0)
            sorted[kept++] = (struct value){values[i], weights ? weights[i] : 1};
    qsort(sorted, kept, sizeof *sorted, compare);
    measure(sample, sorted, kept);
    int r = gather(sample, sorted, kept);
    r = r < 0 ? r : coarsen(&sample->points, sample->weight, COARSE_MAX, &sample->coarse);
    if (r == 0 && sample->points.count > FINE_MAX)
        r = coarsen(&sample->points, sample->weight, FINE_MAX, &sample->fine);
    free(sorted);
    if (r < 0)
        sample_clear(sample);
    return r;
}
