/*
 * Which nodes take part in a run; and those that do not any more: taken out, and why. Such a node is asked
 * nothing from then on, and its lanes end; what it had answered is kept. Private to this room.
 *
 *     lost          its link has ended: it died, was restarted, or was silent until its lease was over
 *     unreachable   it was not there to begin with
 *     hung          something runs there that cannot be ended
 *     replaced      in an earlier part of the run; a spare has its share
 *     unfit         a spare that could not be made ready to take another's place
 *     throttle...   a gate whose action is `drop` (gate-settings.h): the gate's name
 *
 * What is still there of it is left to itself, except that a node whose agent answers is restored and
 * released with the others. One that does not is restored by its agent, when the lease is over.
 */
#ifndef ASSAY_NODES_OUT_H
#define ASSAY_NODES_OUT_H

#include "engine/run/run-state.h"

#define NODE_OUT_LOST "lost"
#define NODE_OUT_UNREACHABLE "unreachable"
#define NODE_OUT_HUNG "hung"
#define NODE_OUT_FAILING "failing"
#define NODE_OUT_UNFIT "unfit"
#define NODE_OUT_REPLACED "replaced"

/* NODE is in STATE from now on, and the group asks it accordingly; nobody else changes the state. */
void run_node_enter(const struct run *run, struct run_node *node, enum node_state state);
/* Neither out nor a spare that waits. */
bool run_node_is_in(const struct run_node *node);
/* The node called NAME; NULL: there is none. */
struct run_node *run_find_node(const struct run *run, const char *name);
/* FILE in its folder, below the run's; the caller frees. */
char *run_node_path(const struct run *run, const struct run_node *node, const char *file);
/* Is NODE (its number) one of those that are being asked? All that are in; while a spare is brought in
 * (run->newcomer), it alone. */
bool run_concerns(const struct run *run, size_t node);
/* The next of them after NODE; the first when NODE is NULL; NULL behind the last.
 *
 *     for (struct run_node *node = NULL; (node = run_next_node(run, node));) */
struct run_node *run_next_node(const struct run *run, const struct run_node *node);
size_t run_count_in(const struct run *run);
/* Begins an entry of the journal about NODE; journal_end() ends it. */
struct journal *run_begin_entry(const struct run *run, const char *event, const struct run_node *node);
/* One that says nothing else but KEY. */
void run_note_entry(const struct run *run, const char *event, const struct run_node *node, const char *key,
                    const char *value);

/* Takes NODE out of the run, which is journalled and told. 0, also when it was out before; or FAILURE, which
 * says why the run cannot go on without it: the campaign has it end then (node-loss-settings.h), or too few
 * are left. From the collect phase on, no node is one too few. WORD: one of those above, not copied. */
int run_take_out(struct run *run, struct run_node *node, const char *word, const struct failure *why,
                 struct failure *failure);
/* Those that are not there after connecting. False when the run cannot go on without them. */
bool run_take_out_unreachable(struct run *run);

/* Is every unit of NODE's share done? */
bool run_has_all_units(const struct run *run, const struct run_node *node);
/* Are there units that a node was to measure when it was taken out, and that nobody measured? */
bool run_lacks_units(const struct run *run);
/* "without nodes a-[2-3] (lost)"; the caller frees. NULL when no node is out. */
char *run_describe_out(const struct run *run);

#endif
