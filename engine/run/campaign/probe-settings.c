#include "engine/run/campaign/probe-settings.h"

#include "engine/documents/bind.h"
#include "engine/documents/unit.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const probe_kind_names[PROBE_KINDS] = {
    [PROBE_FREQUENCY] = "frequency", [PROBE_TEMPERATURE] = "temperature",
    [PROBE_THROTTLE] = "throttle",   [PROBE_ENERGY] = "energy",
    [PROBE_POWER] = "power",         [PROBE_LOAD] = "load",
    [PROBE_MEMORY] = "memory",       [PROBE_NETWORK] = "network",
    [PROBE_KERNEL] = "kernel",       [PROBE_DRIFT] = "drift"};

static const int64_t default_period_ns = 1000000000;
static const double shortest = 0.01, longest = 3600; /* s */

struct written {
    char *period;
    char *periods[PROBE_KINDS];
};

#define PROBE_FIELD(kind, name)                                                                              \
    { .key = name, .type = BIND_TEXT, .offset = offsetof(struct written, periods[kind]) }
static const struct bind_field fields[] = {
    {.key = "period", .type = BIND_TEXT, .offset = offsetof(struct written, period)},
    PROBE_FIELD(PROBE_FREQUENCY, "frequency"),
    PROBE_FIELD(PROBE_TEMPERATURE, "temperature"),
    PROBE_FIELD(PROBE_THROTTLE, "throttle"),
    PROBE_FIELD(PROBE_ENERGY, "energy"),
    PROBE_FIELD(PROBE_POWER, "power"),
    PROBE_FIELD(PROBE_LOAD, "load"),
    PROBE_FIELD(PROBE_MEMORY, "memory"),
    PROBE_FIELD(PROBE_NETWORK, "network"),
    PROBE_FIELD(PROBE_KERNEL, "kernel"),
    PROBE_FIELD(PROBE_DRIFT, "drift"),
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static int take_period(const struct document *document, const struct document_node *at, const char *text,
                       int64_t *ret, struct failure *failure) {
    double seconds;
    if (strcmp(text, "none") == 0) {
        *ret = 0;
        return 0;
    }
    if (!unit_parse(text, UNIT_TIME, &seconds) || !(seconds >= shortest && seconds <= longest))
        return failure_input(failure, document->file, at->line, at->column,
                             "'%.64s' is no period of a probe; expected a time from 10 ms to 1 h, such "
                             "as 100ms, or none",
                             text);
    *ret = llround(seconds * 1e9);
    return 0;
}

static int bind_each(const struct document *document, const struct document_node *node,
                     struct written *written, struct probe_settings *settings, struct failure *failure) {
    int r = bind_mapping(document, node, "probes", fields, FIELD_COUNT, written, failure);
    int64_t period = default_period_ns;
    if (r == 0 && written->period)
        r = take_period(document, document_get(node, "period"), written->period, &period, failure);
    for (size_t i = 0; r == 0 && i < PROBE_KINDS; i++) {
        settings->periods_ns[i] = period;
        if (written->periods[i])
            r = take_period(document, document_get(node, probe_kind_names[i]), written->periods[i],
                            &settings->periods_ns[i], failure);
    }
    return r;
}

int probe_settings_bind(const struct document *document, const struct document_node *node,
                        struct probe_settings *ret, struct failure *failure) {
    struct probe_settings settings;
    int64_t period = default_period_ns;
    int r = 0;
    if (node && node->kind == DOCUMENT_MAPPING) {
        struct written written = {0};
        r = bind_each(document, node, &written, &settings, failure);
        bind_clear(fields, FIELD_COUNT, &written);
    } else {
        if (node && (!node->text || node->kind == DOCUMENT_NULL))
            return failure_input(failure, document->file, node->line, node->column,
                                 "'probes' is %s, expected a period, a mapping, or none",
                                 document_kind_name(node->kind));
        r = node ? take_period(document, node, node->text, &period, failure) : 0;
        for (size_t i = 0; i < PROBE_KINDS; i++)
            settings.periods_ns[i] = period;
    }
    if (r == 0)
        *ret = settings;
    return r;
}

bool probe_settings_any(const struct probe_settings *settings) {
    for (size_t i = 0; i < PROBE_KINDS; i++)
        if (settings->periods_ns[i] > 0)
            return true;
    return false;
}
