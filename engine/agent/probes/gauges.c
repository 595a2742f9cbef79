#include "engine/agent/probes/gauges.h"

#include "engine/agent/probes/source.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct gauge {
    struct source source;
    enum gauge_scale scale;
};

struct gauges {
    struct gauge *items;
    size_t count, capacity;
};

int gauges_add(struct probing *probing, const char *path, enum gauge_scale scale, const char *unit,
               const char *name) {
    struct gauges *gauges = probing->state;
    if (!gauges)
        probing->state = gauges = calloc(1, sizeof *gauges);
    if (!gauges)
        return -ENOMEM;
    int r = list_reserve(&gauges->items, &gauges->capacity, gauges->count + 1, sizeof *gauges->items,
                         PROBE_COLUMN_LIMIT + 1);
    if (r == 0)
        r = probing_add_column(probing, unit, "%s", name);
    if (r < 0)
        return r;
    struct gauge *gauge = &gauges->items[gauges->count];
    gauge->scale = scale;
    r = source_init(&gauge->source, path);
    if (r < 0)
        return r;
    gauges->count++;
    return 0;
}

static void put_thousandfold(struct probing *probing, char *digits, size_t length) {
    memcpy(digits + length, "000", 3);
    probing_put(probing, digits, length == 1 && digits[0] == '0' ? 1 : length + 3);
}

static void put_thousandth(struct probing *probing, char *digits, size_t length) {
    size_t first = digits[0] == '-';
    while (length - first < 4) { /* 50 is 0.050 */
        memmove(digits + first + 1, digits + first, length - first);
        digits[first] = '0';
        length++;
    }
    memmove(digits + length - 2, digits + length - 3, 3);
    digits[length - 3] = '.';
    probing_put(probing, digits, length + 1);
}

void gauges_sample(struct probing *probing) {
    struct gauges *gauges = probing->state;
    for (size_t i = 0; i < gauges->count; i++) {
        char digits[64];
        ssize_t length = source_read_digits(&gauges->items[i].source, probing->machine, probing->now_ns,
                                            digits, sizeof digits);
        if (length < 0 || length > PROBE_VALUE_SIZE - 5)
            probing_put_gone(probing);
        else if (gauges->items[i].scale == GAUGE_THOUSANDFOLD)
            put_thousandfold(probing, digits, (size_t)length);
        else if (gauges->items[i].scale == GAUGE_THOUSANDTH)
            put_thousandth(probing, digits, (size_t)length);
        else
            probing_put(probing, digits, (size_t)length);
    }
}

void gauges_end(struct probing *probing) {
    struct gauges *gauges = probing->state;
    for (size_t i = 0; i < gauges->count; i++)
        source_clear(&gauges->items[i].source);
    free(gauges->items);
    free(gauges);
    probing->state = NULL;
}
