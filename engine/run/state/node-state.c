/* The state of the nodes' controls, which a design may change from block to block. */
#include "engine/run/run-state.h"

#include "engine/foundation/clock.h"

#include <stdlib.h>

int run_set_block(struct run *run, size_t block, struct failure *failure) {
    const struct plan *plan = run->plan;
    if (plan_control_count(plan) == 0)
        return 0;
    if (!run_has_time_for_state(run))
        return 0;
    int64_t begun_ns = clock_monotonic_ns(), setting_ns = 0;
    size_t row = plan->order->blocks[block].row, count = 0;
    char *assignments[2 * CONTROL_KINDS + 1] = {0};
    /* What holds for all blocks too: a control of the block may have changed it, or brought PUs that never
     * had it. */
    int r = run_assign_controls(run, assignments, &count) < 0 ? failure_memory(failure) : 0;
    for (size_t i = 0; r == 0 && i < plan_control_count(plan); i++)
        if (!(assignments[count++] =
                  text_format("%s=%s", plan_control_name(plan, i), plan_control_value(plan, row, i))))
            r = failure_memory(failure);
    /* The sampler knows what is expected when it starts, and which PUs there are. */
    if (r == 0)
        r = watch_stop(run, failure);
    if (r == 0) {
        setting_ns = clock_monotonic_ns();
        r = run_set_controls(run, (const char *const *)assignments, run->block_number, failure);
        setting_ns = clock_monotonic_ns() - setting_ns;
    }
    if (r == 0)
        r = run_prove_controls(run, run->block_number, failure);
    if (r == 0)
        r = run_take_facts(run, failure);
    if (r == 0)
        r = watch_start(run, failure);
    if (r == 0)
        r = run_warm_up(run, run->block_number, failure);
    if (r == 0)
        run_take_state_time(run, clock_monotonic_ns() - begun_ns, setting_ns);
    for (size_t i = 0; i < count; i++)
        free(assignments[i]);
    return r;
}

bool run_controls_vary(const struct run *run) {
    return plan_control_count(run->plan) > 0;
}
