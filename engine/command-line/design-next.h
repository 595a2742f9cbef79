/* `assay design next MODEL`, an action of `assay design` with an option table of its own there. */
#ifndef ASSAY_COMMAND_LINE_DESIGN_NEXT_H
#define ASSAY_COMMAND_LINE_DESIGN_NEXT_H

#include "engine/command-line/verb.h"

int design_next(const struct verb_arguments *arguments, struct failure *failure);

#endif
