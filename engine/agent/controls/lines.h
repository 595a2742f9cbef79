/* What a tool prints: lines of fields separated by tabs, as TOOLS.md has them; and the same read back. */
#ifndef ASSAY_CONTROLS_LINES_H
#define ASSAY_CONTROLS_LINES_H

#include "engine/agent/machine/machine.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

enum { LINES_MAX_BYTES = 64 << 20 };

struct lines {
    struct text text;
    int error; /* the first that could not be kept or written, negative */
};

/* Keeps LIMIT_BYTES at most; with 0 the lines are dropped. */
void lines_init(struct lines *lines, size_t limit_bytes);
/* Appends a line with the fields up to a NULL; in them tab, newline and backslash are escaped. */
void lines_put(struct lines *lines, ...) __attribute__((sentinel));
/* A field made as by printf(3), of at most 511 bytes; it is good until the end of the block. */
#define lines_field(...) machine_path(__VA_ARGS__)
/* KHZ in Hz; "" for 0, which is not known. */
#define lines_hertz(khz) ((khz) ? lines_field("%llu000", (unsigned long long)(khz)) : "")
/* Writes what there is to DESCRIPTOR. The first error of all so far, or 0. */
int lines_write(struct lines *lines, int descriptor);
void lines_clear(struct lines *lines);

/* The field at *AT, of a line that ends at END (its newline or NUL): in place, ended by a NUL, its length in
 * RET_LENGTH; *AT goes behind its tab, or is NULL after the last. NULL if there is none, or if an escape or
 * a byte in it is not what lines_put() writes. */
char *lines_take_field(char **at, char *end, size_t *ret_length);

/* "EBUSY" for -EBUSY; "" for 0; a number for what has no name here. */
const char *lines_errno(int code, char buffer[static 16]);

#endif
