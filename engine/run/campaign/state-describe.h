/* What a campaign does to the state of its nodes, for people (--dry-run) and for programs
 * (campaign.resolved.json). Private to this room. */
#ifndef ASSAY_CAMPAIGN_STATE_DESCRIBE_H
#define ASSAY_CAMPAIGN_STATE_DESCRIBE_H

#include "engine/documents/json.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/campaign.h"

/* The lines of the phases control and warm-up; VARYING: the design has columns of controls. */
void state_describe(const struct campaign *campaign, bool varying, struct text *ret);
/* The lines of what is watched while measuring, and what becomes of units. */
void state_describe_watch(const struct campaign *campaign, struct text *ret);
/* The line of what becomes of nodes that are lost meanwhile. */
void state_describe_loss(const struct campaign *campaign, struct text *ret);
/* The line of the phase restore. */
void state_describe_restore(const struct campaign *campaign, bool varying, struct text *ret);
/* Adds controls, probes, warm_up, gates and node_loss. */
void state_resolve(const struct campaign *campaign, cJSON *object);

#endif
