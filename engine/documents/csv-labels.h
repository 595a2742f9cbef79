/*
 * The different texts of one column, each with a code: 0, 1, 2, ... in order of first appearance. Internal to
 * this room.
 */
#ifndef ASSAY_DOCUMENTS_CSV_LABELS_H
#define ASSAY_DOCUMENTS_CSV_LABELS_H

#include <stddef.h>
#include <stdint.h>

struct csv_label_slot {
    uint64_t word;   /* the text itself when it has at most eight bytes, else its hash */
    uint32_t length; /* of the text */
    uint32_t next;   /* the code and one; 0 when the slot is free */
};

struct csv_labels {
    struct csv_label_slot *slots; /* open addressing, a quarter full at most */
    size_t slot_mask;
    unsigned slot_shift; /* what is left of 64 bits when a slot's number is taken */
    uint64_t secret;     /* odd, and drawn, so that no file can be made to collide */
    char **texts;        /* by code; they do not move */
    size_t count, capacity;
    char **chunks; /* hold the texts */
    size_t chunk_count, chunk_capacity, chunk_left;
    size_t bytes; /* of all the texts */
};

int csv_labels_init(struct csv_labels *labels);
void csv_labels_clear(struct csv_labels *labels);

/* As csv_labels_code, of a text that is not in its first slot. */
int csv_labels_find(struct csv_labels *labels, uint64_t word, const char *bytes, size_t length,
                    uint32_t *ret);
/* The hash of a text of more than eight bytes. */
uint64_t csv_labels_hash(const struct csv_labels *labels, const char *bytes, size_t length);

/* Up to eight bytes as a number; the rest of it is zero. Reads eight bytes whatever LENGTH is. */
static inline uint64_t csv_labels_word(const char *bytes, size_t length) {
    uint64_t word = 0;
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    __builtin_memcpy(&word, bytes, 8);
    return length == 0 ? 0 : word & UINT64_MAX >> (64 - 8 * length);
#else
    __builtin_memcpy(&word, bytes, length);
    return word;
#endif
}

/* The slot to begin with: the high bits of a product, into which all lower ones were carried. */
static inline size_t csv_labels_first_slot(const struct csv_labels *labels, uint64_t word) {
    return (size_t)(word * labels->secret >> labels->slot_shift);
}

/* The code of a text, a new one if it is new. Eight bytes before and after BYTES must be readable, as they
 * are around a reader's buffer. 0, -ENOMEM, or -EFBIG over CSV_LABELS_MOST or CSV_LABEL_BYTES_MOST. */
static inline int csv_labels_code(struct csv_labels *labels, const char *bytes, size_t length,
                                  uint32_t *ret) {
    uint64_t word = length <= 8 ? csv_labels_word(bytes, length) : csv_labels_hash(labels, bytes, length);
    const struct csv_label_slot *slot = &labels->slots[csv_labels_first_slot(labels, word)];
    if (length <= 8 && slot->next && slot->word == word && slot->length == length) {
        *ret = slot->next - 1;
        return 0;
    }
    return csv_labels_find(labels, word, bytes, length, ret);
}

#endif
