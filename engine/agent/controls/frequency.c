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

static struct hertz_words words_of(const struct layout *layout, const struct layout_place *policy) {
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
    bool binds;        /* some policy's limits may be wider */
};

/* Rounded up. */
static uint64_t percent_of(uint64_t khz, uint64_t highest) {
    uint64_t percent = highest ? (khz * 100 + highest - 1) / highest : 0;
    return percent > 100 ? 100 : percent;
}

/* Rounded up to the next P-state. */
static uint64_t of_percent(uint64_t highest, uint64_t percent) {
    uint64_t khz = (highest * percent / 100 + PSTATE_KHZ - 1) / PSTATE_KHZ * PSTATE_KHZ;
    return khz > highest ? highest : khz;
}

static struct window read_window(const struct layout *layout) {
    struct window window = {.max = 100};
    struct hertz_words words = {0};
    if (layout->policy_count && layout_answers(layout, INTEL, "max_perf_pct"))
        words = words_of(layout, &layout->policies[0]);
    if (words.max == 0)
        return window;
    window.min = layout_number(layout, INTEL, "min_perf_pct");
    window.max = layout_number(layout, INTEL, "max_perf_pct");
    window.binds = window.max < 100 || window.min > percent_of(words.min, words.max);
    return window;
}

struct range {
    uint64_t min, max; /* kHz; a maximum of 0: not known */
};

/* A policy's limits, those of all PUs included. */
static struct range limits_of(const struct layout *layout, const struct layout_place *policy,
                              const struct window *window) {
    struct range range = {layout_number(layout, policy->folder, "scaling_min_freq"),
                          layout_number(layout, policy->folder, "scaling_max_freq")};
    uint64_t highest = window->binds ? layout_number(layout, policy->folder, "cpuinfo_max_freq") : 0;
    if (highest == 0 || range.max == 0)
        return range;
    uint64_t min = of_percent(highest, window->min), max = of_percent(highest, window->max);
    range.max = max && max < range.max ? max : range.max;
    range.min = min > range.min ? min : range.min;
    range.min = range.min > range.max ? range.max : range.min; /* the upper one wins */
    return range;
}

/* ---- how they stand */

/* The table of a driver that has one, then the range and its words. */
static void put_possible(const struct layout *layout, const struct layout_place *policy,
                         struct control_look *ret) {
    char table[LIST_SIZE], *rest = table, *word, text[HERTZ_RANGE_SIZE];
    struct hertz_words words = words_of(layout, policy);
    (void)layout_value(layout, policy->folder, "scaling_available_frequencies", table, sizeof table);
    while ((word = strsep(&rest, " "))) {
        uint64_t khz;
        if (number_parse_uint64(word, strlen(word), &khz))
            control_possible(ret, "%s ", hertz_format(khz, text));
    }
    if (words.min && words.max)
        control_possible(ret, "%s min ", hertz_format_range(words.min, words.max, text));
    control_possible(ret, "%smax", words.base ? "base " : "");
}

static void look(const struct layout *layout, struct control_look *ret) {
    struct window window = read_window(layout);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct layout_place *policy = &layout->policies[i];
        if (!has_limits(layout, policy))
            continue;
        if (!ret->path[0])
            put_possible(layout, policy, ret);
        control_keep_path(ret, policy->folder, "scaling_max_freq");
        struct range range = limits_of(layout, policy, &window);
        char text[HERTZ_RANGE_SIZE];
        values_add(&ret->values, hertz_format_range(range.min, range.max, text), &policy->pus);
    }
}

static const struct attribute percents = {.folder = INTEL, .file = "min_perf_pct", .upper = "max_perf_pct"},
                              limits = {.scope = LAYOUT_POLICY,
                                        .file = "scaling_min_freq",
                                        .upper = "scaling_max_freq"};

/* ---- setting them */

/* What intel_pstate's limits must be so as not to matter beside those of the policies: at most and at least
 * NEEDED, which are of each policy's own highest frequency. Cores of one processor can differ in that. */
static void plan_window(const struct layout *layout, const struct window *needed, struct plan *ret) {
    struct hertz_words words = {0};
    if (layout->policy_count && layout_answers(layout, INTEL, "max_perf_pct"))
        words = words_of(layout, &layout->policies[0]);
    if (words.max == 0)
        return;
    uint64_t lowest = words.min * 100 / words.max;
    struct plan_write *pair = plan_add_limits(ret, -1, INTEL, "min_perf_pct", "max_perf_pct", lowest, 100);
    pair[0].min = 0; /* the kernel raises what is below its lowest P-state */
    pair[0].max = needed->min > lowest ? needed->min : lowest;
    pair[1].min = needed->max;
}

static int plan_policy(const struct layout *layout, const struct layout_place *policy, const char *asked,
                       struct window *needed, struct plan *ret, struct failure *failure) {
    struct hertz_words words = words_of(layout, policy);
    uint64_t min, max;
    int r = hertz_parse_range(asked, &words, &min, &max, failure);
    if (r < 0)
        return r;
    struct plan_write *pair =
        plan_add_limits(ret, policy->pu, policy->folder, "scaling_min_freq", "scaling_max_freq", min, max);
    uint64_t min_percent = percent_of(min, words.max), max_percent = percent_of(max, words.max);
    needed->min = min_percent < needed->min ? min_percent : needed->min;
    needed->max = max_percent > needed->max ? max_percent : needed->max;
    /* Without turbo some drivers name the turbo frequency all the same, and give the base for it: that is all
     * that there is. */
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
        struct hertz_words words = words_of(layout, &layout->policies[0]);
        uint64_t percent = words.min && words.max ? percent_of(words.min, words.max) : 1;
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

/* ---- what comes of them */

/* One of the kernel's own governors, not intel_pstate's, has the policy: its powersave is the lowest. */
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
 * Of a busy PU: the governors performance (the highest within the limits) and powersave (the lowest, unless
 * it is intel_pstate's own, which is like the others) leave no choice, but for turbo: with it the frequency
 * depends on how many others are busy. A driver with a table names turbo by one frequency for all of it, so
 * that where it ends is not known.
 */
static struct range target_of(const struct layout *layout, const struct layout_place *policy,
                              const struct window *window, int turbo) {
    char governor[64];
    struct range range = limits_of(layout, policy, window);
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

void frequency_find_target(const struct layout *layout, uint64_t *ret_min_khz, uint64_t *ret_max_khz) {
    struct range all = {0};
    bool open = false;
    int common = layout_common_turbo(layout);
    struct window window = read_window(layout);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct layout_place *policy = &layout->policies[i];
        struct range range = target_of(layout, policy, &window, layout_policy_turbo(layout, policy, common));
        open = open || range.max == 0;
        if (range.min && (all.min == 0 || range.min < all.min))
            all.min = range.min;
        if (range.max > all.max)
            all.max = range.max;
    }
    *ret_min_khz = all.min;
    *ret_max_khz = open ? 0 : all.max;
}

const struct control control_frequency = {.name = "frequency",
                                          .absent = CONTROL_NO_CPUFREQ,
                                          .shows_driver = true,
                                          .attributes = {&percents, &limits},
                                          .look = look,
                                          .plan = plan};
