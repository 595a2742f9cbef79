/*
 * Watching the nodes while they are warmed up and measured: the agent's sampler runs on each of them, what it
 * tells goes to nodes/NODE/probes/ as it comes, and the last samples are kept for gates and for the warm-up.
 *
 *     nodes/NODE/probes/KIND.csv          time, monotonic, late, missed (ns, ns, ns, 1), then the probe's
 * columns nodes/NODE/probes/events.csv        time, monotonic, kind, text nodes/NODE/probes/datapackage.json
 * what each column is
 *
 * When the sampler is started again with other columns (PUs have come or gone), they go to KIND-2.csv, and so
 * on. Memory is bounded: a few KiB of each file wait to be written, and history.h forgets. Private to this
 * room.
 */
#ifndef ASSAY_STATE_WATCH_H
#define ASSAY_STATE_WATCH_H

#include "engine/foundation/failure.h"
#include "engine/run/campaign/settings.h"
#include "engine/run/state/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct run;
struct watch;

/* Columns of the agent that gates look at. */
#define WATCH_FOREIGN "foreign" /* of load: processors that other programs took */
#define WATCH_DRIFTED "drifted" /* of drift: files that are not as they were set */

/* One sample of one probe; valid during the call. */
struct watch_sample {
    size_t node;
    enum probe_kind kind;
    int64_t wall_ns, monotonic_ns; /* the node's clocks */
    char *const *columns;          /* names */
    const double *values;          /* nan: not known */
    size_t count;
};

struct watch_listener {
    void (*on_sample)(const struct watch_sample *sample, void *context); /* may be NULL */
    void *context;
};

/* Starts the samplers of all nodes that are there and waits until each has begun; what no node can be watched
 * by is told. Does nothing when the campaign wants no probes. RUN->watch is made. */
int watch_start(struct run *run, struct failure *failure);
/* Ends them: each takes a last sample, which is waited for. Then all is on disk. Fine when none runs. */
int watch_stop(struct run *run, struct failure *failure);
/* Before the links of the nodes go. NULL is fine. */
void watch_free(struct watch *watch);

void watch_listen(struct watch *watch, const struct watch_listener *listener);

/* Is KIND of NODE being sampled, and does it tell anything? */
bool watch_has(const struct watch *watch, size_t node, enum probe_kind kind);
/* Are samples of NODE still to come? */
bool watch_is_live(const struct watch *watch, size_t node);
int64_t watch_period_ns(const struct watch *watch, enum probe_kind kind);
/* The last samples: times are the node's monotonic clock. */
const struct history *watch_history(const struct watch *watch, size_t node, enum probe_kind kind);
/* The column called NAME, or SIZE_MAX. */
size_t watch_column(const struct watch *watch, size_t node, enum probe_kind kind, const char *name);
/* The column of a PU in the probe `frequency`, or SIZE_MAX. */
size_t watch_pu_column(const struct watch *watch, size_t node, unsigned pu);
/* Do samples of KIND tell of the whole of START..END? */
bool watch_covers(const struct watch *watch, size_t node, enum probe_kind kind, int64_t start_ns,
                  int64_t end_ns);
size_t watch_column_count(const struct watch *watch, size_t node, enum probe_kind kind);
const char *watch_column_name(const struct watch *watch, size_t node, enum probe_kind kind, size_t column);
/* Nothing of NODE before TIME_NS will be asked for. */
void watch_forget(struct watch *watch, size_t node, int64_t time_ns);
/* The last event of KIND ("drift", "kernel-error") of NODE; "" if there was none. */
const char *watch_last_event(const struct watch *watch, size_t node, const char *kind);

#endif
