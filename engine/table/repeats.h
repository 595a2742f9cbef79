/* Which inputs of a table would count twice. Used by this room alone. */
#ifndef ASSAY_TABLE_REPEATS_H
#define ASSAY_TABLE_REPEATS_H

#include "engine/table/input.h"

/* Why INPUTS[i] is left out, as a sentence that the caller frees: it is a file that is given before, or an
 * earlier part of a run whose later part is given too. *RET NULL: it is not. Archives of one run that was
 * resumed in two places are refused. */
int repeats_judge(const struct input *inputs, size_t count, size_t i, char **ret, struct failure *failure);

#endif
