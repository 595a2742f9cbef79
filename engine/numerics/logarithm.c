#include "engine/numerics/logarithm.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <string.h>

enum { CHUNK = 256, LANES = 8 };

/* The sum of the logarithms of CHUNK values, all normal and above 0, by one logarithm of the product of
 * mantissas. */
__attribute__((target_clones("avx2", "default"))) static double sum_chunk(const double *values) {
    const uint64_t mantissa = (UINT64_C(1) << 52) - 1, one = UINT64_C(1023) << 52;
    double products[LANES] = {1, 1, 1, 1, 1, 1, 1, 1}, product = 1;
    int64_t exponents[LANES] = {0}, exponent = 0;
    for (size_t i = 0; i < CHUNK; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            uint64_t bits;
            double part;
            memcpy(&bits, &values[i + l], sizeof bits);
            exponents[l] += (int64_t)(bits >> 52);
            bits = (bits & mantissa) | one;
            memcpy(&part, &bits, sizeof part);
            products[l] *= part; /* below 2^32 */
        }
    for (size_t l = 0; l < LANES; l++) {
        product *= products[l];
        exponent += exponents[l] - CHUNK / LANES * 1023;
    }
    return (double)exponent * M_LN2 + log(product);
}

/* The sum of the logarithms of the values above 0. */
double logarithm_sum(const double *values, size_t count) {
    double sum = 0;
    for (size_t begin = 0; begin < count; begin += CHUNK) {
        size_t end = begin + CHUNK, normal = 0;
        for (size_t i = begin; end <= count && i < end; i++)
            normal += values[i] >= DBL_MIN && values[i] <= DBL_MAX;
        if (normal == CHUNK) {
            sum += sum_chunk(values + begin);
            continue;
        }
        for (size_t i = begin; i < end && i < count; i++)
            sum += values[i] > 0 ? log(values[i]) : 0;
    }
    return sum;
}
