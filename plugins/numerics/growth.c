#include "plugins/numerics/growth.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

int growth_reserve(void *array, size_t *capacity, size_t count, size_t size) {
    if (count <= *capacity)
        return 0;
    size_t wanted = *capacity ? *capacity : 16;
    while (wanted < count) {
        if (wanted > SIZE_MAX / 2 / size)
            return -ENOMEM;
        wanted += wanted;
    }
    void *old;
    memcpy(&old, array, sizeof old);
    char *grown = realloc(old, wanted * size);
    if (!grown)
        return -ENOMEM;
    memset(grown + *capacity * size, 0, (wanted - *capacity) * size);
    memcpy(array, &grown, sizeof grown);
    *capacity = wanted;
    return 0;
}
