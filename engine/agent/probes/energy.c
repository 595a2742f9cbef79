/*
 * The energy that RAPL's zones have used since the probe began (Linux, Documentation/power/powercap). A
 * zone's counter starts anew after max_energy_range_uj, which for small ranges (65.7 kJ) is after a minute at
 * 1 kW: one wrap between two readings is seen, a second would not be. So they are read every 10 s at least,
 * and a zone that could not be read for a minute has lost its count.
 */
#include "engine/agent/probes/probe.h"
#include "engine/agent/probes/source.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define KEEP_UP_NS (10 * PROBE_SECOND)
#define LOST_AFTER_NS (60 * PROBE_SECOND)
static const char class[] = "sys/class/powercap";

struct zone {
    struct source source;
    uint64_t range, last, used;
    int64_t read_ns;
    bool known; /* could be read the last time that it was tried */
    bool lost;
};

struct zones {
    struct zone *items;
    size_t count;
};

static bool read_counter(struct probing *probing, struct zone *zone, uint64_t *ret) {
    char digits[64];
    ssize_t length =
        source_read_digits(&zone->source, probing->machine, probing->now_ns, digits, sizeof digits);
    return length > 0 && number_parse_uint64(digits, (size_t)length, ret) && *ret <= zone->range;
}

static void read_zone(struct probing *probing, struct zone *zone) {
    uint64_t counter;
    if (zone->lost)
        return;
    zone->lost = probing->now_ns - zone->read_ns > LOST_AFTER_NS;
    zone->known = !zone->lost && read_counter(probing, zone, &counter);
    if (!zone->known)
        return;
    zone->used += counter >= zone->last ? counter - zone->last : zone->range - zone->last + counter;
    zone->last = counter;
    zone->read_ns = probing->now_ns;
}

static void keep_up(struct probing *probing) {
    struct zones *zones = probing->state;
    for (size_t i = 0; i < zones->count; i++)
        read_zone(probing, &zones->items[i]);
}

static void sample(struct probing *probing) {
    struct zones *zones = probing->state;
    for (size_t i = 0; i < zones->count; i++) {
        read_zone(probing, &zones->items[i]);
        if (zones->items[i].known)
            probing_put_number(probing, zones->items[i].used);
        else
            probing_put_gone(probing);
    }
}

/* "package-0", "package-0-dram": a zone's own name, and before it those of the zones above: intel-rapl:0:1 is
 * part of intel-rapl:0. Says whether there is such a zone. */
static bool name_zone(const struct machine *machine, const char *entry, char *buffer, size_t size) {
    char path[MACHINE_PATH_LIMIT], parent[128], name[64];
    size_t length = 0;
    for (const char *colon = strchr(entry, ':'); colon; colon = strchr(colon + 1, ':')) {
        const char *next = strchr(colon + 1, ':');
        snprintf(parent, sizeof parent, "%.*s", next ? (int)(next - entry) : (int)strlen(entry), entry);
        snprintf(path, sizeof path, "%s/%s/name", class, parent);
        if (machine_read_value(machine, path, name, sizeof name) < 0 || length >= size)
            return false;
        length += (size_t)snprintf(buffer + length, size - length, "%s%s", length > 0 ? "-" : "", name);
    }
    return length > 0 && length < size;
}

struct found {
    char name[PROBE_NAME_SIZE], entry[128];
};

static int compare(const void *a, const void *b) {
    return strverscmp(((const struct found *)a)->name, ((const struct found *)b)->name);
}

/* A zone whose counter cannot be read is left out, with a note. */
static void begin_zone(struct probing *probing, struct zones *zones, const struct found *found) {
    char path[MACHINE_PATH_LIMIT], digits[64];
    int64_t range;
    struct zone *zone = &zones->items[zones->count];
    snprintf(path, sizeof path, "%s/%s/max_energy_range_uj", class, found->entry);
    int r = machine_read_number(probing->machine, path, &range);
    if (r < 0 || range <= 0) {
        probing_note(probing, "%s: /%s: %s", found->name, path, strerror(r < 0 ? -r : EINVAL));
        return;
    }
    snprintf(path, sizeof path, "%s/%s/energy_uj", class, found->entry);
    *zone = (struct zone){.range = (uint64_t)range, .read_ns = probing->now_ns};
    if (source_init(&zone->source, path) < 0)
        probing->error = -ENOMEM;
    ssize_t length =
        source_read_digits(&zone->source, probing->machine, probing->now_ns, digits, sizeof digits);
    zone->known = length > 0 && read_counter(probing, zone, &zone->last);
    if (!zone->known)
        probing_note(probing, "%s: /%s: %s%s", found->name, path,
                     strerror(length < 0 ? (int)-length : EINVAL),
                     length == -EACCES ? " (only root may read it)" : "");
    if (zone->known && probing_add_column(probing, "uJ", "%s", found->name))
        zones->count++;
    else
        source_clear(&zone->source);
}

/* "intel-rapl:" has AMD's zones too; "intel-rapl-mmio:" the same counters once more. */
static void begin(struct probing *probing) {
    cleanup(machine_names_clear) struct machine_names entries = {0};
    if (machine_list(probing->machine, class, "intel-rapl:", &entries) < 0 || entries.count == 0)
        return;
    struct zones *zones = probing->state;
    cleanup_free struct found *found = calloc(entries.count, sizeof *found);
    if (!found || !(zones->items = calloc(entries.count, sizeof *zones->items))) {
        probing->error = -ENOMEM;
        return;
    }
    size_t count = 0;
    for (size_t i = 0; i < entries.count; i++) {
        snprintf(found[count].entry, sizeof found->entry, "%s", entries.items[i]);
        count += name_zone(probing->machine, found[count].entry, found[count].name, sizeof found->name);
    }
    qsort(found, count, sizeof *found, compare);
    for (size_t i = 0; i < count; i++)
        begin_zone(probing, zones, &found[i]);
    if (zones->count == 0 && probing->why[0] && probing->error == 0)
        probing->error = -EACCES;
}

static void end(struct probing *probing) {
    struct zones *zones = probing->state;
    for (size_t i = 0; i < zones->count; i++)
        source_clear(&zones->items[i].source);
    free(zones->items);
}

const struct probe probe_energy = {.name = "energy",
                                   .source = "powercap intel-rapl",
                                   .missing = "no RAPL zone in /sys/class/powercap",
                                   .state_size = sizeof(struct zones),
                                   .keep_up_ns = KEEP_UP_NS,
                                   .begin = begin,
                                   .sample = sample,
                                   .keep_up = keep_up,
                                   .end = end};
