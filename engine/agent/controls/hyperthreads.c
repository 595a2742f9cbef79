/* The second and further hardware threads of cores. Kernel: ABI/testing/sysfs-devices-system-cpu
 * (smt/control), core-api/cpu_hotplug.rst (online). */
#include "engine/agent/controls/control.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SMT LAYOUT_CPU "/smt"

/* Reads smt/control; "": it does not exist or is not implemented, and PUs are switched one by one by
 * `online`. */
static void read_switch(const struct layout *layout, char *value, size_t size) {
    if (layout_value(layout, SMT, "control", value, size) == 0 && strcmp(value, "notimplemented") == 0)
        value[0] = '\0';
}

/* True where some PU is offline, whose siblings the kernel does not show. */
static bool has_offline(const struct layout *layout) {
    return memcmp(&layout->present, &layout->online, sizeof layout->present) != 0;
}

/* The lowest and highest number of online threads of a core. */
static void find_threads(const struct layout *layout, unsigned *ret_min, unsigned *ret_max) {
    struct pu_set siblings;
    *ret_min = PROTOCOL_PU_LIMIT;
    *ret_max = 0;
    for (size_t i = 0; i < layout->pu_count; i++) {
        layout_siblings(layout, layout->pus[i], &siblings);
        unsigned count = pu_set_count(&siblings);
        *ret_min = count < *ret_min ? count : *ret_min;
        *ret_max = count > *ret_max ? count : *ret_max;
    }
}

/* True where some core has an offline thread: it has fewer online threads than another core, and some PU is
 * offline. Without an offline PU the machine just has cores of two kinds. */
static bool has_missing(const struct layout *layout) {
    unsigned min, max;
    if (!has_offline(layout))
        return false;
    find_threads(layout, &min, &max);
    return min < (max > 2 ? max : 2);
}

/* Adds the status of each core by its online PUs, since threads can be taken offline one by one. */
static void count_pus(const struct layout *layout, struct values *ret) {
    unsigned min, max;
    find_threads(layout, &min, &max);
    if (max < 2 || !has_missing(layout)) {
        values_add(ret, max < 2 ? "off" : "on", &layout->online);
        return;
    }
    for (size_t i = 0; i < layout->pu_count; i++) {
        struct pu_set siblings;
        layout_siblings(layout, layout->pus[i], &siblings);
        if (pu_set_first(&siblings) == layout->pus[i])
            values_add(ret, pu_set_count(&siblings) > 1 ? "on" : "off", &siblings);
    }
}

/* Reads the status of a machine without smt/control, from `online` of its PUs. */
static void read_status_without_switch(const struct layout *layout, struct control_status *ret) {
    unsigned min, max;
    find_threads(layout, &min, &max);
    if (max < 2 && !has_offline(layout))
        return;
    for (unsigned pu = pu_set_next(&layout->present, 0); pu < PROTOCOL_PU_LIMIT && !ret->path[0];
         pu = pu_set_next(&layout->present, pu)) {
        const char *folder = machine_path(LAYOUT_CPU "/cpu%u", pu);
        if (layout_has(layout, folder, "online"))
            control_set_path(ret, folder, "online");
    }
    if (!ret->path[0])
        control_refuse(ret, CONTROL_READ_ONLY, "the kernel cannot take PUs offline");
    count_pus(layout, &ret->values);
}

/* The status of the control hyperthreads, by the kernel's switch or, without it, by the PUs that are online.
 */
static void read_status(const struct layout *layout, struct control_status *ret) {
    char value[64];
    read_switch(layout, value, sizeof value);
    control_add_possible(ret, "on off");
    if (strcmp(value, "notsupported") == 0) {
        control_refuse(ret, CONTROL_ABSENT,
                       "the processor has one hardware thread a core, or they are off in the firmware");
        return;
    }
    if (!value[0]) {
        read_status_without_switch(layout, ret);
        return;
    }
    control_set_path(ret, SMT, "control");
    bool forced = strcmp(value, "forceoff") == 0;
    if (forced)
        control_refuse(ret, CONTROL_READ_ONLY,
                       "hyper-threads are switched off by the kernel's command line "
                       "(nosmt=force)");
    /* On POWER the value is the number of threads that are on. */
    bool off = forced || strcmp(value, "off") == 0 || strcmp(value, "1") == 0;
    if (strcmp(value, "on") == 0 && has_missing(layout))
        count_pus(layout, &ret->values);
    else
        values_add(&ret->values, off ? "off" : "on", &layout->online);
}

static void files(const struct layout *layout, struct plan *ret) {
    control_add_file(ret, SMT, "control");
    for (unsigned pu = pu_set_first(&layout->present); pu < PROTOCOL_PU_LIMIT;
         pu = pu_set_next(&layout->present, pu))
        control_add_file(ret, machine_path(LAYOUT_CPU "/cpu%u", pu), "online");
}

/* Plans a write of `online` for each PU that must change: all offline PUs, or all but the first thread of
 * each core. */
static void plan_pus(const struct layout *layout, bool on, struct plan *ret) {
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++) {
        struct pu_set siblings;
        if (!pu_set_has(&layout->present, pu) || pu_set_has(&layout->online, pu) == on)
            continue;
        layout_siblings(layout, pu, &siblings);
        if (on || pu_set_first(&siblings) != pu)
            plan_add_number(ret, (int)pu, machine_path(LAYOUT_CPU "/cpu%u", pu), "online", on);
    }
}

/* Plans the write to the kernel's switch, or, on a machine without it, the writes that bring single PUs
 * online or offline. -EINVAL: ASKED is neither on nor off. */
static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    bool on = strcmp(asked, "on") == 0;
    char value[64];
    if (!on && strcmp(asked, "off") != 0)
        return failure_set(failure, -EINVAL, "'%s' is not possible; expected on or off", asked);
    read_switch(layout, value, sizeof value);
    if (!value[0]) {
        plan_pus(layout, on, ret);
        return 0;
    }
    struct plan_write *write = plan_add(ret, -1, SMT, "control", asked);
    if (!on)
        snprintf(write->also_accepted, sizeof write->also_accepted, "1");
    else if (strcmp(value, "off") != 0 && strcmp(value, "1") != 0)
        snprintf(write->also_accepted, sizeof write->also_accepted, "%.31s", value);
    /* The switch is "on" already, and writing "on" again would not bring single PUs online. */
    if (on && strcmp(value, "on") == 0 && has_missing(layout))
        plan_pus(layout, on, ret);
    return 0;
}

/* Side effects: the files of a PU that comes online start with their defaults. */
const struct control control_hyperthreads = {.name = "hyperthreads",
                                             .absent = "the processor has one hardware thread a core",
                                             .side_effects =
                                                 1u << CONTROL_GOVERNOR | 1u << CONTROL_FREQUENCY |
                                                 1u << CONTROL_ENERGY_PREFERENCE | 1u << CONTROL_IDLE_STATES,
                                             .read_status = read_status,
                                             .files = files,
                                             .plan = plan};
