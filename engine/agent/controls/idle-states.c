/* How deep a PU may sleep. Kernel: admin-guide/pm/cpuidle.rst. */
#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { FOLDER_SIZE = 64, STATES = 16 /* the kernel has 10 at most */ };

struct states {
    size_t count;
    char folders[STATES][FOLDER_SIZE];
};

/* Their folders, in the kernel's order: shallow before deep. None if the PU has no folder of them, or if they
 * cannot be switched off, in which those of a PU do not differ. */
static int read_states(const struct layout *layout, unsigned pu, struct states *ret) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    char folder[FOLDER_SIZE];
    snprintf(folder, sizeof folder, LAYOUT_CPU "/cpu%u/cpuidle", pu);
    ret->count = 0;
    int r = machine_list(layout->machine, folder, "state", &names);
    if (r < 0)
        return r == -ENOMEM ? r : 0;
    for (size_t i = 0; i < names.count && ret->count < STATES; i++) {
        char *state = ret->folders[ret->count];
        if (snprintf(state, FOLDER_SIZE, "%s/%s", folder, names.items[i]) >= FOLDER_SIZE)
            continue;
        if (ret->count == 0 && !layout_has(layout, state, "disable"))
            break;
        ret->count++;
    }
    return 0;
}

/* What is off is told as the deepest that is on, if it is all of those below. */
static int describe(const struct layout *layout, const struct states *states, struct text *ret) {
    size_t off[STATES], count = 0;
    char name[64], value[32];
    for (size_t i = 0; i < states->count; i++)
        if (layout_value(layout, states->folders[i], "disable", value, sizeof value) == 0 &&
            strcmp(value, "0") != 0)
            off[count++] = i;
    if (count == 0)
        return text_append_string(ret, "all");
    if (count == states->count - off[0] && off[0] > 0 &&
        layout_value(layout, states->folders[off[0] - 1], "name", name, sizeof name) == 0)
        return text_append_string(ret, name);
    int r = text_append_string(ret, "all but");
    for (size_t i = 0; i < count && r == 0; i++)
        if (layout_value(layout, states->folders[off[i]], "name", name, sizeof name) == 0)
            r = text_printf(ret, " %s", name);
    return r;
}

static int look(const struct layout *layout, struct control_look *ret) {
    cleanup(values_clear) struct values values = {0};
    struct text text;
    text_init(&text, STATES * 128);
    struct states states;
    int r = 0;
    for (size_t i = 0; i < layout->pu_count && r == 0; i++) {
        r = read_states(layout, layout->pus[i], &states);
        if (r < 0 || states.count == 0)
            continue;
        text_reset(&text);
        if (values.count == 0) {
            control_note_path(ret, states.folders[0], "disable");
            r = text_append_string(&ret->possible, "all");
        }
        for (size_t j = 0; j < states.count && r == 0 && values.count == 0; j++) {
            char name[64];
            if (layout_value(layout, states.folders[j], "name", name, sizeof name) == 0)
                r = text_printf(&ret->possible, " %s", name);
        }
        if (r == 0)
            r = describe(layout, &states, &text);
        if (r == 0)
            r = values_add_pu(&values, text.bytes, layout->pus[i]);
    }
    text_clear(&text);
    if (r < 0)
        return r;
    if (layout_value(layout, LAYOUT_CPU "/cpuidle", "current_driver", ret->driver, sizeof ret->driver) < 0)
        ret->driver[0] = '\0';
    if (values.count == 0)
        return control_absent(ret, "the kernel has no states to choose from: it is a virtual machine, or was "
                                   "started so");
    return values_put(&values, &ret->value);
}

static int files(const struct layout *layout, struct control_files *ret) {
    struct states states;
    int r = 0;
    for (size_t i = 0; i < layout->pu_count && r == 0; i++) {
        r = read_states(layout, layout->pus[i], &states);
        for (size_t j = 0; j < states.count && r == 0; j++)
            r = control_add_file(ret, states.folders[j], "disable");
    }
    return r;
}

/* "10us" */
static bool parse_latency(const char *asked, uint64_t *ret) {
    size_t length = strlen(asked);
    if (length < 3 || strcmp(asked + length - 2, "us") != 0)
        return false;
    length -= 2;
    while (length > 0 && asked[length - 1] == ' ')
        length--;
    return number_parse_uint64(asked, length, ret);
}

/* How many of the states may be used, the first ones; 0 if ASKED names none. */
static size_t allowed(const struct layout *layout, const struct states *states, const char *asked) {
    if (strcmp(asked, "all") == 0)
        return states->count;
    uint64_t most;
    bool latency = parse_latency(asked, &most);
    size_t count = 0;
    for (size_t i = 0; i < states->count; i++) {
        char name[64];
        if (latency && layout_number(layout, states->folders[i], "latency") <= most)
            count = i + 1;
        if (!latency && layout_value(layout, states->folders[i], "name", name, sizeof name) == 0 &&
            strcasecmp(name, asked) == 0)
            return i + 1;
    }
    return count;
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    struct states states;
    for (size_t i = 0; i < layout->pu_count; i++) {
        unsigned pu = layout->pus[i];
        if (read_states(layout, pu, &states) < 0)
            return failure_memory(failure);
        size_t count = allowed(layout, &states, asked);
        if (states.count > 0 && count == 0)
            return failure_set(failure, -EINVAL,
                               "'%s' leaves PU %u no idle state; expected all, the name of one that it has, "
                               "or a latency such as 10us",
                               asked, pu);
        for (size_t j = 0; j < states.count; j++)
            if (!plan_add_number(ret, (int)pu, states.folders[j], "disable", j >= count))
                return failure_memory(failure);
    }
    return 0;
}

const struct control control_idle_states = {
    .name = "idle-states", .look = look, .files = files, .plan = plan};
