#include "plugins/fit-linear/noise-kernel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Vectors are passed to functions that are inlined only: there is no ABI to break. */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { LANES = NOISE_KERNEL_LANES };
typedef double v8 __attribute__((vector_size(64), aligned(64), may_alias));
typedef double v8_anywhere __attribute__((vector_size(64), aligned(8), may_alias));
typedef uint64_t u8 __attribute__((vector_size(64), aligned(64), may_alias));

#define INLINE __attribute__((always_inline)) static inline
#define TILE NOISE_KERNEL_TILE

/* ---- Sums */

int noise_sums_new(size_t width, struct noise_sums **ret) {
    size_t doubles = 3 * width + NOISE_GRAMS_MOST * width * width;
    struct noise_sums *sums = calloc(1, sizeof *sums + doubles * sizeof(double));
    if (!sums)
        return -ENOMEM;
    sums->width = width;
    sums->mean = (double *)(void *)(sums + 1);
    sums->spread = sums->mean + width;
    sums->absolute = sums->spread + width;
    for (size_t g = 0; g < NOISE_GRAMS_MOST; g++)
        sums->grams[g] = sums->absolute + width + g * width * width;
    *ret = sums;
    return 0;
}

void noise_sums_free(struct noise_sums *sums) {
    free(sums);
}

static size_t sum_count(const struct noise_sums *sums) {
    return 3 * sums->width + NOISE_GRAMS_MOST * sums->width * sums->width;
}

void noise_sums_clear(struct noise_sums *sums) {
    sums->objective = 0;
    memset(sums->mean, 0, sum_count(sums) * sizeof(double));
}

void noise_sums_add(struct noise_sums *to, const struct noise_sums *other, double sign) {
    to->objective += sign * other->objective;
    for (size_t i = 0; i < sum_count(to); i++)
        to->mean[i] += sign * other->mean[i];
}

/* ---- A tile */

INLINE v8 load(const double *at) {
    return *(const v8_anywhere *)(const void *)at;
}

INLINE v8 all(double value) {
    return (v8){value, value, value, value, value, value, value, value};
}

INLINE u8 all_bits(uint64_t value) {
    return (u8){value, value, value, value, value, value, value, value};
}

INLINE double total(v8 value) {
    return ((value[0] + value[4]) + (value[2] + value[6])) + ((value[1] + value[5]) + (value[3] + value[7]));
}

/* Room for a tile: 1/s, t, multipliers of the grams (that of NOISE_GRAM_ONE is NULL), a column, u. */
struct room {
    double *inverse, *t, *multiplier[NOISE_GRAMS_MOST], *column, *u;
};

/* s and t of the tile's rows; returns the sum of log s + t^2/2 over the real ones. */
INLINE double spread_tile(const struct noise_columns *columns, size_t first, size_t rows, const double *b,
                          const double *c, const struct room *room) {
    v8 squares = all(0), product = all(1), least = all(INFINITY);
    u8 exponents = {0};
    const u8 exponent_bits = all_bits(UINT64_C(0x7ff) << 52), one = all_bits(UINT64_C(0x3ff) << 52);
    size_t whole = first + rows <= columns->count ? rows : columns->count - first;
    for (size_t r = 0; r < rows; r += LANES) {
        v8 s = all(0), residual = load(columns->y + first + r);
        const double *z = columns->z + first + r;
        for (size_t q = 0; q < columns->width; q++, z += columns->stride) {
            v8 value = load(z);
            s += value * all(c[q]);
            residual -= value * all(b[q]);
        }
        v8 inverse = all(1) / s;
        v8 t = residual * inverse;
        if (columns->v)
            t *= load(columns->v + first + r);
        for (size_t i = whole > r ? whole - r : 0; i < LANES; i++) { /* the last ones, padded */
            s[i] = 1;
            inverse[i] = t[i] = 0;
        }
        *(v8 *)(void *)(room->inverse + r) = inverse;
        *(v8 *)(void *)(room->t + r) = t;
        u8 smaller = (u8)(s < least);
        least = (v8)(((u8)s & smaller) | ((u8)least & ~smaller));
        squares += t * t;
        exponents += (u8)s >> 52; /* s is positive, or all is for nothing */
        product *= (v8)(((u8)s & ~exponent_bits) | one);
    }
    double mantissas = 1, exponent = -1023 * (double)rows; /* mantissas: a tile's are below 2^256 */
    for (size_t i = 0; i < LANES; i++) {
        if (!(least[i] > 0))
            return INFINITY;
        mantissas *= product[i];
        exponent += (double)exponents[i];
    }
    return log(mantissas) + exponent * M_LN2 + 0.5 * total(squares);
}

/* What the grams multiply by, row by row. */
INLINE void multiply_tile(const struct noise_columns *columns, size_t first, size_t rows, unsigned grams,
                          const struct room *room) {
    for (size_t r = 0; r < rows; r += LANES) {
        v8 t = load(room->t + r), v = all(1);
        if (columns->v)
            v = load(columns->v + first + r);
        if (grams & 1u << NOISE_GRAM_OBSERVED)
            *(v8 *)(void *)(room->multiplier[NOISE_GRAM_OBSERVED] + r) = all(3) * t * t - all(1);
        if (grams & 1u << NOISE_GRAM_CROSS)
            *(v8 *)(void *)(room->multiplier[NOISE_GRAM_CROSS] + r) = all(2) * t * v;
        if (grams & 1u << NOISE_GRAM_WEIGHT)
            *(v8 *)(void *)(room->multiplier[NOISE_GRAM_WEIGHT] + r) = v * v;
    }
}

INLINE void gradient_tile(const struct noise_columns *columns, size_t first, size_t rows,
                          const struct room *room, struct noise_sums *sums) {
    const u8 sign = all_bits(UINT64_C(1) << 63);
    for (size_t q = 0; q < columns->width; q++) {
        double *u = room->u + q * TILE;
        const double *z = columns->z + q * columns->stride + first;
        v8 mean = all(0), spread = all(0), absolute = all(0);
        for (size_t r = 0; r < rows; r += LANES) {
            v8 value = load(z + r) * load(room->inverse + r), t = load(room->t + r);
            *(v8 *)(void *)(u + r) = value;
            v8 weighted = t;
            if (columns->v)
                weighted *= load(columns->v + first + r);
            mean -= value * weighted;
            spread += value * (all(1) - t * t);
            absolute += value * (v8)((u8)t & ~sign);
        }
        sums->mean[q] += total(mean);
        sums->spread[q] += total(spread);
        sums->absolute[q] += total(absolute);
    }
}

/* u_a against up to four u_b at once, so that no sum waits for itself. */
INLINE void gram_four(const double *left, const double *right, size_t rows, size_t count, double *ret) {
    v8 sums[4] = {{0}};
    for (size_t r = 0; r < rows; r += LANES) {
        v8 value = load(left + r);
        for (size_t i = 0; i < count; i++)
            sums[i] += value * load(right + i * TILE + r);
    }
    for (size_t i = 0; i < count; i++)
        ret[i] += total(sums[i]);
}

/* One gram, of multiplier u u'. ROOM: for a column. */
INLINE void gram_tile(size_t width, size_t rows, const double *multiplier, const double *u, double *room,
                      double *gram) {
    for (size_t a = 0; a < width; a++) {
        const double *left = u + a * TILE;
        for (size_t r = 0; multiplier && r < rows; r += LANES)
            *(v8 *)(void *)(room + r) = load(left + r) * load(multiplier + r);
        left = multiplier ? room : left;
        size_t b = 0;
        for (; b + 4 <= a + 1; b += 4)
            gram_four(left, u + b * TILE, rows, 4, gram + a * width + b);
        for (; b + 2 <= a + 1; b += 2)
            gram_four(left, u + b * TILE, rows, 2, gram + a * width + b);
        if (b <= a)
            gram_four(left, u + b * TILE, rows, 1, gram + a * width + b);
    }
}

/* Where an element of three grams is. */
struct three {
    double *one, *observed, *cross;
};

INLINE void gram_three(const struct room *room, const double *left, const double *right, size_t rows,
                       size_t count, struct three ret) {
    const double *observed = room->multiplier[NOISE_GRAM_OBSERVED],
                 *cross = room->multiplier[NOISE_GRAM_CROSS];
    v8 sums[2][3] = {{{0}}};
    for (size_t r = 0; r < rows; r += LANES) {
        v8 value = load(left + r), by_observed = load(observed + r), by_cross = load(cross + r);
        for (size_t i = 0; i < count; i++) {
            v8 product = value * load(right + i * TILE + r);
            sums[i][0] += product;
            sums[i][1] += product * by_observed;
            sums[i][2] += product * by_cross;
        }
    }
    for (size_t i = 0; i < count; i++) {
        ret.one[i] += total(sums[i][0]);
        ret.observed[i] += total(sums[i][1]);
        ret.cross[i] += total(sums[i][2]);
    }
}

/* The three that Newton's steps need, together: most of what is loaded and multiplied is shared. */
INLINE void three_grams_tile(size_t width, size_t rows, const struct room *room, struct noise_sums *sums) {
    for (size_t a = 0; a < width; a++)
        for (size_t b = 0; b <= a; b += 2) {
            const double *left = room->u + a * TILE, *right = room->u + b * TILE;
            size_t at = a * width + b;
            struct three ret = {sums->grams[NOISE_GRAM_ONE] + at, sums->grams[NOISE_GRAM_OBSERVED] + at,
                                sums->grams[NOISE_GRAM_CROSS] + at};
            if (b < a)
                gram_three(room, left, right, rows, 2, ret);
            else
                gram_three(room, left, right, rows, 1, ret);
        }
}

INLINE void add_grams(const struct noise_columns *columns, size_t rows, unsigned grams,
                      const struct room *room, struct noise_sums *sums) {
    const unsigned three = 1u << NOISE_GRAM_ONE | 1u << NOISE_GRAM_OBSERVED | 1u << NOISE_GRAM_CROSS;
    if ((grams & three) == three) {
        three_grams_tile(columns->width, rows, room, sums);
        grams &= ~three;
    }
    for (size_t g = 0; g < NOISE_GRAMS_MOST; g++)
        if (grams & 1u << g)
            gram_tile(columns->width, rows, room->multiplier[g], room->u, room->column, sums->grams[g]);
}

INLINE void add_rows(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                     unsigned grams, double *scratch, struct noise_sums *sums) {
    struct room room = {.inverse = scratch,
                        .t = scratch + TILE,
                        .column = scratch + 2 * TILE,
                        .u = scratch + (2 + NOISE_GRAMS_MOST) * TILE};
    for (size_t g = 1; g < NOISE_GRAMS_MOST; g++)
        room.multiplier[g] = scratch + (2 + g) * TILE;
    for (size_t first = 0; first < columns->rows; first += TILE) {
        size_t rows = columns->rows - first < TILE ? columns->rows - first : TILE;
        sums->objective += spread_tile(columns, first, rows, b, c, &room);
        if (!gradient)
            continue;
        gradient_tile(columns, first, rows, &room, sums);
        multiply_tile(columns, first, rows, grams, &room);
        add_grams(columns, rows, grams, &room, sums);
    }
}

static void add_portable(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                         unsigned grams, double *scratch, struct noise_sums *sums) {
    add_rows(columns, b, c, gradient, grams, scratch, sums);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_avx2(const struct noise_columns *columns, const double *b,
                                                     const double *c, bool gradient, unsigned grams,
                                                     double *scratch, struct noise_sums *sums) {
    add_rows(columns, b, c, gradient, grams, scratch, sums);
}

__attribute__((target("avx512f,avx512dq"))) static void add_avx512(const struct noise_columns *columns,
                                                                   const double *b, const double *c,
                                                                   bool gradient, unsigned grams,
                                                                   double *scratch, struct noise_sums *sums) {
    add_rows(columns, b, c, gradient, grams, scratch, sums);
}
#endif

void noise_kernel_add(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                      unsigned grams, double *scratch, struct noise_sums *sums) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        add_avx512(columns, b, c, gradient, grams, scratch, sums);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(columns, b, c, gradient, grams, scratch, sums);
        return;
    }
#endif
    add_portable(columns, b, c, gradient, grams, scratch, sums);
}

void noise_kernel_rows(const struct noise_columns *columns, size_t first, size_t rows, const double *b,
                       const double *c, double *ret_t, double *ret_s) {
    for (size_t r = 0; r < rows; r++) {
        const double *z = columns->z + first + r;
        double s = 0, residual = columns->y[first + r];
        for (size_t q = 0; q < columns->width; q++, z += columns->stride) {
            s += *z * c[q];
            residual -= *z * b[q];
        }
        ret_s[r] = s;
        ret_t[r] = residual / s * (columns->v ? columns->v[first + r] : 1);
    }
}
