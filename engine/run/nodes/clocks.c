/* How the nodes' clocks stand to the engine's, at the start and at the end of a run: nodes/NAME/clock.json.
 * With them, stamps of different nodes can be put on one time line, and a clock that was set meanwhile is
 * seen. */
#include "archive-format/layout.h"
#include "engine/run/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdlib.h>

enum { COLLECT_QUESTIONS = 3 }; /* comparing the clocks, and what is asked beside that (deadline.h) */

/* A - B, limited to what an int64_t holds: a node may report any time. */
static int64_t difference(int64_t a, int64_t b) {
    int64_t result;
    if (__builtin_sub_overflow(a, b, &result))
        return a < b ? INT64_MIN : INT64_MAX;
    return result;
}

static int64_t offset_of(const struct agent_clock *clock) {
    return difference(clock->node_wall_ns, clock->engine_wall_ns);
}

static int64_t bound_of(const struct agent_clock *clock) {
    return (clock->round_trip_ns + 1) / 2;
}

static void journal_clock(struct node_set *set, const struct run_node *node, enum run_clock which) {
    struct journal *journal = node_set_begin_entry(set, "clock", node);
    journal_string(journal, "when", which == RUN_CLOCK_START ? "start" : "end");
    journal_time(journal, "offset_ns", offset_of(&node->clocks[which]));
    journal_integer(journal, "bound_ns", bound_of(&node->clocks[which]));
    journal_end(journal);
}

/* Adds one measurement of the clock as member KEY; null: it was not measured. */
static void add_clock(cJSON *object, const char *key, const struct agent_clock *clock) {
    if (clock->exchanges == 0) {
        json_add_string(object, key, NULL);
        return;
    }
    cJSON *item = json_add_object(object, key);
    json_add_int64_text(item, "offset_ns", offset_of(clock));
    json_add_int64(item, "bound_ns", bound_of(clock));
    json_add_int64(item, "round_trip_ns", clock->round_trip_ns);
    json_add_uint64(item, "exchanges", clock->exchanges);
    json_add_int64_text(item, "engine_wall_ns", clock->engine_wall_ns);
    json_add_int64_text(item, "engine_monotonic_ns", clock->engine_monotonic_ns);
    json_add_int64_text(item, "node_wall_ns", clock->node_wall_ns);
    json_add_int64_text(item, "node_monotonic_ns", clock->node_monotonic_ns);
}

/* Adds the drift: by how much the node's clocks gained on the engine's, in us/s (ppm), with its bound. Wall
 * clocks may have been set meanwhile, monotonic clocks never are. NAN: not measured at both ends. */
static void add_drift(cJSON *object, const struct agent_clock clocks[static RUN_CLOCKS]) {
    const struct agent_clock *start = &clocks[RUN_CLOCK_START], *end = &clocks[RUN_CLOCK_END];
    int64_t elapsed = end->engine_monotonic_ns - start->engine_monotonic_ns;
    bool known = start->exchanges > 0 && end->exchanges > 0 && elapsed > 0;
    double seconds = (double)elapsed * 1e-9;
    double gained = (double)difference(offset_of(end), offset_of(start));
    double gained_monotonic =
        (double)difference(difference(end->node_monotonic_ns, start->node_monotonic_ns), elapsed);
    double bound = (double)(start->round_trip_ns + end->round_trip_ns) / 2;
    json_add_double(object, "elapsed_s", known ? seconds : NAN);
    json_add_double(object, "drift_ppm", known ? gained * 1e-3 / seconds : NAN);
    json_add_double(object, "monotonic_drift_ppm", known ? gained_monotonic * 1e-3 / seconds : NAN);
    json_add_double(object, "drift_bound_ppm", known ? bound * 1e-3 / seconds : NAN);
}

static int write_clock(struct node_set *set, const struct run_node *node, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    add_clock(object, "start", &node->clocks[RUN_CLOCK_START]);
    add_clock(object, "end", &node->clocks[RUN_CLOCK_END]);
    add_drift(object, node->clocks);
    return record_write_node_json(set->record, node->name, ARCHIVE_NODE_CLOCK, object, failure);
}

/* Notes how far the nodes' clocks are from the engine's, since stamps of several nodes may be compared. */
static void note_spread(struct node_set *set) {
    int64_t least = INT64_MAX, most = INT64_MIN, bound = 0;
    size_t known = 0;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        const struct agent_clock *clock = &node->clocks[RUN_CLOCK_START];
        if (clock->exchanges == 0)
            continue;
        known++;
        int64_t offset = offset_of(clock), half = bound_of(clock);
        least = offset < least ? offset : least;
        most = offset > most ? offset : most;
        bound = half > bound ? half : bound;
    }
    char low[NUMBER_TEXT_SIZE], high[NUMBER_TEXT_SIZE], within[NUMBER_TEXT_SIZE];
    if (known > 1)
        record_note(set->record,
                    "clocks: the nodes' clocks differ by %s to %s from the engine's "
                    "(uncertainty at most %s)",
                    number_describe_duration((double)least * 1e-9, low),
                    number_describe_duration((double)most * 1e-9, high),
                    number_describe_duration((double)bound * 1e-9, within));
}

/* Measures the clocks of all nodes against ours, at the start or the end. How long that takes counts for the
 * time kept before a deadline. */
int node_set_measure_clocks(struct node_set *set, enum run_clock which, struct failure *failure) {
    cleanup_free struct agent_clock *clocks = NULL;
    int64_t begun_ns = clock_monotonic_ns();
    int r = node_group_measure_clocks(set->group, &clocks, failure);
    deadline_took(&set->deadline, DEADLINE_COLLECT, COLLECT_QUESTIONS * (clock_monotonic_ns() - begun_ns));
    for (size_t i = 0; r == 0 && i < set->count; i++) {
        struct run_node *node = &set->items[i];
        if (clocks[i].exchanges == 0)
            continue;
        node->clocks[which] = clocks[i];
        journal_clock(set, node, which);
        r = write_clock(set, node, failure);
    }
    if (r == 0 && which == RUN_CLOCK_START)
        note_spread(set);
    return r;
}
