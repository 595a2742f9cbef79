#include "engine/plugin/category-levels.h"

#include "engine/foundation/natural-order.h"

#include <errno.h>
#include <stdlib.h>

void category_levels_clear(struct plugin_levels *levels) {
    free((void *)levels->texts);
    free((void *)levels->order);
    *levels = (struct plugin_levels){0};
}

int category_levels_fill(struct plugin_levels *levels, const struct table *table, size_t j) {
    size_t count = table_label_count(table, j);
    if (levels->texts && levels->count == count)
        return 0; /* labels are only ever added */
    category_levels_clear(levels);
    const char **texts = calloc(count + 1, sizeof *texts);
    uint32_t *ranks = NULL, *order = calloc(count + 1, sizeof *order);
    levels->texts = texts;
    levels->order = order;
    if (!texts || !order)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        texts[i] = table_label(table, j, (uint32_t)i);
    int r = natural_order_ranks(texts, count, &ranks);
    for (size_t i = 0; r == 0 && i < count; i++)
        order[ranks[i]] = (uint32_t)i;
    free(ranks);
    levels->count = (uint32_t)count;
    return r;
}
