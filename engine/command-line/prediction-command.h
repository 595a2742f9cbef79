/* What `assay predict`, `export` and `generate` have in common: operands and options become a prediction. */
#ifndef ASSAY_COMMAND_LINE_PREDICTION_COMMAND_H
#define ASSAY_COMMAND_LINE_PREDICTION_COMMAND_H

#include "engine/command-line/verb.h"
#include "engine/predict/prediction.h"

/* The plugin PREFIX-NAME, NAME the first operand, with the models of the other operands, --set, --seed, and
 * where the command has them --scenario and --draws. --output must not be one of the inputs. */
int prediction_command_make(const struct verb_arguments *arguments, const char *prefix,
                            struct prediction **ret, struct failure *failure);
/* Prints what the plugin takes (--parameters). */
int prediction_command_parameters(const char *prefix, const char *name, struct failure *failure);
/* The same after --help, where there is such a plugin. */
void prediction_command_help(const char *prefix, const char *name);
/* The command of a plugin whose result is a text. */
int prediction_command_write(const struct verb_arguments *arguments, const char *prefix,
                             struct failure *failure);
/* The options of such a command. */
extern const struct verb_option prediction_command_options[];

#endif
