/*
 * Rows kept while they pass, for the noise models that need them again: by cell and fold, so that a group's
 * rows lie together and need neither code.
 *
 * A row takes four bytes for each input when all of them are whole or otherwise exact as floats (sizes are),
 * eight when not, and eight each for the response and the weight. NOISE_ROWS_MEMORY bytes are kept in memory;
 * what is more goes to a file without a name in $TMPDIR (or /tmp), which the kernel keeps in memory as long
 * as it can.
 */
#ifndef ASSAY_FIT_LINEAR_NOISE_ROWS_H
#define ASSAY_FIT_LINEAR_NOISE_ROWS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define NOISE_ROWS_MEMORY (UINT64_C(512) << 20)

enum {
    NOISE_ROWS_CHUNK = 256,            /* rows of the longest chunk */
    NOISE_ROWS_FOLDED_CELLS = 1 << 17, /* the cells after these have one fold */
    NOISE_ROWS_COLUMNS_MAX = 72,
};

struct noise_rows;

/* INPUTS columns besides the response; FOLDS at least 1; MEMORY: bytes before the file, for tests smaller. */
int noise_rows_new(size_t inputs, bool weighted, uint32_t folds, uint64_t memory, struct noise_rows **ret);
void noise_rows_free(struct noise_rows *rows);

/* Appends COUNT rows, column by column: the inputs, the response, and the weight if there is one; each to its
 * cell and fold, and nowhere where that is NOISE_ROWS_NONE. 0 or a negative errno: -ENOMEM, or what keeps the
 * file from growing. */
#define NOISE_ROWS_NONE UINT32_MAX
int noise_rows_add(struct noise_rows *rows, size_t count, const double *const *columns, const uint32_t *cells,
                   const uint32_t *folds);

/* Some rows of one cell and fold, in the order in which they were added. */
struct noise_chunk;
/* The first chunk, or NULL. Narrow rows come first, then wide ones. */
const struct noise_chunk *noise_rows_first(const struct noise_rows *rows, uint32_t cell, uint32_t fold);
const struct noise_chunk *noise_rows_next(const struct noise_chunk *chunk);
size_t noise_chunk_rows(const struct noise_chunk *chunk);
/* Column I of the chunk's rows: the inputs, the response, the weight. */
void noise_chunk_column(const struct noise_rows *rows, const struct noise_chunk *chunk, size_t i,
                        double *ret);

#endif
