/*
 * Where the segments of a model begin, for a fit that is to have the same: those of a piecewise model of
 * messages, or of one of kind smpi, in bytes.
 */
#ifndef ASSAY_PLUGIN_MODEL_BREAKS_H
#define ASSAY_PLUGIN_MODEL_BREAKS_H

#include "engine/foundation/failure.h"

#include <stddef.h>

enum { MODEL_BREAKS_MAX = 1024 };

struct model_breaks {
    double *at; /* ascending; owned */
    size_t count;
    char *from; /* owned: "network.json (SHA-256 0123456789ab), group PingPong"; NULL: none were read */
};

/* Of the model file PATH, the group called GROUP. NULL: its only one, or of several the one that has the
 * label PingPong. Refused: a model without segments, or over something that is not in bytes. */
int model_breaks_read(const char *path, const char *group, struct model_breaks *ret, struct failure *failure);
void model_breaks_clear(struct model_breaks *breaks);

#endif
