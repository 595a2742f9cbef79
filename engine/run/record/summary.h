/* run.json, as far as it follows from what has happened. */
#ifndef ASSAY_RECORD_SUMMARY_H
#define ASSAY_RECORD_SUMMARY_H

#include "engine/documents/json.h"
#include "engine/run/record/history.h"

/* Adds to OBJECT, which has members of its own, what FORMAT.md, "run.json", has of HISTORY, which has a part:
 * run_id, status, error, times, counts of units, nodes, parts and phases. */
void run_history_summarize(const struct run_history *history, cJSON *object);

#endif
