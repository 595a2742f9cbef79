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

static struct point make_point(const struct point_row *rows, size_t count, enum points_equal equal,
                               enum points_error error, double about) {
    struct point point = {.x = rows->x, .rows = count};
    struct mean mean;
    if (equal == POINTS_RAW) {
        mean = average(rows, count, error, about);
        point.within = mean.within;
    } else {
        mean = average(rows, count, POINTS_PLAIN, NAN);
        double weight = equal == POINTS_AVERAGED ? mean.weight / (double)count : mean.weight;
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
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && rows[next].x == rows[first].x; next++)
            ;
        double line = about ? about[made] : NAN;
        ret[made++] = make_point(rows + first, next - first, equal, error, line);
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
