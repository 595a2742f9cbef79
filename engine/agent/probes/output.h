/* A queue of lines for a reader that may be slow. Its memory is bounded, and lines that do not fit are lost
 * whole. */
#ifndef ASSAY_PROBES_OUTPUT_H
#define ASSAY_PROBES_OUTPUT_H

#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    OUTPUT_LIMIT = 1 << 20,    /* bytes of the queue */
    OUTPUT_RESERVE = 64 << 10, /* bytes of it that only lines other than samples may use */
};

struct output {
    int descriptor;
    struct text waiting;
    bool broken; /* the reader has closed it */
};

/* Writing to DESCRIPTOR (the caller's) will not block if it is a pipe or a socket. */
void output_init(struct output *output, int descriptor);
void output_clear(struct output *output);

/* Queues LINE, with its newline, for output_flush(). False: there is no room or memory, and nothing is
 * queued. */
bool output_put(struct output *output, const char *line, size_t length, bool is_sample);
/* Writes as much as the descriptor accepts without waiting. */
void output_flush(struct output *output);
/* Writes the whole queue, waiting for the reader. False: nothing could be written for LIMIT_MS, or the reader
 * has closed. */
bool output_drain(struct output *output, int limit_ms);

#endif
