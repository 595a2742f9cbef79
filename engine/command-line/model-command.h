/* assay model: what can be done with a model file, one file an action, and what the actions share. */
#ifndef ASSAY_COMMAND_LINE_MODEL_COMMAND_H
#define ASSAY_COMMAND_LINE_MODEL_COMMAND_H

#include "engine/command-line/verb.h"
#include "engine/foundation/failure.h"
#include "engine/plugin/model.h"

#include <stddef.h>
#include <stdio.h>

/* The operands are those after the action's name. */
int model_command_show(const struct verb_arguments *arguments, struct failure *failure);
int model_command_check(const struct verb_arguments *arguments, struct failure *failure);
int model_command_eval(const struct verb_arguments *arguments, struct failure *failure);
int model_command_table(const struct verb_arguments *arguments, struct failure *failure);

/* The named number of a part, NaN where it tells none. */
double model_part_value(const struct predict_part *part, const char *name);

/* NUMBER in WIDTH columns with DIGITS, "-" where it is not defined. */
void model_print_number(FILE *stream, int width, int digits, double number);
/* A unit with a blank before it; nothing for plain numbers and where it is not known. */
const char *model_unit_text(const char *unit, char buffer[static 64]);

#endif
