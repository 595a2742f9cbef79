/*
 * What a campaign says about the state of its nodes: `controls:`.
 *
 *     controls:
 *       turbo: off                    # on, off
 *       hyperthreads: off             # on, off
 *       governor: performance
 *       frequency: base               # one for both limits, or MIN..MAX: 2.1GHz, 80%, min, base, max
 *       energy-preference: performance
 *       idle-states: C1               # the deepest that may be used, the largest exit latency (10us), or all
 *       uncore-frequency: max
 *       numa-balancing: off
 *       transparent-huge-pages: never # always, madvise, never
 *       daemons: stopped              # tuned, thermald, power-profiles-daemon, irqbalance
 *       mismatch: error               # what was written is not what is read back; or best-effort: recorded
 *       unavailable: error            # no such file, or no permission; or best-effort: recorded
 *       proof: 1 s                    # all cores busy for so long, and how fast they were; or none
 *       tolerance: 2%                 # of the frequency in that proof
 *
 * What a value means is the agent's to know (engine/agent/TOOLS.md); what no node could take is refused here.
 */
#ifndef ASSAY_CAMPAIGN_CONTROL_SETTINGS_H
#define ASSAY_CAMPAIGN_CONTROL_SETTINGS_H

#include "engine/design/control-factors.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

enum control_rigour { CONTROL_ERROR, CONTROL_BEST_EFFORT };

enum { CONTROL_KINDS = CONTROL_FACTORS }; /* that can be set: control_kind_names */

struct control_settings {
    char *values[CONTROL_KINDS]; /* owned; by control_kind_names; NULL: left as it is */
    enum control_rigour mismatch, unavailable;
    double proof_seconds; /* 0: none */
    double tolerance;     /* relative */
};

/* NODE: what `controls` is, or NULL. */
int control_settings_bind(const struct document *document, const struct document_node *node,
                          struct control_settings *ret, struct failure *failure);
void control_settings_clear(struct control_settings *settings);
/* Is anything to be set? */
bool control_settings_any(const struct control_settings *settings);

/* Could VALUE be one of the control called NAME? NULL, or what was expected ("on or off"). An unknown NAME
 * expects nothing. */
const char *control_value_expectation(const char *name, const char *value);

#endif
