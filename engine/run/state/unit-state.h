/*
 * The state that a unit ran under, from the samples of its node around it. Private to this room.
 *
 * A unit ran from START to END by its node's monotonic clock. It is judged by the samples in
 * between, and the last one before and the first one after, which counters need. So the state is known when
 * each probe that a gate looks at has a sample at or after END, however long that takes; others are
 * waited for if they are sampled every UNIT_STATE_PATIENCE_NS at least.
 */
#ifndef ASSAY_STATE_UNIT_STATE_H
#define ASSAY_STATE_UNIT_STATE_H

#include "engine/run/campaign/settings.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct placement_share;
struct watch;
struct run_node;

#define UNIT_STATE_PATIENCE_NS INT64_C(2000000000)

struct unit_state {
    unsigned flags;      /* 1 << enum gate_kind: what was not as it should be, of gates that are not `none` */
    double frequency_hz; /* mean over the unit's PUs and the samples within it; nan: not known */
    double temperature;  /* Cel, of the hottest package at its end; nan: not known */
    struct run_node *off; /* of several nodes, the first that has flags; NULL: none, or there is one node */
};

/* Have all samples come that are waited for? Also true when the node is not sampled (any more). */
bool unit_state_is_known(const struct watch *watch, size_t node, int64_t end_ns);

/* The state of PLACE, a node and the PUs that its units are pinned to. */
struct unit_state unit_state_of_span(const struct watch *watch, const struct placement_share *place,
                                     int64_t start_ns, int64_t end_ns);

/* "throttle;drift", "" for none; cut at SIZE. Returns BUFFER. */
const char *unit_state_flags(unsigned flags, char *buffer, size_t size);
/* The flags in such a TEXT; unknown names are ignored. */
unsigned unit_state_parse_flags(const char *text);
/* What the campaign wants done about them: the strongest. */
enum gate_action unit_state_action(const struct gate_settings *settings, unsigned flags);
/* A sentence about one of the flags, for people. Returns BUFFER. */
const char *unit_state_describe(const struct watch *watch, size_t node, const struct unit_state *state,
                                char *buffer, size_t size);

#endif
