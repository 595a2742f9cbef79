/*
 * The likelihood of rows whose mean and standard deviation are both linear in the same columns, and what its
 * maximum is found by.
 *
 *     t = (y - z b) v / s ,  s = z c ,  u = z / s        v: root of the row's weight, or 1
 *     -log L = sum ( log s + t^2/2 ) + constants
 *
 * The same bits on every processor: eight rows at a time, in the same order, by AVX-512 or
 * in parts by AVX2 or SSE2.
 */
#ifndef ASSAY_FIT_LINEAR_NOISE_KERNEL_H
#define ASSAY_FIT_LINEAR_NOISE_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    NOISE_KERNEL_LANES = 8,  /* rows at a time */
    NOISE_KERNEL_TILE = 256, /* rows; a multiple of these */
    NOISE_GRAMS_MAX = 4,
};

/* Some rows, column by column; ROWS is a multiple of NOISE_KERNEL_LANES by padding, of which rows have y = 0
 * and the same z as another row; COUNT of them are real. */
struct noise_columns {
    size_t width;            /* columns z */
    size_t rows, stride;     /* padded; z of column q is at z + q * stride */
    size_t count;            /* without padding */
    const double *z, *y, *v; /* v: NULL for no weights */
};

/* Which sums of m u u' are wanted beside the likelihood and its gradient, m by row. */
enum noise_gram {
    NOISE_GRAM_ONE,      /* 1 */
    NOISE_GRAM_OBSERVED, /* 3 t^2 - 1: the curvature in c */
    NOISE_GRAM_CROSS,    /* 2 t v: of b with c */
    NOISE_GRAM_WEIGHT,   /* v^2: the curvature in b; NOISE_GRAM_ONE without weights */
};

struct noise_sums {
    size_t width;
    double objective;               /* -log L without constants; INFINITY where an s is not positive */
    double *mean, *spread;          /* gradients by b and by c */
    double *absolute;               /* sum of u |t|: for the first steps */
    double *grams[NOISE_GRAMS_MAX]; /* width * width, the lower triangle */
};

int noise_sums_new(size_t width, struct noise_sums **ret);
void noise_sums_free(struct noise_sums *sums);
void noise_sums_clear(struct noise_sums *sums);
void noise_sums_add(struct noise_sums *to, const struct noise_sums *other, double sign);

/* Adds what the rows give at B and C: the objective; with GRADIENT that and `absolute`; and the grams whose
 * bits (1 << enum noise_gram) are set in GRAMS. SCRATCH: (width + 6) * NOISE_KERNEL_TILE doubles, aligned
 * to 64. */
void noise_kernel_add(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                      unsigned grams, double *scratch, struct noise_sums *sums);

/* The same by AVX-512, for noise_kernel_add. */
void noise_kernel_add_wide(const struct noise_columns *columns, const double *b, const double *c,
                           bool gradient, unsigned grams, double *scratch, struct noise_sums *sums);

/* t and s of up to NOISE_KERNEL_TILE rows from row FIRST on, into RET_T and RET_S. */
void noise_kernel_rows(const struct noise_columns *columns, size_t first, size_t rows, const double *b,
                       const double *c, double *ret_t, double *ret_s);

#endif
