/* The actions of `assay fit` that are not a fit, a file each. The first operand is the action's name. */
#ifndef ASSAY_COMMAND_LINE_FIT_VERBS_H
#define ASSAY_COMMAND_LINE_FIT_VERBS_H

#include "engine/command-line/verb.h"
#include "engine/foundation/text.h"

int fit_alternatives(const struct verb_arguments *arguments, struct failure *failure);

/* Fits what the archive PATH suggests, in silence: the text of the model file, and the name of the archive's
 * experiment (NULL: it is no archive), which the caller frees. */
int fit_archive(const struct installation *installation, const char *path, struct text *ret_model,
                char **ret_experiment, struct failure *failure);

#endif
