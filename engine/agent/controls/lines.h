/* The output of tools: lines of fields separated by tabs (TOOLS.md); writing and reading them. */
#ifndef ASSAY_CONTROLS_LINES_H
#define ASSAY_CONTROLS_LINES_H

#include "engine/agent/machine/machine.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

enum { LINES_MAX_BYTES = 64 << 20 };

struct lines {
    struct text text;
    int error; /* 0, or the first error, negative: some lines are missing */
};

/* Starts an empty buffer of at most LIMIT_BYTES; with 0 all lines are dropped. */
void lines_init(struct lines *lines, size_t limit_bytes);
/* Appends a line with the fields up to a NULL; in them tab, newline and backslash are escaped. */
void lines_put(struct lines *lines, ...) __attribute__((sentinel));
/* A field formatted as by printf(3), of at most 511 bytes; valid until the end of the block. */
#define lines_field(...) machine_path(__VA_ARGS__)
/* KHZ in Hz as a field; "" for 0 (not known). */
#define lines_hertz(khz) ((khz) ? lines_field("%llu000", (unsigned long long)(khz)) : "")
/* Writes the lines to DESCRIPTOR and empties the buffer. Returns the first error so far, or 0. */
int lines_write(struct lines *lines, int descriptor);
void lines_clear(struct lines *lines);

/* Reads the field at *AT of a line that ends at END (its newline or NUL). Returns the field, unescaped in
 * place and ended by a NUL, with its length in *RET_LENGTH, and moves *AT behind its tab, or to NULL after
 * the last field. Returns NULL if there is no field, or if it has an escape or a byte that lines_put() does
 * not write. */
char *lines_read_field(char **at, char *end, size_t *ret_length);

/* The name of a negative errno, "EBUSY"; "" for 0; a number, in BUFFER, for codes without a name here. */
const char *lines_errno(int code, char buffer[static 16]);

#endif
