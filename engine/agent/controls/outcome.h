/* What came of setting one control, for the line `set`. */
#ifndef ASSAY_CONTROLS_OUTCOME_H
#define ASSAY_CONTROLS_OUTCOME_H

#include "engine/agent/controls/control.h"
#include "engine/agent/controls/plan.h"

enum outcome_state {
    OUTCOME_PENDING,
    OUTCOME_DONE,
    OUTCOME_UNCHANGED, /* it was so before; nothing was written */
    OUTCOME_MISMATCH,  /* written, and not what it is now */
    OUTCOME_ABSENT,
    OUTCOME_READ_ONLY,
    OUTCOME_DENIED,
    OUTCOME_FAILED,
    OUTCOME_INVALID,
};

struct outcome {
    enum outcome_state state;
    char sentence[1024]; /* about it, or "" */
};

const char *outcome_name(enum outcome_state state);
void outcome_set(struct outcome *outcome, enum outcome_state state, const char *sentence);
/* From a plan that was carried out and read back. ONLINE: the PUs that are, now. */
void outcome_of_plan(struct outcome *outcome, enum control_index control, const struct plan *plan,
                     const struct pu_set *online);

#endif
