/*
 * Elementary functions with the same bits on every machine: made of IEEE 754 additions, subtractions,
 * multiplications, divisions and square roots in double precision only, in a fixed order, without fused
 * operations
 * (-ffp-contract=off). The C library's own may differ in the last digit from one machine or version to the
 * next, and so would a design. Measured errors are in the tests: portable_log and portable_exp stay within 1
 * ulp.
 *
 * Method: x = 2^e m with m in [sqrt(1/2), sqrt(2)), then log m = 2 artanh((m - 1) / (m + 1)) by its Taylor
 * series; exp x = 2^k e^r with |r| <= log(2) / 2, then e^r by its Taylor series. (J.-M. Muller, "Elementary
 * Functions", 3rd ed., 2016, chapter 11, on reducing the argument with log 2 in two parts.)
 */
#ifndef ASSAY_FOUNDATION_PORTABLE_MATH_H
#define ASSAY_FOUNDATION_PORTABLE_MATH_H

/* Natural logarithm; -inf for 0, nan below. */
double portable_log(double x);
/* Logarithm to base 2; exact for powers of two. Within 2 ulp. */
double portable_log2(double x);
/* e^x; inf above 709.78, gradual underflow below -708.4, 0 below -745.2. */
double portable_exp(double x);
/* The cube root, also of what is negative; exact for cubes of whole numbers. Within 1 ulp. */
double portable_cbrt(double x);
/* x^y. A whole y of at most 1024 in size by repeated squaring (2 log2 |y| roundings at most); y = 0.5 by
 * square root, y = 1.0 / 3 by portable_cbrt; otherwise exp(y log x), whose relative error grows to about |y
 * log x| + 1 ulp; nan for x < 0 then. x^0 is 1. */
double portable_power(double x, double y);
/* The DEGREE-th root of x >= 0, DEGREE at least 1. */
double portable_root(double x, unsigned degree);
/* The nearest whole number; halves go away from zero. */
double portable_round(double x);

#endif
