#ifndef ASSAY_COMMAND_LINE_STATUS_STATUS_H
#define ASSAY_COMMAND_LINE_STATUS_STATUS_H

#include "engine/foundation/failure.h"

#include <stdbool.h>

/* Prints the page of the run PATH, with JSON one object a line, and again whenever it changes, until the run
 * has ended or standard output is closed. */
int status_watch(const char *path, bool json, struct failure *failure);

#endif
