/*
 * What nodes were found to be set to, said where assay does not set it: by a launcher that ends with the job
 * no control is set, and a scheduler may have been asked for a governor, which it can set on some sites and
 * not on others. Private to this room.
 */
#ifndef ASSAY_STATE_OBSERVED_H
#define ASSAY_STATE_OBSERVED_H

#include "engine/remote/nodes/controls.h"
#include "engine/run/nodes/nodes.h"

/* Notes governor, frequency, turbo and hyper-threads of the nodes that are being asked, in one sentence for
 * all that are alike, each beside what was asked of the scheduler where that differs. STATES: one a node.
 * Says nothing where the campaign can set controls and nothing was asked of a scheduler. */
void observed_note(struct node_set *set, const struct node_control_state *states);

#endif
