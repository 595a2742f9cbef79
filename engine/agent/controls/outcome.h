/* What came of setting one control, for the line `set`. */
#ifndef ASSAY_CONTROLS_OUTCOME_H
#define ASSAY_CONTROLS_OUTCOME_H

#include "engine/agent/controls/control.h"
#include "engine/agent/controls/plan.h"

struct outcome {
    const char *state;   /* the word of TOOLS.md; NULL: the control is still to be set */
    char sentence[1024]; /* about it, or "" */
};

void outcome_set(struct outcome *outcome, const char *state, const char *sentence);
/* From a plan that was carried out and read back. ONLINE: the PUs that are, now. */
void outcome_of_plan(struct outcome *outcome, enum control_index control, const struct plan *plan,
                     const struct pu_set *online);

#endif
