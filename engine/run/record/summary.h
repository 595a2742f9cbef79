/* run.json, as far as it follows from what has happened. */
#ifndef ASSAY_RECORD_SUMMARY_H
#define ASSAY_RECORD_SUMMARY_H

#include "archive-format/run.h"
#include "engine/run/record/history.h"

/* Adds what HISTORY, which has a part, says to RUN: run_id, status, error, times, counts of units, nodes,
 * parts and phases. */
void run_history_summarize(const struct run_history *history, struct archive_run *run);

#endif
