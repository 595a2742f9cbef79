/* The second and further hardware threads of cores. Kernel: ABI/testing/sysfs-devices-system-cpu
 * (smt/control), core-api/cpu_hotplug.rst (online). */
#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

#define SMT LAYOUT_CPU "/smt"

/* What smt/control has, "" where there is none or where it leaves the matter to `online`. */
static void read_control(const struct layout *layout, char *value, size_t size) {
    if (layout_value(layout, SMT, "control", value, size) < 0 || strcmp(value, "notimplemented") == 0)
        value[0] = '\0';
}

static bool has_siblings(const struct layout *layout) {
    for (size_t i = 0; i < layout->pu_count; i++) {
        struct pu_set siblings;
        layout_siblings(layout, layout->pus[i], &siblings);
        if (pu_set_first(&siblings) != layout->pus[i])
            return true;
    }
    return false;
}

/* Of what is offline nothing says whose sibling it is. */
static bool has_offline(const struct layout *layout) {
    return memcmp(&layout->present, &layout->online, sizeof layout->present) != 0;
}

static unsigned count_threads(const struct layout *layout, unsigned pu, struct pu_set *ret) {
    layout_siblings(layout, pu, ret);
    unsigned count = 0;
    for (unsigned at = 0; at < PROTOCOL_PU_LIMIT; at++)
        count += pu_set_has(ret, at);
    return count;
}

/* Whether cores that are online lack a thread, going by the cores that have most. Where nothing is offline
 * none does: there may be cores of two kinds. */
static bool has_missing(const struct layout *layout) {
    struct pu_set siblings;
    unsigned most = 2;
    if (!has_offline(layout))
        return false;
    for (size_t i = 0; i < layout->pu_count; i++) {
        unsigned count = count_threads(layout, layout->pus[i], &siblings);
        most = count > most ? count : most;
    }
    for (size_t i = 0; i < layout->pu_count; i++)
        if (count_threads(layout, layout->pus[i], &siblings) < most)
            return true;
    return false;
}

/* What the PUs that are online say, whatever the switch of all does: threads can be taken offline one by one.
 */
static int put_value(const struct layout *layout, struct text *ret) {
    if (!has_siblings(layout) || !has_missing(layout))
        return text_append_string(ret, has_siblings(layout) ? "on" : "off");
    cleanup(values_clear) struct values values = {0};
    int r = 0;
    for (size_t i = 0; i < layout->pu_count && r == 0; i++) {
        struct pu_set siblings;
        unsigned count = count_threads(layout, layout->pus[i], &siblings);
        if (pu_set_first(&siblings) == layout->pus[i])
            r = values_add(&values, count > 1 ? "on" : "off", &siblings);
    }
    return r == 0 ? values_put(&values, ret) : r;
}

static int look_at_pus(const struct layout *layout, struct control_look *ret) {
    bool siblings = has_siblings(layout), offline = has_offline(layout);
    if (!siblings && !offline)
        return control_absent(ret, "the processor has one hardware thread a core");
    for (unsigned pu = 1; pu < PROTOCOL_PU_LIMIT && !ret->path[0]; pu++) {
        char folder[64];
        snprintf(folder, sizeof folder, LAYOUT_CPU "/cpu%u", pu);
        if (pu_set_has(&layout->present, pu) && layout_has(layout, folder, "online"))
            control_note_path(ret, folder, "online");
    }
    if (!ret->path[0]) {
        ret->access = CONTROL_READ_ONLY;
        snprintf(ret->why, sizeof ret->why, "the kernel cannot take PUs offline");
    }
    return put_value(layout, &ret->value);
}

static int look(const struct layout *layout, struct control_look *ret) {
    char value[64];
    read_control(layout, value, sizeof value);
    if (strcmp(value, "notsupported") == 0)
        return control_absent(
            ret, "the processor has one hardware thread a core, or they are off in the firmware");
    int r = text_append_string(&ret->possible, "on off");
    if (r < 0)
        return r;
    if (!value[0])
        return look_at_pus(layout, ret);
    control_note_path(ret, SMT, "control");
    bool forced = strcmp(value, "forceoff") == 0;
    if (forced) {
        ret->access = CONTROL_READ_ONLY;
        snprintf(ret->why, sizeof ret->why, "they were switched off for good when the kernel was started");
    }
    if (strcmp(value, "on") == 0 && has_missing(layout))
        return put_value(layout, &ret->value);
    /* A number is that of the threads that are on (POWER). */
    return text_append_string(&ret->value,
                              forced || strcmp(value, "off") == 0 || strcmp(value, "1") == 0 ? "off" : "on");
}

static int files(const struct layout *layout, struct control_files *ret) {
    int r = control_add_file(ret, SMT, "control");
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT && r == 0; pu++) {
        char folder[64];
        snprintf(folder, sizeof folder, LAYOUT_CPU "/cpu%u", pu);
        if (pu_set_has(&layout->present, pu))
            r = control_add_file(ret, folder, "online");
    }
    return r;
}

/* The PUs whose `online` would change. */
static int plan_pus(const struct layout *layout, bool on, struct plan *ret, struct failure *failure) {
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++) {
        char folder[64];
        struct pu_set siblings;
        if (!pu_set_has(&layout->present, pu) || pu_set_has(&layout->online, pu) == on)
            continue;
        layout_siblings(layout, pu, &siblings);
        if (!on && pu_set_first(&siblings) == pu)
            continue;
        snprintf(folder, sizeof folder, LAYOUT_CPU "/cpu%u", pu);
        if (!plan_add_number(ret, (int)pu, folder, "online", on))
            return failure_memory(failure);
    }
    return 0;
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    bool on;
    int r = control_parse_switch(asked, &on, failure);
    if (r < 0)
        return r;
    char value[64];
    read_control(layout, value, sizeof value);
    if (!value[0])
        return plan_pus(layout, on, ret, failure);
    struct plan_write *write = plan_add(ret, -1, SMT, "control", on ? "on" : "off");
    if (!write)
        return failure_memory(failure);
    if (!on)
        snprintf(write->other, sizeof write->other, "1");
    else if (strcmp(value, "off") != 0 && strcmp(value, "1") != 0)
        snprintf(write->other, sizeof write->other, "%.31s", value);
    /* Written once more, "on" brings nothing back. */
    return on && strcmp(value, "on") == 0 && has_missing(layout) ? plan_pus(layout, on, ret, failure) : 0;
}

/* What comes online begins with its files anew. */
const struct control control_hyperthreads = {.name = "hyperthreads",
                                             .also = 1u << CONTROL_GOVERNOR | 1u << CONTROL_FREQUENCY |
                                                     1u << CONTROL_ENERGY_PREFERENCE |
                                                     1u << CONTROL_IDLE_STATES,
                                             .look = look,
                                             .files = files,
                                             .plan = plan};
