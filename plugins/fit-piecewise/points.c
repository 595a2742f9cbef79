/* From rows to points. */
#include "plugins/fit-piecewise/piecewise.h"

#include <stdlib.h>

struct row {
    double x, y, weight;
};

static int compare(double a, double b) {
    return a < b ? -1 : a > b;
}

static int compare_rows(const void *a, const void *b) {
    const struct row *left = a, *right = b;
    int order = compare(left->x, right->x);
    order = order ? order : compare(left->y, right->y);
    return order ? order : compare(left->weight, right->weight);
}

/* The weight of a distance from Y; for relative errors divided by Y squared. */
static double weight_at(double weight, double y, bool relative) {
    return relative ? weight / (y * y) : weight;
}

/* The weighted mean of COUNT rows of one x, with their weight; *RET_SCATTER is their sum of squares about
 * it. */
static struct row average(const struct row *rows, size_t count, bool relative, double *ret_scatter) {
    long double weight = 0, sum = 0, scatter = 0;
    *ret_scatter = 0;
    if (count == 1)
        return (struct row){rows->x, rows->y, weight_at(rows->weight, rows->y, relative)};
    for (size_t i = 0; i < count; i++) {
        double w = weight_at(rows[i].weight, rows[i].y, relative);
        weight += w;
        sum += (long double)w * rows[i].y;
    }
    for (size_t i = 0; i < count; i++) {
        long double distance = rows[i].y - sum / weight;
        scatter += weight_at(rows[i].weight, rows[i].y, relative) * distance * distance;
    }
    *ret_scatter = (double)scatter;
    return (struct row){rows->x, (double)(sum / weight), (double)weight};
}

/* Allocates the arrays of points. -ENOMEM. */
static int make_room(struct points *points, size_t rows) {
    double *room = points->x = malloc(7 * (rows + 1) * sizeof *room);
    points->y = room + rows;
    points->weight = room + 2 * rows;
    points->scatter = room + 3 * rows;
    points->mean = room + 4 * rows;
    points->copies = room + 5 * rows;
    points->within = room + 6 * rows;
    return room ? 0 : -ENOMEM;
}

/* Makes a point of the rows of each x: their mean as one measurement, or, if is_raw, all rows as
 * measurements. */
static void merge_rows(struct points *points, const struct row *rows, bool relative) {
    struct segments_problem *problem = &points->problem;
    for (size_t begin = 0, end; begin < points->used; begin = end) {
        size_t i = points->count++;
        for (end = begin + 1; end < points->used && rows[end].x == rows[begin].x;)
            end++;
        double copies = (double)(end - begin);
        struct row mean = average(rows + begin, end - begin, false, &points->within[i]), seen = mean;
        points->scatter[i] = 0;
        seen.weight = weight_at(mean.weight / copies, mean.y, relative);
        if (points->is_raw)
            seen = average(rows + begin, end - begin, relative, &points->scatter[i]);
        points->x[i] = mean.x;
        points->mean[i] = mean.y;
        points->copies[i] = copies;
        points->y[i] = seen.y;
        points->weight[i] = seen.weight;
        problem->measurements += points->is_raw ? copies : 1;
        problem->scatter += points->scatter[i];
        points->log_weights += points->is_raw ? 0 : log(seen.weight);
        for (size_t k = begin; points->is_raw && k < end; k++)
            points->log_weights += log(weight_at(rows[k].weight, rows[k].y, relative));
    }
}

/* Makes points of the rows, sorted by x; with relative errors, rows of 0 or less are left out. -ENOMEM. To be
 * cleared in any case. */
int points_make(const struct fit_rows *rows, const struct fit_request *request, struct points *ret) {
    const double *x = rows->columns[request->values[SIZE].first];
    bool relative = is_relative(request);
    struct row *sorted = malloc((rows->count + 1) * sizeof *sorted);
    *ret = (struct points){.is_raw = piecewise_number(request, EQUAL) == EQUAL_RAW};
    int r = make_room(ret, rows->count);
    r = r == 0 && !sorted ? -ENOMEM : r;
    for (size_t i = 0; r == 0 && i < rows->count; i++)
        if (!relative || rows->response[i] > 0)
            sorted[ret->used++] = (struct row){x[i], rows->response[i], rows->weights ? rows->weights[i] : 1};
    ret->not_positive = rows->count - ret->used;
    if (r == 0) {
        qsort(sorted, ret->used, sizeof *sorted, compare_rows); /* the order of the table does not matter */
        merge_rows(ret, sorted, relative);
    }
    ret->problem.points = ret->count;
    ret->problem.x = ret->x;
    ret->problem.y = ret->y;
    ret->problem.weights = ret->weight;
    ret->problem.minimum = (size_t)piecewise_number(request, MINIMUM);
    free(sorted);
    return r;
}

void points_clear(struct points *points) {
    free(points->x);
}
