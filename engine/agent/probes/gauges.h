/* Probes of which each column is a number in a file: one function samples them all. */
#ifndef ASSAY_PROBES_GAUGES_H
#define ASSAY_PROBES_GAUGES_H

#include "engine/agent/probes/probe.h"

enum gauge_scale {
    GAUGE_AS_IT_IS,     /* the file is one whole number, as the next two */
    GAUGE_THOUSANDFOLD, /* kHz as Hz: three noughts are put behind */
    GAUGE_THOUSANDTH,   /* mCel as Cel: a point before the last three digits */
    GAUGE_KIBIBYTES,    /* the field of /proc/meminfo that has the column's name, in By */
};

/* The state of such a probe. */
struct gauge;
struct gauges {
    struct gauge *items;
    size_t count, capacity;
};

/* Adds a column and its file. NAME as printf(3). */
void gauges_add(struct probing *probing, const char *path, enum gauge_scale scale, const char *unit,
                const char *name, ...) __attribute__((format(printf, 5, 6)));
/* For struct probe. */
void gauges_sample(struct probing *probing);
void gauges_end(struct probing *probing);

#endif
