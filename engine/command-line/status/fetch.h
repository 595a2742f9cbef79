#ifndef ASSAY_COMMAND_LINE_STATUS_FETCH_H
#define ASSAY_COMMAND_LINE_STATUS_FETCH_H

#include "engine/command-line/verb.h"

/* assay archive fetch HOST:RUN [FOLDER]. */
int archive_fetch(const struct verb_arguments *arguments, struct failure *failure);

#endif
