#include "plugins/fit-linear/moments-kernel.h"

#include "plugins/numerics/double-double.h"

#include <string.h>

/* The bits of a double but its sign: 0 for zeros only. */
static inline uint64_t magnitude_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits << 1;
}

/* x - x is 0 where x is finite and NaN where it is not. */
__attribute__((always_inline)) static inline bool load_rows(size_t rows, const double *values, double scale,
                                                            double *restrict scaled) {
    uint64_t odd = 0;
    for (size_t r = 0; r < rows; r++) {
        double value = values[r] * scale;
        scaled[r] = value;
        odd |= magnitude_bits(value - value);
    }
    return odd == 0;
}

/* ---- Plain C */

static bool load_portable(size_t rows, const double *values, double scale, double *scaled) {
    return load_rows(rows, values, scale, scaled);
}

static bool multiply_portable(size_t rows, double *high, double *low, const double *factor) {
    uint64_t odd = 0;
    for (size_t r = 0; r < rows; r++) {
        struct dd product = dd_two_product(high[r], factor[r]);
        high[r] = product.high;
        low[r] = low[r] * factor[r] + product.low;
        odd |= magnitude_bits(low[r]);
    }
    return odd == 0;
}

static void add_products(const struct moments_product *products, size_t row, bool exact, double *chunk) {
    for (size_t lane = 0; lane < MOMENTS_LANES; lane++) {
        const struct moments_product *product = &products[lane];
        double left = product->left[row], right = product->right[row];
        struct dd value = dd_two_product(left, right);
        if (!exact)
            value.low += left * product->right_low[row] + product->left_low[row] * right;
        struct dd sum = dd_two_sum(chunk[lane], value.high);
        chunk[lane] = sum.high;
        chunk[MOMENTS_LANES + lane] += sum.low + value.low;
    }
}

static void accumulate_portable(const struct moments_tile *tile) {
    for (size_t row = 0; row < tile->rows; row++) {
        double *chunk = tile->places[row].sums;
        for (size_t c = 0; c < tile->product_chunks; c++, chunk += MOMENTS_CHUNK)
            add_products(tile->products + c * MOMENTS_LANES, row, tile->exact, chunk);
        chunk = tile->places[row].ranges;
        for (size_t c = 0; c < tile->range_chunks; c++, chunk += MOMENTS_CHUNK)
            for (size_t lane = 0; lane < MOMENTS_LANES; lane++) {
                double value = tile->ranges[c * MOMENTS_LANES + lane][row];
                if (value < chunk[lane])
                    chunk[lane] = value;
                if (value > chunk[MOMENTS_LANES + lane])
                    chunk[MOMENTS_LANES + lane] = value;
            }
    }
}

const struct moments_kernel moments_kernel_portable = {load_portable, multiply_portable, accumulate_portable};

/* ---- AVX2 and FMA */

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2,fma")))
#define AVX2_INLINE AVX2 __attribute__((always_inline)) static inline

AVX2 static bool load_avx2(size_t rows, const double *values, double scale, double *scaled) {
    return load_rows(rows, values, scale, scaled);
}

AVX2 static bool multiply_avx2(size_t rows, double *restrict high, double *restrict low,
                               const double *restrict factor) {
    uint64_t odd = 0;
    for (size_t r = 0; r < rows; r++) {
        double product = high[r] * factor[r];
        double error = low[r] * factor[r] + __builtin_fma(high[r], factor[r], -product);
        high[r] = product;
        low[r] = error;
        odd |= magnitude_bits(error);
    }
    return odd == 0;
}

/* Four columns of four rows become four rows of four columns. */
AVX2_INLINE void transpose(__m256d v[4]) {
    __m256d a = _mm256_unpacklo_pd(v[0], v[1]), b = _mm256_unpackhi_pd(v[0], v[1]);
    __m256d c = _mm256_unpacklo_pd(v[2], v[3]), d = _mm256_unpackhi_pd(v[2], v[3]);
    v[0] = _mm256_permute2f128_pd(a, c, 0x20);
    v[1] = _mm256_permute2f128_pd(b, d, 0x20);
    v[2] = _mm256_permute2f128_pd(a, c, 0x31);
    v[3] = _mm256_permute2f128_pd(b, d, 0x31);
}

/* Adds four rows of four products, errors beside them, to four records. The same record may come more than
 * once. */
AVX2_INLINE void add_rows(const struct moments_place *places, size_t offset, const __m256d value[4],
                          const __m256d low[4]) {
    for (int row = 0; row < 4; row++) {
        double *chunk = places[row].sums + offset;
        __m256d before = _mm256_load_pd(chunk);
        __m256d sum = _mm256_add_pd(before, value[row]);
        __m256d part = _mm256_sub_pd(sum, before);
        __m256d error =
            _mm256_add_pd(_mm256_sub_pd(before, _mm256_sub_pd(sum, part)), _mm256_sub_pd(value[row], part));
        _mm256_store_pd(chunk, sum);
        _mm256_store_pd(chunk + 4, _mm256_add_pd(_mm256_load_pd(chunk + 4), _mm256_add_pd(error, low[row])));
    }
}

AVX2_INLINE void add_four(const struct moments_tile *tile, size_t row, bool exact) {
    const struct moments_place *places = tile->places + row;
    size_t offset = 0;
    const struct moments_product *product = tile->products;
    for (size_t c = 0; c < tile->product_chunks; c++, offset += MOMENTS_CHUNK) {
        __m256d value[4], low[4];
        for (int lane = 0; lane < 4; lane++, product++) {
            __m256d left = _mm256_load_pd(product->left + row), right = _mm256_load_pd(product->right + row);
            value[lane] = _mm256_mul_pd(left, right);
            low[lane] = _mm256_fmsub_pd(left, right, value[lane]);
            if (!exact)
                low[lane] = _mm256_add_pd(
                    low[lane], _mm256_add_pd(_mm256_mul_pd(left, _mm256_load_pd(product->right_low + row)),
                                             _mm256_mul_pd(_mm256_load_pd(product->left_low + row), right)));
        }
        transpose(value);
        transpose(low);
        add_rows(places, offset, value, low);
    }
    const double *const *range = tile->ranges;
    offset = 0;
    for (size_t c = 0; c < tile->range_chunks; c++, offset += MOMENTS_CHUNK, range += 4) {
        __m256d value[4];
        for (int lane = 0; lane < 4; lane++)
            value[lane] = _mm256_load_pd(range[lane] + row);
        transpose(value);
        for (int r = 0; r < 4; r++) {
            double *chunk = places[r].ranges + offset;
            _mm256_store_pd(chunk, _mm256_min_pd(value[r], _mm256_load_pd(chunk)));
            _mm256_store_pd(chunk + 4, _mm256_max_pd(value[r], _mm256_load_pd(chunk + 4)));
        }
    }
}

/* With folds, the records of a thousand groups are more than the second level of the cache holds. */
AVX2_INLINE void fetch_four(const struct moments_tile *tile, size_t row) {
    enum { MOST = 128, LINE = 8 }; /* doubles */
    size_t sums = tile->product_chunks * MOMENTS_CHUNK, ranges = tile->range_chunks * MOMENTS_CHUNK;
    for (size_t r = row; r < row + 4 && r < tile->rows; r++) {
        for (size_t at = 0; at < sums && at < MOST; at += LINE)
            __builtin_prefetch(tile->places[r].sums + at, 1);
        for (size_t at = 0; at < ranges && at < MOST; at += LINE)
            __builtin_prefetch(tile->places[r].ranges + at, 1);
    }
}

AVX2 static void accumulate_avx2(const struct moments_tile *tile) {
    for (size_t row = 0; row < tile->rows; row += 4) {
        fetch_four(tile, row + 8);
        if (tile->exact)
            add_four(tile, row, true);
        else
            add_four(tile, row, false);
    }
}

static const struct moments_kernel kernel_avx2 = {load_avx2, multiply_avx2, accumulate_avx2};
#endif

const struct moments_kernel *moments_kernel_best(void) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma"))
        return &kernel_avx2;
#endif
    return &moments_kernel_portable;
}
