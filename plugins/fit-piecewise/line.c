#include "plugins/fit-piecewise/line.h"

#include "plugins/numerics/double-double.h"
#include "plugins/numerics/student.h"

/* Residuals of this share of the response's own square are its rounding. */
static const double perfect = 0x1p-98;

struct moments {
    struct dd weight, x, y, xx, xy, yy, within; /* means, and sums of products about them */
    double raw;                                 /* sum of w y^2 */
};

static struct moments moments_of(const struct point *points, size_t count) {
    struct moments sums = {0};
    for (size_t i = 0; i < count; i++) {
        struct dd weight = dd_from(points[i].weight);
        sums.weight = dd_add(sums.weight, weight);
        sums.x = dd_add(sums.x, dd_two_product(points[i].weight, points[i].x));
        sums.y = dd_add(sums.y, dd_two_product(points[i].weight, points[i].y));
        sums.within = dd_add(sums.within, dd_from(points[i].within));
        sums.raw += points[i].weight * points[i].y * points[i].y;
    }
    sums.x = dd_divide(sums.x, sums.weight);
    sums.y = dd_divide(sums.y, sums.weight);
    for (size_t i = 0; i < count; i++) {
        struct dd weight = dd_from(points[i].weight);
        struct dd x = dd_subtract(dd_from(points[i].x), sums.x);
        struct dd y = dd_subtract(dd_from(points[i].y), sums.y);
        sums.xx = dd_add(sums.xx, dd_multiply(weight, dd_multiply(x, x)));
        sums.xy = dd_add(sums.xy, dd_multiply(weight, dd_multiply(x, y)));
        sums.yy = dd_add(sums.yy, dd_multiply(weight, dd_multiply(y, y)));
    }
    return sums;
}

void line_judge(struct line *line) {
    for (size_t i = 0; i < 2; i++) {
        double variance = line->has_covariance ? line->covariance[3 * i] : NAN;
        struct student test = student_test(line->estimates[i].estimate, variance, line->degrees);
        line->estimates[i].standard_error = test.standard_error;
        line->estimates[i].t = test.t;
        line->estimates[i].p = test.p;
    }
}

void line_fit(const struct point *points, size_t count, bool raw, struct line *ret) {
    struct moments sums = moments_of(points, count);
    struct dd slope = dd_divide(sums.xy, sums.xx);
    struct dd intercept = dd_subtract(sums.y, dd_multiply(slope, sums.x));
    struct dd between =
        count == 2 ? dd_from(0) : dd_subtract(sums.yy, dd_divide(dd_multiply(sums.xy, sums.xy), sums.xx));
    *ret = (struct line){.rows = (double)count};
    for (size_t i = 0; raw && i < count; i++)
        ret->rows += (double)points[i].rows - 1;
    ret->estimates[0].estimate = dd_to_double(intercept);
    ret->estimates[1].estimate = dd_to_double(slope);
    double rss = dd_to_double(dd_add(between, sums.within));
    ret->rss = rss > perfect * sums.raw ? rss : 0;
    ret->degrees = ret->rows - 2;
    double total = dd_to_double(dd_add(sums.yy, sums.within));
    ret->r2 = total > perfect * sums.raw ? 1 - ret->rss / total : NAN;
    ret->has_covariance = ret->degrees > 0;
    ret->sigma = ret->has_covariance ? sqrt(ret->rss / ret->degrees) : NAN;
    double variance = ret->sigma * ret->sigma;
    double x = dd_to_double(sums.x), xx = dd_to_double(sums.xx);
    ret->covariance[0] = variance * (1 / dd_to_double(sums.weight) + x * x / xx);
    ret->covariance[1] = ret->covariance[2] = -variance * x / xx;
    ret->covariance[3] = variance / xx;
    line_judge(ret);
}

void line_estimate(const struct point *points, size_t count, struct line *ret) {
    double weight = 0, x = 0, y = 0, xx = 0, xy = 0;
    for (size_t i = 0; i < count; i++) {
        weight += points[i].weight;
        x += points[i].weight * points[i].x;
        y += points[i].weight * points[i].y;
    }
    x /= weight;
    y /= weight;
    for (size_t i = 0; i < count; i++) {
        double distance = points[i].x - x;
        xx += points[i].weight * distance * distance;
        xy += points[i].weight * distance * (points[i].y - y);
    }
    ret->estimates[1].estimate = xy / xx;
    ret->estimates[0].estimate = y - xy / xx * x;
}

double line_at(const struct line *line, double x) {
    return line->estimates[0].estimate + line->estimates[1].estimate * x;
}
