/* The power that chips in hwmon measure: whole machines (power_meter), graphics boards, rails. */
#include "engine/agent/probes/gauges.h"
#include "engine/agent/probes/hwmon.h"
#include "engine/foundation/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>

static int add(struct probing *probing, const struct hwmon *chip, const char *sensor, const char *file) {
    char path[MACHINE_PATH_LIMIT], label[64], name[PROBE_NAME_SIZE];
    hwmon_label(probing->machine, chip, sensor, label, sizeof label);
    for (char *at = label; *at; at++)
        *at = (char)tolower((unsigned char)*at);
    snprintf(name, sizeof name, "%.24s-%.24s", chip->name, label[0] ? label : sensor);
    snprintf(path, sizeof path, "%s/%.32s%s", chip->folder, sensor, file);
    int r = gauges_add(probing, path, GAUGE_AS_IT_IS, "uW", name);
    return r == -E2BIG ? 0 : r;
}

/* What a chip averages is meant to be read; the value of a moment only where there is no other. */
static int add_chip(struct probing *probing, const struct hwmon *chip) {
    cleanup(machine_names_clear) struct machine_names averages = {0};
    cleanup(machine_names_clear) struct machine_names inputs = {0};
    int r = hwmon_sensors(probing->machine, chip, "power", "_average", &averages);
    if (r == 0)
        r = hwmon_sensors(probing->machine, chip, "power", "_input", &inputs);
    for (size_t i = 0; r == 0 && i < averages.count; i++)
        r = add(probing, chip, averages.items[i], "_average");
    for (size_t i = 0; r == 0 && i < inputs.count; i++) {
        bool has_average = false;
        for (size_t k = 0; k < averages.count; k++)
            has_average = has_average || strcmp(averages.items[k], inputs.items[i]) == 0;
        if (!has_average)
            r = add(probing, chip, inputs.items[i], "_input");
    }
    return r;
}

static int begin(struct probing *probing) {
    cleanup(hwmon_list_clear) struct hwmon_list chips;
    int r = hwmon_find(probing->machine, &chips);
    for (size_t i = 0; r == 0 && i < chips.count; i++)
        r = add_chip(probing, &chips.items[i]);
    if (r < 0)
        return r;
    if (probing->count == 0)
        return probing_fail(probing, -ENOENT,
                            "no chip in /sys/class/hwmon has powerN_average or powerN_input");
    snprintf(probing->source, sizeof probing->source, "hwmon power");
    return 0;
}

const struct probe probe_power = {
    .name = "power", .begin = begin, .sample = gauges_sample, .end = gauges_end};
