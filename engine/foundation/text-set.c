#include "engine/foundation/text-set.h"

#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>

void text_set_clear(struct text_set *set) {
    text_set_cut(set, 0);
    free(set->texts);
    *set = (struct text_set){0};
}

/* FNV-1a (G. Fowler, L. Noll, K.-P. Vo), begun with random bytes of this process, so that no file can be made
 * whose texts collide. */
static size_t hash_text(const char *text, size_t length) {
    static uint64_t start;
    if (start == 0)
        memcpy(&start, (const void *)getauxval(AT_RANDOM), sizeof start);
    uint64_t hash = start;
    for (size_t i = 0; i < length; i++)
        hash = (hash ^ (unsigned char)text[i]) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ hash >> 32);
}

/* The slot that the text is in, or the free one where it would go. */
static uint32_t *find_slot(const struct text_set *set, const char *text, size_t length) {
    size_t mask = set->slot_count - 1, at = hash_text(text, length) & mask;
    for (; set->slots[at]; at = (at + 1) & mask) {
        const char *known = set->texts[set->slots[at] - 1];
        if (strncmp(known, text, length) == 0 && known[length] == '\0')
            break;
    }
    return &set->slots[at];
}

bool text_set_find(const struct text_set *set, const char *text, size_t length, uint32_t *ret) {
    uint32_t *slot = set->slot_count > 0 ? find_slot(set, text, length) : NULL;
    if (!slot || *slot == 0)
        return false;
    *ret = *slot - 1;
    return true;
}

/* Makes room for one text more; at least half of the slots stay free, so that searches are short. */
static void grow(struct text_set *set) {
    if (set->count == set->capacity) {
        set->capacity = set->capacity > 0 ? 2 * set->capacity : 16;
        set->texts = xrealloc(set->texts, set->capacity * sizeof *set->texts);
    }
    if (2 * (set->count + 1) <= set->slot_count)
        return;
    free(set->slots);
    set->slot_count = 4 * set->capacity;
    set->slots = xcalloc(set->slot_count, sizeof *set->slots);
    for (size_t i = 0; i < set->count; i++)
        *find_slot(set, set->texts[i], strlen(set->texts[i])) = (uint32_t)i + 1;
}

uint32_t text_set_add(struct text_set *set, const char *text, size_t length) {
    grow(set);
    uint32_t *slot = find_slot(set, text, length);
    if (*slot == 0) {
        set->texts[set->count++] = xstrndup(text, length);
        *slot = (uint32_t)set->count;
    }
    return *slot - 1;
}

void text_set_cut(struct text_set *set, size_t count) {
    while (set->count > count)
        free(set->texts[--set->count]);
    free(set->slots); /* made anew when the next text is added */
    set->slots = NULL;
    set->slot_count = 0;
}
