/* The plan for people, which is what `assay run --dry-run` prints, and for programs. */
#ifndef ASSAY_CAMPAIGN_PLAN_DESCRIBE_H
#define ASSAY_CAMPAIGN_PLAN_DESCRIBE_H

#include "engine/documents/json.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/plan.h"

/* Appends phases, units, commands as they will run, how much is copied, memory and time expected. RUNS: the
 * folder in which the run would be made. */
int plan_describe(const struct plan *plan, const char *runs, struct text *ret, struct failure *failure);

/* campaign.resolved.json: every default filled in. The caller's; NULL when out of memory. */
cJSON *plan_resolve(const struct plan *plan);
/* Two parts of it that run.json has too: `options`; and `seed`, `generator`, `order`. */
void plan_add_options(const struct plan *plan, cJSON *object);
void plan_add_seed(const struct plan *plan, cJSON *object);

#endif
