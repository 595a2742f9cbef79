/*
 * What a campaign says about watching its nodes: `probes:`.
 *
 *     probes: 100ms                                     # all of them, so often; or none
 *     probes: {period: 1 s, energy: 100ms, drift: none} # each its own; the default is 1 s
 *
 * The probes are the agent's (engine/agent/probes/README.md).
 */
#ifndef ASSAY_CAMPAIGN_PROBE_SETTINGS_H
#define ASSAY_CAMPAIGN_PROBE_SETTINGS_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stdint.h>

enum probe_kind {
    PROBE_FREQUENCY,
    PROBE_TEMPERATURE,
    PROBE_THROTTLE,
    PROBE_ENERGY,
    PROBE_POWER,
    PROBE_LOAD,
    PROBE_MEMORY,
    PROBE_NETWORK,
    PROBE_KERNEL,
    PROBE_DRIFT,
    PROBE_KINDS,
};

extern const char *const probe_kind_names[PROBE_KINDS];

struct probe_settings {
    int64_t periods_ns[PROBE_KINDS]; /* 0: not sampled */
};

/* NODE: what `probes` is, or NULL. */
int probe_settings_bind(const struct document *document, const struct document_node *node,
                        struct probe_settings *ret, struct failure *failure);
/* Is any sampled? */
bool probe_settings_any(const struct probe_settings *settings);

#endif
