#include "plugins/fit-population/machines.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void machines_init(struct machines *machines, size_t columns) {
    *machines = (struct machines){.columns = columns};
}

void machines_clear(struct machines *machines) {
    free(machines->keys);
    free(machines->slots);
    *machines = (struct machines){0};
}

uint32_t machines_group(const struct machines *machines, uint32_t machine) {
    return machines->keys[machine * (machines->columns + 1)];
}

/* FNV-1a, word by word. */
static size_t hash(const uint32_t *key, size_t length) {
    uint64_t h = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        h = (h ^ key[i]) * UINT64_C(0x100000001b3);
    return (size_t)(h ^ h >> 29);
}

static size_t find_slot(const struct machines *machines, const uint32_t *key) {
    size_t length = machines->columns + 1, slot = hash(key, length) & (machines->slot_count - 1);
    while (machines->slots[slot] &&
           memcmp(machines->keys + (machines->slots[slot] - 1) * length, key, length * sizeof *key) != 0)
        slot = (slot + 1) & (machines->slot_count - 1);
    return slot;
}

/* Room for one machine more, the table at most half full. */
static int grow(struct machines *machines) {
    size_t length = machines->columns + 1;
    if (machines->count == machines->key_capacity) {
        size_t capacity = machines->key_capacity ? 2 * machines->key_capacity : 64;
        uint32_t *keys = realloc(machines->keys, capacity * length * sizeof *keys);
        if (!keys)
            return -ENOMEM;
        machines->keys = keys;
        machines->key_capacity = capacity;
    }
    if (2 * ((size_t)machines->count + 1) <= machines->slot_count)
        return 0;
    size_t count = machines->slot_count ? 2 * machines->slot_count : 128;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(machines->slots);
    machines->slots = slots;
    machines->slot_count = count;
    for (uint32_t i = 0; i < machines->count; i++)
        slots[find_slot(machines, machines->keys + i * length)] = i + 1;
    return 0;
}

int machines_find(struct machines *machines, uint32_t group, const uint32_t *codes, uint32_t *ret) {
    int r = grow(machines);
    if (r < 0)
        return r;
    size_t length = machines->columns + 1;
    uint32_t *key = machines->keys + machines->count * length; /* there is room for one more */
    key[0] = group;
    memcpy(key + 1, codes, machines->columns * sizeof *codes);
    size_t slot = find_slot(machines, key);
    if (!machines->slots[slot]) {
        if (machines->count == MACHINES_MAX)
            return -EFBIG;
        machines->slots[slot] = ++machines->count;
    }
    *ret = machines->slots[slot] - 1;
    return 0;
}
