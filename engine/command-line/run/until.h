/*
 * "--until TEXT": a duration from now with its unit (90min), a clock time (18:30, 18:30:15: the next such
 * time, local), or a date and time (2026-11-22T18:30, local, or with Z, +01:00 or -0500 behind it; seconds
 * may follow, and a blank may stand for the T).
 */
#ifndef ASSAY_COMMAND_LINE_RUN_UNTIL_H
#define ASSAY_COMMAND_LINE_RUN_UNTIL_H

#include "engine/foundation/failure.h"

#include <stdint.h>

/* *RET is ns since 1970, after NOW_NS, and not more than WALLTIME_SECONDS_MAX later. */
int until_parse(const char *text, int64_t now_ns, int64_t *ret, struct failure *failure);

#endif
