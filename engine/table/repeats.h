/* Which inputs of a table would count twice. Used by this room alone. */
#ifndef ASSAY_TABLE_REPEATS_H
#define ASSAY_TABLE_REPEATS_H

#include "engine/table/input.h"

/* Hashes the rows of each input that may have rows of another one: of all but archives and folders that are
 * known to be of different runs. A row is its values by the names of their columns: numbers by value, other
 * texts by their bytes. */
int repeats_hash_rows(struct input *inputs, size_t count, const struct table_options *options,
                      struct failure *failure);
/* Why INPUTS[i] is left out, as a sentence that the caller frees: it is a file that is given before, an
 * earlier part of a run whose later part is given too, or another input has all of its rows: one after the
 * other, or as many in any order. *RET NULL: it is not. Archives of one run that was resumed in two places
 * are refused. */
int repeats_judge(const struct input *inputs, size_t count, size_t i, char **ret, struct failure *failure);

#endif
