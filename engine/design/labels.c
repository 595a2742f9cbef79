#include "engine/design/labels.h"

#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void labels_clear(struct labels *labels) {
    for (size_t i = 0; i < labels->count; i++)
        free(labels->items[i]);
    free(labels->items);
    free(labels->slots);
    *labels = (struct labels){0};
}

/* FNV-1a, 64 bits (Fowler, Noll and Vo). */
static uint64_t hash_of(const char *bytes, size_t length) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * UINT64_C(0x100000001b3);
    return hash ^ hash >> 32;
}

/* The slot of BYTES, or the empty one where it belongs. */
static uint32_t *find_slot(const struct labels *labels, const char *bytes, size_t length) {
    size_t mask = labels->slot_count - 1;
    for (size_t at = (size_t)hash_of(bytes, length) & mask;; at = (at + 1) & mask) {
        uint32_t *slot = &labels->slots[at];
        if (*slot == 0)
            return slot;
        const char *item = labels->items[*slot - 1];
        if (strncmp(item, bytes, length) == 0 && item[length] == '\0')
            return slot;
    }
}

static int grow_slots(struct labels *labels) {
    size_t count = labels->slot_count ? 2 * labels->slot_count : 16;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(labels->slots);
    labels->slots = slots;
    labels->slot_count = count;
    for (size_t i = 0; i < labels->count; i++)
        *find_slot(labels, labels->items[i], strlen(labels->items[i])) = (uint32_t)i + 1;
    return 0;
}

int labels_code(struct labels *labels, const char *bytes, size_t length, uint32_t *ret) {
    if (2 * (labels->count + 1) > labels->slot_count && grow_slots(labels) < 0)
        return -ENOMEM;
    uint32_t *slot = find_slot(labels, bytes, length);
    if (*slot == 0) {
        int r = list_reserve(&labels->items, &labels->capacity, labels->count + 1, sizeof *labels->items,
                             LABELS_MOST);
        if (r < 0)
            return r;
        char *item = strndup(bytes, length);
        if (!item)
            return -ENOMEM;
        labels->items[labels->count++] = item;
        *slot = (uint32_t)labels->count;
    }
    *ret = *slot - 1;
    return 0;
}
