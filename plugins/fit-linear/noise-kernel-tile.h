/*
 * A tile of rows of noise-kernel.h, in registers of NOISE_KERNEL_WIDTH doubles, 4 or 8: included by the
 * source of each width, once. Eight rows make the same sums in the same order whether they are in one
 * register or in parts.
 */
#ifndef ASSAY_FIT_LINEAR_NOISE_KERNEL_TILE_H
#define ASSAY_FIT_LINEAR_NOISE_KERNEL_TILE_H

#include "plugins/fit-linear/noise-kernel.h"

#include <math.h>

#ifndef NOISE_KERNEL_WIDTH
#define NOISE_KERNEL_WIDTH 4
#endif

/* Vectors are passed to functions that are inlined only: there is no ABI to break. */
#pragma GCC diagnostic ignored "-Wpsabi"

enum { WIDTH = NOISE_KERNEL_WIDTH, PARTS = NOISE_KERNEL_LANES / WIDTH };
typedef double lanes
    __attribute__((vector_size(8 * NOISE_KERNEL_WIDTH), aligned(8 * NOISE_KERNEL_WIDTH), may_alias));
typedef double lanes_anywhere __attribute__((vector_size(8 * NOISE_KERNEL_WIDTH), aligned(8), may_alias));
typedef uint64_t lanes_bits
    __attribute__((vector_size(8 * NOISE_KERNEL_WIDTH), aligned(8 * NOISE_KERNEL_WIDTH), may_alias));

#define INLINE __attribute__((always_inline)) static inline
#define TILE NOISE_KERNEL_TILE

INLINE lanes load(const double *at) {
    return *(const lanes_anywhere *)(const void *)at;
}

#if NOISE_KERNEL_WIDTH == 8
#define ALL(type, value) ((type){value, value, value, value, value, value, value, value})
#else
#define ALL(type, value) ((type){value, value, value, value})
#endif

INLINE lanes all(double value) {
    return ALL(lanes, value);
}

INLINE lanes_bits all_bits(uint64_t value) {
    return ALL(lanes_bits, value);
}

/* Of the lanes of every eight rows: those of the first four and the last four are added first, be they in two
 * registers or in one. */
INLINE double total(const lanes *parts) {
#if NOISE_KERNEL_WIDTH == 8
    const lanes value = parts[0];
    return ((value[0] + value[4]) + (value[2] + value[6])) + ((value[1] + value[5]) + (value[3] + value[7]));
#else
    const lanes value = parts[0] + parts[1];
    return (value[0] + value[2]) + (value[1] + value[3]);
#endif
}

/* Room for a tile: 1/s, t, multipliers of the grams (that of NOISE_GRAM_ONE is NULL), a column, u. */
struct room {
    double *inverse, *t, *multiplier[NOISE_GRAMS_MAX], *column, *u;
};

/* What the likelihood is made of: s = mantissa * 2^exponent, one lane's all multiplied. */
struct spread {
    lanes squares[PARTS], product[PARTS], least[PARTS];
    lanes_bits exponents[PARTS];
};

/* s and t of the tile's rows in one part of the lanes. WHOLE: how many rows of the tile are real. */
INLINE void spread_part(const struct noise_columns *columns, size_t first, size_t rows, size_t whole,
                        const double *b, const double *c, const struct room *room, size_t part,
                        struct spread *ret) {
    lanes squares = all(0), product = all(1), least = all(INFINITY);
    lanes_bits exponents = {0};
    const lanes_bits exponent_bits = all_bits(UINT64_C(0x7ff) << 52), one = all_bits(UINT64_C(0x3ff) << 52);
    for (size_t r = part * WIDTH; r < rows; r += NOISE_KERNEL_LANES) {
        lanes s = all(0), residual = load(columns->y + first + r);
        const double *z = columns->z + first + r;
        for (size_t q = 0; q < columns->width; q++, z += columns->stride) {
            lanes value = load(z);
            s += value * all(c[q]);
            residual -= value * all(b[q]);
        }
        lanes inverse = all(1) / s;
        lanes t = residual * inverse;
        if (columns->v)
            t *= load(columns->v + first + r);
        for (size_t i = whole > r ? whole - r : 0; i < WIDTH; i++) { /* the last ones, padded */
            s[i] = 1;
            inverse[i] = t[i] = 0;
        }
        *(lanes *)(void *)(room->inverse + r) = inverse;
        *(lanes *)(void *)(room->t + r) = t;
        lanes_bits smaller = (lanes_bits)(s < least);
        least = (lanes)(((lanes_bits)s & smaller) | ((lanes_bits)least & ~smaller));
        squares += t * t;
        exponents += (lanes_bits)s >> 52; /* s is positive, or all is for nothing */
        product *= (lanes)(((lanes_bits)s & ~exponent_bits) | one);
    }
    ret->squares[part] = squares;
    ret->product[part] = product;
    ret->least[part] = least;
    ret->exponents[part] = exponents;
}

/* s and t of the tile's rows; returns the sum of log s + t^2/2 over the real ones. */
INLINE double spread_tile(const struct noise_columns *columns, size_t first, size_t rows, const double *b,
                          const double *c, const struct room *room) {
    struct spread spread;
    size_t whole = first + rows <= columns->count ? rows : columns->count - first;
    for (size_t part = 0; part < PARTS; part++)
        spread_part(columns, first, rows, whole, b, c, room, part, &spread);
    double mantissas = 1, exponent = -1023 * (double)rows; /* mantissas: a tile's are below 2^256 */
    for (size_t part = 0; part < PARTS; part++)
        for (size_t i = 0; i < WIDTH; i++) {
            if (!(spread.least[part][i] > 0))
                return INFINITY;
            mantissas *= spread.product[part][i];
            exponent += (double)spread.exponents[part][i];
        }
    return log(mantissas) + exponent * M_LN2 + 0.5 * total(spread.squares);
}

/* What the grams multiply by, row by row. */
INLINE void multiply_tile(const struct noise_columns *columns, size_t first, size_t rows, unsigned grams,
                          const struct room *room) {
    for (size_t r = 0; r < rows; r += WIDTH) {
        lanes t = load(room->t + r), v = all(1);
        if (columns->v)
            v = load(columns->v + first + r);
        if (grams & 1u << NOISE_GRAM_OBSERVED)
            *(lanes *)(void *)(room->multiplier[NOISE_GRAM_OBSERVED] + r) = all(3) * t * t - all(1);
        if (grams & 1u << NOISE_GRAM_CROSS)
            *(lanes *)(void *)(room->multiplier[NOISE_GRAM_CROSS] + r) = all(2) * t * v;
        if (grams & 1u << NOISE_GRAM_WEIGHT)
            *(lanes *)(void *)(room->multiplier[NOISE_GRAM_WEIGHT] + r) = v * v;
    }
}

INLINE void gradient_tile(const struct noise_columns *columns, size_t first, size_t rows,
                          const struct room *room, struct noise_sums *sums) {
    const lanes_bits sign = all_bits(UINT64_C(1) << 63);
    for (size_t q = 0; q < columns->width; q++) {
        double *u = room->u + q * TILE;
        const double *z = columns->z + q * columns->stride + first;
        lanes mean[PARTS] = {{0}}, spread[PARTS] = {{0}}, absolute[PARTS] = {{0}};
        for (size_t r = 0; r < rows; r += NOISE_KERNEL_LANES)
            for (size_t part = 0, at = r; part < PARTS; part++, at += WIDTH) {
                lanes value = load(z + at) * load(room->inverse + at), t = load(room->t + at);
                *(lanes *)(void *)(u + at) = value;
                lanes weighted = t;
                if (columns->v)
                    weighted *= load(columns->v + first + at);
                mean[part] -= value * weighted;
                spread[part] += value * (all(1) - t * t);
                absolute[part] += value * (lanes)((lanes_bits)t & ~sign);
            }
        sums->mean[q] += total(mean);
        sums->spread[q] += total(spread);
        sums->absolute[q] += total(absolute);
    }
}

/* u_a against up to four u_b at once, so that no sum waits for itself. */
INLINE void gram_four(const double *left, const double *right, size_t rows, size_t count, double *ret) {
    lanes sums[4][PARTS] = {{{0}}};
    for (size_t part = 0; part < PARTS; part++)
        for (size_t r = part * WIDTH; r < rows; r += NOISE_KERNEL_LANES) {
            lanes value = load(left + r);
            for (size_t i = 0; i < count; i++)
                sums[i][part] += value * load(right + i * TILE + r);
        }
    for (size_t i = 0; i < count; i++)
        ret[i] += total(sums[i]);
}

/* One gram, of multiplier u u'. ROOM: for a column. */
INLINE void gram_tile(size_t width, size_t rows, const double *multiplier, const double *u, double *room,
                      double *gram) {
    for (size_t a = 0; a < width; a++) {
        const double *left = u + a * TILE;
        for (size_t r = 0; multiplier && r < rows; r += WIDTH)
            *(lanes *)(void *)(room + r) = load(left + r) * load(multiplier + r);
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
    lanes sums[2][3][PARTS] = {{{{0}}}};
    for (size_t part = 0; part < PARTS; part++)
        for (size_t r = part * WIDTH; r < rows; r += NOISE_KERNEL_LANES) {
            lanes value = load(left + r), by_observed = load(observed + r), by_cross = load(cross + r);
            for (size_t i = 0; i < count; i++) {
                lanes product = value * load(right + i * TILE + r);
                sums[i][0][part] += product;
                sums[i][1][part] += product * by_observed;
                sums[i][2][part] += product * by_cross;
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
    for (size_t g = 0; g < NOISE_GRAMS_MAX; g++)
        if (grams & 1u << g)
            gram_tile(columns->width, rows, room->multiplier[g], room->u, room->column, sums->grams[g]);
}

INLINE void add_rows(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                     unsigned grams, double *scratch, struct noise_sums *sums) {
    struct room room = {.inverse = scratch,
                        .t = scratch + TILE,
                        .column = scratch + 2 * TILE,
                        .u = scratch + (2 + NOISE_GRAMS_MAX) * TILE};
    for (size_t g = 1; g < NOISE_GRAMS_MAX; g++)
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

#endif
