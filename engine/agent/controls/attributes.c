/*
 * The controls that are rows of a table, and those that need little more: governor, turbo, uncore-frequency.
 * Kernel: admin-guide/pm/{cpufreq,intel_pstate,amd-pstate,intel_epb,intel_uncore_frequency_scaling}.rst,
 * admin-guide/sysctl/kernel.rst, admin-guide/mm/transhuge.rst.
 */
#include "engine/agent/controls/control.h"
#include "engine/agent/controls/hertz.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

/* ---- rows */

/* Names that drivers show for numbers: Intel's, and AMD's where they differ. */
static const struct attribute_name preferences[] = {
    {"performance", 0},     {"balance_performance", 128},
    {"balance_power", 191}, {"balance_power", 192},
    {"power", 255},         {NULL, 0},
};
static const struct attribute_name biases[] = {
    {"performance", 0}, {"balance-performance", 4}, {"normal", 6}, {"balance-power", 8}, {"power", 15},
    {NULL, 0},
};
static const struct attribute
    preference = {.scope = LAYOUT_POLICY,
                  .file = "energy_performance_preference",
                  .list = "energy_performance_available_preferences",
                  .max = 255,
                  .names = preferences},
    bias = {.scope = LAYOUT_PU,
            .folder = "power",
            .file = "energy_perf_bias",
            .codec = ATTRIBUTE_NAMED,
            .words = "performance balance-performance normal balance-power power",
            .max = 15,
            .names = biases},
    numa_balancing = {.folder = "proc/sys/kernel",
                      .file = "numa_balancing",
                      .codec = ATTRIBUTE_SWITCH,
                      .words = "on off",
                      .max = 3 /* bits: balancing, and tiers of memory */},
    huge_pages = {.folder = "sys/kernel/mm/transparent_hugepage",
                  .file = "enabled",
                  .codec = ATTRIBUTE_CHOICE,
                  .words = "always madvise never"},
    aslr = {.folder = "proc/sys/kernel", .file = "randomize_va_space"},
    scaling_governor = {.scope = LAYOUT_POLICY,
                        .file = "scaling_governor",
                        .list = "scaling_available_governors"},
    no_turbo = {.folder = LAYOUT_INTEL_PSTATE, .file = "no_turbo", .codec = ATTRIBUTE_INVERSE_SWITCH},
    boost = {.folder = LAYOUT_CPU "/cpufreq", .file = "boost", .codec = ATTRIBUTE_SWITCH},
    policy_boost = {.scope = LAYOUT_POLICY, .file = "boost", .codec = ATTRIBUTE_SWITCH},
    uncore = {.scope = LAYOUT_UNCORE, .file = "min_freq_khz", .upper = "max_freq_khz"};

const struct control control_energy_preference = {
    .name = "energy-preference",
    .absent = "neither the driver of the frequency nor the processor has one",
    .shows_driver = true,
    .attributes = {&preference, &bias}};

const struct control control_numa_balancing = {
    .name = "numa-balancing", .absent = "this kernel has no such setting", .attributes = {&numa_balancing}};

const struct control control_transparent_huge_pages = {.name = "transparent-huge-pages",
                                                       .absent = "this kernel has no such setting",
                                                       .attributes = {&huge_pages}};

const struct control control_aslr = {
    .name = "aslr",
    .absent = "this kernel does not report it",
    .read_only = "it is recorded, not set: with a fixed memory layout results would be "
                 "biased",
    .attributes = {&aslr}};

/* ---- governor: each governor has settings of its own, which are restored after it */

static bool can_be_written(const struct layout *layout, const char *folder, const char *name) {
    struct stat status;
    cleanup_close int file = machine_open_file(layout->machine, machine_path("%s/%s", folder, name), O_PATH);
    return file >= 0 && fstat(file, &status) == 0 && S_ISREG(status.st_mode) && status.st_mode & 0222;
}

/* Adds the writable files of FOLDER/GOVERNOR, if that folder exists. */
static void add_settings(const struct layout *layout, const char *folder, const char *governor,
                         struct plan *ret) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    const char *path = machine_path("%.96s/%.32s", folder, governor);
    if (machine_list(layout->machine, path, "", &names) == -ENOMEM)
        ret->error = -ENOMEM;
    for (size_t i = 0; i < names.count; i++)
        if (can_be_written(layout, path, names.items[i]))
            control_add_file(ret, path, names.items[i]);
}

static bool is_governor(const char *name) {
    size_t length = 0;
    while (isalnum((unsigned char)name[length]) || (name[length] && strchr("_-", name[length])))
        length++;
    return length > 0 && name[length] == '\0';
}

/* Lists scaling_governor and the files of the current governors' settings, which each policy has or, with
 * some drivers, all policies with that governor share. */
static void governor_files(const struct layout *layout, struct plan *ret) {
    char name[32], before[32] = "", speed[64];
    uint64_t khz;
    control_add_files(ret, layout, &scaling_governor);
    for (size_t i = 0; i < layout->policy_count; i++) {
        const char *folder = layout->policies[i].folder;
        /* Has a number only with the governor userspace. */
        (void)layout_value(layout, folder, "scaling_setspeed", speed, sizeof speed);
        if (number_parse_uint64(speed, strlen(speed), &khz))
            control_add_file(ret, folder, "scaling_setspeed");
        (void)layout_value(layout, folder, scaling_governor.file, name, sizeof name);
        if (!is_governor(name))
            continue;
        if (strcmp(name, before) != 0)
            add_settings(layout, LAYOUT_CPU "/cpufreq", name, ret);
        snprintf(before, sizeof before, "%s", name);
        add_settings(layout, folder, name, ret);
    }
}

/* Side effects: some kernels switch turbo on with a new governor, and 'performance' sets an energy
 * preference. */
const struct control control_governor = {.name = "governor",
                                         .absent = CONTROL_NO_CPUFREQ,
                                         .side_effects = 1u << CONTROL_TURBO | 1u << CONTROL_FREQUENCY |
                                                         1u << CONTROL_ENERGY_PREFERENCE,
                                         .shows_driver = true,
                                         .attributes = {&scaling_governor},
                                         .files = governor_files};

/* ---- turbo: a switch for all PUs; beside or instead of it each policy may have one (Linux 6.7) */

static const struct attribute *turbo_attribute(const struct layout *layout) {
    return attribute_is_there(&no_turbo, layout) ? &no_turbo
           : layout_common_turbo(layout) >= 0    ? &boost
                                                 : &policy_boost;
}

/* The status of the control turbo: on or off for the PUs of each frequency policy, or of the machine. */
static void read_turbo_status(const struct layout *layout, struct control_status *ret) {
    const struct attribute *attribute = turbo_attribute(layout);
    int common = layout_common_turbo(layout);
    struct layout_place place;
    control_add_possible(ret, "on off");
    for (size_t i = 0; layout_place(layout, LAYOUT_POLICY, NULL, i, &place); i++) {
        int turbo = layout_policy_turbo(layout, &layout->policies[i], common);
        if (turbo >= 0)
            values_add(&ret->values, turbo ? "on" : "off", &place.pus);
    }
    if (layout->policy_count == 0 && common >= 0)
        values_add(&ret->values, common ? "on" : "off", &place.pus);
    if (ret->values.count == 0 && layout->policy_count)
        control_refuse(ret, CONTROL_ABSENT, "the frequency driver of the processor has no switch for turbo");
    if (ret->values.count && layout_place(layout, attribute->scope, attribute->folder, 0, &place))
        control_set_path(ret, place.folder, attribute->file);
}

static int turbo_plan(const struct layout *layout, const char *asked, struct plan *ret,
                      struct failure *failure) {
    const struct attribute *attribute = turbo_attribute(layout);
    int r = attribute_plan(attribute, layout, asked, ret, failure);
    /* With the common switch off a policy's turbo is off whatever its own switch shows, and that cannot be
     * written. */
    if (r == 0 && attribute == &boost && strcmp(asked, "on") == 0)
        r = attribute_plan(&policy_boost, layout, asked, ret, failure);
    return r;
}

/* Side effect: with turbo off the driver caps the frequency limits, and shows the old limits again with turbo
 * on. */
const struct control control_turbo = {
    .name = "turbo",
    .absent = CONTROL_NO_CPUFREQ,
    .side_effects = 1u << CONTROL_FREQUENCY,
    .shows_driver = true,
    /* The common switch may change those of the policies: it comes first. */
    .attributes = {&no_turbo, &boost, &policy_boost},
    .read_status = read_turbo_status,
    .plan = turbo_plan};

/* ---- uncore-frequency: limits of the parts outside the cores: mesh, last-level cache, memory controllers */

static struct hertz_words uncore_words(const struct layout *layout, const char *folder) {
    return (struct hertz_words){.min = layout_number(layout, folder, "initial_min_freq_khz"),
                                .max = layout_number(layout, folder, "initial_max_freq_khz")};
}

/* The status of the control uncore: the frequency limits of each uncore domain. */
static void read_uncore_status(const struct layout *layout, struct control_status *ret) {
    struct layout_place place;
    char text[HERTZ_RANGE_SIZE];
    for (size_t i = 0; layout_place(layout, LAYOUT_UNCORE, NULL, i, &place); i++) {
        struct hertz_words words = uncore_words(layout, place.folder);
        control_set_path(ret, place.folder, "max_freq_khz");
        if (i == 0 && words.min && words.max)
            control_add_possible(ret, "%s min max", hertz_format_range(words.min, words.max, text));
        hertz_format_range(layout_number(layout, place.folder, "min_freq_khz"),
                           layout_number(layout, place.folder, "max_freq_khz"), text);
        values_add_named(&ret->values, text, strrchr(place.folder, '/') + 1);
        snprintf(ret->driver, sizeof ret->driver, "intel_uncore_frequency");
    }
}

/* Plans the writes that limit every uncore domain to the range ASKED. -EINVAL: ASKED is not a range that they
 * have.
 */
static int uncore_plan(const struct layout *layout, const char *asked, struct plan *ret,
                       struct failure *failure) {
    struct layout_place place;
    for (size_t i = 0; layout_place(layout, LAYOUT_UNCORE, NULL, i, &place); i++) {
        struct hertz_words words = uncore_words(layout, place.folder);
        uint64_t min, max;
        int r = hertz_parse_range(asked, &words, &min, &max, failure);
        if (r < 0)
            return r;
        plan_add_limits(ret, -1, place.folder, "min_freq_khz", "max_freq_khz", min, max);
    }
    return 0;
}

const struct control control_uncore_frequency = {
    .name = "uncore-frequency",
    .absent = "the kernel's module intel_uncore_frequency is not loaded, or the processor has no such limits",
    .attributes = {&uncore},
    .read_status = read_uncore_status,
    .plan = uncore_plan};
