/* Who chooses the frequency within the limits. Kernel: admin-guide/pm/cpufreq.rst. */
#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"

#include <string.h>

enum { LIST_SIZE = 1024 };

static int look(const struct layout *layout, struct control_look *ret) {
    cleanup(values_clear) struct values values = {0};
    control_note_driver(layout, ret);
    char text[LIST_SIZE];
    int r = 0;
    for (size_t i = 0; i < layout->policy_count && r == 0; i++) {
        const struct policy *policy = &layout->policies[i];
        if (layout_value(layout, policy->folder, "scaling_governor", text, sizeof text) < 0)
            continue;
        control_note_path(ret, policy->folder, "scaling_governor");
        r = values_add(&values, text, &policy->pus);
    }
    if (r < 0)
        return r;
    if (values.count == 0)
        return control_absent(ret, CONTROL_NO_CPUFREQ);
    if (layout_value(layout, layout->policies[0].folder, "scaling_available_governors", text, sizeof text) ==
        0)
        r = text_append_string(&ret->possible, text);
    return r == 0 ? values_put(&values, &ret->value) : r;
}

static int files(const struct layout *layout, struct control_files *ret) {
    return control_add_policy_files(layout, ret, "scaling_governor");
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        char list[LIST_SIZE];
        int r = layout_value(layout, policy->folder, "scaling_available_governors", list, sizeof list);
        if (r == 0 && (r = control_check_word(asked, list, failure)) < 0)
            return r;
        if (!plan_add(ret, (int)pu_set_first(&policy->pus), policy->folder, "scaling_governor", asked))
            return failure_memory(failure);
    }
    return 0;
}

/* Some kernels switch turbo on again with the governor; 'performance' brings an energy preference along. */
const struct control control_governor = {.name = "governor",
                                         .also = 1u << CONTROL_TURBO | 1u << CONTROL_FREQUENCY |
                                                 1u << CONTROL_ENERGY_PREFERENCE,
                                         .look = look,
                                         .files = files,
                                         .plan = plan};
