/*
 * The page of a run that goes on, as a screen shows it: phases with their times, units, the time left, nodes
 * with their sensors, the best settings so far, and the last messages. All of it is what the run's folder
 * says: the journal's history, the ends of the results and of the samples.
 */
#ifndef ASSAY_COMMAND_LINE_RUN_PAGE_H
#define ASSAY_COMMAND_LINE_RUN_PAGE_H

#include "engine/command-line/run/screen.h"
#include "engine/run/record/status.h"

#include <stdint.h>

struct run_page {
    char *best; /* the settings so far, lines; NULL: none are known */
    int64_t best_at_ns, best_took_ns, best_units;
    size_t next_node; /* whose samples are read next */
};

/* Makes the frame of SCREEN, which is to be drawn, of the run of STATUS. The folder's samples and results are
 * read on; the settings are ranked anew when units have ended since, but at most in one part of 400 of the
 * time. */
void run_page_make(struct run_page *page, struct run_status *status, struct screen *screen);
void run_page_clear(struct run_page *page);

#endif
