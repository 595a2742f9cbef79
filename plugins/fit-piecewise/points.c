/* From rows to points. */
#include "plugins/fit-piecewise/piecewise.h"

#include <stdlib.h>

static int compare(double a, double b) {
    return a < b ? -1 : a > b;
}

static int compare_rows(const void *a, const void *b) {
    const struct row *left = a, *right = b;
    int order = compare(left->x, right->x);
    order = order ? order : compare(left->y, right->y);
    return order ? order : compare(left->weight, right->weight);
}

/* What the line is to come near in place of y, and how much the distance counts. */
static struct row seen_as(struct row row, bool relative, double about) {
    double by = isnan(about) ? row.y : about;
    if (!relative)
        return row;
    row.weight /= by * by;
    if (by != row.y)
        row.y = by * (1 + log(row.y / by));
    return row;
}

/* Weighted mean of COUNT rows as the criterion sees each, their weight, and their scatter about the mean. */
static struct row average(const struct row *rows, size_t count, bool relative, double about,
                          double *ret_scatter) {
    long double weight = 0, sum = 0, scatter = 0;
    *ret_scatter = 0;
    if (count == 1)
        return seen_as(*rows, relative, about);
    for (size_t i = 0; i < count; i++) {
        struct row row = seen_as(rows[i], relative, about);
        weight += row.weight;
        sum += (long double)row.weight * row.y;
    }
    for (size_t i = 0; i < count; i++) {
        struct row row = seen_as(rows[i], relative, about);
        long double distance = row.y - sum / weight;
        scatter += row.weight * distance * distance;
    }
    *ret_scatter = (double)scatter;
    return (struct row){rows->x, (double)(sum / weight), (double)weight};
}

void points_linearise(struct points *points, bool relative, const double *about) {
    points->problem.scatter = 0;
    for (size_t i = 0; i < points->count; i++) {
        size_t first = points->first[i], count = points->first[i + 1] - first;
        struct row row =
            average(points->rows + first, count, relative, about ? about[i] : NAN, &points->scatter[i]);
        points->y[i] = row.y;
        points->weight[i] = row.weight;
        points->problem.scatter += points->scatter[i];
    }
}

static int make_room(struct points *points, size_t rows) {
    points->rows = malloc((rows + 1) * sizeof *points->rows);
    points->first = malloc((rows + 1) * sizeof *points->first);
    double *room = points->x = malloc(7 * (rows + 1) * sizeof *room);
    points->y = room + rows;
    points->weight = room + 2 * rows;
    points->scatter = room + 3 * rows;
    points->mean = room + 4 * rows;
    points->copies = room + 5 * rows;
    points->within = room + 6 * rows;
    return points->rows && points->first && room ? 0 : -ENOMEM;
}

/* The rows of each x become one measurement, their mean, unless each counts by itself. */
static void merge(struct points *points, enum equal equal) {
    size_t all = points->row_count;
    points->row_count = 0;
    for (size_t begin = 0, end; begin < all; begin = end) {
        size_t i = points->count++;
        double copies, scatter;
        for (end = begin + 1; end < all && points->rows[end].x == points->rows[begin].x;)
            end++;
        struct row mean = average(points->rows + begin, end - begin, false, NAN, &scatter);
        copies = (double)(end - begin);
        points->first[i] = points->row_count;
        points->x[i] = mean.x;
        points->mean[i] = mean.y;
        points->copies[i] = copies;
        points->within[i] = scatter;
        mean.weight /= equal == EQUAL_AVERAGED ? copies : 1;
        if (equal != EQUAL_RAW)
            points->rows[points->row_count++] = mean;
        else
            points->row_count = end;
    }
    points->first[points->count] = points->row_count;
}

int points_make(const struct fit_rows *rows, const struct fit_request *request, struct points *ret) {
    const double *x = rows->columns[request->values[SIZE].first];
    bool relative = is_relative(request);
    *ret = (struct points){0};
    if (make_room(ret, rows->count) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < rows->count; i++)
        if (!relative || rows->response[i] > 0)
            ret->rows[ret->used++] =
                (struct row){x[i], rows->response[i], rows->weights ? rows->weights[i] : 1};
    ret->not_positive = rows->count - ret->used;
    qsort(ret->rows, ret->used, sizeof *ret->rows, compare_rows); /* the order of the table does not matter */
    ret->row_count = ret->used;
    merge(ret, (enum equal)piecewise_number(request, EQUAL));
    ret->problem = (struct segments_problem){.points = ret->count,
                                             .x = ret->x,
                                             .y = ret->y,
                                             .weights = ret->weight,
                                             .measurements = (double)ret->row_count,
                                             .minimum = (size_t)piecewise_number(request, MINIMUM)};
    points_linearise(ret, relative, NULL);
    return 0;
}

void points_clear(struct points *points) {
    free(points->rows);
    free(points->first);
    free(points->x);
}
