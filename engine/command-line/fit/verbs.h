/* The actions of `assay fit` that are not a fit, a file each. The first operand is the action's name. */
#ifndef ASSAY_COMMAND_LINE_FIT_VERBS_H
#define ASSAY_COMMAND_LINE_FIT_VERBS_H

#include "engine/command-line/verb.h"

int fit_alternatives(const struct verb_arguments *arguments, struct failure *failure);
int fit_compare(const struct verb_arguments *arguments, struct failure *failure);

#endif
