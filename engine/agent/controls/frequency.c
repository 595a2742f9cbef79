/* The limits of the frequency. Kernel: admin-guide/pm/cpufreq.rst (scaling_min_freq, scaling_max_freq),
 * intel_pstate.rst (min_perf_pct, max_perf_pct: per cent of the highest with turbo). */
#include "engine/agent/controls/frequency.h"
#include "engine/agent/controls/control.h"
#include "engine/agent/controls/hertz.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define INTEL LAYOUT_CPU "/intel_pstate"

enum { TABLE_SIZE = 4096, PSTATE_KHZ = 100000 };

static struct hertz_words words_of(const struct layout *layout, const struct policy *policy) {
    return (struct hertz_words){.min = layout_number(layout, policy->folder, "cpuinfo_min_freq"),
                                .base = layout_base_khz(layout, policy),
                                .max = layout_number(layout, policy->folder, "cpuinfo_max_freq")};
}

static bool has_limits(const struct layout *layout, const struct policy *policy) {
    return layout_has(layout, policy->folder, "scaling_max_freq") &&
           layout_has(layout, policy->folder, "scaling_min_freq");
}

/* ---- intel_pstate's limits of all PUs, in per cent of the highest frequency with turbo. They hold beside
 * those of the policies, which do not show them */

/* What is not a whole one becomes the next P-state. */
static uint64_t of_percent(uint64_t highest, uint64_t percent) {
    uint64_t khz = (highest * percent / 100 + PSTATE_KHZ - 1) / PSTATE_KHZ * PSTATE_KHZ;
    return khz > highest ? highest : khz;
}

void frequency_read_window(const struct layout *layout, struct frequency_window *ret) {
    *ret = (struct frequency_window){.max = 100};
    struct hertz_words words = {0};
    if (layout->policy_count && layout_answers(layout, INTEL, "max_perf_pct"))
        words = words_of(layout, &layout->policies[0]);
    if (words.max == 0)
        return;
    ret->min = layout_number(layout, INTEL, "min_perf_pct");
    ret->max = layout_number(layout, INTEL, "max_perf_pct");
    ret->binds = ret->max < 100 || ret->min > (words.min * 100 + words.max - 1) / words.max;
}

void frequency_find_limits(const struct layout *layout, const struct policy *policy,
                           const struct frequency_window *window, uint64_t *ret_min, uint64_t *ret_max) {
    *ret_min = layout_number(layout, policy->folder, "scaling_min_freq");
    *ret_max = layout_number(layout, policy->folder, "scaling_max_freq");
    uint64_t highest = window->binds ? layout_number(layout, policy->folder, "cpuinfo_max_freq") : 0;
    if (highest == 0 || *ret_max == 0)
        return;
    uint64_t least = of_percent(highest, window->min), most = of_percent(highest, window->max);
    *ret_max = most && most < *ret_max ? most : *ret_max;
    *ret_min = least > *ret_min ? least : *ret_min;
    *ret_min = *ret_min > *ret_max ? *ret_max : *ret_min; /* the upper is heard */
}

/* ---- how they stand */

/* The table of a driver that has one, then the range and its words. */
static int put_possible(const struct layout *layout, const struct policy *policy, struct text *ret) {
    char table[TABLE_SIZE], *rest = table, *word;
    char text[HERTZ_RANGE_SIZE];
    struct hertz_words words = words_of(layout, policy);
    int r = 0;
    if (layout_value(layout, policy->folder, "scaling_available_frequencies", table, sizeof table) < 0)
        table[0] = '\0';
    while (r == 0 && (word = strsep(&rest, " "))) {
        uint64_t khz;
        if (number_parse_uint64(word, strlen(word), &khz))
            r = text_printf(ret, "%s ", hertz_format(khz, text));
    }
    if (r == 0 && words.min && words.max)
        r = text_printf(ret, "%s min ", hertz_format_range(words.min, words.max, text));
    if (r == 0)
        r = text_printf(ret, "%smax", words.base ? "base " : "");
    return r;
}

static int look_at_percent(const struct layout *layout, struct control_look *ret) {
    if (!layout_answers(layout, INTEL, "max_perf_pct"))
        return control_absent(ret, CONTROL_NO_CPUFREQ);
    control_note_path(ret, INTEL, "max_perf_pct");
    uint64_t min = layout_number(layout, INTEL, "min_perf_pct"),
             max = layout_number(layout, INTEL, "max_perf_pct");
    uint64_t highest = layout->policy_count ? words_of(layout, &layout->policies[0]).max : 0;
    char text[HERTZ_RANGE_SIZE];
    int r = text_append_string(&ret->possible, highest ? "min base max" : "min max");
    if (r < 0)
        return r;
    if (highest)
        return text_append_string(&ret->value,
                                  hertz_format_range(highest * min / 100, highest * max / 100, text));
    return text_append_string(&ret->value, min >= 100 ? "max" : max >= 100 ? "min..max" : "min");
}

static int look(const struct layout *layout, struct control_look *ret) {
    cleanup(values_clear) struct values values = {0};
    struct frequency_window window;
    frequency_read_window(layout, &window);
    control_note_driver(layout, ret);
    int r = 0;
    for (size_t i = 0; i < layout->policy_count && r == 0; i++) {
        const struct policy *policy = &layout->policies[i];
        if (!has_limits(layout, policy))
            continue;
        char text[HERTZ_RANGE_SIZE];
        control_note_path(ret, policy->folder, "scaling_max_freq");
        if (values.count == 0)
            r = put_possible(layout, policy, &ret->possible);
        uint64_t min, max;
        frequency_find_limits(layout, policy, &window, &min, &max);
        if (r == 0)
            r = values_add(&values, hertz_format_range(min, max, text), &policy->pus);
    }
    if (r < 0)
        return r;
    return values.count ? values_put(&values, &ret->value) : look_at_percent(layout, ret);
}

static int files(const struct layout *layout, struct control_files *ret) {
    int r = control_add_file(ret, INTEL, "min_perf_pct");
    if (r == 0)
        r = control_add_file(ret, INTEL, "max_perf_pct");
    for (size_t i = 0; i < layout->policy_count && r == 0; i++) {
        r = control_add_file(ret, layout->policies[i].folder, "scaling_min_freq");
        if (r == 0)
            r = control_add_file(ret, layout->policies[i].folder, "scaling_max_freq");
    }
    return r;
}

static int plan_percent(const struct layout *layout, const char *asked, struct plan *ret,
                        struct failure *failure) {
    struct hertz_words words = {.min = 1, .max = 100};
    uint64_t min, max;
    struct failure unused;
    if (layout->policy_count && words_of(layout, &layout->policies[0]).max) {
        words = words_of(layout, &layout->policies[0]);
        int r = hertz_parse_range(asked, &words, &min, &max, failure);
        if (r < 0)
            return r;
        min = (min * 100 + words.max - 1) / words.max;
        max = (max * 100 + words.max - 1) / words.max;
    } else if (strpbrk(asked, "0123456789") || hertz_parse_range(asked, &words, &min, &max, &unused) < 0) {
        return failure_set(failure, -EINVAL, "'%s' is not possible here: only min, max and min..max are",
                           asked);
    }
    return plan_limits(ret, -1, INTEL, "min_perf_pct", "max_perf_pct", min, max) ? 0
                                                                                 : failure_memory(failure);
}

static uint64_t percent_of(uint64_t khz, uint64_t highest) {
    uint64_t percent = highest ? (khz * 100 + highest - 1) / highest : 0;
    return percent > 100 ? 100 : percent;
}

/* What they must be so as not to matter beside those of the policies: at most and at least NEEDED, which are
 * of each policy's own highest frequency. Cores of one processor can differ in that. */
static int plan_window(const struct layout *layout, const struct frequency_window *needed, struct plan *ret) {
    if (!layout_answers(layout, INTEL, "max_perf_pct"))
        return 0;
    struct hertz_words words = words_of(layout, &layout->policies[0]);
    if (words.max == 0)
        return 0;
    uint64_t lowest = words.min * 100 / words.max;
    struct plan_write *upper = plan_limits(ret, -1, INTEL, "min_perf_pct", "max_perf_pct", lowest, 100);
    if (!upper)
        return -ENOMEM;
    upper[-1].least = 0; /* the kernel raises what is below its lowest P-state */
    upper[-1].most = needed->min > lowest ? needed->min : lowest;
    upper->least = needed->max;
    return 0;
}

static int plan_policy(const struct layout *layout, const struct policy *policy, const char *asked,
                       struct frequency_window *needed, struct plan *ret, struct failure *failure) {
    struct hertz_words words = words_of(layout, policy);
    uint64_t min, max;
    int r = hertz_parse_range(asked, &words, &min, &max, failure);
    if (r < 0)
        return r;
    struct plan_write *upper = plan_limits(ret, (int)pu_set_first(&policy->pus), policy->folder,
                                           "scaling_min_freq", "scaling_max_freq", min, max);
    if (!upper)
        return failure_memory(failure);
    uint64_t least = percent_of(min, words.max), most = percent_of(max, words.max);
    needed->min = least < needed->min ? least : needed->min;
    needed->max = most > needed->max ? most : needed->max;
    /* Without turbo some drivers name the turbo frequency all the same, and give the base for it: that is all
     * that there is. */
    if (words.base == 0 || max != words.max || words.base >= max || layout_turbo(layout) != 0)
        return 0;
    upper->least = words.base;
    if (min == max)
        upper[-1].least = words.base;
    return 0;
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    struct frequency_window needed = {.min = 100};
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        int r = has_limits(layout, policy) ? plan_policy(layout, policy, asked, &needed, ret, failure) : 0;
        if (r < 0)
            return r;
    }
    if (ret->count == 0)
        return plan_percent(layout, asked, ret, failure);
    return plan_window(layout, &needed, ret) < 0 ? failure_memory(failure) : 0;
}

int frequency_plan_lowest(const struct layout *layout, struct plan *ret) {
    uint64_t lowest = 0, highest = 0;
    if (layout->policy_count) {
        struct hertz_words words = words_of(layout, &layout->policies[0]);
        lowest = words.min;
        highest = words.max;
    }
    if (layout_answers(layout, INTEL, "max_perf_pct")) {
        uint64_t percent = highest && lowest ? (lowest * 100 + highest - 1) / highest : 1;
        struct plan_write *upper =
            plan_limits(ret, -1, INTEL, "min_perf_pct", "max_perf_pct", percent, percent);
        return upper ? 0 : -ENOMEM;
    }
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        uint64_t min = layout_number(layout, policy->folder, "cpuinfo_min_freq");
        if (min && has_limits(layout, policy) &&
            !plan_limits(ret, (int)pu_set_first(&policy->pus), policy->folder, "scaling_min_freq",
                         "scaling_max_freq", min, min))
            return -ENOMEM;
    }
    return 0;
}

const struct control control_frequency = {.name = "frequency", .look = look, .files = files, .plan = plan};
