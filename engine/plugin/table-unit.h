/*
 * One unit for a column over all inputs of a table: that of the first input that tells one. Where another
 * tells one of the same dimension its numbers are converted; where it tells none (plain CSV) they are taken
 * as they are. Used by table.c alone.
 */
#ifndef ASSAY_PLUGIN_TABLE_UNIT_H
#define ASSAY_PLUGIN_TABLE_UNIT_H

#include "engine/foundation/text.h"
#include "engine/plugin/table-input.h"

/* Numbers of the input, times MULTIPLY, divided by DIVIDE, are in the column's unit. */
struct table_conversion {
    double multiply, divide; /* 1 and 1 where nothing is to be done */
};

/* The unit of column NAME, or NULL where no input tells one. */
const char *table_unit(const struct table_source *sources, size_t count, const char *name);
/* Whether the column NAME, which all inputs have, can be in one unit: FAILURE_INPUT with both units and both
 * files where it cannot. Texts (NUMBER false) are not converted. Appends to *NOTES a sentence, each with a
 * NUL behind it, on the inputs that are converted and on those that tell no unit. */
int table_unit_check(const struct table_source *sources, size_t count, const char *name, bool number,
                     struct text *notes, struct failure *failure);
/* Of column NAME in SOURCE, when UNIT is the column's; after table_unit_check. */
struct table_conversion table_unit_conversion(const struct table_source *source, const char *name,
                                              const char *unit);

#endif
