/* assay model: what can be done with a model file, one file an action. */
#ifndef ASSAY_COMMAND_LINE_MODEL_COMMAND_H
#define ASSAY_COMMAND_LINE_MODEL_COMMAND_H

#include "engine/command-line/verb.h"

#include <assay/model.h>

/* The first operand is the action's name. */
int model_command_show(const struct verb_arguments *arguments, struct failure *failure);
int model_command_check(const struct verb_arguments *arguments, struct failure *failure);
int model_command_eval(const struct verb_arguments *arguments, struct failure *failure);
int model_command_table(const struct verb_arguments *arguments, struct failure *failure);
/* Warns on standard error that MODEL is not usable for prediction, if so. */
void model_command_warn(const struct model *model);

#endif
