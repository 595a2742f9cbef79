/*
 * The state that nodes are measured in: their controls, and that they are warm. What was found and done is in
 * nodes/NODE/controls.json and nodes/NODE/warm-up.json.
 */
#ifndef ASSAY_STATE_STATE_H
#define ASSAY_STATE_STATE_H

#include "engine/run/nodes/nodes.h"
#include "engine/run/state/watch.h"

/* The control phase: what the controls are is recorded, kept on the nodes to be put back, and set as the
 * campaign says for all of the run. */
int controls_begin(struct node_set *set, struct failure *failure);
/* The restore phase: puts them back as they were. */
int controls_restore(struct node_set *set, struct failure *failure);
/* Does the design have columns of controls? */
bool controls_vary(const struct node_set *set);
/* Brings all nodes into the state that BLOCK of the design wants, the NUMBERth that is measured, before its
 * lanes are opened, and watches them there. They may have other cores afterwards: node->cores and core_count
 * are those of this state. When the loop is stopped meanwhile, by a signal or a failure to commit, it gives
 * up. */
int controls_set_block(struct watch *watch, const struct design_block *block, size_t number,
                       struct failure *failure);

/* The warm-up phase: the nodes are watched, and kept busy as the campaign says, unless each block has a state
 * of its own to be warm in. */
int warm_up_begin(struct watch *watch, struct failure *failure);
/* Keeps the nodes busy. BLOCK: 0, or the number of the block that it is for. */
int warm_up(struct watch *watch, size_t block, struct failure *failure);

#endif
