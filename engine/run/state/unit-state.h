/*
 * The state that a unit ran under, from the samples of its node around it. Private to this room.
 *
 * A unit ran from START to END by its node's monotonic clock. Its state comes from the samples in between,
 * the last one before and the first one after, which counters need. So the state is known when each probe
 * that a gate needs has a sample at or after END, however long that takes. Other probes are waited for only
 * if their period is at most UNIT_STATE_SAMPLE_TIMEOUT_NS.
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

#define UNIT_STATE_SAMPLE_TIMEOUT_NS INT64_C(2000000000)

struct unit_state {
    unsigned flags;       /* 1 << enum gate_kind for each gate that the unit did not pass */
    double frequency_hz;  /* mean over the unit's PUs and the samples within it; nan: not known */
    double temperature;   /* Cel, of the hottest package at its end; nan: not known */
    struct run_node *off; /* of several nodes, the first that has flags; NULL: none, or there is one node */
};

/* Have all samples come that the state at END_NS needs? Also true when the node is not sampled. */
bool unit_state_is_known(const struct watch *watch, size_t node, int64_t end_ns);

/* The state of PLACE, a node and the PUs that its units are pinned to. */
struct unit_state unit_state_of_span(const struct watch *watch, const struct placement_share *place,
                                     int64_t start_ns, int64_t end_ns);

/* "throttle;drift", "" for none; cut at SIZE. Returns BUFFER. */
const char *unit_state_flags(unsigned flags, char *buffer, size_t size);
/* The flags in TEXT, as unit_state_flags() writes them; unknown names are ignored. */
unsigned unit_state_parse_flags(const char *text);
/* The strongest action that the campaign has for one of FLAGS. */
enum gate_action unit_state_action(const struct gate_settings *settings, unsigned flags);
/* Writes a sentence about one of the flags into BUFFER, which is returned; "" if there are none. */
const char *unit_state_describe(const struct watch *watch, size_t node, const struct unit_state *state,
                                char *buffer, size_t size);

#endif
