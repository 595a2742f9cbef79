/* What `assay predict` and `export` have in common: operands and options become a prediction. */
#ifndef ASSAY_COMMAND_LINE_PREDICT_PREDICTION_COMMAND_H
#define ASSAY_COMMAND_LINE_PREDICT_PREDICTION_COMMAND_H

#include "engine/command-line/verb.h"
#include "engine/predict/prediction.h"

/* Refuses settings that set nothing, and an OUTPUT (or NULL) that is one of the inputs. */
int prediction_command_check(const struct verb_arguments *arguments, const char *output,
                             struct failure *failure);
/* The plugin VERB-NAME, NAME the first operand, with the models of the other operands, --set, --seed, and
 * where the command has them --scenario and --draws; REQUEST has the sink, if there is one. */
int prediction_command_make(const struct verb_arguments *arguments, struct prediction_request *request,
                            struct prediction **ret, struct failure *failure);
/* Warns on standard error of each model file that is not usable for prediction. */
void prediction_command_warn(const struct prediction *prediction);

#endif
