/*
 * Starting a program: a child in a session of its own, with its streams, its folder and its PUs. It gets
 * SIGKILL when the agent dies (PR_SET_PDEATHSIG); its descendants are killed by the guardian (guardian.h).
 *
 * The child is started by vfork: it shares the agent's memory, and the agent waits, until the child executes
 * the program. This costs a third of fork, and the agent knows at once whether exec succeeded. A file server
 * that does not answer delays the agent while the program is loaded.
 */
#ifndef ASSAY_SERVE_SPAWN_H
#define ASSAY_SERVE_SPAWN_H

#include "engine/agent/wire/protocol.h"
#include "engine/event-loop/event-loop.h"

#include <sys/types.h>

struct spawn_folders {
    int directory; /* the run directory: `folder` of RUN is relative to it and must be below it */
    int null;      /* /dev/null */
};

struct spawned {
    pid_t pid;                     /* also its session and process group */
    int64_t wall_ns, monotonic_ns; /* just before fork */
    int input, output, error;      /* the agent's ends, non-blocking; -1 where the mode is not STREAM */
};

/* Sets all descriptors to -1; spawned_clear() closes them. */
void spawned_init(struct spawned *spawned);
void spawned_clear(struct spawned *spawned);

/* Starts the program of RUN. 0: it runs; otherwise a negative errno with FAILURE, and there is no child. */
int spawn(const struct protocol_run *run, const struct spawn_folders *folders, struct spawned *ret,
          struct failure *failure);

/* As event_loop_add_child() and kill(2), for a program that spawn() has started: the callback at its end, and
 * a signal to its whole process group (0 or a negative errno). Tests replace these three functions by made-up
 * programs. */
struct event_source *spawn_watch(struct event_loop *loop, pid_t pid, event_child_callback *callback,
                                 void *context);
int spawn_signal(pid_t pid, int number);

/* Raises the soft limit of open files, usually 1,024, as far as the hard limit allows: each program takes up
 * to three descriptors of the agent's, and there may be PROTOCOL_COMMAND_LIMIT programs. Programs get the
 * limit that the agent was started with. */
void spawn_allow_descriptors(void);

/* Raises the capacity of a pipe to SIZE, or to what the system grants; returns the capacity in bytes. */
size_t spawn_widen_pipe(int descriptor, size_t size);

#endif
