#include "plugins/fit-linear/noise-kernel.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Vectors are passed to functions that are inlined only: there is no ABI to break. */
#pragma GCC diagnostic ignored "-Wpsabi"

typedef double v4 __attribute__((vector_size(32), aligned(32), may_alias));
typedef double v4_anywhere __attribute__((vector_size(32), aligned(8), may_alias));
typedef uint64_t u4 __attribute__((vector_size(32), aligned(32), may_alias));

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

INLINE v4 load(const double *at) {
    return *(const v4_anywhere *)(const void *)at;
}

INLINE v4 all(double value) {
    return (v4){value, value, value, value};
}

INLINE double total(v4 value) {
    return (value[0] + value[1]) + (value[2] + value[3]);
}

/* Room for a tile: 1/s, t, multipliers of the grams (that of NOISE_GRAM_ONE is NULL), a column, u. */
struct room {
    double *inverse, *t, *multiplier[NOISE_GRAMS_MOST], *column, *u;
};

/* s and t of the tile's rows; returns the sum of log s + t^2/2 over the real ones. */
INLINE double spread_tile(const struct noise_columns *columns, size_t first, size_t rows, const double *b,
                          const double *c, const struct room *room) {
    v4 squares = all(0), product = all(1), least = all(INFINITY);
    u4 exponents = {0};
    const u4 exponent_bits = {UINT64_C(0x7ff) << 52, UINT64_C(0x7ff) << 52, UINT64_C(0x7ff) << 52,
                              UINT64_C(0x7ff) << 52};
    const u4 one = {UINT64_C(0x3ff) << 52, UINT64_C(0x3ff) << 52, UINT64_C(0x3ff) << 52,
                    UINT64_C(0x3ff) << 52};
    size_t whole = first + rows <= columns->count ? rows : columns->count - first;
    double rest = 0;
    for (size_t r = 0; r < rows; r += 4) {
        v4 s = all(0), residual = load(columns->y + first + r);
        const double *z = columns->z + first + r;
        for (size_t q = 0; q < columns->width; q++, z += columns->stride) {
            v4 value = load(z);
            s += value * all(c[q]);
            residual -= value * all(b[q]);
        }
        v4 inverse = all(1) / s;
        v4 t = residual * inverse;
        if (columns->v)
            t *= load(columns->v + first + r);
        *(v4 *)(void *)(room->inverse + r) = inverse;
        *(v4 *)(void *)(room->t + r) = t;
        if (r + 4 > whole) { /* the last ones, padded */
            for (size_t i = r; i < whole; i++)
                rest += log(s[i - r]) + 0.5 * t[i - r] * t[i - r];
            for (size_t i = whole; i < rows; i++)
                room->inverse[i] = room->t[i] = 0;
            for (size_t i = r; i < whole; i++)
                least[0] = s[i - r] < least[0] ? s[i - r] : least[0];
            continue;
        }
        u4 smaller = (u4)(s < least);
        least = (v4)(((u4)s & smaller) | ((u4)least & ~smaller));
        squares += t * t;
        exponents += (u4)s >> 52; /* s is positive, or all is for nothing */
        product *= (v4)(((u4)s & ~exponent_bits) | one);
    }
    for (size_t i = 0; i < 4; i++)
        if (!(least[i] > 0))
            return INFINITY;
    double logs = 0, blocks = (double)(whole / 4) * 1023;
    for (size_t i = 0; i < 4; i++)
        logs += log(product[i]) + ((double)exponents[i] - blocks) * M_LN2;
    return logs + 0.5 * total(squares) + rest;
}

/* What the grams multiply by, row by row. */
INLINE void multiply_tile(const struct noise_columns *columns, size_t first, size_t rows, unsigned grams,
                          const struct room *room) {
    for (size_t r = 0; r < rows; r += 4) {
        v4 t = load(room->t + r), v = all(1);
        if (columns->v)
            v = load(columns->v + first + r);
        if (grams & 1u << NOISE_GRAM_OBSERVED)
            *(v4 *)(void *)(room->multiplier[NOISE_GRAM_OBSERVED] + r) = all(3) * t * t - all(1);
        if (grams & 1u << NOISE_GRAM_CROSS)
            *(v4 *)(void *)(room->multiplier[NOISE_GRAM_CROSS] + r) = all(2) * t * v;
        if (grams & 1u << NOISE_GRAM_WEIGHT)
            *(v4 *)(void *)(room->multiplier[NOISE_GRAM_WEIGHT] + r) = v * v;
    }
}

INLINE void gradient_tile(const struct noise_columns *columns, size_t first, size_t rows,
                          const struct room *room, struct noise_sums *sums) {
    const u4 sign = {UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 63, UINT64_C(1) << 63};
    for (size_t q = 0; q < columns->width; q++) {
        double *u = room->u + q * TILE;
        const double *z = columns->z + q * columns->stride + first;
        v4 mean = all(0), spread = all(0), absolute = all(0);
        for (size_t r = 0; r < rows; r += 4) {
            v4 value = load(z + r) * load(room->inverse + r), t = load(room->t + r);
            *(v4 *)(void *)(u + r) = value;
            v4 weighted = t;
            if (columns->v)
                weighted *= load(columns->v + first + r);
            mean -= value * weighted;
            spread += value * (all(1) - t * t);
            absolute += value * (v4)((u4)t & ~sign);
        }
        sums->mean[q] += total(mean);
        sums->spread[q] += total(spread);
        sums->absolute[q] += total(absolute);
    }
}

/* u_a against up to four u_b at once, so that no sum waits for itself. */
INLINE void gram_four(const double *left, const double *right, size_t rows, size_t count, double *ret) {
    v4 sums[4] = {{0}};
    for (size_t r = 0; r < rows; r += 4) {
        v4 value = load(left + r);
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
        for (size_t r = 0; multiplier && r < rows; r += 4)
            *(v4 *)(void *)(room + r) = load(left + r) * load(multiplier + r);
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
    v4 sums[2][3] = {{{0}}};
    for (size_t r = 0; r < rows; r += 4) {
        v4 value = load(left + r), by_observed = load(observed + r), by_cross = load(cross + r);
        for (size_t i = 0; i < count; i++) {
            v4 product = value * load(right + i * TILE + r);
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
#endif

void noise_kernel_add(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                      unsigned grams, double *scratch, struct noise_sums *sums) {
#if defined(__x86_64__)
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
