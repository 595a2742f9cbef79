/*
 * Which rows of a group a cross-validation leaves out together:
 *
 *     setting  rows whose numbers and categories are equal: the error is that of settings that were not
 * measured row      each row by itself: where settings repeat, the error is that of one more repetition
 *     columns  rows that are equal in columns that the user names: the error is that of another host or day
 *
 * Units are shuffled by the seed and dealt like cards, so that no fold is empty where there are as many units
 * as folds, and their numbers of units differ by one at most.
 */
#ifndef ASSAY_TABLE_FOLDS_H
#define ASSAY_TABLE_FOLDS_H

#include <stddef.h>
#include <stdint.h>

enum { FOLDS_MAX = 255 };

/* What tells the units of COUNT rows apart; neither numbers nor codes: each row is a unit. */
struct folds_columns {
    const double *const *numbers;
    const uint32_t *const *codes;
    size_t number_count, code_count;
};

/* The unit of each row into RET_UNITS (0, 1, ... in order of first appearance), if that is not NULL. Returns
 * how many there are. */
size_t folds_units(const struct folds_columns *columns, size_t count, uint32_t *ret_units);
/* The fold of each of COUNT rows, from 0, into RET. Returns how many folds there are: at most FOLDS, and at
 * most as many as units. */
size_t folds_deal(const uint32_t *units, size_t unit_count, size_t count, size_t folds, uint64_t seed,
                  uint8_t *ret);
/* Takes rare levels out of the folds, without which the rows outside of a fold cannot be fitted: rows whose
 * level in CODES (below LEVEL_COUNT) lies in one of the FOLD_COUNT folds alone get the fold FOLD_COUNT, which
 * is never left out. Returns how many rows of this call these are; the first in *RET_FIRST. */
size_t folds_keep_rare(const uint32_t *codes, size_t level_count, size_t count, size_t fold_count,
                       uint8_t *folds, size_t *ret_first);

#endif
