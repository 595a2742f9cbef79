/*
 * The inner loop of moments.h, in two forms that give the same bits. A kernel takes a tile of rows, whose
 * columns lie in arrays, and adds each row to its own record.
 *
 * A record is a run of doubles: chunks of 8 for four sums each (four high parts, four low parts). The ranges
 * lie elsewhere, those of all folds of a group together: chunks of 8 for four each (four minima, four
 * maxima).
 */
#ifndef ASSAY_FIT_LINEAR_MOMENTS_KERNEL_H
#define ASSAY_FIT_LINEAR_MOMENTS_KERNEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    MOMENTS_TILE = 128, /* rows; a multiple of 4 */
    MOMENTS_CHUNK = 8,  /* doubles */
    MOMENTS_LANES = 4,
};

/* One of four sums in a chunk: of left * right, where each may have a low part. Arrays of MOMENTS_TILE. */
struct moments_product {
    const double *left, *left_low, *right, *right_low;
};

/* Where a row is added. */
struct moments_place {
    double *sums, *ranges;
    uint64_t *rows; /* how many there were; not the kernel's, but near the ranges */
};

struct moments_tile {
    const struct moments_product *products; /* MOMENTS_LANES for each chunk */
    size_t product_chunks;
    const double *const *ranges; /* MOMENTS_LANES for each chunk */
    size_t range_chunks;
    bool exact;                                /* no low part is anything but zero */
    struct moments_place places[MOMENTS_TILE]; /* rows that pad the last four have a place of their own */
    size_t rows;                               /* a multiple of 4 */
};

struct moments_kernel {
    /* SCALED[r] = VALUES[r] * SCALE. Returns whether all results are finite. */
    bool (*load)(size_t rows, const double *values, double scale, double *scaled);
    /* (HIGH, LOW)[r] *= FACTOR[r], the rounding error kept in LOW. Returns whether all of LOW is zero. */
    bool (*multiply)(size_t rows, double *high, double *low, const double *factor);
    void (*accumulate)(const struct moments_tile *tile);
};

extern const struct moments_kernel moments_kernel_portable;
/* The fastest that this processor runs. */
const struct moments_kernel *moments_kernel_best(void);

#endif
