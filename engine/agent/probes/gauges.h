/* Probes of which each column is a file with one whole number: one function samples them all. */
#ifndef ASSAY_PROBES_GAUGES_H
#define ASSAY_PROBES_GAUGES_H

#include "engine/agent/probes/probe.h"

enum gauge_scale {
    GAUGE_AS_IT_IS,
    GAUGE_THOUSANDFOLD, /* kHz as Hz: three noughts are put behind */
    GAUGE_THOUSANDTH,   /* mCel as Cel: a point before the last three digits */
};

/* Adds a column and its file: probing->state is theirs. 0 or a negative errno. */
int gauges_add(struct probing *probing, const char *path, enum gauge_scale scale, const char *unit,
               const char *name);
/* For struct probe. */
void gauges_sample(struct probing *probing);
void gauges_end(struct probing *probing);

#endif
