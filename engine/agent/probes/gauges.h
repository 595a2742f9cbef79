/* Gauges: columns of probes each of which is a number in a file. */
#ifndef ASSAY_PROBES_GAUGES_H
#define ASSAY_PROBES_GAUGES_H

#include "engine/agent/probes/probe.h"
#include "engine/agent/probes/source.h"

enum gauge_scale {
    GAUGE_AS_IT_IS,     /* the file is one whole number, which is the value; also for the next three */
    GAUGE_THOUSANDFOLD, /* times 1000, kHz as Hz: three zeros are appended */
    GAUGE_THOUSANDTH,   /* divided by 1000, mCel as Cel: a point before the last three digits */
    GAUGE_COUNTER,      /* the increase of a counter since the probe began */
    GAUGE_KIBIBYTES,    /* the field of /proc/meminfo with the column's name, in bytes */
};

struct gauge {
    struct source source;
    enum gauge_scale scale;
    bool is_measured; /* by hardware, whose firmware may give a value that means "unknown" */
    /* GAUGE_COUNTER: `last` is the last reading, `used` the increase so far. The counter wraps after `range`;
     * if it was not read for a minute it may have wrapped twice, and stays unknown. */
    uint64_t range, last, used;
    int64_t read_ns; /* when it was last read */
    bool unknown;    /* the last reading failed */
};

/* The state of a probe that consists of gauges. */
struct gauges {
    struct gauge *items;
    size_t count, capacity;
};

/* Adds a column called NAME (as printf(3)) and its file PATH. NULL: there is no room or memory, which is
 * noted. */
struct gauge *gauges_add(struct probing *probing, const char *path, enum gauge_scale scale, const char *unit,
                         const char *name, ...) __attribute__((format(printf, 5, 6)));
/* The functions of struct probe. */
void gauges_sample(struct probing *probing);
void gauges_refresh(struct probing *probing);
void gauges_end(struct probing *probing);

#endif
