/* The state of the nodes' controls, which a design may change from block to block. */
#include "engine/run/run-state.h"

#include <errno.h>

int run_set_block(struct run *run, size_t block, struct failure *failure) {
    const struct plan *plan = run->plan;
    if (plan_control_count(plan) == 0)
        return 0;
    return failure_set(failure, -ENOTSUP,
                       "block %zu wants a state of the controls (%s %s, ...), which this version cannot set",
                       block + 1, plan_control_name(plan, 0),
                       plan_control_value(plan, plan->order->blocks[block].row, 0));
}
