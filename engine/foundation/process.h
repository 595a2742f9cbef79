/* Another program, run to its end. */
#ifndef ASSAY_FOUNDATION_PROCESS_H
#define ASSAY_FOUNDATION_PROCESS_H

#include "engine/foundation/text.h"

/* Runs the program ARGUMENTS[0], NULL-ended, found by PATH, with INPUT as its standard input; what it prints
 * is appended to OUTPUT and ERRORS, as far as these have room. INPUT and ERRORS may be NULL: nothing, and
 * nowhere. Its exit status, 128 if a signal ended it, or a negative errno where it cannot be run. */
int process_run(const char *const *arguments, const struct text *input, struct text *output,
                struct text *errors);

/* A descriptor of a file in memory that has BYTES; the caller closes it. */
int process_memory_file(const struct text *bytes);

#endif
