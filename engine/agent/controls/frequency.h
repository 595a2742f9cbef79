/* The limits of the frequency, as others need them. */
#ifndef ASSAY_CONTROLS_FREQUENCY_H
#define ASSAY_CONTROLS_FREQUENCY_H

#include "engine/agent/controls/layout.h"
#include "engine/agent/controls/plan.h"

/* What frequency a busy PU may have as the machine is set now, over all policies, in kHz; 0: not known. */
void frequency_find_target(const struct layout *layout, uint64_t *ret_min_khz, uint64_t *ret_max_khz);

/* Adds what sets all limits to the lowest, for the time in which hardware threads come or go: one that goes
 * offline keeps its last request in hardware, and on kernels that do not lower it then, its core can run
 * above the limits of those that stay (intel_pstate.rst, "Coordination of P-State Limits": the sibling that
 * asks for more decides). */
void frequency_plan_lowest(const struct layout *layout, struct plan *ret);

#endif
