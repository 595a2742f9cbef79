/*
 * Probes: what of the machine can be sampled. Each is a file of this folder and an entry of probe_table();
 * README.md says what each reads, its columns, units and costs; TOOLS.md how it is printed.
 *
 * A probe finds its sources once, when it begins: what it has columns for then it has until its end. A value
 * that cannot be read is empty, never 0: the first time, with an event `gone`; when it can be read again,
 * `back`.
 */
#ifndef ASSAY_PROBES_PROBE_H
#define ASSAY_PROBES_PROBE_H

#include "engine/agent/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PROBE_LIMIT = 10,
    PROBE_COLUMN_LIMIT =
        1024,                /* columns of a probe; sources beyond them are left out, and `missing` says so */
    PROBE_NAME_SIZE = 64,    /* of a column's name, its NUL included */
    PROBE_VALUE_SIZE = 24,   /* of a value, with the comma before it */
    PROBE_WHY_SIZE = 256,    /* of a sentence */
    PROBE_EVENT_SIZE = 1024, /* of an event's text */
    PROBE_EXPECTATION_LIMIT = 16384, /* --expect */
};
#define PROBE_SECOND INT64_C(1000000000)

struct probing;

struct probe {
    const char *name;
    const char *source;  /* in words: what is read; NULL: begin() says */
    const char *missing; /* why it is not here, when begin() finds no column and does not say why */
    size_t state_size;   /* of probing->state, which is zero when begin() is called */
    int64_t every_ns;    /* if not 0: it is sampled no more often; values between are empty */
    int64_t refresh_ns;  /* if not 0: `refresh` is called that often at least, however long the period is */
    /* Looks for the sources and names the columns (probing_add_column). probing_fail(): it is not here;
     * probing_note(): a part of it is not. */
    void (*begin)(struct probing *probing);
    /* One probing_put_...() for each column, in their order. */
    void (*sample)(struct probing *probing);
    void (*refresh)(struct probing *probing);
    void (*end)(struct probing *probing); /* clears the state; after a begin() that failed, too */
};

/* All of them; the last is NULL. */
extern const struct probe *const probe_table[PROBE_LIMIT + 1];
const struct probe *probe_find(const char *name);

extern const struct probe probe_frequency, probe_temperature, probe_throttle, probe_energy, probe_power,
    probe_load, probe_memory, probe_network, probe_kernel, probe_drift;

struct probe_column {
    char name[PROBE_NAME_SIZE];
    const char *unit; /* UCUM */
    bool gone;
};

typedef void probe_event(void *context, const char *kind, const char *text);

/* A probe at work. */
struct probing {
    /* Set by who begins it. */
    const struct probe *probe;
    const struct machine *machine;
    const char *const *expectations; /* "PATH=VALUE", for drift */
    size_t expectation_count;
    probe_event *event;
    void *context;
    /* Set by who samples it. */
    int64_t now_ns; /* CLOCK_MONOTONIC: when the sample was due, or the present time of the last one */
    bool last;      /* the last sample: whatever was spared before is read */
    /* The probe's. */
    struct probe_column *columns;
    size_t count, capacity;
    char source[PROBE_WHY_SIZE]; /* in words: what is read */
    char why[PROBE_WHY_SIZE];    /* why it, or a part of it, is not here; or "" */
    int error;                   /* the first that keeps it from beginning; negative */
    int64_t due_ns;              /* when it may be sampled again, if `every_ns` is not 0 */
    void *state;
    /* The values of a sample, each with a comma before it. */
    char *values;
    size_t length, at;
};

/* 0, or a negative errno and probing->why: then only probing_clear() may follow. */
int probing_begin(struct probing *probing);
/* probing->values has one value a column afterwards. */
void probing_sample(struct probing *probing);
void probing_refresh(struct probing *probing);
void probing_clear(struct probing *probing);

/* ---- for probes */

/* Names a column: what NAME has of other than letters, digits, '-', '_' and '.' is '-'; a name that is taken
 * gets "-2". False: it is not added, for there are too many, with a note, or no memory, which is a failure.
 */
bool probing_add_column(struct probing *probing, const char *unit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void probing_fail(struct probing *probing, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
void probing_note(struct probing *probing, const char *format, ...) __attribute__((format(printf, 2, 3)));
void probing_event(struct probing *probing, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* The value of the next column. */
void probing_put(struct probing *probing, const char *bytes, size_t length);
void probing_put_number(struct probing *probing, uint64_t value);
void probing_put_decimal(struct probing *probing, double value, int decimals);
void probing_put_gone(struct probing *probing);  /* it cannot be read */
void probing_put_empty(struct probing *probing); /* it was not read this time */

#endif
