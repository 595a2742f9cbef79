#include "engine/agent/probes/hwmon.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char class[] = "sys/class/hwmon";

/* "../../devices/platform/coretemp.0/hwmon/hwmon3" without what comes after the device. */
static void read_device(const struct machine *machine, const char *entry, struct hwmon *chip) {
    cleanup_close int folder = machine_open_file(machine, class, O_RDONLY | O_DIRECTORY);
    ssize_t length = folder < 0 ? -1 : readlinkat(folder, entry, chip->device, sizeof chip->device - 1);
    chip->device[length < 0 ? 0 : length] = '\0';
    char *end = strstr(chip->device, "/hwmon/");
    if (end)
        *end = '\0';
}

/* Until Linux 3.10 many chips had their files beside the device's. */
static bool read_chip(const struct machine *machine, const char *entry, struct hwmon *chip) {
    static const char *const places[] = {"", "/device"};
    for (size_t i = 0; i < sizeof places / sizeof *places; i++) {
        char path[MACHINE_PATH_LIMIT];
        snprintf(chip->folder, sizeof chip->folder, "%s/%.128s%s", class, entry, places[i]);
        snprintf(path, sizeof path, "%s/name", chip->folder);
        if (machine_read_value(machine, path, chip->name, sizeof chip->name) == 0) {
            read_device(machine, entry, chip);
            return true;
        }
    }
    return false;
}

static int compare(const void *a, const void *b) {
    const struct hwmon *left = a, *right = b;
    int order = strcmp(left->name, right->name);
    if (order == 0)
        order = strverscmp(left->device, right->device);
    return order ? order : strverscmp(left->folder, right->folder);
}

int hwmon_find(const struct machine *machine, struct hwmon_list *ret) {
    *ret = (struct hwmon_list){0};
    cleanup(machine_names_clear) struct machine_names entries = {0};
    int r = machine_list(machine, class, "hwmon", &entries);
    if (r < 0)
        return r == -ENOENT || r == -ENOTDIR ? 0 : r;
    if (entries.count > HWMON_LIMIT)
        return -E2BIG;
    ret->items = calloc(entries.count + 1, sizeof *ret->items);
    if (!ret->items)
        return -ENOMEM;
    for (size_t i = 0; i < entries.count; i++)
        ret->count += read_chip(machine, entries.items[i], &ret->items[ret->count]);
    qsort(ret->items, ret->count, sizeof *ret->items, compare);
    return 0;
}

void hwmon_list_clear(struct hwmon_list *list) {
    free(list->items);
    *list = (struct hwmon_list){0};
}

int hwmon_sensors(const struct machine *machine, const struct hwmon *chip, const char *prefix,
                  const char *suffix, struct machine_names *ret) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    int r = machine_list(machine, chip->folder, prefix, &names);
    if (r < 0)
        return r;
    size_t kept = 0, ending = strlen(suffix);
    for (size_t i = 0; i < names.count; i++) {
        char *name = names.items[i];
        size_t length = strlen(name);
        if (length <= ending || strcmp(name + length - ending, suffix) != 0) {
            free(name);
            continue;
        }
        name[length - ending] = '\0';
        names.items[kept++] = name;
    }
    names.count = kept;
    *ret = names;
    names = (struct machine_names){0};
    return 0;
}

void hwmon_label(const struct machine *machine, const struct hwmon *chip, const char *sensor, char *buffer,
                 size_t size) {
    char path[MACHINE_PATH_LIMIT];
    snprintf(path, sizeof path, "%s/%.64s_label", chip->folder, sensor);
    if (machine_read_value(machine, path, buffer, size) < 0)
        buffer[0] = '\0';
}
