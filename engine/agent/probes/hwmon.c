/*
 * Sensor chips in /sys/class/hwmon, found by name, because their numbers change from boot to boot.
 *
 * temperature: of packages and cores, from the chips of processors (coretemp, k10temp, zenpower, apm_xgene);
 * without such a chip, from the thermal zones of processors.
 *
 * power: of whole machines (power_meter), graphics boards, rails.
 */
#include "engine/agent/probes/gauges.h"
#include "engine/foundation/cleanup.h"

#include <ctype.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define CLASS "sys/class/hwmon"

enum { CHIPS_MAX = 256, LABEL_SIZE = 64 };

struct chip {
    char folder[MACHINE_PATH_LIMIT / 2]; /* of its files */
    char name[64];
    char device[MACHINE_PATH_LIMIT / 2]; /* path of its device, as the class's link has it; "": not known */
};

struct chips {
    struct chip *items; /* sorted by name, then by device: the same order after each boot */
    size_t count;
};

static void clear_chips(struct chips *chips) {
    free(chips->items);
}

/* Reads the chip in ENTRY of the class: its name, the folder of its files, and its device, which is the
 * class's link without "/hwmon/...": "../../devices/platform/coretemp.0/hwmon/hwmon3". False: it has no name.
 */
static bool read_chip(const struct machine *machine, const char *entry, struct chip *chip) {
    static const char *const places[] = {"", "/device" /* many chips until Linux 3.10 */};
    int r = -1;
    for (size_t i = 0; r < 0 && i < sizeof places / sizeof *places; i++) {
        snprintf(chip->folder, sizeof chip->folder, CLASS "/%.128s%s", entry, places[i]);
        r = machine_read_value(machine, machine_path("%s/name", chip->folder), chip->name, sizeof chip->name);
    }
    if (r < 0)
        return false;
    cleanup_close int folder = machine_open_file(machine, CLASS, O_RDONLY | O_DIRECTORY);
    ssize_t length = folder < 0 ? -1 : readlinkat(folder, entry, chip->device, sizeof chip->device - 1);
    chip->device[length < 0 ? 0 : length] = '\0';
    char *end = strstr(chip->device, "/hwmon/");
    if (end)
        *end = '\0';
    return true;
}

static int compare(const void *a, const void *b) {
    const struct chip *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    if (order == 0)
        order = strverscmp(left->device, right->device);
    return order ? order : strverscmp(left->folder, right->folder);
}

/* All chips of the class hwmon, sorted. None when there is no memory or are more than CHIPS_MAX, which is set
 * in probing->error. */
static struct chips find_chips(struct probing *probing) {
    struct chips chips = {0};
    cleanup(machine_names_clear) struct machine_names entries = {0};
    int r = machine_list(probing->machine, CLASS, "hwmon", &entries);
    if (r == 0 && entries.count <= CHIPS_MAX)
        chips.items = calloc(entries.count + 1, sizeof *chips.items);
    if (r == -ENOMEM || (r == 0 && !chips.items))
        probing->error = entries.count > CHIPS_MAX ? -E2BIG : -ENOMEM;
    for (size_t i = 0; chips.items && i < entries.count; i++)
        chips.count += read_chip(probing->machine, entries.items[i], &chips.items[chips.count]);
    if (chips.items)
        qsort(chips.items, chips.count, sizeof *chips.items, compare);
    return chips;
}

/* ---- sensors of a chip */

/* The names of files that begin with KIND, such as "temp1_input". */
static void list_files(struct probing *probing, const struct chip *chip, const char *kind,
                       struct machine_names *ret) {
    if (machine_list(probing->machine, chip->folder, kind, ret) == -ENOMEM)
        probing->error = -ENOMEM;
}

/* Cuts SUFFIX off the name of a file: "temp1_input" is sensor "temp1". False if it does not end so. */
static bool cut_suffix(char *file, const char *suffix) {
    size_t length = strlen(file), ending = strlen(suffix);
    if (length <= ending || strcmp(file + length - ending, suffix) != 0)
        return false;
    file[length - ending] = '\0';
    return true;
}

/* "Core 3"; "" if SENSOR has no label. */
static void read_label(const struct machine *machine, const struct chip *chip, const char *sensor,
                       char label[static LABEL_SIZE]) {
    if (machine_read_value(machine, machine_path("%s/%s_label", chip->folder, sensor), label, LABEL_SIZE) < 0)
        label[0] = '\0';
}

/* ---- power */

/* Adds a gauge for each power sensor of CHIP: its average or, where it has none, its momentary value. */
static void add_power(struct probing *probing, const struct chip *chip) {
    cleanup(machine_names_clear) struct machine_names files = {0};
    list_files(probing, chip, "power", &files);
    for (size_t i = 0; i < files.count; i++) {
        char label[LABEL_SIZE], *sensor = files.items[i];
        bool average = cut_suffix(sensor, "_average");
        if (!average && (!cut_suffix(sensor, "_input") ||
                         machine_has(probing->machine, machine_path("%s/%s_average", chip->folder, sensor))))
            continue;
        read_label(probing->machine, chip, sensor, label);
        for (char *at = label; *at; at++)
            *at = (char)tolower((unsigned char)*at);
        gauges_add(probing, machine_path("%s/%s_%s", chip->folder, sensor, average ? "average" : "input"),
                   GAUGE_AS_IT_IS, "uW", "%.24s-%.24s", chip->name, label[0] ? label : sensor);
    }
}

static void begin_power(struct probing *probing) {
    cleanup(clear_chips) struct chips chips = find_chips(probing);
    for (size_t i = 0; i < chips.count; i++)
        add_power(probing, &chips.items[i]);
}

const struct probe probe_power = {.name = "power",
                                  .source = "hwmon power",
                                  .missing = "no chip in /sys/class/hwmon has powerN_average or powerN_input",
                                  .state_size = sizeof(struct gauges),
                                  .begin = begin_power,
                                  .sample = gauges_sample,
                                  .end = gauges_end};

/* ---- temperature */

/* The package of a coretemp chip (there is one chip for each package): by a sensor's label or, where that is
 * missing (before Sandy Bridge), by the device's name, "coretemp.0"; else OTHERWISE. */
static unsigned find_package(const struct machine *machine, const struct chip *chip,
                             const struct machine_names *sensors, unsigned default_package) {
    unsigned package;
    for (size_t i = 0; i < sensors->count; i++) {
        char label[LABEL_SIZE];
        read_label(machine, chip, sensors->items[i], label);
        if (sscanf(label, "Package id %u", &package) == 1 || sscanf(label, "Physical id %u", &package) == 1)
            return package;
    }
    const char *device = strrchr(chip->device, '/');
    return device && sscanf(device, "/coretemp.%u", &package) == 1 ? package : default_package;
}

/* Names a column of coretemp after its label, "Package id 0" or "Core 3". */
static void name_coretemp(const char *label, const char *sensor, unsigned package,
                          char name[static PROBE_NAME_SIZE]) {
    unsigned core;
    if (sscanf(label, "Core %u", &core) == 1)
        snprintf(name, PROBE_NAME_SIZE, "core-%u-%u", package, core);
    else if (strncmp(label, "Pack", 4) == 0 || strncmp(label, "Phys", 4) == 0)
        snprintf(name, PROBE_NAME_SIZE, "package-%u", package);
    else
        snprintf(name, PROBE_NAME_SIZE, "package-%u-%.40s", package, sensor);
}

/* Names a column of k10temp, zenpower or apm_xgene ("SoC Temperature"), which have one chip for each package
 * (Zen 1: each die) and the labels Tctl, Tdie, Tccd1. Tctl controls fans, and may be Tdie plus a fixed
 * offset. WHOLE is the label that is taken as the package's temperature: Tdie where it exists, else Tctl.
 * ALONE: the chip has one sensor. */
static void name_other(const char *label, const char *sensor, unsigned package, const char *whole, bool alone,
                       char name[static PROBE_NAME_SIZE]) {
    if (strcmp(label, whole) == 0 || strncmp(label, "SoC", 3) == 0 || (label[0] == '\0' && alone))
        snprintf(name, PROBE_NAME_SIZE, "package-%u", package);
    else if (strncmp(label, "Tccd", 4) == 0)
        snprintf(name, PROBE_NAME_SIZE, "package-%u-ccd%.32s", package, label + 4);
    else
        snprintf(name, PROBE_NAME_SIZE, "package-%u-%.40s", package, label[0] ? label : sensor);
}

/* Adds a gauge for each temperature sensor of CHIP. NUMBER: how many chips of the same name came before. */
static void add_temperatures(struct probing *probing, const struct chip *chip, unsigned number) {
    cleanup(machine_names_clear) struct machine_names files = {0};
    char label[LABEL_SIZE], name[PROBE_NAME_SIZE];
    const char *whole = "Tctl";
    bool coretemp = strcmp(chip->name, "coretemp") == 0;
    size_t count = 0;
    list_files(probing, chip, "temp", &files);
    for (size_t i = 0; i < files.count; i++) {
        char *sensor = files.items[i];
        if (!cut_suffix(sensor, "_input")) {
            sensor[0] = '\0';
            continue;
        }
        count++;
        read_label(probing->machine, chip, sensor, label);
        whole = strcmp(label, "Tdie") == 0 ? "Tdie" : whole;
    }
    unsigned package = coretemp ? find_package(probing->machine, chip, &files, number) : number;
    for (size_t i = 0; i < files.count; i++) {
        const char *sensor = files.items[i];
        if (!sensor[0])
            continue;
        read_label(probing->machine, chip, sensor, label);
        if (coretemp)
            name_coretemp(label, sensor, package, name);
        else
            name_other(label, sensor, package, whole, count == 1, name);
        gauges_add(probing, machine_path("%s/%s_input", chip->folder, sensor), GAUGE_THOUSANDTH, "Cel", "%s",
                   name);
    }
    snprintf(probing->source, sizeof probing->source, "hwmon %s", chip->name);
}

/* Adds a gauge for each thermal zone of a processor. */
static void add_zones(struct probing *probing) {
    static const char *const processor_words[] = {"cpu", "pkg", "soc", "core"};
    cleanup(machine_names_clear) struct machine_names zones = {0};
    unsigned packages = 0;
    if (machine_list(probing->machine, "sys/class/thermal", "thermal_zone", &zones) == -ENOMEM)
        probing->error = -ENOMEM;
    for (size_t i = 0; i < zones.count; i++) {
        char type[64] = "";
        bool known = false;
        (void)machine_read_value(probing->machine, machine_path("sys/class/thermal/%s/type", zones.items[i]),
                                 type, sizeof type);
        for (size_t k = 0; k < sizeof processor_words / sizeof *processor_words; k++)
            known = known || strcasestr(type, processor_words[k]);
        if (!known)
            continue;
        if (strcmp(type, "x86_pkg_temp") == 0)
            snprintf(type, sizeof type, "package-%u", packages++);
        gauges_add(probing, machine_path("sys/class/thermal/%s/temp", zones.items[i]), GAUGE_THOUSANDTH,
                   "Cel", "%.50s", type);
    }
    snprintf(probing->source, sizeof probing->source, "thermal zones");
}

/* Adds a column for each temperature of a processor. Without a known sensor chip, thermal zones are read
 * instead. */
static void begin_temperature(struct probing *probing) {
    static const char known[] = " coretemp k10temp zenpower apm_xgene ";
    cleanup(clear_chips) struct chips chips = find_chips(probing);
    unsigned number = 0;
    for (size_t i = 0; i < chips.count; i++, number++) {
        char word[LABEL_SIZE + 8];
        if (i > 0 && strcmp(chips.items[i - 1].name, chips.items[i].name) != 0)
            number = 0;
        snprintf(word, sizeof word, " %s ", chips.items[i].name);
        if (strstr(known, word))
            add_temperatures(probing, &chips.items[i], number);
    }
    if (probing->count == 0)
        add_zones(probing);
}

const struct probe probe_temperature = {
    .name = "temperature",
    .missing = "no coretemp, k10temp, zenpower or apm_xgene in /sys/class/hwmon, and no zone of a processor "
               "in /sys/class/thermal",
    .state_size = sizeof(struct gauges),
    .begin = begin_temperature,
    .sample = gauges_sample,
    .end = gauges_end};
