/*
 * How hot packages and cores are: by the chips that processors have (coretemp, k10temp, zenpower, apm_xgene);
 * where there is none, by the thermal zones that are a processor's.
 */
#include "engine/agent/probes/gauges.h"
#include "engine/agent/probes/hwmon.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static int add(struct probing *probing, const struct hwmon *chip, const char *sensor, const char *name) {
    char path[MACHINE_PATH_LIMIT];
    snprintf(path, sizeof path, "%s/%.64s_input", chip->folder, sensor);
    int r = gauges_add(probing, path, GAUGE_THOUSANDTH, "Cel", name);
    return r == -E2BIG ? 0 : r;
}

/* ---- coretemp: a chip a package; labels "Package id 0" and "Core 3" */

/* By its label; where that is missing (before Sandy Bridge), by the device's name, "coretemp.0". */
static unsigned find_package(const struct machine *machine, const struct hwmon *chip,
                             const struct machine_names *sensors, unsigned otherwise) {
    unsigned package;
    for (size_t i = 0; i < sensors->count; i++) {
        char label[64];
        hwmon_label(machine, chip, sensors->items[i], label, sizeof label);
        if (sscanf(label, "Package id %u", &package) == 1 || sscanf(label, "Physical id %u", &package) == 1)
            return package;
    }
    const char *device = strrchr(chip->device, '/');
    return device && sscanf(device, "/coretemp.%u", &package) == 1 ? package : otherwise;
}

static int add_coretemp(struct probing *probing, const struct hwmon *chip, unsigned number) {
    cleanup(machine_names_clear) struct machine_names sensors = {0};
    int r = hwmon_sensors(probing->machine, chip, "temp", "_input", &sensors);
    unsigned package = find_package(probing->machine, chip, &sensors, number), core;
    for (size_t i = 0; r == 0 && i < sensors.count; i++) {
        char label[64], name[PROBE_NAME_SIZE];
        hwmon_label(probing->machine, chip, sensors.items[i], label, sizeof label);
        if (sscanf(label, "Core %u", &core) == 1)
            snprintf(name, sizeof name, "core-%u-%u", package, core);
        else if (strncmp(label, "Pack", 4) == 0 || strncmp(label, "Phys", 4) == 0)
            snprintf(name, sizeof name, "package-%u", package);
        else
            snprintf(name, sizeof name, "package-%u-%.40s", package, sensors.items[i]);
        r = add(probing, chip, sensors.items[i], name);
    }
    return r;
}

/* ---- k10temp, zenpower, apm_xgene ("SoC Temperature"): a chip a package (of Zen 1, a die); labels Tctl,
 * Tdie, Tccd1. Tctl is what fans go by, and may be a fixed offset over Tdie, which is then there as well. */

static int add_labelled(struct probing *probing, const struct hwmon *chip, unsigned number) {
    cleanup(machine_names_clear) struct machine_names sensors = {0};
    int r = hwmon_sensors(probing->machine, chip, "temp", "_input", &sensors);
    bool has_die = false;
    char label[64], name[PROBE_NAME_SIZE];
    for (size_t i = 0; i < sensors.count; i++) {
        hwmon_label(probing->machine, chip, sensors.items[i], label, sizeof label);
        has_die = has_die || strcmp(label, "Tdie") == 0;
    }
    for (size_t i = 0; r == 0 && i < sensors.count; i++) {
        hwmon_label(probing->machine, chip, sensors.items[i], label, sizeof label);
        if (strcmp(label, has_die ? "Tdie" : "Tctl") == 0 || strncmp(label, "SoC", 3) == 0 ||
            (label[0] == '\0' && sensors.count == 1))
            snprintf(name, sizeof name, "package-%u", number);
        else if (strncmp(label, "Tccd", 4) == 0)
            snprintf(name, sizeof name, "package-%u-ccd%.32s", number, label + 4);
        else
            snprintf(name, sizeof name, "package-%u-%.40s", number, label[0] ? label : sensors.items[i]);
        r = add(probing, chip, sensors.items[i], name);
    }
    return r;
}

static int add_chips(struct probing *probing) {
    cleanup(hwmon_list_clear) struct hwmon_list chips;
    int r = hwmon_find(probing->machine, &chips);
    const char *before = "";
    for (size_t i = 0, number = 0; r == 0 && i < chips.count; i++, number++) {
        const struct hwmon *chip = &chips.items[i];
        if (strcmp(before, chip->name) != 0)
            number = 0;
        before = chip->name;
        if (strcmp(chip->name, "coretemp") == 0)
            r = add_coretemp(probing, chip, (unsigned)number);
        else if (strcmp(chip->name, "k10temp") == 0 || strcmp(chip->name, "zenpower") == 0 ||
                 strcmp(chip->name, "apm_xgene") == 0)
            r = add_labelled(probing, chip, (unsigned)number);
        else
            continue;
        snprintf(probing->source, sizeof probing->source, "hwmon %s", chip->name);
    }
    return r;
}

/* ---- thermal zones */

static bool is_of_processor(const char *type) {
    return strcasestr(type, "cpu") || strcasestr(type, "pkg") || strcasestr(type, "soc") ||
           strcasestr(type, "core");
}

static int add_zones(struct probing *probing) {
    cleanup(machine_names_clear) struct machine_names zones = {0};
    int r = machine_list(probing->machine, "sys/class/thermal", "thermal_zone", &zones);
    unsigned packages = 0;
    if (r < 0)
        return r == -ENOENT ? 0 : r;
    for (size_t i = 0; r == 0 && i < zones.count; i++) {
        char path[MACHINE_PATH_LIMIT], type[64], name[PROBE_NAME_SIZE];
        snprintf(path, sizeof path, "sys/class/thermal/%.128s/type", zones.items[i]);
        if (machine_read_value(probing->machine, path, type, sizeof type) < 0 || !is_of_processor(type))
            continue;
        if (strcmp(type, "x86_pkg_temp") == 0)
            snprintf(name, sizeof name, "package-%u", packages++);
        else
            snprintf(name, sizeof name, "%.50s", type);
        snprintf(path, sizeof path, "sys/class/thermal/%.128s/temp", zones.items[i]);
        r = gauges_add(probing, path, GAUGE_THOUSANDTH, "Cel", name);
        r = r == -E2BIG ? 0 : r;
    }
    snprintf(probing->source, sizeof probing->source, "thermal zones");
    return r;
}

static int begin(struct probing *probing) {
    int r = add_chips(probing);
    if (r == 0 && probing->count == 0)
        r = add_zones(probing);
    if (r < 0 || probing->count > 0)
        return r;
    return probing_fail(probing, -ENOENT,
                        "no coretemp, k10temp, zenpower or apm_xgene in /sys/class/hwmon, and no zone of a "
                        "processor in /sys/class/thermal");
}

const struct probe probe_temperature = {
    .name = "temperature", .begin = begin, .sample = gauges_sample, .end = gauges_end};
