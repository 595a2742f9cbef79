/* Arrays that grow: records of groups, rows that are kept. */
#ifndef ASSAY_NUMERICS_GROWTH_H
#define ASSAY_NUMERICS_GROWTH_H

#include <stddef.h>

/* Room for COUNT items of SIZE bytes in *ARRAY (a pointer to the array), which may move. What is new is zero.
 * 0 or -ENOMEM; then nothing has changed. */
int growth_reserve(void *array, size_t *capacity, size_t count, size_t size);

#endif
