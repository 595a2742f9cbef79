/* The manual as text, for `assay --help` and `assay VERB --help`; and entries laid out alike. The pages
 * assay(1) and assay-VERB(1) are made of the same text when assay is built (pages/man-page.awk). */
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

/* Appends "  TERM    what it means", wrapped to WIDTH columns and indented by INDENT; a long term has its
 * line to itself. */
void manual_append_entry(struct text *text, const char *term, const char *meaning, size_t indent,
                         size_t width);

#endif
