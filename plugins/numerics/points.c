#include "plugins/numerics/points.h"

#include "plugins/numerics/double-double.h"

#include <math.h>
#include <stdlib.h>

static int compare(double a, double b) {
    return a < b ? -1 : a > b;
}

static int compare_rows(const void *a, const void *b) {
    const struct point_row *left = a, *right = b;
    int order = compare(left->x, right->x);
    order = order ? order : compare(left->y, right->y);
    return order ? order : compare(left->weight, right->weight);
}

struct mean {
    double weight, mean, within;
};

/* What the line is to come near in place of Y, and how much the distance counts. For the log error about F:
 * log y - log f ~ log(y/F) - (f - F)/F = (F (1 + log(y/F)) - f) / F. */
static struct point_row bent(struct point_row row, enum points_error error, double about) {
    if (error == POINTS_PLAIN)
        return row;
    double by = error == POINTS_LOG && !isnan(about) ? about : row.y;
    row.weight /= by * by;
    if (by != row.y)
        row.y = by * (1 + log(row.y / by));
    return row;
}

/* Weighted mean of COUNT rows, each bent as ERROR says, and their scatter about it, in 32 digits. */
static struct mean average(const struct point_row *rows, size_t count, enum points_error error,
                           double about) {
    struct dd weight = {0, 0}, sum = {0, 0}, within = {0, 0};
    for (size_t i = 0; i < count; i++) {
        struct point_row row = bent(rows[i], error, about);
        if (count == 1)
            return (struct mean){row.weight, row.y, 0};
        weight = dd_add(weight, dd_from(row.weight));
        sum = dd_add(sum, dd_two_product(row.weight, row.y));
    }
    struct dd mean = dd_divide(sum, weight);
    for (size_t i = 0; i < count; i++) {
        struct point_row row = bent(rows[i], error, about);
        struct dd distance = dd_subtract(dd_from(row.y), mean);
        within = dd_add(within, dd_multiply(dd_from(row.weight), dd_multiply(distance, distance)));
    }
    return (struct mean){dd_to_double(weight), dd_to_double(mean), dd_to_double(within)};
}

/* Scatter of less than this share of the mean's square is the rounding of equal rows. */
static const double equal_rows = 0x1p-98;

static double variance_of(const struct mean *mean, size_t count, bool relative) {
    double square = mean->mean * mean->mean;
    if (count < 2 || !(mean->within > equal_rows * mean->weight * square))
        return 0;
    double variance = mean->within / (double)(count - 1);
    return relative ? variance / square : variance;
}

static size_t end_of_size(const struct point_row *rows, size_t count, size_t first) {
    size_t end = first + 1;
    while (end < count && rows[end].x == rows[first].x)
        end++;
    return end;
}

/* Of all rows about the means of their sizes. 0: nothing scatters. */
static double pooled_variance(const struct point_row *rows, size_t count, bool relative) {
    double sum = 0, degrees = 0;
    for (size_t first = 0, end; first < count; first = end) {
        end = end_of_size(rows, count, first);
        struct mean mean = average(rows + first, end - first, POINTS_PLAIN, NAN);
        sum += variance_of(&mean, end - first, relative) * (double)(end - first - 1);
        degrees += (double)(end - first - 1);
    }
    return degrees > 0 ? sum / degrees : 0;
}

/* POOLED: the variance of all rows, where it is asked for. */
static struct point make_point(const struct point_row *rows, size_t count, enum points_equal equal,
                               double pooled, enum points_error error, double about) {
    struct point point = {.x = rows->x, .rows = count};
    struct mean mean;
    if (equal == POINTS_RAW) {
        mean = average(rows, count, error, about);
        point.within = mean.within;
    } else {
        mean = average(rows, count, POINTS_PLAIN, NAN);
        double weight = equal == POINTS_AVERAGED ? mean.weight / (double)count : mean.weight;
        if (pooled > 0) {
            double own = variance_of(&mean, count, equal == POINTS_PRECISE_RELATIVE);
            weight *= own > 0 ? pooled / own : 1;
        }
        struct point_row row = bent((struct point_row){rows->x, mean.mean, weight}, error, about);
        mean = (struct mean){row.weight, row.y, 0};
    }
    point.weight = mean.weight;
    point.y = mean.mean;
    return point;
}

size_t points_make_sorted(const struct point_row *rows, size_t count, enum points_equal equal,
                          enum points_error error, const double *about, struct point *ret) {
    size_t made = 0;
    double pooled = equal == POINTS_PRECISE || equal == POINTS_PRECISE_RELATIVE
                        ? pooled_variance(rows, count, equal == POINTS_PRECISE_RELATIVE)
                        : 0;
    for (size_t first = 0, next; first < count; first = next) {
        next = end_of_size(rows, count, first);
        double line = about ? about[made] : NAN;
        ret[made++] = make_point(rows + first, next - first, equal, pooled, error, line);
    }
    return made;
}

size_t points_make(struct point_row *rows, size_t count, enum points_equal equal, enum points_error error,
                   const double *about, struct point *ret) {
    bool sorted = true;
    for (size_t i = 1; sorted && i < count; i++)
        sorted = compare_rows(rows + i - 1, rows + i) <= 0;
    if (!sorted)
        qsort(rows, count, sizeof *rows, compare_rows);
    return points_make_sorted(rows, count, equal, error, about, ret);
}
