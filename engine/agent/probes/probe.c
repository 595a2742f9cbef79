#include "engine/agent/probes/probe.h"

#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const struct probe *const probe_table[PROBE_LIMIT + 1] = {
    &probe_frequency, &probe_temperature, &probe_throttle, &probe_energy, &probe_power,
    &probe_load,      &probe_memory,      &probe_network,  &probe_kernel, &probe_drift,
};

const struct probe *probe_find(const char *name) {
    for (size_t i = 0; probe_table[i]; i++)
        if (strcmp(probe_table[i]->name, name) == 0)
            return probe_table[i];
    return NULL;
}

/* ---- begin, sample, end */

/* Begins a probe, which adds its columns. -ENOENT, with a reason in probing->why: the machine has none of
 * them. */
int probing_begin(struct probing *probing) {
    const struct probe *probe = probing->probe;
    if (probe->source)
        snprintf(probing->source, sizeof probing->source, "%s", probe->source);
    probing->state = calloc(1, probe->state_size);
    if (probing->state)
        probe->begin(probing);
    else
        probing->error = -ENOMEM;
    if (probing->error == 0 && probing->count == 0)
        probing_fail(probing, -ENOENT, "%s", probing->why[0] ? probing->why : probe->missing);
    if (probing->error == 0 && !(probing->values = malloc(probing->count * PROBE_VALUE_SIZE + 1)))
        probing->error = -ENOMEM;
    if (probing->error < 0 && probing->why[0] == '\0')
        probing_note(probing, "%s", strerror(-probing->error));
    return probing->error;
}

void probing_sample(struct probing *probing) {
    probing->length = 0;
    probing->at = 0;
    if (probing->last || probing->now_ns >= probing->due_ns) {
        probing->due_ns = probing->now_ns + probing->probe->every_ns;
        probing->probe->sample(probing);
    }
    while (probing->at < probing->count)
        probing_put_empty(probing);
}

void probing_refresh(struct probing *probing) {
    if (probing->probe->refresh)
        probing->probe->refresh(probing);
}

void probing_clear(struct probing *probing) {
    if (probing->probe && probing->probe->end && probing->state)
        probing->probe->end(probing);
    free(probing->state);
    free(probing->columns);
    free(probing->values);
    *probing = (struct probing){0};
}

void probing_fail(struct probing *probing, int code, const char *format, ...) {
    char why[PROBE_WHY_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(why, sizeof why, format, arguments);
    va_end(arguments);
    memcpy(probing->why, why, sizeof why); /* via a copy, because an argument may be probing->why */
    probing->error = code;
}

void probing_note(struct probing *probing, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(probing->why, sizeof probing->why, format, arguments);
    va_end(arguments);
}

void probing_event(struct probing *probing, const char *kind, const char *format, ...) {
    char text[PROBE_EVENT_SIZE];
    if (!probing->event)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    probing->event(probing->context, kind, text);
}

/* ---- columns */

static bool has_column(const struct probing *probing, const char *name) {
    for (size_t i = 0; i < probing->count; i++)
        if (strcmp(probing->columns[i].name, name) == 0)
            return true;
    return false;
}

/* Adds a column, its name made valid and unique. False: there are too many, or there is no memory. */
bool probing_add_column(struct probing *probing, const char *unit, const char *format, ...) {
    if (probing->count == PROBE_COLUMN_LIMIT) {
        probing_note(probing, "more than %d columns: the rest is left out", PROBE_COLUMN_LIMIT);
        return false;
    }
    if (list_reserve(&probing->columns, &probing->capacity, probing->count + 1, sizeof *probing->columns,
                     PROBE_COLUMN_LIMIT) < 0) {
        probing->error = -ENOMEM;
        return false;
    }
    char name[PROBE_NAME_SIZE - 8]; /* with room for "-1024" */
    struct probe_column *column = &probing->columns[probing->count];
    *column = (struct probe_column){.unit = unit};
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(name, sizeof name, format, arguments);
    va_end(arguments);
    for (char *at = name; *at; at++)
        if (!isalnum((unsigned char)*at) && !strchr("-_.", *at))
            *at = '-';
    snprintf(column->name, sizeof column->name, "%s", name);
    for (unsigned again = 2; has_column(probing, column->name); again++)
        snprintf(column->name, sizeof column->name, "%s-%u", name, again);
    probing->count++;
    return true;
}

/* ---- values */

/* Moves to the next column and appends its comma. NULL: all columns have a value. */
static struct probe_column *next_column(struct probing *probing) {
    if (probing->at == probing->count)
        return NULL;
    probing->values[probing->length++] = ',';
    return &probing->columns[probing->at++];
}

void probing_put(struct probing *probing, const char *bytes, size_t length) {
    struct probe_column *column = next_column(probing);
    if (!column || length >= PROBE_VALUE_SIZE)
        return;
    memcpy(probing->values + probing->length, bytes, length);
    probing->length += length;
    if (!column->gone)
        return;
    column->gone = false;
    probing_event(probing, "back", "%s %s", probing->probe->name, column->name);
}

void probing_put_number(struct probing *probing, uint64_t value) {
    char digits[NUMBER_TEXT_SIZE];
    probing_put(probing, digits, number_format_uint64(value, digits));
}

void probing_put_decimal(struct probing *probing, double value, int decimals) {
    char text[PROBE_VALUE_SIZE];
    int length = snprintf(text, sizeof text, "%.*f", decimals, value);
    probing_put(probing, text, (size_t)length);
}

void probing_put_gone(struct probing *probing) {
    struct probe_column *column = next_column(probing);
    if (!column || column->gone)
        return;
    column->gone = true;
    probing_event(probing, "gone", "%s %s", probing->probe->name, column->name);
}

void probing_put_empty(struct probing *probing) {
    next_column(probing);
}
