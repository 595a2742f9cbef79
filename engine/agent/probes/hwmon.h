/* The sensors' chips in /sys/class/hwmon, found by name: their numbers change from boot to boot. */
#ifndef ASSAY_PROBES_HWMON_H
#define ASSAY_PROBES_HWMON_H

#include "engine/agent/machine/machine.h"

struct hwmon {
    char folder[MACHINE_PATH_LIMIT / 2]; /* where its files are */
    char name[64];
    char device[MACHINE_PATH_LIMIT / 2]; /* where the device is; "" if that is not known */
};

struct hwmon_list {
    struct hwmon *items; /* by name, then by device: the same order after each boot */
    size_t count;
};

enum { HWMON_LIMIT = 256 };

/* 0, also if there are none, or a negative errno. */
int hwmon_find(const struct machine *machine, struct hwmon_list *ret);
void hwmon_list_clear(struct hwmon_list *list);

/* The files of CHIP whose names begin with PREFIX and end in SUFFIX, without that. */
int hwmon_sensors(const struct machine *machine, const struct hwmon *chip, const char *prefix,
                  const char *suffix, struct machine_names *ret);
/* "Core 3"; "" if SENSOR has no label. */
void hwmon_label(const struct machine *machine, const struct hwmon *chip, const char *sensor, char *buffer,
                 size_t size);

#endif
