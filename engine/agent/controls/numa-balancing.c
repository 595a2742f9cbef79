/* Pages that follow the threads that use them. Kernel: admin-guide/sysctl/kernel.rst (numa_balancing). */
#include "engine/agent/controls/control.h"

#include <string.h>

#define FOLDER "proc/sys/kernel"
#define NAME "numa_balancing"

static int look(const struct layout *layout, struct control_look *ret) {
    char value[32];
    if (layout_value(layout, FOLDER, NAME, value, sizeof value) < 0)
        return control_absent(ret, "this kernel has none");
    control_note_path(ret, FOLDER, NAME);
    int r = text_append_string(&ret->possible, "on off");
    return r == 0 ? text_append_string(&ret->value, strcmp(value, "0") == 0 ? "off" : "on") : r;
}

static int files(const struct layout *layout, struct control_files *ret) {
    (void)layout;
    return control_add_file(ret, FOLDER, NAME);
}

static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    (void)layout;
    bool on;
    int r = control_parse_switch(asked, &on, failure);
    if (r < 0)
        return r;
    struct plan_write *write = plan_add_number(ret, -1, FOLDER, NAME, on);
    if (!write)
        return failure_memory(failure);
    if (on)
        write->most = 3; /* bits: balancing, and tiers of memory */
    return 0;
}

const struct control control_numa_balancing = {
    .name = "numa-balancing", .look = look, .files = files, .plan = plan};
