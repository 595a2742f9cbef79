#include "engine/documents/csv-labels.h"

#include "engine/documents/csv.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

/* Few labels to a slot: each probe that fails is a branch that nobody foresaw. */
enum { SLOTS_A_LABEL = 4, FIRST_SLOT_BITS = 9, FIRST_SLOTS = 1 << FIRST_SLOT_BITS, CHUNK_BYTES = 64 << 10 };

/* The two halves of a product, mixed: every bit of both factors reaches every bit of the result. */
static uint64_t mix(uint64_t a, uint64_t b) {
    unsigned __int128 product = (unsigned __int128)a * b;
    return (uint64_t)product ^ (uint64_t)(product >> 64);
}

uint64_t csv_labels_hash(const struct csv_labels *labels, const char *bytes, size_t length) {
    uint64_t hash = labels->secret ^ length;
    for (size_t at = 0; at < length; at += 8) {
        uint64_t word = csv_labels_word(bytes + at, length - at < 8 ? length - at : 8);
        hash = mix(hash ^ word, labels->secret);
    }
    return hash;
}

int csv_labels_init(struct csv_labels *labels) {
    *labels = (struct csv_labels){.slot_mask = FIRST_SLOTS - 1, .slot_shift = 64 - FIRST_SLOT_BITS};
    /* Without randomness (a very early boot) the labels are right all the same. */
    if (getrandom(&labels->secret, sizeof labels->secret, GRND_NONBLOCK) != sizeof labels->secret)
        labels->secret = UINT64_C(0xd1b54a32d192ed03);
    labels->secret |= 1;
    labels->slots = calloc(FIRST_SLOTS, sizeof *labels->slots);
    return labels->slots ? 0 : -ENOMEM;
}

void csv_labels_clear(struct csv_labels *labels) {
    for (size_t i = 0; i < labels->chunk_count; i++)
        free(labels->chunks[i]);
    free(labels->chunks);
    free(labels->texts);
    free(labels->slots);
    *labels = (struct csv_labels){0};
}

/* A copy of the text that does not move, with a NUL behind it. */
static int keep(struct csv_labels *labels, const char *bytes, size_t length, char **ret) {
    size_t needed = length + 1;
    if (needed > CSV_LABEL_BYTES_MOST - labels->bytes)
        return -EFBIG;
    if (needed > labels->chunk_left) {
        size_t size = needed > CHUNK_BYTES ? needed : CHUNK_BYTES;
        int r = list_reserve(&labels->chunks, &labels->chunk_capacity, labels->chunk_count + 1,
                             sizeof(char *), SIZE_MAX);
        if (r < 0)
            return r;
        char *chunk = malloc(size);
        if (!chunk)
            return -ENOMEM;
        labels->chunks[labels->chunk_count++] = chunk;
        labels->chunk_left = size;
        /* Texts are taken from a chunk's end, so that what is left is all there is to know of it. */
    }
    labels->chunk_left -= needed;
    char *text = labels->chunks[labels->chunk_count - 1] + labels->chunk_left;
    memcpy(text, bytes, length);
    text[length] = '\0';
    labels->bytes += needed;
    *ret = text;
    return 0;
}

static int grow_slots(struct csv_labels *labels) {
    struct csv_labels grown = *labels;
    grown.slot_mask = 2 * labels->slot_mask + 1;
    grown.slot_shift = labels->slot_shift - 1;
    grown.slots = calloc(grown.slot_mask + 1, sizeof *grown.slots);
    if (!grown.slots)
        return -ENOMEM;
    for (size_t i = 0; i <= labels->slot_mask; i++) {
        const struct csv_label_slot *slot = &labels->slots[i];
        if (!slot->next)
            continue;
        size_t at = csv_labels_first_slot(&grown, slot->word);
        while (grown.slots[at].next)
            at = (at + 1) & grown.slot_mask;
        grown.slots[at] = *slot;
    }
    free(labels->slots);
    *labels = grown;
    return 0;
}

static int add(struct csv_labels *labels, uint64_t word, const char *bytes, size_t length, size_t at,
               uint32_t *ret) {
    if (labels->count == CSV_LABELS_MOST)
        return -EFBIG;
    int r =
        list_reserve(&labels->texts, &labels->capacity, labels->count + 1, sizeof(char *), CSV_LABELS_MOST);
    if (r == 0)
        r = keep(labels, bytes, length, &labels->texts[labels->count]);
    if (r < 0)
        return r;
    *ret = (uint32_t)labels->count++;
    labels->slots[at] = (struct csv_label_slot){word, (uint32_t)length, *ret + 1};
    /* A table that cannot grow any more only gets slower, as long as one slot is free. */
    if (SLOTS_A_LABEL * labels->count > labels->slot_mask && grow_slots(labels) < 0 &&
        labels->count >= labels->slot_mask)
        return -ENOMEM;
    return 0;
}

int csv_labels_find(struct csv_labels *labels, uint64_t word, const char *bytes, size_t length,
                    uint32_t *ret) {
    size_t at = csv_labels_first_slot(labels, word);
    for (; labels->slots[at].next; at = (at + 1) & labels->slot_mask) {
        const struct csv_label_slot *slot = &labels->slots[at];
        if (slot->word == word && slot->length == length &&
            (length <= 8 || memcmp(labels->texts[slot->next - 1], bytes, length) == 0)) {
            *ret = slot->next - 1;
            return 0;
        }
    }
    return add(labels, word, bytes, length, at, ret);
}
