/*
 * Many plain rows at once. A plain row has as many fields as there are columns, no quote, and nothing that
 * could be refused: no control character but its own line end, no byte that is not ASCII. Internal to this
 * room.
 *
 * With the ends of a few hundred rows' fields in an array, each column can be read on its own, row after row,
 * which a processor does two to three times as fast as row by row: nearly all its guesses come true. There
 * are kernels for AVX-512, AVX2 and SSE2, chosen at run time, and in plain C; all give the same.
 */
#ifndef ASSAY_DOCUMENTS_CSV_TILE_H
#define ASSAY_DOCUMENTS_CSV_TILE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    CSV_TILE_ENDS = 2048,       /* fields of a tile at most */
    CSV_TILE_BYTES = 256 << 10, /* a row of more is not plain */
    /* Entries of csv_tile.ends: one before the first field, and what a kernel may write behind the last. */
    CSV_TILE_ROOM = 1 + CSV_TILE_ENDS + 16,
};

struct csv_tile {
    const char *at; /* the first byte of the first row */
    size_t columns, rows;
    /* Of CSV_TILE_ROOM. ends[1 + r * columns + c] is where the comma or the newline behind field c of row r
     * is, from AT; ends[0] is UINT32_MAX, so that a field begins one behind the end of the one before it. */
    uint32_t *ends;
};

/* Where the field begins that has entry BEFORE of ends before it, from the tile's first byte. */
static inline size_t csv_tile_begin(const uint32_t *before) {
    return (uint32_t)(before[0] + 1);
}

/* Where it ends; a carriage return before the newline is not in it. AT: the tile's first byte; IS_LAST: it is
 * in the last column. */
static inline size_t csv_tile_end(const char *at, const uint32_t *before, bool is_last) {
    size_t end = before[1];
    return is_last && end > csv_tile_begin(before) && at[end - 1] == '\r' ? end - 1 : end;
}

struct csv_tile_kernel {
    const char *name;
    /* Finds the plain rows of the LENGTH bytes at tile->at, which end with a newline, and sets tile->rows. 0
     * rows say nothing of the first one, which may be plain all the same. CSV_SCAN_PADDING bytes before and
     * behind must be readable, here and below. */
    void (*index)(struct csv_tile *tile, size_t length);
    /* A column as numbers. Returns how many rows there are before one where it is none; one that is
     * missing, or has blanks around it, is none unless MISSING_IS_NAN. */
    size_t (*numbers)(const struct csv_tile *tile, size_t column, bool missing_is_nan, double *ret);
};

/* The fastest that this processor runs. */
const struct csv_tile_kernel *csv_tile_kernel_best(void);
/* The COUNT kernels that it runs, for tests; plain C is the first. */
const struct csv_tile_kernel *const *csv_tile_kernels(size_t *ret_count);

#endif
