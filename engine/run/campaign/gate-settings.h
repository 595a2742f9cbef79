/*
 * What a campaign says about the state that a unit ran under: `gates:`.
 *
 *     gates: flag                     # all of them: none, flag, repeat, drop or stop
 *     gates:
 *       throttle: repeat              # a core or package was slowed down by its temperature or power
 *       frequency: flag               # the unit's PUs were slower or faster than the controls set
 *       temperature: flag             # off the band that the warm-up reached
 *       drift: stop                   # a control is not as it was set any more
 *       load: flag                    # other programs took processor time
 *       kernel: flag                  # the kernel logged an error
 *       unwatched: flag               # no samples say what the unit ran under
 *       repeats: 3                    # of one unit at most; then it stays flagged
 *       frequency-tolerance: 5%
 *       temperature-band: 5 Cel       # to either side of what the warm-up reached
 *       foreign-load: 0.5             # in processors
 *
 * flag: the unit's row says so (`flags`). repeat: it is flagged, and measured again, as a new attempt. drop:
 * its node is taken out of the run (node-out.h). stop: the run ends as failed. What the rows say is
 * FORMAT.md, "results/results.csv".
 */
#ifndef ASSAY_CAMPAIGN_GATE_SETTINGS_H
#define ASSAY_CAMPAIGN_GATE_SETTINGS_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/run/campaign/probe-settings.h"

#include <stdint.h>

enum gate_kind {
    GATE_THROTTLE,
    GATE_FREQUENCY,
    GATE_TEMPERATURE,
    GATE_DRIFT,
    GATE_LOAD,
    GATE_KERNEL,
    GATE_UNWATCHED,
    GATE_KINDS,
};
enum gate_action { GATE_NONE, GATE_FLAG, GATE_REPEAT, GATE_DROP, GATE_STOP };

/* The probe that tells about a gate; PROBE_KINDS for GATE_UNWATCHED. */
enum probe_kind gate_probe(enum gate_kind gate);

extern const char *const gate_kind_names[GATE_KINDS];
extern const char *const gate_action_names[];

struct gate_settings {
    enum gate_action actions[GATE_KINDS];
    int64_t repeats;
    double frequency_tolerance; /* relative */
    double temperature_band;    /* Cel */
    double foreign_load;        /* processors */
};

/* NODE: what `gates` is, or NULL: all flag, but what is measured without probes is not. */
int gate_settings_bind(const struct document *document, const struct document_node *node,
                       struct gate_settings *ret, struct failure *failure);

#endif
