/* The texts of a label column in natural order, as a plugin gets to see them (struct plugin_levels). */
#ifndef ASSAY_PLUGIN_CATEGORY_LEVELS_H
#define ASSAY_PLUGIN_CATEGORY_LEVELS_H

#include "engine/plugin/table.h"
#include "plugins/interface/plugin.h"

/* Of the J-th label column of TABLE, as far as it was read, in place of what LEVELS had. 0 or -ENOMEM; LEVELS
 * is to be cleared either way. */
int category_levels_fill(struct plugin_levels *levels, const struct table *table, size_t j);
void category_levels_clear(struct plugin_levels *levels);

#endif
