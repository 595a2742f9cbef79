/* Lines for a reader that may be slow: they wait in bounded memory, and only whole ones are lost. */
#ifndef ASSAY_PROBES_OUTPUT_H
#define ASSAY_PROBES_OUTPUT_H

#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTPUT_LIMIT = 1 << 20,    /* bytes that wait */
    OUTPUT_RESERVE = 64 << 10, /* of them, for lines that are not samples */
};

struct output {
    int descriptor;
    struct text waiting;
    bool broken; /* its reader has closed it */
};

/* Writing to DESCRIPTOR (the caller's) will not block if it is a pipe or a socket. */
void output_init(struct output *output, int descriptor);
void output_clear(struct output *output);

/* LINE, its newline included, waits until output_flush(); false: there is no room for it (or no memory), and
 * nothing has changed. */
bool output_put(struct output *output, const char *line, size_t length, bool is_sample);
/* Writes what can be written without waiting. */
void output_flush(struct output *output);
/* Writes all that waits; gives up when nothing could be written for LIMIT_MS. Whether all was written. */
bool output_drain(struct output *output, int limit_ms);

#endif
