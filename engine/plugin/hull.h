/*
 * Where the rows of a table lie together: the least and the greatest sum of direction x scale x value, in
 * fixed directions. Of up to 3 columns in all directions of entries -1, 0 and 1, of up to 6 in those of one
 * or two columns; of more nothing is told. Scales are powers of two, found in the first rows; any scale gives
 * a true bound, a scale that makes columns alike a tight one.
 *
 * Rows where a column, the response or the weight is not finite, or the weight is not above 0, do not count.
 */
#ifndef ASSAY_PLUGIN_HULL_H
#define ASSAY_PLUGIN_HULL_H

#include <stdbool.h>
#include <stddef.h>

enum {
    HULL_COLUMNS_MAX = 6,
    HULL_DIRECTIONS_MAX = 36, /* 6 single columns, 15 pairs, each with either sign */
};

struct hull {
    size_t column_count, direction_count;
    double scale[HULL_COLUMNS_MAX];
    signed char directions[HULL_DIRECTIONS_MAX][HULL_COLUMNS_MAX];
    double minimum[HULL_DIRECTIONS_MAX], maximum[HULL_DIRECTIONS_MAX]; /* above each other: no row yet */

    /* Its own: which direction a direction goes on from (-1: none), and by which column. */
    signed char parents[HULL_DIRECTIONS_MAX];
    unsigned char last[HULL_DIRECTIONS_MAX];
    bool scaled;
};

/* Without columns, or with too many, it takes rows and tells nothing. */
void hull_init(struct hull *hull, size_t column_count);
/* COLUMNS: an array of ROWS values each. RESPONSE and WEIGHTS may be NULL. */
void hull_add(struct hull *hull, size_t rows, const double *const *columns, const double *response,
              const double *weights);
/* Whether it has seen a row, and says something. */
bool hull_is_told(const struct hull *hull);

#endif
