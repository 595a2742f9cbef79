/*
 * How far a fit is, and when it will be done: one line on stderr that is drawn over, on a terminal alone and
 * once the command has taken 2 s. It goes before anything else is printed.
 */
#ifndef ASSAY_COMMAND_LINE_FIT_PROGRESS_H
#define ASSAY_COMMAND_LINE_FIT_PROGRESS_H

#include "engine/plugin/fitting.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

struct fit_progress {
    FILE *stream;
    bool shows; /* the stream is a terminal */
    bool drawn; /* there is a line to be taken away */
    int64_t began_ns, shown_ns;
    /* The stage in hand: what is counted, and since when. */
    const char *of;
    uint32_t pass;
    uint64_t first, last;
    int64_t stage_ns;
};

void fit_progress_init(struct fit_progress *progress, FILE *stream, bool shows, int64_t now_ns);
/* As fitting_progress; NOW_NS by the monotonic clock. */
void fit_progress_show(struct fit_progress *progress, const struct fitting_stage *stage, int64_t now_ns);

/* The same on stderr, by the clock: a fitting_progress, whose context is a struct fit_progress. */
void fit_progress_begin(struct fit_progress *progress);
void fit_progress_hear(void *context, const struct fitting_stage *stage);
void fit_progress_end(struct fit_progress *progress); /* for cleanup(): takes the line away */

#endif
