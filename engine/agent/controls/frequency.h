/* The frequency limits, for the tools of other controls. */
#ifndef ASSAY_CONTROLS_FREQUENCY_H
#define ASSAY_CONTROLS_FREQUENCY_H

#include "engine/agent/controls/layout.h"
#include "engine/agent/controls/plan.h"

/* The lowest and highest frequency that a busy PU may have as the machine is set now, over all policies, in
 * kHz; 0: not known. */
void frequency_find_target(const struct layout *layout, uint64_t *ret_min_khz, uint64_t *ret_max_khz);

/* Plans to set all limits to the lowest frequency, while hardware threads go on- or offline. A thread that
 * goes offline keeps its last frequency request in hardware, and on kernels that do not lower it then its
 * core can run above the limits of its online thread (intel_pstate.rst, "Coordination of P-State Limits": the
 * sibling that requests more decides). */
void frequency_plan_lowest(const struct layout *layout, struct plan *ret);

#endif
