/* The limits of the frequency, as others need them. */
#ifndef ASSAY_CONTROLS_FREQUENCY_H
#define ASSAY_CONTROLS_FREQUENCY_H

#include "engine/agent/controls/layout.h"
#include "engine/agent/controls/plan.h"

/* intel_pstate's limits of all PUs, per cent of the highest frequency with turbo (intel_pstate.rst,
 * min_perf_pct and max_perf_pct): they hold beside those of the policies, which do not show them. */
struct frequency_window {
    uint64_t min, max;
    bool binds; /* some policy's limits may be wider */
};
void frequency_read_window(const struct layout *layout, struct frequency_window *ret);
/* What limits a policy has with them, in kHz; a maximum of 0: not known. */
void frequency_find_limits(const struct layout *layout, const struct policy *policy,
                           const struct frequency_window *window, uint64_t *ret_min, uint64_t *ret_max);

/* Going slow while hardware threads come or go: one that goes offline keeps its last request in hardware, and
 * on kernels that do not lower it then, its core can run above the limits of those that stay
 * (intel_pstate.rst, "Coordination of P-State Limits": the sibling that asks for more is heard). Adds what
 * sets all limits to the lowest. 0 or -ENOMEM. */
int frequency_plan_lowest(const struct layout *layout, struct plan *ret);

#endif
