/*
 * Double-double arithmetic: an unevaluated sum of two doubles, about 32 digits. What a least squares fit
 * loses by working on sums of products instead of on the rows (half of its digits) is more than regained by
 * it.
 *
 * Sources: T. J. Dekker, Numer. Math. 18 (1971), the product and the split; D. E. Knuth, TAOCP 2, 4.2.2, the
 * sum; T. Ogita, S. M. Rump, S. Oishi, SIAM J. Sci. Comput. 26 (2005), 1955, error bounds of sums and dot
 * products in twice the working precision. Needs round-to-nearest and no contraction of a*b+c
 * (-ffp-contract=off).
 */
#ifndef ASSAY_NUMERICS_DOUBLE_DOUBLE_H
#define ASSAY_NUMERICS_DOUBLE_DOUBLE_H

#include <math.h>

struct dd {
    double high, low; /* |low| <= ulp(high)/2 */
};

/* high + low == a + b, exactly. */
static inline struct dd dd_two_sum(double a, double b) {
    double sum = a + b;
    double part = sum - a;
    return (struct dd){sum, (a - (sum - part)) + (b - part)};
}

/* The same where |a| >= |b| or a is 0. */
static inline struct dd dd_fast_two_sum(double a, double b) {
    double sum = a + b;
    return (struct dd){sum, b - (sum - a)};
}

/* high + low == a * b, exactly, unless a part under- or overflows. */
static inline struct dd dd_two_product(double a, double b) {
    double product = a * b;
#ifdef __FP_FAST_FMA
    return (struct dd){product, __builtin_fma(a, b, -product)};
#else
    const double splitter = 134217729.0; /* 2^27 + 1 */
    double a_scaled = splitter * a, b_scaled = splitter * b;
    double a_high = a_scaled - (a_scaled - a), b_high = b_scaled - (b_scaled - b);
    double a_low = a - a_high, b_low = b - b_high;
    return (struct dd){product,
                       a_low * b_low - (((product - a_high * b_high) - a_low * b_high) - a_high * b_low)};
#endif
}

static inline struct dd dd_from(double a) {
    return (struct dd){a, 0};
}

static inline double dd_to_double(struct dd a) {
    return a.high + a.low;
}

static inline struct dd dd_negate(struct dd a) {
    return (struct dd){-a.high, -a.low};
}

static inline struct dd dd_add(struct dd a, struct dd b) {
    struct dd high = dd_two_sum(a.high, b.high);
    struct dd low = dd_two_sum(a.low, b.low);
    struct dd sum = dd_fast_two_sum(high.high, high.low + low.high);
    return dd_fast_two_sum(sum.high, sum.low + low.low);
}

static inline struct dd dd_subtract(struct dd a, struct dd b) {
    return dd_add(a, dd_negate(b));
}

static inline struct dd dd_multiply(struct dd a, struct dd b) {
    struct dd product = dd_two_product(a.high, b.high);
    return dd_fast_two_sum(product.high, product.low + (a.high * b.low + a.low * b.high));
}

static inline struct dd dd_divide(struct dd a, struct dd b) {
    double first = a.high / b.high;
    struct dd rest = dd_subtract(a, dd_multiply(b, dd_from(first)));
    double second = rest.high / b.high;
    rest = dd_subtract(rest, dd_multiply(b, dd_from(second)));
    double third = rest.high / b.high;
    return dd_add(dd_fast_two_sum(first, second), dd_from(third));
}

/* a * 2^exponent, exactly, unless it under- or overflows. */
static inline struct dd dd_scale(struct dd a, int exponent) {
    return (struct dd){ldexp(a.high, exponent), ldexp(a.low, exponent)};
}

#endif
