/* Values for the parameters of a plugin: texts with units, words, lists and names of columns, checked against
 * what the plugin declares. */
#ifndef ASSAY_PLUGIN_PARAMETERS_H
#define ASSAY_PLUGIN_PARAMETERS_H

#include "engine/foundation/failure.h"

#include <assay/model.h>
#include <assay/plugin.h>

struct report_section;

struct parameters {
    const struct plugin_parameter *table; /* the plugin's */
    size_t count;
    struct plugin_value *values; /* one each; texts and lists are owned */
};

/* All of TABLE (ended by one without a name; NULL: none) at their defaults. */
int parameters_init(struct parameters *parameters, const struct plugin_parameter *table,
                    struct failure *failure);
void parameters_clear(struct parameters *parameters);

/* The index of parameter NAME (LENGTH bytes), or -EINVAL with the nearest one or all that there are. */
int parameters_find(const struct parameters *parameters, const char *name, size_t length,
                    struct failure *failure);
/* Sets parameter INDEX to TEXT ("20000", "10GB/s", "slowest", "1420, 65536"). FILE, LINE and COLUMN are where
 * it was written, for the message; NULL and 0 where it was in no file. */
int parameters_set(struct parameters *parameters, size_t index, const char *text, const char *file,
                   size_t line, size_t column, struct failure *failure);
/* "NAME=VALUE" from the command line. */
int parameters_set_pair(struct parameters *parameters, const char *pair, struct failure *failure);
/* Refuses when one that is required, and is no column, is not set. */
int parameters_check(const struct parameters *parameters, struct failure *failure);
/* Adds those from FIRST to END - 1 that have a value to the settings of ORIGIN. */
void parameters_describe(const struct parameters *parameters, size_t first, size_t end,
                         struct model_origin *origin);

/* For people: what may be set, the COUNT TABLES after each other, with units, values and defaults. */
void parameters_report(struct report_section *in, const char *title,
                       const struct plugin_parameter *const *tables, size_t count);

bool parameters_is_column(const struct plugin_parameter *parameter);
bool parameters_is_category(const struct plugin_parameter *parameter);

#endif
