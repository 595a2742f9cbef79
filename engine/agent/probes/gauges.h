/* Probes of which each column is a number in a file: one function samples them all. */
#ifndef ASSAY_PROBES_GAUGES_H
#define ASSAY_PROBES_GAUGES_H

#include "engine/agent/probes/probe.h"
#include "engine/agent/probes/source.h"

enum gauge_scale {
    GAUGE_AS_IT_IS,     /* the file is one whole number, as of the next three */
    GAUGE_THOUSANDFOLD, /* kHz as Hz: three zeros are appended */
    GAUGE_THOUSANDTH,   /* mCel as Cel: a point before the last three digits */
    GAUGE_COUNTER,      /* what a counter has counted since the probe began */
    GAUGE_KIBIBYTES,    /* the field of /proc/meminfo that has the column's name, in By */
};

struct gauge {
    struct source source;
    enum gauge_scale scale;
    bool is_measured; /* by hardware, whose firmware may say that it does not know */
    /* GAUGE_COUNTER: it wraps after `range`. One that could not be read for a minute may have wrapped twice,
     * and is lost. */
    uint64_t range, last, used;
    int64_t read_ns; /* when it was last read */
    bool unknown;    /* it could not be read the last time that it was tried */
};

/* The state of such a probe. */
struct gauges {
    struct gauge *items;
    size_t count, capacity;
};

/* Adds a column and its file. NAME as printf(3). NULL: there is no room, which is noted. */
struct gauge *gauges_add(struct probing *probing, const char *path, enum gauge_scale scale, const char *unit,
                         const char *name, ...) __attribute__((format(printf, 5, 6)));
/* For struct probe. */
void gauges_sample(struct probing *probing);
void gauges_refresh(struct probing *probing);
void gauges_end(struct probing *probing);

#endif
