#include "engine/history/change-points.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct list {
    struct change_point *points;
    size_t count;
};

struct finder {
    const double *values;
    size_t count;
    double p_most;
    double *within; /* of find_split: window x window */
};

/* ---- Two parts */

struct part {
    double count, mean, variance; /* variance with the divisor COUNT, as the program named above has it */
};

/* Count, mean and variance of [BEGIN, END). */
static struct part describe_part(const double *values, size_t begin, size_t end) {
    struct part part = {.count = (double)(end - begin)};
    for (size_t i = begin; i < end; i++)
        part.mean += values[i] / part.count;
    for (size_t i = begin; i < end; i++)
        part.variance += (values[i] - part.mean) * (values[i] - part.mean) / part.count;
    return part;
}

/* Student's t-test of [BEGIN, ROW) and [ROW, END). p is 1 if all values are equal. */
static struct change_point compare_parts(const double *values, size_t begin, size_t row, size_t end) {
    struct part left = describe_part(values, begin, row), right = describe_part(values, row, end);
    double freedom = left.count + right.count - 2, difference = left.mean - right.mean;
    struct change_point point = {row, left.mean, right.mean, 1};
    if (freedom <= 0)
        return point;
    double pooled = ((left.count - 1) * left.variance + (right.count - 1) * right.variance) / freedom;
    double t = difference / sqrt(pooled * (1 / left.count + 1 / right.count));
    point.p = isnan(t) ? 1 : isinf(t) ? 0 : distribution_student_two_sided(t, freedom);
    return point;
}

/* ---- Splitting */

struct split {
    size_t row;
    double distance; /* negative: there is none */
};

/* Finds where [BEGIN, END) splits so that the energy distance of [BEGIN, row) and [row, any further row) is
 * greatest: equation 7 of Matteson and James with the exponent 1. The distance is negative when there are
 * fewer than two rows. */
static struct split find_split(const struct finder *finder, size_t begin, size_t end) {
    const double *x = finder->values + begin;
    size_t n = end - begin;
    double *within = finder->within; /* (i, j): the sum of distances within [i, j) */
    struct split best = {.distance = -1};
    for (size_t i = n; n > 1 && i-- > 0;) {
        double from_i = 0;
        within[i * (n + 1) + i] = 0;
        for (size_t j = i + 1; j <= n; j++) {
            from_i += fabs(x[i] - x[j - 1]);
            within[i * (n + 1) + j] = from_i + (i + 1 < j ? within[(i + 1) * (n + 1) + j] : 0);
        }
    }
    for (size_t at = 1; at < n; at++)
        for (size_t to = at + 1; to <= n; to++) {
            double left = (double)at, right = (double)(to - at), all = (double)to;
            double in_left = within[at], in_right = within[at * (n + 1) + to];
            double distance = 2 / all * (within[to] - in_left - in_right);
            if (at > 1)
                distance -= 2 * right / all / (left - 1) * in_left;
            if (to - at > 1)
                distance -= 2 * left / all / (right - 1) * in_right;
            if (best.distance < 0 || distance > best.distance)
                best = (struct split){begin + at, fmax(distance, 0)};
        }
    return best;
}

static void insert(struct list *list, size_t at, struct change_point point) {
    list->points = xrealloc(list->points, (list->count + 1) * sizeof *list->points);
    memmove(list->points + at + 1, list->points + at, (list->count - at) * sizeof *list->points);
    list->points[at] = point;
    list->count++;
}

/* Splits the window [BEGIN, END) at its best split, then the parts, as long as the t-test is significant.
 * Rows go to LIST in order. */
static void split_window(const struct finder *finder, size_t begin, size_t end, struct list *list) {
    struct split
        splits[CHANGE_POINTS_WINDOW_MAX + 1]; /* of the part before own point K; the last: the rest */
    size_t first = list->count, parts = 1;
    splits[0] = find_split(finder, begin, end);
    for (;;) {
        size_t widest = 0;
        for (size_t k = 1; k < parts; k++)
            if (splits[k].distance > splits[widest].distance)
                widest = k;
        if (splits[widest].distance < 0)
            return;
        size_t from = widest > 0 ? list->points[first + widest - 1].row : begin;
        size_t to = widest + 1 < parts ? list->points[first + widest].row : end;
        struct change_point point = compare_parts(finder->values, from, splits[widest].row, to);
        if (!(point.p <= finder->p_most))
            return;
        insert(list, first + widest, point);
        memmove(splits + widest + 1, splits + widest, (parts - widest) * sizeof *splits);
        parts++;
        splits[widest] = find_split(finder, from, point.row);
        splits[widest + 1] = find_split(finder, point.row, to);
    }
}

static int compare_rows(const void *left, const void *right) {
    const struct change_point *a = left, *b = right;
    return a->row < b->row ? -1 : a->row > b->row;
}

/* Splits overlapping windows over all values. LIST is sorted and has each row once. */
static void split_all(const struct finder *finder, size_t window, struct list *list) {
    for (size_t start = 0; start < finder->count;) {
        size_t before = list->count, end = start + window < finder->count ? start + window : finder->count;
        split_window(finder, start, end, list);
        size_t last = list->count > before ? list->points[list->count - 1].row : 0;
        start = last > start + window / 2 ? last : start + window / 2;
    }
    if (list->count == 0)
        return;
    qsort(list->points, list->count, sizeof *list->points, compare_rows);
    size_t kept = 1;
    for (size_t i = 1; i < list->count; i++)
        if (list->points[i].row != list->points[kept - 1].row)
            list->points[kept++] = list->points[i];
    list->count = kept;
}

/* ---- Dropping */

/* Tests the point number AT again, between its neighbours; nothing if there is no such point. */
static void compare_again(const struct finder *finder, struct list *list, size_t at) {
    if (at >= list->count)
        return;
    size_t begin = at > 0 ? list->points[at - 1].row : 0;
    size_t end = at + 1 < list->count ? list->points[at + 1].row : finder->count;
    list->points[at] = compare_parts(finder->values, begin, list->points[at].row, end);
}

static double relative_change(const struct change_point *point) {
    double forward = point->before == 0 ? 0 : fabs(point->after / point->before - 1);
    double backward = point->after == 0 ? 0 : fabs(point->before / point->after - 1);
    return fmax(forward, backward);
}

/* The point to drop next: that with the largest p if it is not below P_MOST; else that of the smallest change
 * if it is not above RELATIVE_LEAST; else list->count. */
static size_t find_weakest(const struct list *list, double p_most, double relative_least) {
    size_t least_sure = 0, smallest = 0;
    for (size_t i = 1; i < list->count; i++) {
        const struct change_point *points = list->points;
        least_sure = points[i].p > points[least_sure].p ? i : least_sure;
        smallest = relative_change(&points[i]) < relative_change(&points[smallest]) ? i : smallest;
    }
    if (!(list->points[least_sure].p < p_most))
        return least_sure;
    return relative_change(&list->points[smallest]) > relative_least ? list->count : smallest;
}

/* Finds the change points of a series: windows are split with a weaker limit first, then the weakest points
 * are dropped one by one. -EINVAL: the rule is out of its limits. */
int change_points_find(const struct change_points_rule *rule, const double *values, size_t count,
                       struct change_point **ret, size_t *ret_count) {
    if (rule->window < 2 || rule->window > CHANGE_POINTS_WINDOW_MAX ||
        !(rule->p_most > 0 && rule->p_most < 1))
        return -EINVAL;
    cleanup_free double *within = xcalloc((rule->window + 1) * (rule->window + 1), sizeof *within);
    double weaker = rule->p_most < 0.05 ? 10 * rule->p_most : fmin(2 * rule->p_most, fmax(rule->p_most, 0.5));
    struct finder finder = {values, count, weaker, within};
    struct list list = {0};
    split_all(&finder, rule->window, &list);
    for (size_t i = 0; i < list.count; i++)
        compare_again(&finder, &list, i);
    while (list.count > 0) {
        size_t weakest = find_weakest(&list, rule->p_most, rule->relative_least);
        if (weakest == list.count)
            break;
        memmove(list.points + weakest, list.points + weakest + 1,
                (list.count - weakest - 1) * sizeof *list.points);
        list.count--;
        compare_again(&finder, &list, weakest);
        if (rule->as_otava)
            compare_again(&finder, &list, weakest + 1);
        else if (weakest > 0)
            compare_again(&finder, &list, weakest - 1);
    }
    *ret = list.points;
    *ret_count = list.count;
    return 0;
}
