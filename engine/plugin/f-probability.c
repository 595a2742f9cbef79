#include "engine/plugin/f-probability.h"

#include <math.h>

enum { STEPS_MAX = 100000 }; /* some square root of the degrees of freedom is needed */

static const double tiny = 1e-300, enough = 1e-15;

/* What a step of Lentz's method divides by is never 0. */
static double away_from_zero(double value) {
    return fabs(value) < tiny ? tiny : value;
}

/* The continued fraction of I_x(a, b), which is quick for x < (a + 1) / (a + b + 2). */
static double continued_fraction(double a, double b, double x) {
    double c = 1, d = 1 / away_from_zero(1 - (a + b) * x / (a + 1)), fraction = d;
    for (int m = 1; m < STEPS_MAX; m++) {
        double even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m)),
               odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1));
        d = 1 / away_from_zero(1 + even * d);
        c = away_from_zero(1 + even / c);
        fraction *= d * c;
        d = 1 / away_from_zero(1 + odd * d);
        c = away_from_zero(1 + odd / c);
        fraction *= d * c;
        if (fabs(d * c - 1) < enough)
            break;
    }
    return fraction;
}

/* log I_x(a, b) by the fraction; Y is 1 - x, which is told apart where x is nearly 1. */
static double log_beta_ratio(double a, double b, double x, double y) {
    int sign;
    double complete = lgamma_r(a, &sign) + lgamma_r(b, &sign) - lgamma_r(a + b, &sign);
    return a * log(x) + b * log(y) - complete - log(a) + log(continued_fraction(a, b, x));
}

double f_upper_logarithm(double ratio, double upper, double lower) {
    if (!(ratio >= 0) || !(upper > 0) || !(lower > 0))
        return NAN;
    if (ratio == 0 || isinf(ratio))
        return ratio == 0 ? 0 : -INFINITY;
    double a = lower / 2, b = upper / 2, x = lower / (lower + upper * ratio),
           y = upper * ratio / (lower + upper * ratio);
    if (x < (a + 1) / (a + b + 2))
        return log_beta_ratio(a, b, x, y);
    return log1p(-exp(log_beta_ratio(b, a, y, x)));
}
