#include "engine/foundation/portable-math.h"

#include <float.h>
#include <math.h>
#include <stdint.h>
#include <string.h>

/* Where the machine computes with more digits than a double has (x87), results would depend on the compiler.
 */
_Static_assert(FLT_EVAL_METHOD == 0, "double arithmetic must be done in double precision");
_Static_assert(DBL_MANT_DIG == 53 && FLT_RADIX == 2, "double must be IEEE 754 binary64");

/* log 2 in two parts: the first has 32 significant bits, so that its product with an exponent is exact. */
static const double log2_high = 0x1.62e42feep-1, log2_low = 0x1.a39ef35793c76p-33;
static const double inverse_log2 = 0x1.71547652b82fep+0;

static uint64_t bits_of(double x) {
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits) {
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^EXPONENT, for a normal result. */
static double power_of_two(int exponent) {
    return double_of((uint64_t)(exponent + 1023) << 52);
}

/* Splits a finite X > 0 into 2^*EXPONENT and the returned m in [sqrt(1/2), sqrt(2)). */
static double split(double x, int *exponent) {
    int shift = 0;
    if (x < DBL_MIN) {
        x *= 0x1p54;
        shift = -54;
    }
    uint64_t bits = bits_of(x);
    int e = (int)(bits >> 52) - 1023;
    double m = double_of((bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52);
    if (m >= 0x1.6a09e667f3bcdp+0) {
        m *= 0.5;
        e++;
    }
    *exponent = e + shift;
    return m;
}

/* f - log m for m in [sqrt(1/2), sqrt(2)), where f = m - 1 is exact. With s = f / (2 + f):
 * log m = 2 artanh s = 2 s + s t, t = 2 (s^2/3 + s^4/5 + ...); and 2 s = f - s f, so log m = f - s (f - t).
 */
static double log_deficit(double f) {
    double s = f / (2 + f), z = s * s;
    /* |s| <= 0.1716: the first term left out, z^12 / 25, is below 2^-63. */
    double t = 2.0 / 23;
    for (int odd = 21; odd >= 3; odd -= 2)
        t = t * z + 2.0 / odd;
    return s * (f - t * z);
}

double portable_log(double x) {
    if (!(x > 0))
        return x == 0 ? -INFINITY : NAN;
    if (x > DBL_MAX)
        return x;
    int exponent;
    double f = split(x, &exponent) - 1;
    return (double)exponent * log2_high + (f - (log_deficit(f) - (double)exponent * log2_low));
}

double portable_log2(double x) {
    if (!(x > 0))
        return x == 0 ? -INFINITY : NAN;
    if (x > DBL_MAX)
        return x;
    int exponent;
    double f = split(x, &exponent) - 1;
    return (double)exponent + (f - log_deficit(f)) * inverse_log2;
}

/* e^X by argument reduction and a Taylor series; the same bits on every machine. */
double portable_exp(double x) {
    if (!(x >= -746 && x <= 710)) /* nan too */
        return x < 0 ? 0 : x > 0 ? INFINITY : x;
    int k = (int)(x * inverse_log2 + (x < 0 ? -0.5 : 0.5));
    double high = x - (double)k * log2_high, low = (double)k * log2_low;
    double r = high - low;
    double lost = (high - r) - low; /* r + lost is the reduced argument, to twice the digits */
    /* e^r = 1 + r + r^2 (1/2! + r/3! + ... + r^11/13!); the first term left out is below 2^-57. */
    double sum = 1;
    for (int n = 13; n >= 3; n--)
        sum = 1 + sum * r / n;
    double power = 1 + (r + (r * r * (sum / 2) + lost * (1 + r)));
    if (k > 1023)
        return power * 0x1p1023 * power_of_two(k - 1023);
    if (k < -1021)
        return power * power_of_two(k + 54) * 0x1p-54; /* the last product rounds, once */
    return power * power_of_two(k);
}

/* The cube root, by exp, log and one step of Newton's method; exact for cubes of whole numbers. */
double portable_cbrt(double x) {
    if (!(fabs(x) <= DBL_MAX) || x == 0)
        return x;
    double a = fabs(x), root = portable_exp(portable_log(a) / 3);
    root += (a / (root * root) - root) / 3; /* a step of Newton's method takes the error below 1 ulp */
    double whole = portable_round(root);
    if (whole * whole * whole == a)
        root = whole;
    return x < 0 ? -root : root;
}

/* X to the power Y; by repeated squaring for whole Y, so that exact powers are exact. */
double portable_power(double x, double y) {
    if (y == 0)
        return 1;
    if (fabs(y) <= 1024 && y == floor(y)) {
        double result = 1, square = x;
        for (unsigned n = (unsigned)fabs(y); n; n >>= 1) {
            if (n & 1)
                result *= square;
            square *= square;
        }
        return y < 0 ? 1 / result : result;
    }
    if (y == 0.5)
        return sqrt(x);
    if (y == 1.0 / 3 && x >= 0)
        return portable_cbrt(x);
    return portable_exp(y * portable_log(x));
}

double portable_root(double x, unsigned degree) {
    if (degree == 1)
        return x;
    if (degree == 2)
        return sqrt(x);
    return portable_exp(portable_log(x) / degree);
}

double portable_round(double x) {
    double whole = floor(fabs(x));
    if (fabs(x) - whole >= 0.5) /* exact: no rounding in the difference */
        whole += 1;
    return x < 0 ? -whole : whole;
}
