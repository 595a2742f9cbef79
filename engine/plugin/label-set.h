/* Texts numbered 0, 1, 2 ... in order of first appearance: hashed with FNV-1a, at most 2^24 of them. */
#ifndef ASSAY_PLUGIN_LABEL_SET_H
#define ASSAY_PLUGIN_LABEL_SET_H

#include <stddef.h>
#include <stdint.h>

enum { LABEL_SET_MOST = 1 << 24 };

struct label_set {
    char **texts; /* owned */
    size_t count, capacity;
    uint32_t *slots; /* code + 1, or 0 */
    size_t slot_count;
};

/* A zeroed struct is an empty set. */
void label_set_clear(struct label_set *set);
/* The code of TEXT in *RET, new if need be. 0, -ENOMEM or -EFBIG. */
int label_set_code(struct label_set *set, const char *text, uint32_t *ret);

#endif
