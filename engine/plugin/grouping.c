#include "engine/plugin/grouping.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

enum { TABLE_BITS_MAX = 14 }; /* of both numbers of a pair together: 64 KiB */

/* Numbers pairs (a, b): combinations of the first J labels and label J. As long as both are small their
 * numbers lie in a table, where they are found several times as fast as by their hash. */
struct pair_map {
    uint64_t *pairs; /* by number: a << 32 | b */
    size_t count, capacity;
    struct {
        uint64_t pair;
        uint32_t number; /* + 1; 0: free */
    } * slots;
    size_t slot_count;
    uint32_t *table; /* by a << b_bits | b: number + 1; 0: free, or not looked up by hash yet */
    unsigned a_bits, b_bits;
};

struct grouping {
    size_t label_count;
    struct pair_map *maps; /* label_count - 1 */
    uint32_t single_count; /* groups when there is one label column or none */
    uint32_t *codes;
    size_t code_capacity;
};

int grouping_new(size_t label_count, struct grouping **ret, struct failure *failure) {
    cleanup(grouping_cleanup) struct grouping *grouping = calloc(1, sizeof *grouping);
    if (!grouping)
        return failure_memory(failure);
    grouping->label_count = label_count;
    grouping->maps = xcalloc(label_count > 1 ? label_count - 1 : 1, sizeof *grouping->maps);
    *ret = take_pointer(grouping);
    return 0;
}

void grouping_free(struct grouping *grouping) {
    if (!grouping)
        return;
    for (size_t j = 0; grouping->maps && j + 1 < grouping->label_count; j++) {
        free(grouping->maps[j].pairs);
        free(grouping->maps[j].slots);
        free(grouping->maps[j].table);
    }
    free(grouping->maps);
    free(grouping->codes);
    free(grouping);
}

void grouping_cleanup(struct grouping **grouping) {
    grouping_free(*grouping);
}

/* Fibonacci hashing: the upper bits of a product with 2^64 / golden ratio. */
static size_t first_slot(const struct pair_map *map, uint64_t pair) {
    pair ^= pair >> 29; /* so that a, in the upper half, moves the upper bits too when b is small */
    return (size_t)((pair * UINT64_C(0x9e3779b97f4a7c15)) >> 32) & (map->slot_count - 1);
}

static size_t find_slot(const struct pair_map *map, uint64_t pair) {
    size_t at = first_slot(map, pair);
    while (map->slots[at].number && map->slots[at].pair != pair)
        at = (at + 1) & (map->slot_count - 1);
    return at;
}

static int add_pair(struct pair_map *map, uint64_t pair, uint32_t *ret) {
    int r = list_reserve(&map->pairs, &map->capacity, map->count + 1, sizeof *map->pairs, GROUPING_MAX);
    if (r < 0)
        return r;
    if (2 * (map->count + 1) > map->slot_count) {
        size_t count = map->slot_count ? 2 * map->slot_count : 256;
        void *slots = calloc(count, sizeof *map->slots);
        if (!slots)
            return -ENOMEM;
        free(map->slots);
        map->slots = slots;
        map->slot_count = count;
        for (size_t i = 0; i < map->count; i++) {
            size_t at = find_slot(map, map->pairs[i]);
            map->slots[at].pair = map->pairs[i];
            map->slots[at].number = (uint32_t)i + 1;
        }
    }
    size_t at = find_slot(map, pair);
    map->pairs[map->count++] = pair;
    map->slots[at].pair = pair;
    map->slots[at].number = (uint32_t)map->count;
    *ret = (uint32_t)map->count - 1;
    return 0;
}

static int find_pair(struct pair_map *map, uint64_t pair, uint32_t *ret) {
    size_t at = map->slot_count ? find_slot(map, pair) : 0;
    if (!map->slot_count || !map->slots[at].number)
        return add_pair(map, pair, ret);
    *ret = map->slots[at].number - 1;
    return 0;
}

static unsigned bits_of(const uint32_t *numbers, size_t count) {
    uint32_t all = 0;
    for (size_t i = 0; i < count; i++)
        all |= numbers[i];
    return all ? 32 - (unsigned)__builtin_clz(all) : 0;
}

/* Makes the table so wide that the rows' pairs have a place in it. False when they are too many for one. */
static bool widen_table(struct pair_map *map, size_t rows, const uint32_t *codes, const uint32_t *labels) {
    unsigned a = bits_of(codes, rows), b = bits_of(labels, rows);
    if (map->table && a <= map->a_bits && b <= map->b_bits)
        return true;
    a = a > map->a_bits ? a : map->a_bits;
    b = b > map->b_bits ? b : map->b_bits;
    uint32_t *table = a + b > TABLE_BITS_MAX ? NULL : calloc((size_t)1 << (a + b), sizeof *table);
    if (!table)
        return false;
    free(map->table); /* what was in it is found again by its hash */
    map->table = table;
    map->a_bits = a;
    map->b_bits = b;
    return true;
}

static int fold(struct pair_map *map, size_t rows, uint32_t *codes, const uint32_t *labels) {
    bool tabled = widen_table(map, rows, codes, labels);
    for (size_t r = 0; r < rows; r++) {
        uint32_t *entry = tabled ? &map->table[(size_t)codes[r] << map->b_bits | labels[r]] : NULL;
        if (entry && *entry) {
            codes[r] = *entry - 1;
            continue;
        }
        int e = find_pair(map, (uint64_t)codes[r] << 32 | labels[r], &codes[r]);
        if (e < 0)
            return e;
        if (entry)
            *entry = codes[r] + 1;
    }
    return 0;
}

int grouping_assign(struct grouping *grouping, size_t rows, const uint32_t *const *labels,
                    const uint32_t **ret, struct failure *failure) {
    int r =
        list_reserve(&grouping->codes, &grouping->code_capacity, rows, sizeof *grouping->codes, SIZE_MAX / 8);
    if (r < 0)
        return failure_memory(failure);
    if (grouping->label_count == 0) {
        memset(grouping->codes, 0, rows * sizeof *grouping->codes);
        grouping->single_count = 1;
    } else if (rows > 0) {
        memcpy(grouping->codes, labels[0], rows * sizeof *grouping->codes);
    }
    if (grouping->label_count == 1)
        for (size_t i = 0; i < rows; i++)
            if (labels[0][i] >= grouping->single_count)
                grouping->single_count = labels[0][i] + 1;
    for (size_t j = 1; r == 0 && j < grouping->label_count; j++)
        r = fold(&grouping->maps[j - 1], rows, grouping->codes, labels[j]);
    if (r == -EFBIG)
        return failure_set_kind(failure, FAILURE_INPUT, r, "the rows fall into more than %d groups",
                                (int)GROUPING_MAX);
    if (r < 0)
        return failure_memory(failure);
    *ret = grouping->codes;
    return 0;
}

uint32_t grouping_count(const struct grouping *grouping) {
    return grouping->label_count > 1 ? (uint32_t)grouping->maps[grouping->label_count - 2].count
                                     : grouping->single_count;
}

uint32_t grouping_label(const struct grouping *grouping, uint32_t group, size_t j) {
    for (size_t level = grouping->label_count; level-- > 1;) {
        uint64_t pair = grouping->maps[level - 1].pairs[group];
        if (level == j)
            return (uint32_t)pair;
        group = (uint32_t)(pair >> 32);
    }
    return group;
}
