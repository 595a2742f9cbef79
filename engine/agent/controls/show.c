/* --controls: what can be set here, and how it stands. */
#include "engine/agent/controls/arguments.h"
#include "engine/agent/controls/shelf.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static int show_control(const struct layout *layout, const struct control *control, struct lines *lines) {
    cleanup(control_look_clear) struct control_look look;
    control_look_init(&look);
    int r = control_look_at(control, layout, &look);
    if (r == 0)
        lines_put(lines, "control", control->name, control_access_name(look.access), look.value.bytes,
                  look.possible.bytes, look.driver, look.why, NULL);
    return r;
}

static void show_machine(const struct layout *layout, struct lines *lines) {
    char boot[64], driver[64] = "", base[NUMBER_TEXT_SIZE] = "", max[NUMBER_TEXT_SIZE] = "";
    if (machine_read_value(layout->machine, "proc/sys/kernel/random/boot_id", boot, sizeof boot) < 0)
        boot[0] = '\0';
    uint64_t base_khz = 0, max_khz = 0;
    for (size_t i = 0; i < layout->policy_count; i++) {
        const struct policy *policy = &layout->policies[i];
        uint64_t khz = layout_number(layout, policy->folder, "cpuinfo_max_freq");
        max_khz = khz > max_khz ? khz : max_khz;
        khz = layout_base_khz(layout, policy);
        base_khz = khz > base_khz ? khz : base_khz;
        if (i == 0 && layout_value(layout, policy->folder, "scaling_driver", driver, sizeof driver) < 0)
            driver[0] = '\0';
    }
    if (base_khz)
        number_format_uint64(base_khz * 1000, base);
    if (max_khz)
        number_format_uint64(max_khz * 1000, max);
    lines_put(lines, "machine", boot, driver, base, max, NULL);
}

static int show_all(struct shelf *shelf, const struct control_arguments *given, struct lines *lines,
                    struct failure *failure) {
    cleanup(machine_close) struct machine machine = {.root = -1};
    cleanup(layout_clear) struct layout layout = {0};
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    int r = machine_open(given->root, &machine, failure);
    if (r < 0)
        return r;
    r = layout_read(&machine, &layout);
    for (unsigned index = 0; index < CONTROL_COUNT && r == 0; index++)
        r = show_control(&layout, control_at((enum control_index)index), lines);
    if (r < 0)
        return failure_memory(failure);
    show_machine(&layout, lines);
    r = shelf ? shelf_load(shelf, &snapshot, failure) : -ENOENT;
    if (r == 0)
        snapshot_tell_held(&snapshot, lines);
    return r == -ENOENT || r == -ESTALE ? 0 : r; /* one that cannot be used is told as a failure */
}

int tool_controls(int count, char **arguments) {
    return control_tool(count, arguments, 0, SHELF_LOOK, show_all);
}
