#include "engine/run/campaign/gate-settings.h"

#include "engine/documents/bind.h"

#include <string.h>

const char *const gate_kind_names[GATE_KINDS] = {
    [GATE_THROTTLE] = "throttle",  [GATE_FREQUENCY] = "frequency", [GATE_TEMPERATURE] = "temperature",
    [GATE_DRIFT] = "drift",        [GATE_LOAD] = "load",           [GATE_KERNEL] = "kernel",
    [GATE_UNWATCHED] = "unwatched"};
const char *const gate_action_names[] = {[GATE_NONE] = "none", [GATE_FLAG] = "flag", [GATE_REPEAT] = "repeat",
                                         [GATE_DROP] = "drop", [GATE_STOP] = "stop", NULL};

enum probe_kind gate_probe(enum gate_kind gate) {
    static const enum probe_kind probes[GATE_KINDS] = {
        [GATE_THROTTLE] = PROBE_THROTTLE,
        [GATE_FREQUENCY] = PROBE_FREQUENCY,
        [GATE_TEMPERATURE] = PROBE_TEMPERATURE,
        [GATE_DRIFT] = PROBE_DRIFT,
        [GATE_LOAD] = PROBE_LOAD,
        [GATE_KERNEL] = PROBE_KERNEL,
        [GATE_UNWATCHED] = PROBE_KINDS,
    };
    return probes[gate];
}

struct written {
    int actions[GATE_KINDS];
    struct gate_settings settings;
};

#define GATE_FIELD(kind, name)                                                                               \
    {                                                                                                        \
        .key = name, .type = BIND_CHOICE, .offset = offsetof(struct written, actions[kind]),                 \
        .choices = gate_action_names                                                                         \
    }
static const struct bind_field fields[] = {
    GATE_FIELD(GATE_THROTTLE, "throttle"),
    GATE_FIELD(GATE_FREQUENCY, "frequency"),
    GATE_FIELD(GATE_TEMPERATURE, "temperature"),
    GATE_FIELD(GATE_DRIFT, "drift"),
    GATE_FIELD(GATE_LOAD, "load"),
    GATE_FIELD(GATE_KERNEL, "kernel"),
    GATE_FIELD(GATE_UNWATCHED, "unwatched"),
    {.key = "repeats",
     .type = BIND_INTEGER,
     .offset = offsetof(struct written, settings.repeats),
     .minimum = 1,
     .maximum = 1000},
    {.key = "frequency-tolerance",
     .type = BIND_QUANTITY,
     .dimension = UNIT_RATIO,
     .offset = offsetof(struct written, settings.frequency_tolerance),
     .minimum = 1e-4,
     .maximum = 1},
    {.key = "temperature-band",
     .type = BIND_QUANTITY,
     .dimension = UNIT_TEMPERATURE,
     .offset = offsetof(struct written, settings.temperature_band),
     .minimum = 0.1,
     .maximum = 100},
    {.key = "foreign-load",
     .type = BIND_NUMBER,
     .offset = offsetof(struct written, settings.foreign_load),
     .minimum = 1e-3,
     .maximum = 1e4},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static const struct bind_field all = {.key = "gates", .type = BIND_CHOICE, .choices = gate_action_names};

int gate_settings_bind(const struct document *document, const struct document_node *node,
                       struct gate_settings *ret, struct failure *failure) {
    struct written written = {
        .settings = {.repeats = 3, .frequency_tolerance = 0.05, .temperature_band = 5, .foreign_load = 0.5}};
    int action = GATE_FLAG, r = 0;
    if (node && node->kind != DOCUMENT_MAPPING)
        r = bind_value(document, node, &all, &action, failure);
    for (size_t i = 0; i < GATE_KINDS; i++)
        written.actions[i] = action;
    if (r == 0 && node && node->kind == DOCUMENT_MAPPING)
        r = bind_mapping(document, node, "gates", fields, FIELD_COUNT, &written, failure);
    for (size_t i = 0; i < GATE_KINDS; i++)
        written.settings.actions[i] = (enum gate_action)written.actions[i];
    if (r == 0)
        *ret = written.settings;
    return r;
}
