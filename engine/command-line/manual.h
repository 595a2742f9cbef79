/*
 * The manual: text for `assay --help` and `assay VERB --help`, and roff (man(7)) for assay(1) and
 * assay-VERB(1), all made from the table of commands.
 */
#ifndef ASSAY_COMMAND_LINE_MANUAL_H
#define ASSAY_COMMAND_LINE_MANUAL_H

#include "engine/command-line/verb.h"
#include "engine/foundation/text.h"

#include <stddef.h>

enum {
    MANUAL_BYTES_MAX = 1 << 20, /* the limit to give RET */
    MANUAL_WIDTH_LEAST = 40,
    MANUAL_WIDTH_MAX = 100, /* longer lines are hard to read */
};

/* The width of the terminal that DESCRIPTOR is, within the limits above; 80 when it is none. */
size_t manual_width(int descriptor);

/* Each appends to RET: the help of the program (VERB NULL) or of one command, wrapped to WIDTH columns. */
int manual_text(const struct verb *verb, size_t width, struct text *ret, struct failure *failure);
/* The same as a page for man(1). */
int manual_roff(const struct verb *verb, struct text *ret, struct failure *failure);

#endif
