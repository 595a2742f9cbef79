/*
 * Notes on controls that assay observes but does not set: a launcher that ends with its job sets none, and a
 * scheduler that was asked for a governor may not set it on every site. Private to this room.
 */
#ifndef ASSAY_STATE_OBSERVED_H
#define ASSAY_STATE_OBSERVED_H

#include "engine/remote/nodes/controls.h"
#include "engine/run/nodes/nodes.h"

/* Notes governor, frequency, turbo and hyper-threads of the nodes, in one sentence for equal nodes, with what
 * the scheduler was asked for where that differs. STATES: one for each node. Notes nothing if the campaign
 * can set controls and the scheduler was asked for none. */
void observed_note(struct node_set *set, const struct node_control_state *states);

#endif
