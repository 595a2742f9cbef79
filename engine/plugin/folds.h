/*
 * Which fold of a cross-validation each row of a table is in. Rows that belong together are in one fold, so
 * that a fit without it has seen none of them:
 *
 *     setting  rows whose factors are equal: the error is that of settings that were not measured
 *     row      each row by itself: where settings repeat, the error is that of one more repetition
 *     columns  rows that are equal in some columns: the error is that of another host, another day
 *
 * One pass in bounded memory: the first FOLDS_DEALT_MAX units are dealt to the folds like cards, a shuffled
 * round of all folds after the other, so that few of them are spread evenly; later ones go by a hash, as rows
 * do. The same rows in the same order with the same seed are in the same folds, in every pass.
 */
#ifndef ASSAY_PLUGIN_FOLDS_H
#define ASSAY_PLUGIN_FOLDS_H

#include <stddef.h>
#include <stdint.h>

enum {
    FOLDS_MAX = 255,
    FOLDS_NONE = 255, /* of a row that is in no fold */
    FOLDS_DEALT_MAX = 1024,
};

enum folds_unit { FOLDS_BY_SETTING, FOLDS_BY_ROW, FOLDS_BY_COLUMNS };

/* "setting", "row", "columns": as model files have it. */
const char *folds_unit_word(enum folds_unit unit);

struct folds;

/* What tells the units apart: numbers and codes of texts; neither: each row is one. */
struct folds_columns {
    const double *const *numbers;
    size_t number_count;
    const uint32_t *const *codes;
    size_t code_count;
};

/* COUNT of them, 1 to FOLDS_MAX. NULL when out of memory. */
struct folds *folds_new(uint32_t count, uint64_t seed);
void folds_free(struct folds *folds);
void folds_cleanup(struct folds **folds); /* for cleanup() */

/* The folds, 0 to COUNT - 1, of the next ROWS rows, of which the first is row FIRST of the table and each
 * other one STRIDE after the one before, into RET. */
void folds_assign(struct folds *folds, uint64_t first, uint64_t stride, size_t rows,
                  const struct folds_columns *columns, uint8_t *ret);

/* The fold of KEY: the same for the same seed, whatever the others (splitmix64, scaled). */
uint8_t folds_of_key(uint64_t key, uint64_t seed, uint32_t count);

#endif
