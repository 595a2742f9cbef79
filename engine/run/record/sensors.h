/*
 * What the sensors of a node said last, in a few numbers: of all its samples (samples.h), by their units.
 */
#ifndef ASSAY_RECORD_SENSORS_H
#define ASSAY_RECORD_SENSORS_H

#include "engine/run/record/samples.h"

/* NaN: not known. */
struct sensors {
    double temperature; /* Cel; the highest */
    double frequency;   /* Hz; the mean of all cores */
    /* W: what RAPL's zones, without psys, have used since the samples before; without RAPL the highest of the
     * sensors of power, which is that of the whole node or of a chip. */
    double power;
};

struct sensors sensors_find(const struct samples *samples);

#endif
