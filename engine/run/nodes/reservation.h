/*
 * How much time a run has, what of it must be left for ending, and whether the nodes can still be brought
 * into a state. Without a deadline there is always enough.
 */
#ifndef ASSAY_NODES_RESERVATION_H
#define ASSAY_NODES_RESERVATION_H

#include "engine/run/nodes/nodes.h"

/* Sets the deadlines of the campaign and of the command line, UNTIL_NS (0: it gives none). */
int reservation_begin(struct node_set *set, int64_t until_ns, struct failure *failure);
/* Once nodes are reserved: sets the testbed's deadline. The testbed is asked again every second, because a
 * reservation may be prolonged. */
int reservation_read_testbed_deadline(struct node_set *set, struct failure *failure);
/* Just before the measurements, with a deadline: estimates how long the end of the run will take. */
int reservation_estimate_reserve(struct node_set *set, struct failure *failure);
/* How long until all remaining time is needed for ending the run, ns; INT64_MAX without a deadline. */
int64_t reservation_left_ns(const struct node_set *set);
/* Is there time to bring the nodes into the state of another block? False: the run is interrupted. */
bool reservation_has_time_for_state(struct node_set *set);
/* Bringing the nodes into a block's state took TOOK_NS, of which SETTING_NS for the controls. */
void reservation_add_state_time(struct node_set *set, int64_t took_ns, int64_t setting_ns);
/* Interrupts the run because nothing more could end in time. */
void reservation_reach_end(struct node_set *set, const char *why);
/* How long commands have between SIGTERM and SIGKILL. */
int64_t reservation_grace_ns(const struct node_set *set);

#endif
