/*
 * How much time a run has, what of it must be left for ending, and whether the nodes can still be brought
 * into a state. Without a deadline there is always enough.
 */
#ifndef ASSAY_NODES_RESERVATION_H
#define ASSAY_NODES_RESERVATION_H

#include "engine/run/nodes/nodes.h"

/* The time that this part of the run has, as far as the campaign and the command line (UNTIL_NS, 0: it does
 * not) say it. */
int reservation_begin(struct node_set *set, int64_t until_ns, struct failure *failure);
/* What the testbed says, now that nodes are reserved. It is asked again every second, because it may lend
 * them for longer. */
int reservation_meet(struct node_set *set, struct failure *failure);
/* Just before the measurements: finds out, with a deadline, what the end of the run will take. */
int reservation_rehearse(struct node_set *set, struct failure *failure);
/* Until all that is left is needed for ending; INT64_MAX without a deadline. */
int64_t reservation_left_ns(const struct node_set *set);
/* Could the nodes still be brought into the state of a block? If not, the run is interrupted. */
bool reservation_has_time_for_state(struct node_set *set);
/* They were, in so long, of which so long was the setting of the controls. */
void reservation_take_state_time(struct node_set *set, int64_t took_ns, int64_t setting_ns);
/* Interrupts the run, because nothing more of it could end in time. */
void reservation_reach_end(struct node_set *set, const char *why);
/* How long commands have between SIGTERM and SIGKILL. */
int64_t reservation_grace_ns(const struct node_set *set);

#endif
