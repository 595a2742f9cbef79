/* Which inputs of a table would count twice. Used by this room alone. */
#ifndef ASSAY_TABLE_DUPLICATE_INPUTS_H
#define ASSAY_TABLE_DUPLICATE_INPUTS_H

#include "engine/table/input.h"

/* Hashes the rows of each input that may have rows of another one: of all but archives and folders that are
 * known to be of different runs. A row is its values by the names of their columns: numbers by value, other
 * texts by their bytes. */
int duplicate_inputs_hash_rows(struct input *inputs, size_t count, const struct table_options *options,
                               struct failure *failure);
/* Sets *RET to the reason why INPUTS[i] is left out, a sentence that the caller frees, or to NULL. Left out
 * are: a file that was given before; an earlier part of a run, if a later part is given; an input whose rows
 * all occur in another input, in any order. Archives of one run that was resumed in two places are refused.
 */
int duplicate_inputs_reason(const struct input *inputs, size_t count, size_t i, char **ret,
                            struct failure *failure);
/* A sentence, which the caller frees, if INPUTS[i] shares some of its rows with an input before it, which are
 * used twice: that with the most; NULL: none. For inputs that are not left out. */
char *duplicate_inputs_describe_shared(const struct input *inputs, size_t i);

#endif
