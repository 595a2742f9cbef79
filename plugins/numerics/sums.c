#include "plugins/numerics/sums.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* What a run of points of one size only has as Sxx is rounding: 32 digits of (w xx). */
static const double flat = 0x1p-90;

static int exponent_of(double greatest) {
    int exponent = 0;
    if (greatest > 0)
        frexp(greatest, &exponent);
    return exponent;
}

/* A power of two to multiply by: the same as ldexp, many times as fast where it is a double itself. */
struct power {
    double factor; /* 0: it is none */
    int exponent;
};

static struct power power_of(int exponent) {
    return (struct power){abs(exponent) < 1000 ? ldexp(1, exponent) : 0, exponent};
}

static double scale(double value, struct power power) {
    return power.factor != 0 ? value * power.factor : ldexp(value, power.exponent);
}

static void put(struct sums_row *row, size_t moment, struct dd value) {
    (&row->high.w)[moment] = value.high;
    (&row->low.w)[moment] = value.low;
}

static struct dd get(const struct sums_row *row, size_t moment) {
    return (struct dd){(&row->high.w)[moment], (&row->low.w)[moment]};
}

/* What one point adds, as the order of struct sums_moment has it. */
static void put_terms(struct sums_row *row, struct dd x, struct dd y, double weight, double within) {
    struct dd wx = dd_multiply(x, dd_from(weight)), wy = dd_multiply(y, dd_from(weight));
    struct dd terms[] = {dd_from(weight),
                         wx,
                         wy,
                         dd_multiply(wx, x),
                         dd_multiply(wx, y),
                         dd_add(dd_multiply(wy, y), dd_from(within))};
    for (size_t k = 0; k < SUMS_MOMENTS / 2; k++)
        put(row, k, terms[k]);
}

/* Row i + 1 has the terms of point i; makes running sums of them. From the end where the terms are smaller:
 * the difference of two sums shall not be small beside both. From the last point on they are negative, so
 * that differences are the same. */
static void run_up(struct sums *sums, size_t moment) {
    double sides[2] = {0, 0};
    for (size_t i = 0; i < sums->count; i++)
        sides[i >= sums->count / 2] += fabs(get(&sums->rows[i + 1], moment).high);
    struct dd sum = {0, 0};
    if (sides[0] <= sides[1]) {
        put(&sums->rows[0], moment, sum);
        for (size_t i = 1; i <= sums->count; i++) {
            sum = dd_add(sum, get(&sums->rows[i], moment));
            put(&sums->rows[i], moment, sum);
        }
        return;
    }
    for (size_t i = sums->count; i > 0; i--) {
        struct dd term = get(&sums->rows[i], moment);
        put(&sums->rows[i], moment, sum);
        sum = dd_subtract(sum, term);
    }
    put(&sums->rows[0], moment, sum);
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
#if defined __x86_64__
    sums->fused = __builtin_cpu_supports("fma") && __builtin_cpu_supports("avx2");
#endif
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
    struct power by_size = power_of(-size_exponent), by_response = power_of(-sums->response_exponent);
    struct power by_weight = power_of(-sums->weight_exponent);
    struct power by_within = power_of(-sums->weight_exponent - 2 * sums->response_exponent);
    double x0 = scale(points[0].x, by_size), y0 = scale(points[0].y, by_response);
    for (size_t i = 0; i < count; i++) {
        const struct point *point = &points[i];
        put_terms(&sums->rows[i + 1], dd_two_sum(scale(point->x, by_size), -x0),
                  dd_two_sum(scale(point->y, by_response), -y0), scale(point->weight, by_weight),
                  scale(point->within, by_within));
    }
    for (size_t k = 0; k < SUMS_MOMENTS / 2; k++)
        run_up(sums, k);
    int r = add_within(sums, points);
    return r < 0 ? r : sums_finish(sums);
}

int sums_finish(struct sums *sums) {
    size_t places = sums->count + 1 + SUMS_LANES;
    sums->columns[0] = malloc(SUMS_MOMENTS * places * sizeof(double));
    if (!sums->columns[0])
        return -ENOMEM;
    for (size_t k = 0; k < SUMS_MOMENTS; k++) {
        sums->columns[k] = sums->columns[0] + k * places;
        for (size_t i = 0; i < places; i++) {
            const double *moments = &sums->rows[i <= sums->count ? i : sums->count].high.w;
            sums->columns[k][i] = moments[k];
        }
    }
    return 0;
}

void sums_clear(struct sums *sums) {
    free(sums->rows);
    free(sums->within);
    free(sums->columns[0]);
    *sums = (struct sums){0};
}

double sums_unscale(const struct sums *sums, double scaled) {
    return ldexp(scaled, 2 * sums->response_exponent + sums->weight_exponent);
}

/*
 * 32 digits with a fused multiply-add where the processor has one, without where not: both exact products, so
 * the same bits. The differences are the short kind, wrong by 2^-104 of what is subtracted, as the running
 * sums are.
 */
#define EXACT_INLINE __attribute__((always_inline)) static inline

EXACT_INLINE struct dd difference(double a_high, double a_low, double b_high, double b_low) {
    struct dd sum = dd_two_sum(a_high, -b_high);
    return dd_fast_two_sum(sum.high, sum.low + (a_low - b_low));
}

EXACT_INLINE struct dd product(struct dd a, struct dd b, bool fused) {
    struct dd exact = {a.high * b.high, 0};
    if (fused)
        exact.low = __builtin_fma(a.high, b.high, -exact.high);
    else
        exact = dd_two_product(a.high, b.high);
    return dd_fast_two_sum(exact.high, exact.low + (a.high * b.low + a.low * b.high));
}

EXACT_INLINE struct dd quotient(struct dd a, struct dd b, bool fused) {
    double first = a.high / b.high;
    struct dd part = product(dd_from(first), b, fused);
    struct dd rest = difference(a.high, a.low, part.high, part.low);
    return dd_fast_two_sum(first, rest.high / b.high);
}

#define DIFFERENCE(moment) difference(to->high.moment, to->low.moment, from->high.moment, from->low.moment)

EXACT_INLINE struct dd best_line(const struct sums_row *from, const struct sums_row *to, bool fused) {
    struct dd w = DIFFERENCE(w), x = DIFFERENCE(x), y = DIFFERENCE(y);
    struct dd xx = DIFFERENCE(xx), xy = DIFFERENCE(xy), yy = DIFFERENCE(yy);
    struct dd wxx = product(w, xx, fused);
    struct dd sxx = dd_subtract(wxx, product(x, x, fused));
    struct dd sxy = dd_subtract(product(w, xy, fused), product(x, y, fused));
    struct dd rss = dd_subtract(product(w, yy, fused), product(y, y, fused));
    if (sxx.high > flat * wxx.high)
        rss = dd_subtract(rss, quotient(product(sxy, sxy, fused), sxx, fused));
    return rss.high > 0 ? quotient(rss, w, fused) : dd_from(0);
}

#if defined __x86_64__
__attribute__((target("fma"))) static struct dd best_line_fused(const struct sums_row *from,
                                                                const struct sums_row *to) {
    return best_line(from, to, true);
}
#endif

struct dd sums_rss(const struct sums *sums, size_t a, size_t b) {
    if (b <= a + 2)
        return sums->within ? dd_subtract(sums->within[b], sums->within[a]) : dd_from(0);
#if defined __x86_64__
    if (sums->fused)
        return best_line_fused(&sums->rows[a], &sums->rows[b]);
#endif
    return best_line(&sums->rows[a], &sums->rows[b], false);
}

struct sums_bounds sums_bounds_exactly(const struct sums *sums, size_t a, size_t b) {
    double rss = sums_rss(sums, a, b).high;
    return (struct sums_bounds){rss * (1 - 0x1p-50), rss * (1 + 0x1p-50)};
}

/* ---- Many at once */

typedef double lanes __attribute__((vector_size(SUMS_LANES * sizeof(double))));
typedef int64_t lanes_bits __attribute__((vector_size(SUMS_LANES * sizeof(int64_t))));

EXACT_INLINE lanes lanes_load(const double *values) {
    lanes loaded;
    memcpy(&loaded, values, sizeof loaded);
    return loaded;
}

EXACT_INLINE lanes lanes_difference(const struct sums *sums, const struct sums_row *fixed, size_t place,
                                    size_t moment) {
    const double *values = &fixed->high.w;
    lanes high = lanes_load(sums->columns[moment] + place) - values[moment];
    lanes low =
        lanes_load(sums->columns[moment + SUMS_MOMENTS / 2] + place) - values[moment + SUMS_MOMENTS / 2];
    return high + low;
}

/* As sums_bounds, of four. SIGN: -1 where places are below the fixed one, and so all sums are negative; their
 * products are not. All ones for those that are not told closely enough. */
EXACT_INLINE lanes_bits bounds_of_lanes(const struct sums *sums, size_t fixed, size_t place, double sign,
                                        double *lower, double *upper) {
    const struct sums_row *row = &sums->rows[fixed];
    lanes w = lanes_difference(sums, row, place, 0), x = lanes_difference(sums, row, place, 1);
    lanes y = lanes_difference(sums, row, place, 2), xx = lanes_difference(sums, row, place, 3);
    lanes xy = lanes_difference(sums, row, place, 4), yy = lanes_difference(sums, row, place, 5);
    lanes wxx = w * xx, sxx = wxx - x * x, sxy = w * xy - x * y, syy = w * yy - y * y;
    lanes both = sign / (sxx * w), inverse = both * w;
    lanes rss = (syy - sxy * sxy * (inverse * sign)) * (both * sxx);
    lanes error = SUMS_ERROR * (yy * sign + xx * syy * inverse);
    lanes_bits fine = (error <= sums->tolerance) & (sxx > 0x1p-30 * wxx);
    lanes least = rss - error, greatest = rss + error;
    memcpy(lower, &least, sizeof least);
    memcpy(upper, &greatest, sizeof greatest);
    return ~fine;
}

static void bound_exactly(const struct sums *sums, size_t fixed, size_t place, double *lower, double *upper) {
    struct sums_bounds bounds =
        place < fixed ? sums_bounds_exactly(sums, place, fixed) : sums_bounds_exactly(sums, fixed, place);
    *lower = bounds.lower;
    *upper = bounds.upper;
}

EXACT_INLINE bool any(lanes_bits bits) {
    return (bits[0] | bits[1] | bits[2] | bits[3]) != 0;
}

/* PLUS may be NULL: then the answer is no. */
EXACT_INLINE bool bounds_many(const struct sums *sums, size_t fixed, size_t first, size_t count,
                              const double *plus, double most, double *lower, double *upper) {
    lanes_bits below = {0};
    const double sign = first < fixed ? -1 : 1;
    for (size_t i = 0; i < count; i += SUMS_LANES) {
        lanes_bits open = bounds_of_lanes(sums, fixed, first + i, sign, lower + i, upper + i);
        if (plus)
            below |= open | (lanes_load(plus + i) + lanes_load(lower + i) <= most);
        if (!any(open))
            continue;
        for (size_t k = i; k < i + SUMS_LANES && k < count; k++)
            if (open[k - i])
                bound_exactly(sums, fixed, first + k, lower + k, upper + k);
    }
    return plus && any(below);
}

#if defined __x86_64__
__attribute__((target("avx2"))) static bool bounds_many_wide(const struct sums *sums, size_t fixed,
                                                             size_t first, size_t count, const double *plus,
                                                             double most, double *lower, double *upper) {
    return bounds_many(sums, fixed, first, count, plus, most, lower, upper);
}
#endif

static bool bounds_wide_or_not(const struct sums *sums, size_t fixed, size_t first, size_t count,
                               const double *plus, double most, double *lower, double *upper) {
#if defined __x86_64__
    if (sums->fused)
        return bounds_many_wide(sums, fixed, first, count, plus, most, lower, upper);
#endif
    return bounds_many(sums, fixed, first, count, plus, most, lower, upper);
}

void sums_bounds_many(const struct sums *sums, size_t fixed, size_t first, size_t count, double *lower,
                      double *upper) {
    bounds_wide_or_not(sums, fixed, first, count, NULL, 0, lower, upper);
}

bool sums_bounds_below(const struct sums *sums, size_t fixed, size_t first, size_t count, const double *plus,
                       double most, double *lower, double *upper) {
    return bounds_wide_or_not(sums, fixed, first, count, plus, most, lower, upper);
}
