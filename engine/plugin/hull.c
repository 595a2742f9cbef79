#include "engine/plugin/hull.h"

#include <math.h>
#include <stdint.h>
#include <string.h>

enum {
    CHUNK = 256, /* rows at a time: what is kept of them stays in the first cache */
    LANES = 4,
    ALL_DIRECTIONS_MOST = 3, /* columns */
};

typedef double lanes __attribute__((vector_size(LANES * sizeof(double))));
typedef int64_t masks __attribute__((vector_size(LANES * sizeof(int64_t))));

struct chunk {
    double columns[HULL_COLUMNS_MOST][CHUNK] __attribute__((aligned(32))); /* scaled; NaN: does not count */
    double sums[HULL_DIRECTIONS_MOST][CHUNK] __attribute__((aligned(32)));
};

/* ---- Directions */

static void add_direction(struct hull *hull, int parent, size_t column, signed char sign) {
    size_t d = hull->direction_count++;
    memset(hull->directions[d], 0, sizeof hull->directions[d]);
    if (parent >= 0) {
        memcpy(hull->directions[d], hull->directions[parent], sizeof hull->directions[d]);
        hull->kept[parent] = true;
    }
    hull->directions[d][column] = sign;
    hull->parents[d] = (signed char)parent;
    hull->minimum[d] = INFINITY;
    hull->maximum[d] = -INFINITY;
}

void hull_init(struct hull *hull, size_t column_count) {
    *hull = (struct hull){.column_count = column_count <= HULL_COLUMNS_MOST ? column_count : 0};
    size_t count = hull->column_count;
    bool all = count <= ALL_DIRECTIONS_MOST;
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

/* Of two vectors, the first where the mask is set. A macro: no function may pass them without AVX. */
#define CHOOSE(mask, one, other) ((lanes)(((masks)(one) & (mask)) | ((masks)(other) & ~(mask))))

/* One direction over a chunk. What is NaN is neither less nor greater. */
__attribute__((always_inline)) static inline void stretch(struct hull *hull, struct chunk *chunk, size_t d,
                                                          size_t column) {
    const double *base = hull->parents[d] < 0 ? NULL : chunk->sums[(size_t)hull->parents[d]],
                 *values = chunk->columns[column];
    double sign = hull->directions[d][column];
    bool kept = hull->kept[d];
    lanes least = {INFINITY, INFINITY, INFINITY, INFINITY}, most = -least;
    for (size_t i = 0; i < CHUNK; i += LANES) {
        lanes sum = *(const lanes *)(values + i) * sign;
        if (base)
            sum += *(const lanes *)(base + i);
        if (kept)
            *(lanes *)(chunk->sums[d] + i) = sum;
        least = CHOOSE(sum < least, sum, least);
        most = CHOOSE(sum > most, sum, most);
    }
    for (size_t l = 0; l < LANES; l++) {
        if (least[l] < hull->minimum[d])
            hull->minimum[d] = least[l];
        if (most[l] > hull->maximum[d])
            hull->maximum[d] = most[l];
    }
}

__attribute__((always_inline)) static inline void add(struct hull *hull, size_t rows,
                                                      const double *const *columns, const double *response,
                                                      const double *weights) {
    struct chunk chunk;
    for (size_t first = 0; first < rows; first += CHUNK) {
        load(hull, &chunk, first, rows - first < CHUNK ? rows - first : CHUNK, columns, response, weights);
        for (size_t d = 0; d < hull->direction_count; d++) {
            size_t column = hull->column_count - 1; /* the last that it has */
            while (hull->directions[d][column] == 0)
                column--;
            stretch(hull, &chunk, d, column);
        }
    }
}

static void add_portable(struct hull *hull, size_t rows, const double *const *columns, const double *response,
                         const double *weights) {
    add(hull, rows, columns, response, weights);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_avx2(struct hull *hull, size_t rows,
                                                     const double *const *columns, const double *response,
                                                     const double *weights) {
    add(hull, rows, columns, response, weights);
}
#endif

void hull_add(struct hull *hull, size_t rows, const double *const *columns, const double *response,
              const double *weights) {
    if (hull->direction_count == 0)
        return;
    if (!hull->scaled && !hull_is_told(hull))
        find_scales(hull, rows, columns);
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(hull, rows, columns, response, weights);
        return;
    }
#endif
    add_portable(hull, rows, columns, response, weights);
}
