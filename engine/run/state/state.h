/*
 * The state that nodes are measured in: their controls and their temperature. nodes/NODE/controls.json and
 * nodes/NODE/warm-up.json record what was found and done.
 */
#ifndef ASSAY_STATE_STATE_H
#define ASSAY_STATE_STATE_H

#include "engine/run/nodes/nodes.h"
#include "engine/run/state/watch.h"

/* The control phase: records the controls as found, saves them on the nodes for restoring, and sets those
 * that hold for the whole run. */
int controls_begin(struct node_set *set, struct failure *failure);
/* The restore phase: sets all saved controls back. */
int controls_restore(struct node_set *set, struct failure *failure);
/* Does the design have columns of controls? */
bool controls_vary(const struct node_set *set);
/* Sets the controls of BLOCK, the NUMBERth that is measured, on all nodes, and has the nodes warmed up and
 * watched. Called before the block's lanes are opened. The nodes may have other cores afterwards
 * (node->cores, core_count). It ends early when the loop is stopped, by a signal or a failure to commit. */
int controls_set_block(struct watch *watch, const struct design_block *block, size_t number,
                       struct failure *failure);

/* The warm-up phase: watches the nodes and warms them up. If the design varies controls, each block warms up
 * instead. */
int warm_up_begin(struct watch *watch, struct failure *failure);
/* Warms the nodes up with the campaign's load. BLOCK: the number of the block that it is for; 0: the run. */
int warm_up(struct watch *watch, size_t block, struct failure *failure);

#endif
