#include "plugins/fit-linear/cells.h"

#include "plugins/fit-linear/grouped.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

struct cells {
    size_t categories, key; /* numbers in a key: the group and the codes */
    uint32_t group_count, count, capacity;
    uint32_t *keys;  /* of each cell */
    uint32_t *slots; /* hash table: a cell + 1, or 0; a power of two, at most half full */
    size_t slot_count;
    struct grouped grouped; /* made when it is asked for */
    uint32_t alone;         /* the one cell of the group that was asked for, without categories */
};

int cells_new(size_t categories, struct cells **ret) {
    struct cells *cells = calloc(1, sizeof *cells);
    if (!cells)
        return -ENOMEM;
    cells->categories = categories;
    cells->key = categories + 1;
    *ret = cells;
    return 0;
}

void cells_free(struct cells *cells) {
    if (!cells)
        return;
    grouped_clear(&cells->grouped);
    free(cells->keys);
    free(cells->slots);
    free(cells);
}

static size_t slot_of(const struct cells *cells, const uint32_t *key) {
    uint64_t hash = 0;
    for (size_t i = 0; i < cells->key; i++) {
        hash = (hash ^ key[i]) * UINT64_C(0x9e3779b97f4a7c15);
        hash ^= hash >> 29;
    }
    size_t slot = hash & (cells->slot_count - 1);
    while (cells->slots[slot] != 0 && memcmp(cells->keys + (size_t)(cells->slots[slot] - 1) * cells->key, key,
                                             cells->key * sizeof *key) != 0)
        slot = (slot + 1) & (cells->slot_count - 1);
    return slot;
}

static int grow(struct cells *cells) {
    if (cells->count < cells->capacity)
        return 0;
    uint32_t capacity = cells->capacity ? 2 * cells->capacity : 64;
    uint32_t *keys = realloc(cells->keys, (size_t)capacity * cells->key * sizeof *keys);
    if (!keys)
        return -ENOMEM;
    cells->keys = keys;
    uint32_t *slots = calloc(2 * (size_t)capacity, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(cells->slots);
    cells->slots = slots;
    cells->slot_count = 2 * (size_t)capacity;
    cells->capacity = capacity;
    for (uint32_t cell = 0; cell < cells->count; cell++)
        cells->slots[slot_of(cells, keys + (size_t)cell * cells->key)] = cell + 1;
    return 0;
}

static int find_or_add(struct cells *cells, const uint32_t *key, uint32_t *ret) {
    int r = grow(cells);
    if (r < 0)
        return r;
    size_t slot = slot_of(cells, key);
    if (cells->slots[slot] == 0) {
        if (cells->count == CELLS_MAX)
            return -E2BIG;
        memcpy(cells->keys + (size_t)cells->count * cells->key, key, cells->key * sizeof *key);
        cells->slots[slot] = ++cells->count;
    }
    *ret = cells->slots[slot] - 1;
    return 0;
}

int cells_assign(struct cells *cells, size_t rows, const uint32_t *groups, uint32_t group_count,
                 const uint32_t *const *codes, uint32_t *ret, size_t *ret_category) {
    if (group_count > cells->group_count)
        cells->group_count = group_count;
    if (cells->categories == 0) {
        memcpy(ret, groups, rows * sizeof *ret);
        cells->count = cells->group_count;
        return 0;
    }
    grouped_clear(&cells->grouped);
    uint32_t key[32];
    int r = 0;
    for (size_t row = 0; r == 0 && row < rows; row++) {
        bool same = row > 0 && key[0] == groups[row]; /* rows often come in runs */
        key[0] = groups[row];
        for (size_t c = 0; c < cells->categories; c++) {
            same = same && key[c + 1] == codes[c][row];
            key[c + 1] = codes[c][row];
            if (key[c + 1] >= CELLS_LEVELS_MAX) {
                *ret_category = c;
                return -ERANGE;
            }
        }
        if (same)
            ret[row] = ret[row - 1];
        else
            r = find_or_add(cells, key, &ret[row]);
    }
    return r;
}

uint32_t cells_count(const struct cells *cells) {
    return cells->count;
}

const uint32_t *cells_codes(const struct cells *cells, uint32_t cell) {
    return cells->categories ? cells->keys + (size_t)cell * cells->key + 1 : NULL;
}

int cells_of_group(struct cells *cells, uint32_t group, const uint32_t **ret, size_t *ret_count) {
    if (cells->categories == 0) {
        cells->alone = group;
        *ret = &cells->alone;
        *ret_count = 1;
        return 0;
    }
    struct grouped *grouped = &cells->grouped;
    int r = grouped->members
                ? 0
                : grouped_init(grouped, cells->keys, cells->key, cells->count, cells->group_count);
    if (r < 0)
        return r;
    *ret = grouped->members + grouped->starts[group];
    *ret_count = grouped->starts[group + 1] - grouped->starts[group];
    return 0;
}
