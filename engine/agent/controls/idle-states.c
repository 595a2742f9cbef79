/* The control idle-states: which idle states a PU may use. Kernel: admin-guide/pm/cpuidle.rst. */
#include "engine/agent/controls/control.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

enum { FOLDER_SIZE = 64, STATES_MAX = 16 /* the kernel has 10 at most */ };

/* The folder of idle state I of a PU, counted from the shallowest. False after the last, or where states
 * cannot be disabled. */
static bool find_state(const struct layout *layout, unsigned pu, size_t i, char folder[static FOLDER_SIZE]) {
    snprintf(folder, FOLDER_SIZE, LAYOUT_CPU "/cpu%u/cpuidle/state%zu", pu, i);
    return i < STATES_MAX && layout_has(layout, folder, "disable");
}

/* Appends the setting of a PU: "all"; the name of the deepest enabled state, if exactly the deeper ones are
 * disabled; else "all but" and the disabled states. */
static int describe(const struct layout *layout, unsigned pu, struct text *ret) {
    char folder[FOLDER_SIZE], name[64], value[32], deepest[64] = "", last[64] = "";
    struct text off;
    size_t count = 0, gaps = 0;
    int r = 0;
    text_init(&off, STATES_MAX * sizeof name);
    for (size_t i = 0; r == 0 && find_state(layout, pu, i, folder); i++) {
        (void)layout_value(layout, folder, "name", name, sizeof name);
        (void)layout_value(layout, folder, "disable", value, sizeof value);
        if (value[0] && strcmp(value, "0") != 0) {
            if (count++ == 0)
                snprintf(deepest, sizeof deepest, "%s", last);
            r = text_printf(&off, " %s", name);
        } else {
            gaps += count > 0;
        }
        snprintf(last, sizeof last, "%s", name);
    }
    if (r == 0 && count == 0)
        r = text_append_string(ret, "all");
    else if (r == 0)
        r = gaps == 0 && deepest[0] ? text_append_string(ret, deepest)
                                    : text_printf(ret, "all but%s", off.bytes);
    text_clear(&off);
    return r;
}

/* The status of the control idle-states: the states of each PU that are enabled. */
static void read_status(const struct layout *layout, struct control_status *ret) {
    struct text text;
    struct layout_place place;
    char folder[FOLDER_SIZE], name[64];
    text_init(&text, STATES_MAX * 128);
    for (size_t i = 0; layout_place(layout, LAYOUT_PU, "", i, &place); i++) {
        if (!find_state(layout, layout->pus[i], 0, folder))
            continue;
        if (!ret->path[0]) {
            control_set_path(ret, folder, "disable");
            control_add_possible(ret, "all");
            for (size_t j = 0; find_state(layout, layout->pus[i], j, folder); j++)
                if (layout_value(layout, folder, "name", name, sizeof name) == 0)
                    control_add_possible(ret, " %s", name);
        }
        text_reset(&text);
        if (describe(layout, layout->pus[i], &text) < 0)
            ret->error = -ENOMEM;
        values_add(&ret->values, text.bytes, &place.pus);
    }
    text_clear(&text);
    (void)layout_value(layout, LAYOUT_CPU "/cpuidle", "current_driver", ret->driver, sizeof ret->driver);
}

static void files(const struct layout *layout, struct plan *ret) {
    char folder[FOLDER_SIZE];
    for (size_t i = 0; i < layout->pu_count; i++)
        for (size_t j = 0; find_state(layout, layout->pus[i], j, folder); j++)
            control_add_file(ret, folder, "disable");
}

/* Reads a latency such as "10us". */
static bool parse_latency(const char *asked, uint64_t *ret) {
    size_t length = strlen(asked);
    if (length < 3 || strcmp(asked + length - 2, "us") != 0)
        return false;
    length -= 2;
    while (length > 0 && asked[length - 1] == ' ')
        length--;
    return number_parse_uint64(asked, length, ret);
}

/* The number of states, from the shallowest, that ASKED allows a PU: all, up to a name, or up to a latency;
 * 0: ASKED matches no state. */
static size_t count_allowed(const struct layout *layout, unsigned pu, const char *asked) {
    char folder[FOLDER_SIZE], name[64];
    uint64_t latency_us;
    bool all = strcmp(asked, "all") == 0, latency = parse_latency(asked, &latency_us);
    size_t count = 0;
    for (size_t i = 0; find_state(layout, pu, i, folder); i++) {
        if (all || (latency && layout_number(layout, folder, "latency") <= latency_us))
            count = i + 1;
        else if (!latency && layout_value(layout, folder, "name", name, sizeof name) == 0 &&
                 strcasecmp(name, asked) == 0)
            return i + 1;
    }
    return count;
}

/* Plans to enable the idle states of every PU that ASKED allows and to disable the others. -EINVAL: a PU
 * would have none. */
static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    char folder[FOLDER_SIZE];
    for (size_t i = 0; i < layout->pu_count; i++) {
        unsigned pu = layout->pus[i];
        size_t count = count_allowed(layout, pu, asked);
        for (size_t j = 0; find_state(layout, pu, j, folder); j++) {
            if (count == 0)
                return failure_set(failure, -EINVAL,
                                   "'%s' leaves PU %u no idle state; expected all, the name of one that it "
                                   "has, or a latency such as 10us",
                                   asked, pu);
            plan_add_number(ret, (int)pu, folder, "disable", j >= count);
        }
    }
    return 0;
}

const struct control control_idle_states = {
    .name = "idle-states",
    .absent = "the kernel has no states to choose from: it is a virtual machine, or was started so",
    .read_status = read_status,
    .files = files,
    .plan = plan};
