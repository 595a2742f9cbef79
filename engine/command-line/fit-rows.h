/* `assay fit` with a plugin that is a function on rows (<assay/fit.h>). */
#ifndef ASSAY_COMMAND_LINE_FIT_ROWS_H
#define ASSAY_COMMAND_LINE_FIT_ROWS_H

#include "engine/command-line/verb.h"
#include "engine/foundation/installation.h"

/* Whether METHOD is such a plugin. */
bool fit_rows_has(const struct installation *installation, const char *method);
/* Its summary, and its version in *RET_VERSION; NULL: METHOD is no such plugin. The caller frees both. */
char *fit_rows_describe(const struct installation *installation, const char *method, char **ret_version);
/* Prints what can be set of it. */
int fit_rows_parameters(const struct installation *installation, const char *method, bool json,
                        struct failure *failure);
/* Fits the COUNT inputs as the arguments say, prints the report, and writes the model. */
int fit_rows(const struct verb_arguments *arguments, const struct installation *installation,
             const char *method, const char *const *inputs, size_t count, struct failure *failure);

#endif
