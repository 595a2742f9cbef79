/* The outcome of setting one control, for the line `set`. */
#ifndef ASSAY_CONTROLS_OUTCOME_H
#define ASSAY_CONTROLS_OUTCOME_H

#include "engine/agent/controls/control.h"
#include "engine/agent/controls/plan.h"

struct outcome {
    const char *state;   /* the word of TOOLS.md; NULL: the control is not set yet */
    char sentence[1024]; /* the reason, or "" */
};

void outcome_set(struct outcome *outcome, const char *state, const char *sentence);
/* Sets the outcome of a plan that was carried out and read back. ONLINE: the PUs that are online now. */
void outcome_of_plan(struct outcome *outcome, enum control_index control, const struct plan *plan,
                     const struct pu_set *online);

#endif
