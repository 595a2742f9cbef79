/* Shows a run's events: one line that is drawn over on a terminal, plain lines elsewhere, or JSON lines. */
#ifndef ASSAY_COMMAND_LINE_RUN_PROGRESS_H
#define ASSAY_COMMAND_LINE_RUN_PROGRESS_H

#include "engine/run/record/observer.h"

#include <stdbool.h>
#include <stdint.h>

struct progress {
    bool json;       /* JSON lines on stdout; nothing else is printed */
    bool quiet;      /* the archive's path only */
    bool terminal;   /* stderr is one */
    bool line_drawn; /* an unfinished progress line is on the terminal */
    int64_t last_shown_ns;
    uint64_t last_units; /* that were counted in the last line */
    uint64_t last_done;
    char *folder;  /* of the run; NULL: it has not begun */
    char *archive; /* that was sealed with units in it; NULL: none was */
};

void progress_init(struct progress *progress, bool json, bool quiet);
struct run_observer progress_observer(struct progress *progress);
/* After the run: shows its answer (report.h), unless it is shown as JSON or quietly, or has no units. */
void progress_end(struct progress *progress);

#endif
