#include "plugins/fit-piecewise/sums.h"

#include <errno.h>
#include <stdlib.h>

/* What a run of points of one size only has as Sxx is rounding: 32 digits of (w xx). */
static const double flat = 0x1p-90;

static int exponent_of(double greatest) {
    int exponent = 0;
    if (greatest > 0)
        frexp(greatest, &exponent);
    return exponent;
}

static void put(double *high, double *low, struct dd value) {
    *high = value.high;
    *low = value.low;
}

struct running {
    struct dd w, x, y, xx, xy, yy;
};

static void store(struct sums_row *row, const struct running *running) {
    put(&row->high.w, &row->low.w, running->w);
    put(&row->high.x, &row->low.x, running->x);
    put(&row->high.y, &row->low.y, running->y);
    put(&row->high.xx, &row->low.xx, running->xx);
    put(&row->high.xy, &row->low.xy, running->xy);
    put(&row->high.yy, &row->low.yy, running->yy);
}

static void add(struct running *running, struct dd x, struct dd y, double weight, double within) {
    struct dd wx = dd_multiply(x, dd_from(weight)), wy = dd_multiply(y, dd_from(weight));
    running->w = dd_add(running->w, dd_from(weight));
    running->x = dd_add(running->x, wx);
    running->y = dd_add(running->y, wy);
    running->xx = dd_add(running->xx, dd_multiply(wx, x));
    running->xy = dd_add(running->xy, dd_multiply(wx, y));
    running->yy = dd_add(running->yy, dd_add(dd_multiply(wy, y), dd_from(within)));
}

/* A line through two sizes leaves what scatters within them, to the last digit. */
static int add_within(struct sums *sums, const struct point *points) {
    size_t first = 0;
    while (first < sums->count && points[first].within == 0)
        first++;
    if (first == sums->count)
        return 0;
    sums->within = malloc((sums->count + 1) * sizeof *sums->within);
    if (!sums->within)
        return -ENOMEM;
    sums->within[0] = dd_from(0);
    for (size_t i = 0; i < sums->count; i++) {
        double within = ldexp(points[i].within, -sums->weight_exponent - 2 * sums->response_exponent);
        sums->within[i + 1] = dd_add(sums->within[i], dd_from(within));
    }
    return 0;
}

int sums_init(struct sums *sums, const struct point *points, size_t count) {
    *sums = (struct sums){.rows = malloc((count + 1) * sizeof *sums->rows), .count = count};
    if (!sums->rows)
        return -ENOMEM;
    double size = 0, response = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        size = fmax(size, fabs(points[i].x / 2 - points[0].x / 2));
        response = fmax(response, fabs(points[i].y / 2 - points[0].y / 2));
        weight = fmax(weight, points[i].weight);
    }
    /* One more: the distances were halved, so that the greatest numbers do not overflow. */
    int size_exponent = exponent_of(size) + 1;
    sums->response_exponent = exponent_of(response) + 1;
    sums->weight_exponent = exponent_of(weight);
    struct running running = {0};
    for (size_t i = 0; i < count; i++) {
        store(&sums->rows[i], &running);
        const struct point *point = &points[i];
        struct dd x = dd_two_sum(ldexp(point->x, -size_exponent), -ldexp(points[0].x, -size_exponent));
        struct dd y = dd_two_sum(ldexp(point->y, -sums->response_exponent),
                                 -ldexp(points[0].y, -sums->response_exponent));
        add(&running, x, y, ldexp(point->weight, -sums->weight_exponent),
            ldexp(point->within, -sums->weight_exponent - 2 * sums->response_exponent));
    }
    store(&sums->rows[count], &running);
    return add_within(sums, points);
}

void sums_clear(struct sums *sums) {
    free(sums->rows);
    free(sums->within);
    *sums = (struct sums){0};
}

double sums_unscale(const struct sums *sums, double scaled) {
    return ldexp(scaled, 2 * sums->response_exponent + sums->weight_exponent);
}

#define DIFFERENCE(moment)                                                                                   \
    dd_subtract((struct dd){to->high.moment, to->low.moment},                                                \
                (struct dd){from->high.moment, from->low.moment})

struct dd sums_rss(const struct sums *sums, size_t a, size_t b) {
    if (b <= a + 2)
        return sums->within ? dd_subtract(sums->within[b], sums->within[a]) : dd_from(0);
    const struct sums_row *from = &sums->rows[a], *to = &sums->rows[b];
    struct dd w = DIFFERENCE(w), x = DIFFERENCE(x), y = DIFFERENCE(y);
    struct dd xx = DIFFERENCE(xx), xy = DIFFERENCE(xy), yy = DIFFERENCE(yy);
    if (!(w.high > 0))
        return dd_from(0);
    struct dd wxx = dd_multiply(w, xx);
    struct dd sxx = dd_subtract(wxx, dd_multiply(x, x));
    struct dd sxy = dd_subtract(dd_multiply(w, xy), dd_multiply(x, y));
    struct dd rss = dd_subtract(dd_multiply(w, yy), dd_multiply(y, y));
    if (sxx.high > flat * wxx.high)
        rss = dd_subtract(rss, dd_divide(dd_multiply(sxy, sxy), sxx));
    return rss.high > 0 ? dd_divide(rss, w) : dd_from(0);
}

struct sums_bounds sums_bounds_exactly(const struct sums *sums, size_t a, size_t b) {
    double rss = sums_rss(sums, a, b).high;
    return (struct sums_bounds){rss * (1 - 0x1p-50), rss * (1 + 0x1p-50)};
}
