#include "engine/plugin/hull.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    CHUNK = 256,            /* rows at a time: what is kept of them stays in the first cache */
    ALL_DIRECTIONS_MAX = 3, /* columns */
};

struct chunk {
    double columns[HULL_COLUMNS_MAX][CHUNK] __attribute__((aligned(64))); /* scaled; NaN: does not count */
    double sums[HULL_DIRECTIONS_MAX][CHUNK] __attribute__((aligned(64)));
};

/* ---- Directions */

static void add_direction(struct hull *hull, int parent, size_t column, signed char sign) {
    size_t d = hull->direction_count++;
    memset(hull->directions[d], 0, sizeof hull->directions[d]);
    if (parent >= 0)
        memcpy(hull->directions[d], hull->directions[parent], sizeof hull->directions[d]);
    hull->directions[d][column] = sign;
    hull->parents[d] = (signed char)parent;
    hull->last[d] = (unsigned char)column;
    hull->minimum[d] = INFINITY;
    hull->maximum[d] = -INFINITY;
}

void hull_init(struct hull *hull, size_t column_count) {
    *hull = (struct hull){.column_count = column_count <= HULL_COLUMNS_MAX ? column_count : 0};
    size_t count = hull->column_count;
    bool all = count <= ALL_DIRECTIONS_MAX;
    for (size_t j = 0; j < count; j++) {
        int before = all ? (int)hull->direction_count : 0;
        add_direction(hull, -1, j, 1);
        for (int d = 0; d < before; d++) {
            add_direction(hull, d, j, 1);
            add_direction(hull, d, j, -1);
        }
    }
    for (size_t i = 0; !all && i < count; i++)
        for (size_t j = i + 1; j < count; j++) {
            add_direction(hull, (int)i, j, 1);
            add_direction(hull, (int)i, j, -1);
        }
}

bool hull_is_told(const struct hull *hull) {
    return hull->direction_count > 0 && hull->minimum[0] <= hull->maximum[0];
}

/* ---- Rows */

static void find_scales(struct hull *hull, size_t rows, const double *const *columns) {
    for (size_t j = 0; j < hull->column_count; j++) {
        double most = 0;
        for (size_t i = 0; i < rows; i++)
            if (fabs(columns[j][i]) > most && isfinite(columns[j][i]))
                most = fabs(columns[j][i]);
        if (most > 0)
            hull->scaled = true;
        /* Not so small that its inverse is none. */
        hull->scale[j] = most > 0 ? ldexp(1, -ilogb(fmax(most, 1e-300))) : 1;
    }
}

/* The scaled columns of ROWS rows from FIRST on; a row that does not count is NaN in all of them. */
__attribute__((always_inline)) static inline void load(const struct hull *hull, struct chunk *chunk,
                                                       size_t first, size_t rows,
                                                       const double *const *columns, const double *response,
                                                       const double *weights) {
    double bad[CHUNK];
    for (size_t i = 0; i < rows; i++)
        bad[i] = response ? response[first + i] * 0 : 0;
    for (size_t i = 0; weights && i < rows; i++)
        bad[i] += weights[first + i] > 0 ? weights[first + i] * 0 : NAN;
    for (size_t j = 0; j < hull->column_count; j++)
        for (size_t i = 0; i < rows; i++) {
            double value = columns[j][first + i] * hull->scale[j];
            chunk->columns[j][i] = value;
            bad[i] += value * 0;
        }
    for (size_t j = 0; j < hull->column_count; j++) {
        for (size_t i = 0; i < rows; i++)
            chunk->columns[j][i] += bad[i];
        for (size_t i = rows; i < CHUNK; i++)
            chunk->columns[j][i] = NAN;
    }
}

/* One direction over a chunk: the column, to the sign, and what the direction goes on from; the sums are kept
 * for those that go on from this one. What is NaN is neither less nor greater. */
typedef void (*stretch_function)(const double *values, const double *base, double sign, double *sums,
                                 double *least, double *most);

__attribute__((always_inline)) static inline void add(struct hull *hull, size_t rows,
                                                      const double *const *columns, const double *response,
                                                      const double *weights, stretch_function stretch) {
    static const double nothing[CHUNK] __attribute__((aligned(64)));
    struct chunk chunk;
    for (size_t first = 0; first < rows; first += CHUNK) {
        load(hull, &chunk, first, rows - first < CHUNK ? rows - first : CHUNK, columns, response, weights);
        for (size_t d = 0; d < hull->direction_count; d++)
            stretch(chunk.columns[hull->last[d]],
                    hull->parents[d] < 0 ? nothing : chunk.sums[(size_t)hull->parents[d]],
                    hull->directions[d][hull->last[d]], chunk.sums[d], &hull->minimum[d], &hull->maximum[d]);
    }
}

static void stretch_portable(const double *values, const double *base, double sign, double *sums,
                             double *least, double *most) {
    for (size_t i = 0; i < CHUNK; i++) {
        sums[i] = values[i] * sign + base[i];
        if (sums[i] < *least)
            *least = sums[i];
        if (sums[i] > *most)
            *most = sums[i];
    }
}

static void add_portable(struct hull *hull, size_t rows, const double *const *columns, const double *response,
                         const double *weights) {
    add(hull, rows, columns, response, weights, stretch_portable);
}

#if defined(__x86_64__)
#include <immintrin.h>

#define AVX2 __attribute__((target("avx2")))

AVX2 static void stretch_avx2(const double *values, const double *base, double sign, double *sums,
                              double *least, double *most) {
    __m256d signs = _mm256_set1_pd(sign), low[2], high[2];
    double lanes[8];
    for (size_t k = 0; k < 2; k++) {
        low[k] = _mm256_set1_pd(*least);
        high[k] = _mm256_set1_pd(*most);
    }
    for (size_t i = 0; i < CHUNK; i += 8)
        for (size_t k = 0; k < 2; k++) {
            size_t at = i + k * 4;
            __m256d sum =
                _mm256_add_pd(_mm256_mul_pd(_mm256_load_pd(values + at), signs), _mm256_load_pd(base + at));
            _mm256_store_pd(sums + at, sum);
            low[k] = _mm256_min_pd(sum, low[k]); /* the second where the first is NaN */
            high[k] = _mm256_max_pd(sum, high[k]);
        }
    _mm256_storeu_pd(lanes, _mm256_min_pd(low[0], low[1]));
    _mm256_storeu_pd(lanes + 4, _mm256_max_pd(high[0], high[1]));
    for (size_t l = 0; l < 4; l++) {
        *least = lanes[l] < *least ? lanes[l] : *least;
        *most = lanes[4 + l] > *most ? lanes[4 + l] : *most;
    }
}

AVX2 static void add_avx2(struct hull *hull, size_t rows, const double *const *columns,
                          const double *response, const double *weights) {
    add(hull, rows, columns, response, weights, stretch_avx2);
}

#define AVX512 __attribute__((target("avx512f")))

AVX512 static void stretch_avx512(const double *values, const double *base, double sign, double *sums,
                                  double *least, double *most) {
    __m512d signs = _mm512_set1_pd(sign), low[2], high[2];
    for (size_t k = 0; k < 2; k++) {
        low[k] = _mm512_set1_pd(*least);
        high[k] = _mm512_set1_pd(*most);
    }
    for (size_t i = 0; i < CHUNK; i += 16)
        for (size_t k = 0; k < 2; k++) {
            size_t at = i + k * 8;
            __m512d sum =
                _mm512_add_pd(_mm512_mul_pd(_mm512_load_pd(values + at), signs), _mm512_load_pd(base + at));
            _mm512_store_pd(sums + at, sum);
            low[k] = _mm512_min_pd(sum, low[k]); /* the second where the first is NaN */
            high[k] = _mm512_max_pd(sum, high[k]);
        }
    *least = _mm512_reduce_min_pd(_mm512_min_pd(low[0], low[1]));
    *most = _mm512_reduce_max_pd(_mm512_max_pd(high[0], high[1]));
}

AVX512 static void add_avx512(struct hull *hull, size_t rows, const double *const *columns,
                              const double *response, const double *weights) {
    add(hull, rows, columns, response, weights, stretch_avx512);
}
#endif

void hull_add(struct hull *hull, size_t rows, const double *const *columns, const double *response,
              const double *weights) {
    if (hull->direction_count == 0)
        return;
    if (!hull->scaled && !hull_is_told(hull))
        find_scales(hull, rows, columns);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f")) {
        add_avx512(hull, rows, columns, response, weights);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(hull, rows, columns, response, weights);
        return;
    }
#endif
    add_portable(hull, rows, columns, response, weights);
}
