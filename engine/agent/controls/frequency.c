/* The limits of the frequency. Kernel: admin-guide/pm/cpufreq.rst (scaling_min_freq, scaling_max_freq),
 * intel_pstate.rst (min_perf_pct, max_perf_pct: per cent of the highest with turbo). */
#include "engine/agent/controls/frequency.h"
#include "engine/agent/controls/control.h"
#include "engine/agent/controls/hertz.h"
#include "engine/foundation/number.h"

#include <stdio.h>
#include <string.h>

#define INTEL LAYOUT_INTEL_PSTATE

enum { LIST_SIZE = 4096, PSTATE_KHZ = 100000 };

/* The frequencies that the words min, base and max mean for POLICY. */
static struct hertz_words frequency_words(const struct layout *layout, const struct layout_place *policy) {
    return (struct hertz_words){.min = layout_number(layout, policy->folder, "cpuinfo_min_freq"),
                                .base = layout_base_khz(layout, policy),
                                .max = layout_number(layout, policy->folder, "cpuinfo_max_freq")};
}

static bool has_limits(const struct layout *layout, const struct layout_place *policy) {
    return layout_has(layout, policy->folder, "scaling_max_freq") &&
           layout_has(layout, policy->folder, "scaling_min_freq");
}

/* ---- intel_pstate's limits of all PUs, in per cent of the highest frequency with turbo. They hold beside
 * those of the policies, which do not show them */

struct window {
    uint64_t min, max; /* per cent */
    bool binds;        /* the window may be narrower than some policy's limits */
};

/* KHZ in per cent of HIGHEST, rounded up, at most 100. */
static uint64_t khz_to_percent(uint64_t khz, uint64_t highest) {
    uint64_t percent = highest ? (khz * 100 + highest - 1) / highest : 0;
    return percent > 100 ? 100 : percent;
}

/* PERCENT of HIGHEST in kHz, rounded up to the next P-state. */
static uint64_t percent_to_khz(uint64_t highest, uint64_t percent) {
    uint64_t khz = (highest * percent / 100 + PSTATE_KHZ - 1) / PSTATE_KHZ * PSTATE_KHZ;
    return khz > highest ? highest : khz;
}

/* Reads intel_pstate's limits; 0 to 100 % without that driver. */
static struct window read_window(const struct layout *layout) {
    struct window window = {.max = 100};
    struct hertz_words words = {0};
    if (layout->policy_count && layout_answers(layout, INTEL, "max_perf_pct"))
        words = frequency_words(layout, &layout->policies[0]);
    if (words.max == 0)
        return window;
    window.min = layout_number(layout, INTEL, "min_perf_pct");
    window.max = layout_number(layout, INTEL, "max_perf_pct");
    window.binds = window.max < 100 || window.min > khz_to_percent(words.min, words.max);
    return window;
}

struct range {
    uint64_t min, max; /* kHz; a maximum of 0: not known */
};

/* The limits of a policy, narrowed by intel_pstate's WINDOW for all PUs. */
static struct range effective_limits(const struct layout *layout, const struct layout_place *policy,
                                     const struct window *window) {
    struct range range = {layout_number(layout, policy->folder, "scaling_min_freq"),
                          layout_number(layout, policy->folder, "scaling_max_freq")};
    uint64_t highest = window->binds ? layout_number(layout, policy->folder, "cpuinfo_max_freq") : 0;
    if (highest == 0 || range.max == 0)
        return range;
    uint64_t min = percent_to_khz(highest, window->min), max = percent_to_khz(highest, window->max);
    range.max = max && max < range.max ? max : range.max;
    range.min = min > range.min ? min : range.min;
    range.min = range.min > range.max ? range.max : range.min; /* the upper limit decides */
    return range;
}

/* ---- the status */

/* Appends the possible values: the driver's table of frequencies, if it has one, then the range and the
 * words. */
static void add_possible_values(const struct layout *layout, const struct layout_place *policy,
                                struct control_status *ret) {
    char table[LIST_SIZE], *rest = table, *word, text[HERTZ_RANGE_SIZE];
    struct hertz_words words = frequency_words(layout, policy);
    (void)layout_value(layout, policy->folder, "scaling_available_frequencies", table, sizeof table);
    while ((word = strsep(&rest, " "))) {
        uint64_t khz;
        if (number_parse_uint64(word, strlen(word), &khz))
            control_add_possible(ret, "%s ", hertz_format(khz, text));
    }
    if (words.min && words.max)
        control_add_possible(ret, "%s min ", hertz_format_range(words.min, words.max, text));
    control_add_possible(ret, "%smax", words.base ? "base " : "");
}

/* The status of the control frequency: the limits of the PUs of each policy. */
static void read_status(const struct layout *layout, struct control_status *ret) {
    struct window window = read_window(layout);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct layout_place *policy = &layout->policies[i];
        if (!has_limits(layout, policy))
            continue;
        if (!ret->path[0])
            add_possible_values(layout, policy, ret);
        control_set_path(ret, policy->folder, "scaling_max_freq");
        struct range range = effective_limits(layout, policy, &window);
        char text[HERTZ_RANGE_SIZE];
        values_add(&ret->values, hertz_format_range(range.min, range.max, text), &policy->pus);
    }
}

static const struct attribute percents = {.folder = INTEL, .file = "min_perf_pct", .upper = "max_perf_pct"},
                              limits = {.scope = LAYOUT_POLICY,
                                        .file = "scaling_min_freq",
                                        .upper = "scaling_max_freq"};

/* ---- setting them */

/* Plans intel_pstate's limits so that they do not narrow those of the policies: the lower limit at most
 * NEEDED->min, the upper at least NEEDED->max. NEEDED is in per cent of each policy's own highest frequency,
 * in which the cores of one processor can differ. */
static void plan_window(const struct layout *layout, const struct window *needed, struct plan *ret) {
    struct hertz_words words = {0};
    if (layout->policy_count && layout_answers(layout, INTEL, "max_perf_pct"))
        words = frequency_words(layout, &layout->policies[0]);
    if (words.max == 0)
        return;
    uint64_t lowest = words.min * 100 / words.max;
    struct plan_write *pair = plan_add_limits(ret, -1, INTEL, "min_perf_pct", "max_perf_pct", lowest, 100);
    pair[0].min = 0; /* the kernel raises what is below its lowest P-state */
    pair[0].max = needed->min > lowest ? needed->min : lowest;
    pair[1].min = needed->max;
}

/* Plans the limits of one policy, and widens NEEDED, in per cent, by them. */
static int plan_policy(const struct layout *layout, const struct layout_place *policy, const char *asked,
                       struct window *needed, struct plan *ret, struct failure *failure) {
    struct hertz_words words = frequency_words(layout, policy);
    uint64_t min, max;
    int r = hertz_parse_range(asked, &words, &min, &max, failure);
    if (r < 0)
        return r;
    struct plan_write *pair =
        plan_add_limits(ret, policy->pu, policy->folder, "scaling_min_freq", "scaling_max_freq", min, max);
    uint64_t min_percent = khz_to_percent(min, words.max), max_percent = khz_to_percent(max, words.max);
    needed->min = min_percent < needed->min ? min_percent : needed->min;
    needed->max = max_percent > needed->max ? max_percent : needed->max;
    /* With turbo off some drivers still name the turbo frequency as the highest, but set the base frequency
     * for it, which is then accepted. */
    if (words.base == 0 || max != words.max || words.base >= max || layout_turbo(layout) != 0)
        return 0;
    pair[1].min = words.base;
    if (min == max)
        pair[0].min = words.base;
    return 0;
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    struct window needed = {.min = 100};
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct layout_place *policy = &layout->policies[i];
        int r = has_limits(layout, policy) ? plan_policy(layout, policy, asked, &needed, ret, failure) : 0;
        if (r < 0)
            return r;
    }
    plan_window(layout, &needed, ret);
    return 0;
}

void frequency_plan_lowest(const struct layout *layout, struct plan *ret) {
    if (layout->policy_count && layout_answers(layout, INTEL, "max_perf_pct")) {
        struct hertz_words words = frequency_words(layout, &layout->policies[0]);
        uint64_t percent = words.min && words.max ? khz_to_percent(words.min, words.max) : 1;
        plan_add_limits(ret, -1, INTEL, "min_perf_pct", "max_perf_pct", percent, percent);
        return;
    }
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct layout_place *policy = &layout->policies[i];
        uint64_t min = layout_number(layout, policy->folder, "cpuinfo_min_freq");
        if (min && has_limits(layout, policy))
            plan_add_limits(ret, policy->pu, policy->folder, "scaling_min_freq", "scaling_max_freq", min,
                            min);
    }
}

/* ---- the target: the frequency that a busy PU may have */

/* True where the policy uses the kernel's generic governors, not intel_pstate's own: generic powersave means
 * the lowest frequency. */
static bool has_generic_governors(const struct layout *layout, const struct layout_place *policy) {
    static const char *const names[] = {"ondemand", "schedutil", "userspace", "conservative"};
    char list[LIST_SIZE];
    (void)layout_value(layout, policy->folder, "scaling_available_governors", list, sizeof list);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (strstr(list, names[i]))
            return true;
    return false;
}

/*
 * The range of frequencies of a busy PU of POLICY. The governor performance sets the highest within the
 * limits, generic powersave the lowest; other governors may choose any. With turbo the frequency also depends
 * on how many other PUs are busy, from the base up to the limit. A driver with a table has a single entry for
 * all turbo frequencies, so that their maximum is not known (0).
 */
static struct range policy_target(const struct layout *layout, const struct layout_place *policy,
                                  const struct window *window, int turbo) {
    char governor[64];
    struct range range = effective_limits(layout, policy, window);
    uint64_t base = layout_base_khz(layout, policy);
    if (range.max == 0)
        return (struct range){0};
    if (turbo == 0 && base && range.max > base)
        range.max = base;
    if (range.min > range.max)
        range.min = range.max;
    (void)layout_value(layout, policy->folder, "scaling_governor", governor, sizeof governor);
    if (strcmp(governor, "powersave") == 0 && has_generic_governors(layout, policy))
        return (struct range){range.min, range.min};
    bool in_turbo = turbo == 1 && (base == 0 || range.max > base);
    if (strcmp(governor, "performance") == 0)
        range.min = !in_turbo ? range.max : base > range.min ? base : range.min;
    if (turbo == 1 && range.max >= base &&
        layout_has(layout, policy->folder, "scaling_available_frequencies"))
        range.max = 0;
    return range;
}

/* The lowest and the highest frequency that a busy PU of the machine may have now; 0: not known. */
void frequency_find_target(const struct layout *layout, uint64_t *ret_min_khz, uint64_t *ret_max_khz) {
    struct range all = {0};
    bool unknown_max = false;
    int common = layout_common_turbo(layout);
    struct window window = read_window(layout);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct layout_place *policy = &layout->policies[i];
        struct range range =
            policy_target(layout, policy, &window, layout_policy_turbo(layout, policy, common));
        unknown_max = unknown_max || range.max == 0;
        if (range.min && (all.min == 0 || range.min < all.min))
            all.min = range.min;
        if (range.max > all.max)
            all.max = range.max;
    }
    *ret_min_khz = all.min;
    *ret_max_khz = unknown_max ? 0 : all.max;
}

const struct control control_frequency = {.name = "frequency",
                                          .absent = CONTROL_NO_CPUFREQ,
                                          .shows_driver = true,
                                          .attributes = {&percents, &limits},
                                          .read_status = read_status,
                                          .plan = plan};
