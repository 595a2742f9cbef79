/* The first thing in which two files, or two folders with all that is below them, differ, as a sentence. */
#ifndef ASSAY_RUN_TREE_DIFFERENCE_H
#define ASSAY_RUN_TREE_DIFFERENCE_H

#include "engine/foundation/failure.h"

/* *RET is the caller's: "'NOW' has changed at line 7: was 'seed: 1', is 'seed: 2'"; NULL when they are the
 * same. BEFORE and NOW are files. */
int file_difference(const char *before, const char *now, char **ret, struct failure *failure);
/* The same for folders. What copy_tree() leaves out, hidden names, links and special files, does not count;
 * nor does a folder of runs inside NOW that BEFORE does not have. */
int tree_difference(const char *before, const char *now, char **ret, struct failure *failure);

#endif
