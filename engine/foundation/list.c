#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Makes room for COUNT items of ITEM_SIZE in the array that ITEMS points to; new items are zero. -EFBIG: more
 * than LIMIT. */
int list_reserve(void *items, size_t *capacity, size_t count, size_t item_size, size_t limit) {
    if (count <= *capacity)
        return 0;
    if (count > limit)
        return -EFBIG;
    size_t grown = *capacity + *capacity / 2;
    if (grown < 8)
        grown = 8;
    if (grown < count)
        grown = count;
    if (grown > limit)
        grown = limit;
    size_t bytes;
    if (__builtin_mul_overflow(grown, item_size, &bytes))
        return -ENOMEM;
    /* The caller's pointer has another type than char *, and so is copied, not looked at as one. */
    char *memory;
    memcpy(&memory, items, sizeof memory);
    memory = realloc(memory, bytes);
    if (!memory)
        return -ENOMEM;
    memset(memory + *capacity * item_size, 0, bytes - *capacity * item_size);
    memcpy(items, &memory, sizeof memory);
    *capacity = grown;
    return 0;
}
