/* The distinct texts of a column, each with a code: 0 for the first that came, and so on. */
#ifndef ASSAY_DESIGN_LABELS_H
#define ASSAY_DESIGN_LABELS_H

#include <stddef.h>
#include <stdint.h>

enum { LABELS_MOST = 1 << 24 };

struct labels {   /* all zero: none */
    char **items; /* owned, by code */
    size_t count, capacity;
    uint32_t *slots; /* hash table: code + 1, or 0; its size is a power of two, at least twice the count */
    size_t slot_count;
};

void labels_clear(struct labels *labels);
/* The code of BYTES, which is added when new, in *RET. 0, -ENOMEM, or -EFBIG past LABELS_MOST. */
int labels_code(struct labels *labels, const char *bytes, size_t length, uint32_t *ret);

#endif
