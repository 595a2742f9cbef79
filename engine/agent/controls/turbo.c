/* Frequencies above the base. Kernel: admin-guide/pm/intel_pstate.rst (no_turbo), cpufreq.rst and
 * amd-pstate.rst (boost). */
#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <string.h>

#define INTEL LAYOUT_CPU "/intel_pstate"
#define GENERIC LAYOUT_CPU "/cpufreq"

/* Where the switch of all is ON the policies may have one each as well: it can be off all the same (Linux 6.7
 * and later). */
static int look_at_policies(const struct layout *layout, bool on, struct control_look *ret) {
    cleanup(values_clear) struct values values = {0};
    int r = 0;
    for (size_t i = 0; i < layout->policy_count && r == 0; i++) {
        const struct policy *policy = &layout->policies[i];
        char value[32];
        if (layout_value(layout, policy->folder, "boost", value, sizeof value) < 0)
            continue;
        if (!on)
            control_note_path(ret, policy->folder, "boost");
        r = values_add(&values, strcmp(value, "0") == 0 ? "off" : "on", &policy->pus);
    }
    if (r == 0 && values.count == 0 && on)
        return text_append_string(&ret->value, "on");
    if (r == 0 && values.count == 0)
        return control_absent(ret, layout->policy_count
                                       ? "the driver of the processor's frequency offers no switch for it"
                                       : CONTROL_NO_CPUFREQ);
    return r == 0 ? values_put(&values, &ret->value) : r;
}

static int look(const struct layout *layout, struct control_look *ret) {
    control_note_driver(layout, ret);
    int r = text_append_string(&ret->possible, "on off");
    if (r < 0)
        return r;
    if (layout_answers(layout, INTEL, "no_turbo"))
        control_note_path(ret, INTEL, "no_turbo");
    else if (layout_has(layout, GENERIC, "boost"))
        control_note_path(ret, GENERIC, "boost");
    int common = layout_common_turbo(layout);
    return common == 0 ? text_append_string(&ret->value, "off") : look_at_policies(layout, common == 1, ret);
}

/* The switch of all may change those of the policies: it goes first. */
static int files(const struct layout *layout, struct control_files *ret) {
    int r = control_add_file(ret, INTEL, "no_turbo");
    if (r == 0)
        r = control_add_file(ret, GENERIC, "boost");
    return r == 0 ? control_add_policy_files(layout, ret, "boost") : r;
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    bool on;
    int r = control_parse_switch(asked, &on, failure);
    if (r < 0)
        return r;
    if (layout_answers(layout, INTEL, "no_turbo"))
        return plan_add_number(ret, -1, INTEL, "no_turbo", !on) ? 0 : failure_memory(failure);
    bool generic = layout_has(layout, GENERIC, "boost");
    if (generic && !plan_add_number(ret, -1, GENERIC, "boost", on))
        return failure_memory(failure);
    /* Without the switch of all a policy's is off, whatever it shows, and takes nothing. */
    for (size_t i = 0; i < layout->policy_count && (on || !generic); i++) {
        const struct policy *policy = &layout->policies[i];
        if (layout_has(layout, policy->folder, "boost") &&
            !plan_add_number(ret, (int)pu_set_first(&policy->pus), policy->folder, "boost", on))
            return failure_memory(failure);
    }
    return 0;
}

/* Without turbo the driver caps the limits, and gives the old ones back with it. */
const struct control control_turbo = {
    .name = "turbo", .also = 1u << CONTROL_FREQUENCY, .look = look, .files = files, .plan = plan};
