/*
 * Where the rows of a table stand: which input, and which line of it. Nearly all rows follow their
 * predecessor on the next line, so that only where this breaks (another input, a field with a newline in it)
 * something is kept.
 */
#ifndef ASSAY_TABLE_ROW_PLACES_H
#define ASSAY_TABLE_ROW_PLACES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ROW_PLACES_MAX = 1 << 20 }; /* breaks; the lines of rows behind the last one are not known */

struct row_place {
    uint64_t row; /* the first of a stretch of rows, each on the line behind the last one's */
    uint64_t line;
    uint32_t input;
};

struct row_places {
    struct row_place *stretches;
    size_t count, capacity;
    uint64_t rows; /* whose places are known: all below this */
    bool full;
};

/* ROWS rows (at least one) of INPUT that come next, and the line where each begins. 0 or -ENOMEM. */
int row_places_add(struct row_places *places, uint32_t input, size_t rows, const uint64_t *lines);
/* The input and line of ROW; false where it is not known. */
bool row_places_find(const struct row_places *places, uint64_t row, uint32_t *ret_input, uint64_t *ret_line);
void row_places_clear(struct row_places *places);

#endif
