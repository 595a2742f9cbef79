/*
 * The probe `energy`: the energy that RAPL's zones have used since the probe began (Linux,
 * Documentation/power/powercap). A zone's counter wraps after max_energy_range_uj, which for small ranges
 * (65.7 kJ) takes a minute at 1 kW. One wrap between two readings is detected, a second is not: so the
 * counters are read at least every 10 s.
 */
#include "engine/agent/probes/gauges.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REFRESH_NS (10 * PROBE_SECOND)
#define CLASS "sys/class/powercap"

/* Makes the name of a zone, "package-0-dram": its own name after those of the zones that contain it
 * (intel-rapl:0:1 is part of intel-rapl:0). False: a name cannot be read, or does not fit. */
static bool name_zone(const struct machine *machine, const char *entry, char *buffer, size_t size) {
    size_t length = 0;
    for (const char *colon = strchr(entry, ':'); colon; colon = strchr(colon + 1, ':')) {
        const char *next = strchr(colon + 1, ':');
        int parent = next ? (int)(next - entry) : (int)strlen(entry);
        char name[64];
        if (machine_read_value(machine, machine_path(CLASS "/%.*s/name", parent, entry), name, sizeof name) <
                0 ||
            length >= size)
            return false;
        length += (size_t)snprintf(buffer + length, size - length, "%s%s", length > 0 ? "-" : "", name);
    }
    return length > 0 && length < size;
}

struct zone {
    char name[PROBE_NAME_SIZE];
    const char *entry;
};

static int compare(const void *a, const void *b) {
    return strverscmp(((const struct zone *)a)->name, ((const struct zone *)b)->name);
}

/* Adds the counter of a zone. A zone that cannot be read is left out, with a note. */
static void begin_zone(struct probing *probing, const struct zone *zone) {
    int64_t range = 0, counter = 0;
    const char *path = machine_path(CLASS "/%s/max_energy_range_uj", zone->entry),
               *counter_path = machine_path(CLASS "/%s/energy_uj", zone->entry);
    int r = machine_read_number(probing->machine, path, &range);
    if (r == 0 && range > 0)
        r = machine_read_number(probing->machine, path = counter_path, &counter);
    if (r < 0 || range <= 0 || counter < 0 || counter > range) {
        probing_note(probing, "%s: /%s: %s%s", zone->name, path, strerror(r < 0 ? -r : EINVAL),
                     r == -EACCES ? " (only root may read it)" : "");
        return;
    }
    struct gauge *gauge = gauges_add(probing, path, GAUGE_COUNTER, "uJ", "%s", zone->name);
    if (!gauge)
        return;
    gauge->range = (uint64_t)range;
    gauge->last = (uint64_t)counter;
    gauge->read_ns = probing->now_ns;
}

/* Adds all zones of "intel-rapl:", which has AMD's zones, too. "intel-rapl-mmio:" is not read: it has the
 * same counters. */
static void begin(struct probing *probing) {
    cleanup(machine_names_clear) struct machine_names entries = {0};
    if (machine_list(probing->machine, CLASS, "intel-rapl:", &entries) < 0 || entries.count == 0)
        return;
    cleanup_free struct zone *zones = calloc(entries.count, sizeof *zones);
    if (!zones) {
        probing->error = -ENOMEM;
        return;
    }
    size_t count = 0;
    for (size_t i = 0; i < entries.count; i++) {
        zones[count].entry = entries.items[i];
        count += name_zone(probing->machine, entries.items[i], zones[count].name, sizeof zones->name);
    }
    qsort(zones, count, sizeof *zones, compare);
    for (size_t i = 0; i < count; i++)
        begin_zone(probing, &zones[i]);
    if (probing->count == 0 && probing->why[0] && probing->error == 0)
        probing->error = -EACCES;
}

const struct probe probe_energy = {.name = "energy",
                                   .source = "powercap intel-rapl",
                                   .missing = "no RAPL zone in /sys/class/powercap",
                                   .state_size = sizeof(struct gauges),
                                   .refresh_ns = REFRESH_NS,
                                   .begin = begin,
                                   .sample = gauges_sample,
                                   .refresh = gauges_refresh,
                                   .end = gauges_end};
