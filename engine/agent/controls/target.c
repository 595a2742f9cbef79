#include "engine/agent/controls/target.h"

#include "engine/agent/controls/frequency.h"

#include <string.h>

enum { LIST_SIZE = 4096 };

struct range {
    uint64_t min, max; /* 0: not known */
};

/*
 * Of a busy PU: the governors performance (the highest within the limits) and powersave (the lowest, unless
 * it is intel_pstate's own, which is like the others) leave no choice, but for turbo: with it the frequency
 * depends on how many others are busy. A driver with a table names turbo by one frequency for all of it, so
 * that where it ends is not known.
 */
static struct range range_of(const struct layout *layout, const struct policy *policy,
                             const struct frequency_window *window, int turbo) {
    char governor[64], list[LIST_SIZE];
    struct range range;
    frequency_find_limits(layout, policy, window, &range.min, &range.max);
    uint64_t base = layout_base_khz(layout, policy);
    if (range.max == 0)
        return (struct range){0};
    if (turbo == 0 && base && range.max > base)
        range.max = base;
    if (range.min > range.max)
        range.min = range.max;
    if (layout_value(layout, policy->folder, "scaling_governor", governor, sizeof governor) < 0)
        governor[0] = '\0';
    bool generic =
        layout_value(layout, policy->folder, "scaling_available_governors", list, sizeof list) == 0 &&
        (strstr(list, "ondemand") || strstr(list, "schedutil") || strstr(list, "userspace") ||
         strstr(list, "conservative"));
    bool in_turbo = turbo == 1 && (base == 0 || range.max > base);
    if (generic && strcmp(governor, "powersave") == 0)
        return (struct range){range.min, range.min};
    if (strcmp(governor, "performance") == 0 && !in_turbo)
        range.min = range.max;
    if (strcmp(governor, "performance") == 0 && in_turbo && base > range.min)
        range.min = base;
    bool table = layout_has(layout, policy->folder, "scaling_available_frequencies");
    if (table && turbo == 1 && range.max >= base)
        range.max = 0;
    return range;
}

void target_find(const struct layout *layout, uint64_t *ret_min_khz, uint64_t *ret_max_khz) {
    struct range all = {0};
    bool open = false;
    int common = layout_common_turbo(layout);
    struct frequency_window window;
    frequency_read_window(layout, &window);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        struct range range = range_of(layout, policy, &window, layout_policy_turbo(layout, policy, common));
        open = open || range.max == 0;
        if (range.min && (all.min == 0 || range.min < all.min))
            all.min = range.min;
        if (range.max > all.max)
            all.max = range.max;
    }
    *ret_min_khz = all.min;
    *ret_max_khz = open ? 0 : all.max;
}
