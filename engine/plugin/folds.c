#include "engine/plugin/folds.h"

#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 16 * FOLDS_DEALT_MAX, /* a power of two */
    PIECE = 512,                  /* rows */
};

struct folds {
    uint32_t count;
    uint64_t seed;
    size_t dealt;               /* units so far */
    uint8_t round[FOLDS_MAX];   /* the folds in the order in which this round deals them */
    uint64_t taken[SLOTS / 64]; /* a bit a slot: all that is touched for most units that are not dealt */
    uint64_t keys[SLOTS];       /* of units */
    uint8_t folds[SLOTS];
};

/* ---- Hashes */

static inline uint64_t mix(uint64_t z) { /* splitmix64 */
    z = (z ^ (z >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static uint32_t scale(uint64_t hash, uint32_t count) {
    return (uint32_t)(((hash >> 32) * count) >> 32);
}

uint8_t folds_of_key(uint64_t key, uint64_t seed, uint32_t count) {
    return (uint8_t)scale(mix(key * UINT64_C(0x9e3779b97f4a7c15) + seed), count);
}

/* An odd factor for each column. */
static uint64_t factor_of(size_t column, uint64_t seed) {
    return mix((column + 1) * UINT64_C(0x9e3779b97f4a7c15) + seed) | 1;
}

/* What stands for each unit: equal numbers and texts have equal keys; others hardly ever, and are then in one
 * fold. Multilinear: whole numbers have nothing in their low bits, so the high ones are folded in. */
static inline __attribute__((always_inline)) void
join_columns(const struct folds_columns *columns, uint64_t seed, size_t start, size_t rows, uint64_t *ret) {
    memset(ret, 0, rows * sizeof *ret);
    for (size_t i = 0; i < columns->number_count; i++) {
        const double *numbers = columns->numbers[i] + start;
        uint64_t factor = factor_of(i, seed);
        for (size_t r = 0; r < rows; r++) {
            double value = numbers[r] + 0.0; /* -0 is 0 */
            uint64_t bits;
            memcpy(&bits, &value, sizeof bits);
            ret[r] += (bits ^ bits >> 32) * factor;
        }
    }
    for (size_t i = 0; i < columns->code_count; i++) {
        uint64_t factor = factor_of(columns->number_count + i, seed);
        for (size_t r = 0; r < rows; r++)
            ret[r] += columns->codes[i][start + r] * factor;
    }
    for (size_t r = 0; r < rows; r++)
        ret[r] = mix(ret[r]);
}

#ifdef __x86_64__
/* Eight rows at once where products of 64 bits are an instruction. */
__attribute__((target("avx512f,avx512dq"))) static void make_keys_avx512(const struct folds_columns *columns,
                                                                         uint64_t seed, size_t start,
                                                                         size_t rows, uint64_t *ret) {
    join_columns(columns, seed, start, rows, ret);
}
#endif

static void make_keys(const struct folds_columns *columns, uint64_t seed, size_t start, size_t rows,
                      uint64_t *ret) {
#ifdef __x86_64__
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        make_keys_avx512(columns, seed, start, rows, ret);
        return;
    }
#endif
    join_columns(columns, seed, start, rows, ret);
}

/* ---- Dealing */

static void shuffle(struct folds *folds) {
    uint64_t round = folds->dealt / folds->count;
    for (uint32_t i = 0; i < folds->count; i++)
        folds->round[i] = (uint8_t)i;
    for (uint32_t left = folds->count; left > 1; left--) {
        uint64_t draw = mix((round << 8 | left) * UINT64_C(0x9e3779b97f4a7c15) + folds->seed);
        uint32_t at = scale(draw, left);
        uint8_t last = folds->round[left - 1];
        folds->round[left - 1] = folds->round[at];
        folds->round[at] = last;
    }
}

static uint8_t deal(struct folds *folds, size_t slot, uint64_t key) {
    if (folds->dealt % folds->count == 0)
        shuffle(folds);
    folds->taken[slot / 64] |= UINT64_C(1) << slot % 64;
    folds->keys[slot] = key;
    folds->folds[slot] = folds->round[folds->dealt++ % folds->count];
    return folds->folds[slot];
}

static bool is_taken(const struct folds *folds, size_t slot) {
    return folds->taken[slot / 64] >> slot % 64 & 1;
}

/* The slot is told by the key's low bits, the fold of what is not dealt by its high ones. */
static uint8_t fold_of_unit(struct folds *folds, uint64_t key) {
    size_t slot = key & (SLOTS - 1);
    while (is_taken(folds, slot) && folds->keys[slot] != key)
        slot = (slot + 1) & (SLOTS - 1);
    if (is_taken(folds, slot))
        return folds->folds[slot];
    return folds->dealt < FOLDS_DEALT_MAX ? deal(folds, slot, key) : (uint8_t)scale(key, folds->count);
}

void folds_assign(struct folds *folds, uint64_t first, uint64_t stride, size_t rows,
                  const struct folds_columns *columns, uint8_t *ret) {
    if (columns->number_count + columns->code_count == 0) {
        for (size_t r = 0; r < rows; r++)
            ret[r] = folds_of_key(first + r * stride, folds->seed, folds->count);
        return;
    }
    for (size_t start = 0; start < rows; start += PIECE) {
        uint64_t keys[PIECE];
        size_t count = rows - start < PIECE ? rows - start : PIECE;
        make_keys(columns, folds->seed, start, count, keys);
        for (size_t r = 0; r < count; r++)
            ret[start + r] = fold_of_unit(folds, keys[r]);
    }
}

const char *folds_unit_word(enum folds_unit unit) {
    static const char *const words[] = {
        [FOLDS_BY_SETTING] = "setting", [FOLDS_BY_ROW] = "row", [FOLDS_BY_COLUMNS] = "columns"};
    return words[unit];
}

/* ---- Life */

struct folds *folds_new(uint32_t count, uint64_t seed) {
    struct folds *folds = calloc(1, sizeof *folds);
    if (!folds)
        return NULL;
    folds->count = count;
    folds->seed = seed;
    return folds;
}

void folds_free(struct folds *folds) {
    free(folds);
}

void folds_cleanup(struct folds **folds) {
    folds_free(*folds);
}
