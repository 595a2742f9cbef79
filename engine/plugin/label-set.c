#include "engine/plugin/label-set.h"

#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void label_set_clear(struct label_set *set) {
    for (size_t i = 0; i < set->count; i++)
        free(set->texts[i]);
    free(set->texts);
    free(set->slots);
    *set = (struct label_set){0};
}

static uint64_t hash_text(const char *text) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (; *text; text++)
        hash = (hash ^ (unsigned char)*text) * UINT64_C(0x100000001b3);
    return hash;
}

/* The slot where TEXT is or would go. */
static uint32_t *find_slot(const struct label_set *set, const char *text) {
    size_t at = (size_t)hash_text(text) & (set->slot_count - 1);
    while (set->slots[at] && strcmp(set->texts[set->slots[at] - 1], text) != 0)
        at = (at + 1) & (set->slot_count - 1);
    return &set->slots[at];
}

/* Keeps at least half of the slots free. */
static int grow(struct label_set *set) {
    if (2 * (set->count + 1) <= set->slot_count)
        return 0;
    size_t count = set->slot_count ? 2 * set->slot_count : 64;
    uint32_t *slots = calloc(count, sizeof *slots);
    if (!slots)
        return -ENOMEM;
    free(set->slots);
    set->slots = slots;
    set->slot_count = count;
    for (size_t i = 0; i < set->count; i++)
        *find_slot(set, set->texts[i]) = (uint32_t)i + 1;
    return 0;
}

int label_set_code(struct label_set *set, const char *text, uint32_t *ret) {
    int r = grow(set);
    if (r < 0)
        return r;
    uint32_t *slot = find_slot(set, text);
    if (!*slot) {
        r = list_reserve(&set->texts, &set->capacity, set->count + 1, sizeof *set->texts, LABEL_SET_MOST);
        if (r < 0)
            return r;
        char *copy = strdup(text);
        if (!copy)
            return -ENOMEM;
        set->texts[set->count++] = copy;
        *slot = (uint32_t)set->count;
    }
    *ret = *slot - 1;
    return 0;
}
