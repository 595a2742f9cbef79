/* Arrays that grow: one function, so that growth, limits and overflow are right in one place. */
#ifndef ASSAY_FOUNDATION_LIST_H
#define ASSAY_FOUNDATION_LIST_H

#include <stddef.h>

/* Makes room in *ITEMS (an array of *CAPACITY items of ITEM_SIZE bytes, or NULL) for COUNT items, growing by
 * half at least. New memory is zero. 0, -ENOMEM, or -EFBIG when COUNT is over LIMIT. */
int list_reserve(void *items, size_t *capacity, size_t count, size_t item_size, size_t limit);

#endif
