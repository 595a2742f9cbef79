/*
 * exp and log of four doubles at once, in GCC's vector types: plain SSE2, AVX2 or NEON as the target has it,
 * with the same bits on each of them (additions, multiplications and divisions in a fixed order; the build
 * has no fused operations unless a function asks for them). Within 2 ulp of the true values.
 */
#ifndef ASSAY_NUMERICS_LANES_H
#define ASSAY_NUMERICS_LANES_H

#include <stdint.h>

enum { LANES = 4 };

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t lanes_bits __attribute__((vector_size(LANES * sizeof(int64_t))));

#define LANES_INLINE __attribute__((always_inline)) static inline

LANES_INLINE lanes lanes_of(double value) {
    return (lanes){value, value, value, value};
}

/* A where MASK (all ones or zeros in each lane), B elsewhere. */
LANES_INLINE lanes lanes_choose(lanes_bits mask, lanes a, lanes b) {
    return (lanes)(((lanes_bits)a & mask) | ((lanes_bits)b & ~mask));
}

LANES_INLINE lanes lanes_maximum(lanes a, lanes b) {
    return lanes_choose(a > b, a, b);
}

/* e^x for x <= 0; what is below -700 is taken for -700 (1e-304). x = n log 2 + r, |r| <= log(2) / 2, e^r by
 * its Taylor series, whose first term left out is below 2e-16. */
LANES_INLINE lanes lanes_exp(lanes x) {
    static const double inverse_factorials[] = {
        1.0 / 479001600, 1.0 / 39916800, 1.0 / 3628800, 1.0 / 362880, 1.0 / 40320, 1.0 / 5040, 1.0 / 720,
        1.0 / 120,       1.0 / 24,       1.0 / 6,       0.5,          1.0,         1.0};
    const lanes magic = lanes_of(0x1.8p52); /* adding it rounds to a whole number, in the lowest bits */
    x = lanes_maximum(x, lanes_of(-700));
    lanes shifted = x * 0x1.71547652b82fep0 + magic;
    lanes n = shifted - magic;
    lanes r = x - n * 0x1.62e42fefa0000p-1 - n * 0x1.cf79abc9e3b3ap-40;
    lanes e = lanes_of(inverse_factorials[0]);
    for (int i = 1; i < 13; i++)
        e = e * r + inverse_factorials[i];
    return (lanes)((lanes_bits)e + ((lanes_bits)shifted << 52));
}

/* Natural logarithm of a normal number x > 0: x = 2^n m with m in [sqrt(1/2), sqrt(2)), log m = 2 artanh(s),
 * s = (m - 1) / (m + 1), |s| <= 0.172. */
LANES_INLINE lanes lanes_log(lanes x) {
    const lanes_bits half = (lanes_bits)lanes_of(0x1.6a09e667f3bcdp-1); /* sqrt(1/2) */
    lanes_bits bits = (lanes_bits)x, exponent = (bits - half) >> 52;
    lanes m = (lanes)(bits - (exponent << 52));
    lanes n = __builtin_convertvector(exponent, lanes);
    lanes s = (m - 1) / (m + 1), square = s * s, sum = lanes_of(1.0 / 21);
    for (int i = 19; i >= 3; i -= 2)
        sum = sum * square + 1.0 / i;
    return n * 0x1.62e42fefa0000p-1 + (2 * s + (2 * s * square * sum + n * 0x1.cf79abc9e3b3ap-40));
}

LANES_INLINE double lanes_sum(lanes x) {
    return (x[0] + x[2]) + (x[1] + x[3]);
}

#endif
