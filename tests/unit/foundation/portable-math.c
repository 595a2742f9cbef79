/* The portable functions against the C library's in long double, and against fixed bits. */
#include "engine/foundation/portable-math.h"
#include "tests/test.h"

#include <float.h>

/* The distance of VALUE from EXACT in units of the last place of a double near EXACT. */
static double error_in_ulp(double value, long double exact) {
    int exponent = ilogbl(exact) - 52;
    if (exponent < -1074)
        exponent = -1074; /* subnormal */
    return (double)(fabsl(value - exact) / ldexpl(1, exponent));
}

/* A double from LOW to HIGH, uniform. */
static double between(double low, double high) {
    return low + drand48() * (high - low);
}

enum { TRIALS = 400000 };

TEST(log) {
    srand48(1);
    double worst = 0, worst2 = 0;
    for (int i = 0; i < TRIALS; i++) {
        double x = ldexp(between(1, 2), i % 3 == 0 ? (int)(lrand48() % 2000) - 1000 : i % 7 - 3);
        if (i % 5 == 0)
            x = 1 + between(-1e-3, 1e-3); /* where log x is small */
        worst = fmax(worst, error_in_ulp(portable_log(x), logl(x)));
        worst2 = fmax(worst2, error_in_ulp(portable_log2(x), log2l(x)));
    }
    print_message("log %.3f ulp, log2 %.3f ulp\n", worst, worst2);
    assert_true(worst <= 1);
    assert_true(worst2 <= 2);
    assert_true(worst > 0.4 && worst2 > 0.4); /* rounding alone does that: the test measures something */
}

TEST(exp) {
    srand48(2);
    double worst = 0;
    for (int i = 0; i < TRIALS; i++) {
        double x = i % 2 ? between(-745, 709.7) : between(-2, 25);
        worst = fmax(worst, error_in_ulp(portable_exp(x), expl(x)));
    }
    print_message("exp %.3f ulp\n", worst);
    assert_true(worst <= 1);
    assert_true(worst > 0.4);
}

TEST(root) {
    srand48(3);
    double worst = 0;
    for (int i = 0; i < TRIALS; i++) {
        double x = between(1, 1e10);
        unsigned degree = 1 + (unsigned)i % 6;
        worst = fmax(worst, error_in_ulp(portable_root(x, degree), powl(x, 1.0L / degree)));
    }
    print_message("root %.3f ulp\n", worst);
    assert_true(worst <= 16); /* half of log x / degree + 1 */
}

/* A cube's root is whole, and 2 N^3 / 3 operations have to give N again. */
TEST(cbrt) {
    for (double whole = 1; whole <= 200000; whole++) { /* cubes below 2^53 */
        assert_true(portable_cbrt(whole * whole * whole) == whole);
        assert_true(portable_power(whole * whole * whole, 1.0 / 3) == whole);
    }
    srand48(5);
    double worst = 0;
    for (int i = 0; i < TRIALS; i++) {
        double x = ldexp(between(1, 2), (int)(lrand48() % 2000) - 1000);
        worst = fmax(worst, error_in_ulp(portable_cbrt(x), cbrtl(x)));
    }
    print_message("cbrt %.3f ulp\n", worst);
    assert_true(worst <= 1);
    assert_true(worst > 0.4);
    assert_true(portable_cbrt(0) == 0 && portable_cbrt(INFINITY) == INFINITY && isnan(portable_cbrt(NAN)));
    assert_true(portable_cbrt(-1000) == -10 && isfinite(portable_cbrt(DBL_MAX)) &&
                portable_cbrt(DBL_TRUE_MIN) > 0);
}

TEST(power) {
    assert_true(portable_power(2, 10) == 1024);
    assert_true(portable_power(10, 22) == 1e22);
    assert_true(portable_power(2, -3) == 0.125);
    assert_true(portable_power(-3, 3) == -27);
    assert_true(portable_power(2, 1023) == 0x1p1023);
    assert_true(portable_power(2, 1024) == INFINITY);
    assert_true(portable_power(0, 0) == 1 && portable_power(0, 2) == 0 && portable_power(0, -1) == INFINITY);
    assert_true(portable_power(16, 0.5) == 4);
    assert_true(isnan(portable_power(-2, 0.5)) && isnan(portable_power(-2, 0.3)));
    srand48(4);
    double worst = 0;
    for (int i = 0; i < TRIALS; i++) {
        double x = between(0.01, 1000), y = between(-3, 3);
        worst = fmax(worst, error_in_ulp(portable_power(x, y), powl(x, y)) / (fabs(y * log(x)) + 1));
    }
    print_message("power %.3f ulp for each |y log x| + 1\n", worst);
    assert_true(worst <= 2);
}

TEST(special) {
    assert_true(portable_log(1) == 0 && portable_log2(1) == 0 && portable_exp(0) == 1 &&
                portable_exp(-0.0) == 1);
    assert_true(portable_log(0) == -INFINITY && portable_log(-0.0) == -INFINITY && isnan(portable_log(-1)));
    assert_true(portable_log(INFINITY) == INFINITY && isnan(portable_log(NAN)) &&
                isnan(portable_log(-INFINITY)));
    assert_true(isnan(portable_log2(-1)) && portable_log2(0) == -INFINITY &&
                portable_log2(INFINITY) == INFINITY);
    assert_true(portable_exp(-INFINITY) == 0 && portable_exp(INFINITY) == INFINITY &&
                isnan(portable_exp(NAN)));
    assert_true(portable_exp(710) == INFINITY && portable_exp(1e300) == INFINITY);
    assert_true(portable_exp(709.782712893384) > 1.797e308 && isfinite(portable_exp(709.782712893384)));
    assert_true(portable_exp(-745.2) == 0 && portable_exp(-745.1) == DBL_TRUE_MIN);
    for (int e = -1074; e < 1024; e++)
        assert_true(portable_log2(ldexp(1, e)) == e);
}

TEST(round) {
    assert_true(portable_round(0.5) == 1 && portable_round(-0.5) == -1 && portable_round(1.5) == 2);
    assert_true(portable_round(0.49999999999999994) == 0); /* where floor(x + 0.5) is wrong */
    assert_true(portable_round(4503599627370497.5) == 4503599627370498.0);
    assert_true(portable_round(1e300) == 1e300 && portable_round(-2.4) == -2);
}

/* The bits themselves, here those of the exact values rounded once (50 decimal digits): whoever changes the
 * method changes every design of every seed, and must want to. */
TEST(bits) {
    static const struct {
        double (*function)(double);
        double x, expected;
    } cases[] = {
        {portable_log, 10, 0x1.26bb1bbb55516p+1},    {portable_log, 1e9, 0x1.4b927f32bffb8p+4},
        {portable_log, 0.7, -0x1.6d3c324e13f50p-2},  {portable_exp, 1, 0x1.5bf0a8b145769p+1},
        {portable_exp, 20.7, 0x1.d1df072e9d819p+29}, {portable_exp, -1e-3, 0x1.ff7cfe56f1a9ep-1},
        {portable_log2, 10, 0x1.a934f0979a371p+1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = cases[i].function(cases[i].x);
        if (value != cases[i].expected)
            print_message("case %zu: %a, expected %a\n", i, value, cases[i].expected);
        assert_true(value == cases[i].expected);
    }
}
