/*
 * Starting a program: a child in a session of its own, with its streams, its folder and its PUs, and a pipe
 * that says whether exec succeeded. The child gets SIGKILL when the agent dies (PR_SET_PDEATHSIG); the rest
 * of its family is the guardian's business (guardian.h).
 */
#ifndef ASSAY_AGENT_SPAWN_H
#define ASSAY_AGENT_SPAWN_H

#include "engine/agent/protocol.h"

#include <sys/types.h>

struct spawn_folders {
    int directory; /* what `folder` is relative to, and may not leave */
    int null;      /* /dev/null */
};

struct spawned {
    pid_t pid;                     /* also its session and process group */
    int64_t wall_ns, monotonic_ns; /* just before fork */
    int input, output, error;      /* our ends, non-blocking; -1 where the mode is not STREAM */
    int report;                    /* EOF: it runs; struct spawn_report: it does not */
};

/* -1 in all descriptors. */
void spawned_init(struct spawned *spawned);
void spawned_clear(struct spawned *spawned);

int spawn(const struct protocol_run *run, const struct spawn_folders *folders, struct spawned *ret,
          struct failure *failure);

/* What the child could not do. */
enum spawn_step { SPAWN_SESSION, SPAWN_FOLDER, SPAWN_STREAMS, SPAWN_AFFINITY, SPAWN_EXEC };
struct spawn_report {
    int step, code; /* enum spawn_step; errno */
};
/* The sentence for a report. Returns the negative errno. */
int spawn_explain(const struct protocol_run *run, const struct spawn_report *report, struct failure *failure);

/* Raises the capacity of a pipe to SIZE or to what the system grants; returns what it has now. */
size_t spawn_widen_pipe(int descriptor, size_t size);

#endif
