/* The plan for people, which is what `assay run --dry-run` prints, and for programs. */
#ifndef ASSAY_CAMPAIGN_PLAN_DESCRIBE_H
#define ASSAY_CAMPAIGN_PLAN_DESCRIBE_H

#include "archive-format/run.h"
#include "engine/documents/json.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/plan.h"

/* Appends phases, units, commands as they will run, how much is copied, memory and time expected. RUNS: the
 * folder in which the run would be made. */
int plan_describe(const struct plan *plan, const char *runs, struct text *ret, struct failure *failure);

/* campaign.resolved.json: every default filled in. The caller's. */
cJSON *plan_resolve(const struct plan *plan);
/* Adds what run.json has of the plan to RUN. */
void plan_summarize(const struct plan *plan, struct archive_run *run);

#endif
