#include "plugins/numerics/straight-line.h"

#include <math.h>

/* A residual sum of squares below this share of the response's own is rounding of the response, not noise. */
static const double perfect = 0x1p-96;

void straight_line_add(struct straight_line_sums *sums, double x, double y) {
    sums->x_minimum = sums->count == 0 || x < sums->x_minimum ? x : sums->x_minimum;
    sums->x_maximum = sums->count == 0 || x > sums->x_maximum ? x : sums->x_maximum;
    sums->count++;
    sums->x = dd_add(sums->x, dd_from(x));
    sums->y = dd_add(sums->y, dd_from(y));
    sums->xx = dd_add(sums->xx, dd_two_product(x, x));
    sums->xy = dd_add(sums->xy, dd_two_product(x, y));
    sums->yy = dd_add(sums->yy, dd_two_product(y, y));
}

/* sum of products - product of the sums / count */
static struct dd centred(struct dd products, struct dd a, struct dd b, uint64_t count) {
    return dd_subtract(products, dd_divide(dd_multiply(a, b), dd_from((double)count)));
}

static void likelihood(struct straight_line *line) {
    const double pi = 3.14159265358979323846, parameters = 3; /* sigma counts */
    double n = (double)line->count;
    line->log_likelihood = -n / 2 * (log(2 * pi) + 1 + log(line->rss / n));
    line->aic = -2 * line->log_likelihood + 2 * parameters;
    line->bic = -2 * line->log_likelihood + log(n) * parameters;
}

bool straight_line_fit(const struct straight_line_sums *sums, struct straight_line *ret) {
    double n = (double)sums->count;
    struct straight_line line = {.count = sums->count,
                                 .intercept_error = NAN,
                                 .slope_error = NAN,
                                 .covariance = NAN,
                                 .sigma = NAN,
                                 .r2 = NAN,
                                 .log_likelihood = NAN,
                                 .aic = NAN,
                                 .bic = NAN};
    if (sums->count < 2 || sums->x_minimum == sums->x_maximum)
        return false;
    struct dd xx = centred(sums->xx, sums->x, sums->x, sums->count);
    struct dd xy = centred(sums->xy, sums->x, sums->y, sums->count);
    struct dd yy = centred(sums->yy, sums->y, sums->y, sums->count);
    if (!isfinite(xx.high) || !isfinite(xy.high) || !isfinite(yy.high) || !(xx.high > 0))
        return false;
    struct dd slope = dd_divide(xy, xx);
    struct dd intercept =
        dd_divide(dd_subtract(sums->y, dd_multiply(slope, sums->x)), dd_from((double)sums->count));
    struct dd rss = dd_subtract(yy, dd_multiply(slope, xy));
    bool none = !(rss.high > perfect * sums->yy.high) || sums->count == 2;
    line.slope = dd_to_double(slope);
    line.intercept = dd_to_double(intercept);
    line.rss = none ? 0 : dd_to_double(rss);
    if (yy.high > perfect * sums->yy.high)
        line.r2 = 1 - line.rss / dd_to_double(yy);
    if (sums->count > 2) {
        double mean = dd_to_double(dd_divide(sums->x, dd_from(n))), spread = dd_to_double(xx);
        double variance = line.rss / (n - 2);
        line.sigma = sqrt(variance);
        line.slope_error = sqrt(variance / spread);
        line.intercept_error = sqrt(variance * (1 / n + mean * mean / spread));
        line.covariance = -mean * variance / spread;
    }
    if (!none)
        likelihood(&line);
    *ret = line;
    return isfinite(line.slope) && isfinite(line.intercept);
}
