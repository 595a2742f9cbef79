/* The probe `network`: bytes and packets that each interface has received and sent since boot. It is read at
 * most ten times a second. */
#include "engine/agent/probes/probe.h"
#include "engine/agent/probes/source.h"
#include "engine/foundation/list.h"

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CONTENT = MACHINE_FILE_LIMIT,
    FIELDS = 16,
    COLUMNS = 6,
    INTERFACES = PROBE_COLUMN_LIMIT / COLUMNS,
    NAME = 32
};

struct interface {
    char name[NAME];
    bool there;
    uint64_t fields[FIELDS];
};

struct network {
    struct source source;
    struct interface *items;
    size_t count, capacity;
    char content[CONTENT];
};

/* Reads the fields of an interface: bytes packets errs drop fifo frame compressed multicast (received), bytes
 * packets errs drop fifo colls carrier compressed (sent). */
static bool read_fields(const char *numbers, uint64_t fields[static FIELDS]) {
    for (size_t i = 0; i < FIELDS; i++) {
        char *end;
        numbers += strspn(numbers, " ");
        if (!isdigit((unsigned char)*numbers))
            return false;
        fields[i] = strtoull(numbers, &end, 10);
        numbers = end;
    }
    return true;
}

/* Reads the next interface but lo from *AT, "  eth0: 1 2 3 ...", and moves *AT behind its line. False at the
 * end. */
static bool next_interface(char **at, struct interface *ret) {
    while (*at) {
        char *line = *at, *end = strchr(line, '\n');
        *at = end ? end + 1 : NULL;
        if (end)
            *end = '\0';
        line += strspn(line, " ");
        char *colon = strrchr(line, ':'); /* an alias has one in its name */
        if (!colon || colon == line || colon - line >= NAME)
            continue;
        memcpy(ret->name, line, (size_t)(colon - line));
        ret->name[colon - line] = '\0';
        ret->there = read_fields(colon + 1, ret->fields);
        if (strcmp(ret->name, "lo") != 0)
            return true;
    }
    return false;
}

static ssize_t read_content(struct probing *probing, struct network *network) {
    return source_read(&network->source, probing->machine, probing->now_ns, network->content, CONTENT);
}

/* Reads /proc/net/dev, and updates the interfaces that were there at the beginning. */
static void read_interfaces(struct probing *probing, struct network *network) {
    for (size_t i = 0; i < network->count; i++)
        network->items[i].there = false;
    char *at = read_content(probing, network) < 0 ? NULL : network->content;
    struct interface found;
    while (next_interface(&at, &found)) {
        size_t i = 0;
        while (i < network->count && strcmp(network->items[i].name, found.name) != 0)
            i++;
        if (i < network->count)
            network->items[i] = found;
    }
}

/* Puts the counters of each interface; those of one that has disappeared are gone. */
static void sample(struct probing *probing) {
    struct network *network = probing->state;
    read_interfaces(probing, network);
    for (size_t i = 0; i < network->count; i++) {
        const uint64_t *f = network->items[i].fields;
        const uint64_t values[COLUMNS] = {f[0], f[1], f[2] + f[3], f[8], f[9], f[10] + f[11]};
        for (size_t k = 0; k < COLUMNS; k++)
            if (network->items[i].there)
                probing_put_number(probing, values[k]);
            else
                probing_put_gone(probing);
    }
}

/* Adds the columns of an interface. */
static void add_interface(struct probing *probing, struct network *network, const struct interface *found) {
    static const struct {
        const char *name, *unit;
    } columns[COLUMNS] = {{"rx-bytes", "By"}, {"rx-packets", "1"}, {"rx-errors", "1"},
                          {"tx-bytes", "By"}, {"tx-packets", "1"}, {"tx-errors", "1"}};
    int r = list_reserve(&network->items, &network->capacity, network->count + 1, sizeof *network->items,
                         INTERFACES);
    if (r == -EFBIG)
        probing_note(probing, "more than %d interfaces: the rest is left out", INTERFACES);
    else if (r < 0)
        probing->error = r;
    if (r < 0)
        return;
    network->items[network->count++] = *found;
    for (size_t k = 0; k < COLUMNS; k++)
        probing_add_column(probing, columns[k].unit, "%s-%s", found->name, columns[k].name);
}

/* Adds columns for each network interface that is there now. */
static void begin(struct probing *probing) {
    struct network *network = probing->state;
    if (source_init(&network->source, "proc/net/dev") < 0) {
        probing->error = -ENOMEM;
        return;
    }
    ssize_t length = read_content(probing, network);
    if (length < 0)
        probing_fail(probing, (int)length, "/proc/net/dev: %s", strerror((int)-length));
    char *at = length < 0 ? NULL : network->content;
    struct interface found;
    while (next_interface(&at, &found))
        add_interface(probing, network, &found);
}

static void end(struct probing *probing) {
    struct network *network = probing->state;
    source_clear(&network->source);
    free(network->items);
}

const struct probe probe_network = {.name = "network",
                                    .source = "/proc/net/dev",
                                    .missing = "no interface but lo",
                                    .state_size = sizeof(struct network),
                                    .every_ns = PROBE_SECOND / 10,
                                    .begin = begin,
                                    .sample = sample,
                                    .end = end};
