/* Going slow while hardware threads come or go: one that goes offline keeps its last request in hardware, and
 * on kernels that do not lower it then, its core can run above the limits of those that stay
 * (intel_pstate.rst, "Coordination of P-State Limits": the sibling that asks for more is heard). */
#ifndef ASSAY_CONTROLS_FREQUENCY_H
#define ASSAY_CONTROLS_FREQUENCY_H

#include "engine/agent/controls/layout.h"
#include "engine/agent/controls/plan.h"

/* Adds what sets all limits to the lowest. 0 or -ENOMEM. */
int frequency_plan_lowest(const struct layout *layout, struct plan *ret);

#endif
