/* What a tool prints: lines of fields parted by tabs, as TOOLS.md has them; and the same escapes read back.
 */
#ifndef ASSAY_CONTROLS_LINES_H
#define ASSAY_CONTROLS_LINES_H

#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

struct lines {
    struct text text;
    int descriptor; /* -1: nobody reads them; they are dropped */
    int error;      /* the first that could not be kept or written, negative */
};

void lines_init(struct lines *lines, int descriptor);
/* Fields up to a NULL. */
void lines_put(struct lines *lines, ...) __attribute__((sentinel));
/* Gives the descriptor what there is. The first error of all so far, or 0. */
int lines_flush(struct lines *lines);
void lines_clear(struct lines *lines);

/* Appends a field, escaped. */
int lines_escape(struct text *text, const char *bytes, size_t length);
/* The field at *AT, of a line that ends at END (its newline or NUL): in place, ended by a NUL, its length in
 * RET_LENGTH; *AT goes behind its tab, or is NULL after the last. NULL if there is none, or if an escape or
 * a byte in it is not what lines_escape() writes. */
char *lines_take_field(char **at, char *end, size_t *ret_length);

/* "EBUSY" for -EBUSY; "" for 0; a number for what has no name here. */
const char *lines_errno(int code, char buffer[static 16]);

#endif
