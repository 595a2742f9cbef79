/* The first thing in which two files, or two folders with all that is below them, differ, as a sentence. */
#ifndef ASSAY_CAMPAIGN_TREE_DIFFERENCE_H
#define ASSAY_CAMPAIGN_TREE_DIFFERENCE_H

#include "engine/foundation/failure.h"

/* *RET is the caller's: "'NOW' has changed at line 7: was 'seed: 1', is 'seed: 2'"; NULL when they are the
 * same. BEFORE and NOW are files. */
int file_difference(const char *before, const char *now, char **ret, struct failure *failure);
/* The same for what is in the folder BEFORE, a copy of NOW; what NOW has besides does not count. */
int tree_difference(const char *before, const char *now, char **ret, struct failure *failure);

#endif
