/*
 * Probes: the things about a machine that can be sampled. Each is a file of this folder and an entry of
 * probe_table; README.md has what each reads, its columns, units and costs, TOOLS.md how it is printed.
 *
 * A probe finds its sources and columns once, when it begins. A value that cannot be read is empty, never 0;
 * the first time there is also an event `gone`, and an event `back` when it can be read again.
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
    const char *source;  /* what is read, for people; NULL: begin() sets probing->source */
    const char *missing; /* why the machine lacks it, where begin() finds no column and gives no reason */
    size_t state_size;   /* of probing->state, which is zeroed for begin() */
    int64_t every_ns;    /* if not 0: shortest time between two samples; values in between are empty */
    int64_t refresh_ns;  /* if not 0: longest time between two calls of `refresh` or `sample` */
    /* Finds the sources and adds the columns (probing_add_column). Calls probing_fail() where the machine
     * lacks the probe, and probing_note() where it lacks a part of it. */
    void (*begin)(struct probing *probing);
    /* One probing_put_...() for each column, in their order. */
    void (*sample)(struct probing *probing);
    void (*refresh)(struct probing *probing);
    void (*end)(struct probing *probing); /* clears the state; called after a failed begin(), too */
};

/* All probes, ended by NULL; and the probe called NAME, or NULL. */
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

/* A probe that is being sampled. */
struct probing {
    /* Set by the caller before probing_begin(). */
    const struct probe *probe;
    const struct machine *machine;
    const char *const *expectations; /* "PATH=VALUE", for drift */
    size_t expectation_count;
    probe_event *event;
    void *context;
    /* Set by the caller before probing_sample(). */
    int64_t now_ns; /* CLOCK_MONOTONIC: when the sample was due, or the present time of the last one */
    bool last;      /* the last sample: all is read, even if `every_ns` has not passed */
    /* Set by the probe. */
    struct probe_column *columns;
    size_t count, capacity;
    char source[PROBE_WHY_SIZE]; /* what is read, for people */
    char why[PROBE_WHY_SIZE];    /* why the probe or a part of it is missing; or "" */
    int error;                   /* 0, or why it cannot begin: a negative errno */
    int64_t due_ns;              /* earliest time of the next sample, if `every_ns` is not 0 */
    void *state;
    /* The values of a sample, each with a comma before it. */
    char *values;
    size_t length, at;
};

/* Begins the probe. Returns 0, or a negative errno with the reason in probing->why: then only probing_clear()
 * may follow. */
int probing_begin(struct probing *probing);
/* Takes a sample: probing->values then has one value, maybe empty, for each column. */
void probing_sample(struct probing *probing);
void probing_refresh(struct probing *probing);
void probing_clear(struct probing *probing);

/* ---- for probes */

/* Adds a column. In its name other characters than letters, digits, '-', '_' and '.' become '-', and a name
 * that exists already gets "-2". False: it was not added, because there are too many columns (noted) or no
 * memory (a failure). */
bool probing_add_column(struct probing *probing, const char *unit, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* The probe cannot begin: notes the reason and the negative errno CODE. */
void probing_fail(struct probing *probing, int code, const char *format, ...)
    __attribute__((format(printf, 3, 4)));
/* Notes why a part of the probe is missing. */
void probing_note(struct probing *probing, const char *format, ...) __attribute__((format(printf, 2, 3)));
void probing_event(struct probing *probing, const char *kind, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* Put the value of the next column. */
void probing_put(struct probing *probing, const char *bytes, size_t length);
void probing_put_number(struct probing *probing, uint64_t value);
void probing_put_decimal(struct probing *probing, double value, int decimals);
void probing_put_gone(struct probing *probing);  /* empty, because it cannot be read: event `gone` */
void probing_put_empty(struct probing *probing); /* empty, because it was not read this time */

#endif
