#include "engine/table/folds.h"

#include "engine/foundation/memory.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

static uint64_t mix(uint64_t z) { /* splitmix64 (Steele, Lea, Flood 2014) */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

/* A hash of a row's values in COLUMNS. */
static uint64_t hash_row(const struct folds_columns *columns, size_t row) {
    const uint64_t factor = UINT64_C(0x9e3779b97f4a7c15);
    uint64_t hash = 0;
    for (size_t i = 0; i < columns->number_count; i++) {
        double value = columns->numbers[i][row] + 0.0; /* -0 is 0 */
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        hash = (hash ^ bits ^ bits >> 32) * factor;
    }
    for (size_t j = 0; j < columns->code_count; j++)
        hash = ((hash ^ hash >> 32) + columns->codes[j][row] + 1) * factor;
    return mix(hash);
}

static bool is_equal(const struct folds_columns *columns, size_t a, size_t b) {
    for (size_t i = 0; i < columns->number_count; i++)
        if (columns->numbers[i][a] != columns->numbers[i][b])
            return false;
    for (size_t j = 0; j < columns->code_count; j++)
        if (columns->codes[j][a] != columns->codes[j][b])
            return false;
    return true;
}

/* Numbers rows that are equal in all COLUMNS alike, into RET_UNITS (may be NULL); without columns each row by
 * itself. Returns the number of units. */
size_t folds_units(const struct folds_columns *columns, size_t count, uint32_t *ret_units) {
    size_t slot_count = 64, units = 0;
    if (columns->number_count + columns->code_count == 0) {
        for (size_t row = 0; ret_units && row < count; row++)
            ret_units[row] = (uint32_t)row;
        return count;
    }
    while (slot_count < 2 * count)
        slot_count *= 2;
    struct slot {
        uint32_t row, unit; /* the first row of the unit, and one; 0: free */
    } *slots = xcalloc(slot_count, sizeof *slots);
    for (size_t row = 0; row < count; row++) {
        size_t slot = hash_row(columns, row) & (slot_count - 1);
        while (slots[slot].row && !is_equal(columns, slots[slot].row - 1, row))
            slot = (slot + 1) & (slot_count - 1);
        if (!slots[slot].row)
            slots[slot] = (struct slot){(uint32_t)row + 1, (uint32_t)units++};
        if (ret_units)
            ret_units[row] = slots[slot].unit;
    }
    free(slots);
    return units;
}

/* Deals units at random to at most FOLDS folds of equal size; RET is the fold of each row. Returns the number
 * of folds. */
size_t folds_deal(const uint32_t *units, size_t unit_count, size_t count, size_t folds, uint64_t seed,
                  uint8_t *ret) {
    folds = folds > FOLDS_MAX ? FOLDS_MAX : folds;
    folds = folds > unit_count ? unit_count : folds;
    uint32_t *shuffled = xcalloc(unit_count + 1, sizeof *shuffled); /* where each unit is in the deck */
    for (size_t u = 0; u < unit_count; u++) {
        size_t at =
            (size_t)(((unsigned __int128)mix(seed + (u + 1) * UINT64_C(0x9e3779b97f4a7c15)) * (u + 1)) >> 64);
        shuffled[u] = shuffled[at];
        shuffled[at] = (uint32_t)u; /* Fisher and Yates, inside out */
    }
    uint8_t *fold_of = xcalloc(unit_count + 1, 1);
    for (size_t place = 0; place < unit_count; place++)
        fold_of[shuffled[place]] = (uint8_t)(place % folds);
    for (size_t row = 0; row < count; row++)
        ret[row] = fold_of[units[row]];
    free(shuffled), free(fold_of);
    return folds;
}

/* Moves rows whose level is in one fold only to the fold FOLD_COUNT. Returns their number; *RET_FIRST is the
 * first of them. */
size_t folds_keep_rare(const uint32_t *codes, size_t level_count, size_t count, size_t fold_count,
                       uint8_t *folds, size_t *ret_first) {
    enum { SEVERAL = UINT16_MAX };
    uint16_t *fold_of = xcalloc(level_count + 1, sizeof *fold_of); /* and one; 0: no row has the level */
    size_t kept = 0;
    for (size_t row = 0; row < count; row++) {
        uint16_t *known = &fold_of[codes[row]], fold = (uint16_t)(folds[row] + 1);
        *known = (*known == 0 || *known == fold) && folds[row] < fold_count ? fold : SEVERAL;
    }
    for (size_t row = 0; row < count; row++)
        if (fold_of[codes[row]] != SEVERAL) {
            *ret_first = kept++ ? *ret_first : row;
            folds[row] = (uint8_t)fold_count;
        }
    free(fold_of);
    return kept;
}
