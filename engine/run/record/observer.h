/*
 * What a run reports while it lasts. The run prints nothing itself; the command line shows these events as
 * a progress line, as plain lines, or as JSON.
 */
#ifndef ASSAY_RECORD_OBSERVER_H
#define ASSAY_RECORD_OBSERVER_H

#include <stddef.h>
#include <stdint.h>

enum run_event_kind {
    RUN_EVENT_STARTED,  /* text: the run's folder */
    RUN_EVENT_PHASE,    /* text: the phase that begins */
    RUN_EVENT_NOTE,     /* text: one sentence worth reading */
    RUN_EVENT_NODES,    /* text: the phase; how many nodes have answered what it waits for */
    RUN_EVENT_WARM_UP,  /* text: "steady" if that is waited for; how many nodes are; seconds_left at most */
    RUN_EVENT_PROGRESS, /* the counts below; every one of these units is on disk */
    RUN_EVENT_FAILED,   /* text: what went wrong; the run still restores and seals */
    RUN_EVENT_SEALED,   /* text: the archive's path; sha256 */
    RUN_EVENT_ENDED,    /* text: the status: completed, failed, interrupted or partial */
};

struct run_event {
    enum run_event_kind kind;
    const char *text;
    const char *sha256;
    uint64_t units_done, units_failed, units_total;
    size_t nodes_done, nodes_total; /* while measuring: those that can be reached now, and all */
    double rate;                    /* units a second, over the last seconds */
    double seconds_left;            /* to the end of the measurements, by predicted cost; negative: unknown */
};

struct run_observer {
    void (*event)(void *context, const struct run_event *event);
    void *context;
};

#endif
