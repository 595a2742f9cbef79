/* Shows a run's events: as a screen on a terminal, plain lines elsewhere, or JSON lines. */
#ifndef ASSAY_COMMAND_LINE_RUN_PROGRESS_H
#define ASSAY_COMMAND_LINE_RUN_PROGRESS_H

#include "engine/run/record/observer.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

struct progress {
    bool json;       /* JSON lines on stdout; nothing else is printed */
    bool quiet;      /* the archive's path only */
    bool has_screen; /* the whole terminal shows the run, while it goes on */
    pid_t viewer;    /* that draws it (viewer.h); 0: none */
    int64_t last_shown_ns;
    uint64_t last_units; /* that were counted in the last line */
    uint64_t last_done;
    char *folder;  /* of the run; NULL: it has not begun */
    char *archive; /* that was sealed with units in it; NULL: none was */
};

/* `has_screen` says whether a screen can be drawn; who shows the events of a run that another process carries
 * out draws it, or sets it to false. */
void progress_init(struct progress *progress, bool json, bool quiet);
struct run_observer progress_observer(struct progress *progress);
/* After the run: shows its answer (report.h), unless it is shown as JSON or quietly, or has no units. */
void progress_end(struct progress *progress);

#endif
