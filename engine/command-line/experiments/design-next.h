/* `assay design next MODEL`, and what it shares with the other actions of `assay design`. */
#ifndef ASSAY_COMMAND_LINE_EXPERIMENTS_DESIGN_NEXT_H
#define ASSAY_COMMAND_LINE_EXPERIMENTS_DESIGN_NEXT_H

#include "engine/command-line/verb.h"
#include "engine/design/design.h"

int design_next(const struct verb_arguments *arguments, struct failure *failure);

/* Writes DESIGN in ORDER to the file OUTPUT, or to standard output where that is NULL or "-". */
int design_output(const struct design *design, const struct design_order *order, const char *output,
                  struct failure *failure);

#endif
