/*
 * The manual: text for `assay --help` and `assay VERB --help`, and roff (man(7)) for assay(1) and
 * assay-VERB(1), all made from the table of commands. And pages of entries, laid out alike.
 */
#ifndef ASSAY_COMMAND_LINE_MANUAL_H
#define ASSAY_COMMAND_LINE_MANUAL_H

#include "engine/command-line/verb.h"
#include "engine/foundation/text.h"

#include <stddef.h>

enum {
    MANUAL_WIDTH_LEAST = 40,
    MANUAL_WIDTH_MAX = 100, /* longer lines are hard to read */
};

/* The width of the terminal that DESCRIPTOR is, within the limits above; 80 when it is none. */
size_t manual_width(int descriptor);

/* The help of the program (VERB NULL) or of one command, wrapped to WIDTH columns. The caller frees. */
char *manual_text(const struct verb *verb, size_t width);
/* The same as a page for man(1). */
char *manual_roff(const struct verb *verb);

/* Appends "  TERM    what it means", wrapped to WIDTH columns and indented by INDENT; a long term has its
 * line to itself. */
void manual_append_entry(struct text *text, const char *term, const char *meaning, size_t indent,
                         size_t width);

#endif
