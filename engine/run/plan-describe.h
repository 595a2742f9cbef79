/* The plan for people: what `assay run --dry-run` prints. */
#ifndef ASSAY_RUN_PLAN_DESCRIBE_H
#define ASSAY_RUN_PLAN_DESCRIBE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/plan.h"

/* Appends phases, units, commands as they will run, memory and time expected. */
int plan_describe(const struct plan *plan, struct text *ret, struct failure *failure);

#endif
