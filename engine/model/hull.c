#include "engine/model/hull.h"

#include "engine/foundation/memory.h"
#include "engine/numerics/range.h"

#include <math.h>
#include <string.h>

enum { ALL_DIRECTIONS_COLUMNS_MAX = 3, DIRECTIONS_MAX = 36, BLOCK_ROWS = 256 };

/* The direction FROM (or none: SIZE_MAX) with SIGN in COLUMN. */
static void add_direction(struct model_hull *hull, size_t from, size_t column, double sign) {
    double *direction = hull->directions + hull->direction_count * hull->column_count;
    if (from != SIZE_MAX)
        memcpy(direction, hull->directions + from * hull->column_count,
               hull->column_count * sizeof *direction);
    direction[column] = sign;
    hull->minimum[hull->direction_count] = INFINITY;
    hull->maximum[hull->direction_count++] = -INFINITY;
}

/* A hull over the columns NAMES, without rows: all directions with entries -1, 0 and 1 for few columns, for
 * more the columns and their pairs. NULL: one column, or too many. */
struct model_hull *model_hull_new(const char *const *names, size_t count) {
    if (count < 2 || count > HULL_COLUMNS_MAX)
        return NULL;
    struct model_hull *hull = xcalloc(1, sizeof *hull);
    hull->column_count = count;
    hull->columns = xcalloc(count, sizeof *hull->columns);
    hull->scale = xcalloc(count, sizeof *hull->scale); /* 0: not found yet */
    hull->directions = xcalloc(DIRECTIONS_MAX * count, sizeof *hull->directions);
    hull->minimum = xcalloc(DIRECTIONS_MAX, sizeof *hull->minimum);
    hull->maximum = xcalloc(DIRECTIONS_MAX, sizeof *hull->maximum);
    for (size_t c = 0; c < count; c++) {
        size_t before = hull->direction_count;
        hull->columns[c] = xstrdup(names[c]);
        add_direction(hull, SIZE_MAX, c, 1);
        for (size_t d = 0; d < before; d++) {
            size_t entries = 0;
            for (size_t i = 0; i < count; i++)
                entries += hull->directions[d * count + i] != 0;
            if (entries == 1 || count <= ALL_DIRECTIONS_COLUMNS_MAX) {
                add_direction(hull, d, c, 1);
                add_direction(hull, d, c, -1);
            }
        }
    }
    return hull;
}

/* Sets the scale of each column to a power of 2, so that its greatest value is near 1. */
static void find_scales(struct model_hull *hull, size_t rows, const double *const *columns) {
    for (size_t c = 0; c < hull->column_count; c++) {
        double greatest = 0;
        for (size_t i = 0; i < rows; i++)
            if (isfinite(columns[c][i]))
                greatest = fmax(greatest, fabs(columns[c][i]));
        /* Not so small that its inverse is none. */
        hull->scale[c] = greatest > 0 ? ldexp(1, -ilogb(fmax(greatest, 1e-300))) : 1;
    }
}

/* Extends the hull by at most BLOCK_ROWS rows, column by column, so that the compiler uses vectors; rows with
 * a value that is not finite do not count. */
__attribute__((target_clones("avx2", "default"))) static void
add_block(struct model_hull *hull, size_t rows, const double *const *columns, size_t begin) {
    double values[HULL_COLUMNS_MAX][BLOCK_ROWS], sums[BLOCK_ROWS] = {0}, least, most;
    for (size_t c = 0; c < hull->column_count; c++)
        for (size_t i = 0; i < rows; i++) {
            values[c][i] = columns[c][begin + i] * hull->scale[c];
            sums[i] += values[c][i] * 0; /* NaN from a value on that is not finite: the row does not count */
        }
    for (size_t c = 0; c < hull->column_count; c++)
        for (size_t i = 0; i < rows; i++)
            values[c][i] += sums[i];
    for (size_t d = 0; d < hull->direction_count; d++) {
        const double *direction = hull->directions + d * hull->column_count;
        for (size_t c = 0, entries = 0; c < hull->column_count; c++) {
            double factor = direction[c];
            if (factor == 0)
                continue;
            for (size_t i = 0; i < rows; i++)
                sums[i] = (entries > 0 ? sums[i] : 0) + factor * values[c][i];
            entries++;
        }
        range_find(sums, rows, &least, &most);
        hull->minimum[d] = fmin(hull->minimum[d], least);
        hull->maximum[d] = fmax(hull->maximum[d], most);
    }
}

void model_hull_add(struct model_hull *hull, size_t rows, const double *const *columns) {
    if (!model_hull_is_known(hull))
        find_scales(hull, rows, columns);
    for (size_t begin = 0; begin < rows; begin += BLOCK_ROWS)
        add_block(hull, rows - begin < BLOCK_ROWS ? rows - begin : BLOCK_ROWS, columns, begin);
}

bool model_hull_is_known(const struct model_hull *hull) {
    return hull->minimum[0] <= hull->maximum[0];
}
