/*
 * Starting a program: a child in a session of its own, with its streams, its folder and its PUs. It gets
 * SIGKILL when the agent dies (PR_SET_PDEATHSIG); the rest of its family is the guardian's business
 * (guardian.h).
 *
 * The child shares the agent's memory until it executes the program (vfork), and the agent waits so long: it
 * costs a third of what fork costs, and whether exec succeeded is known at once. What the wait is for is the
 * loading of the program; a file server that does not answer holds the agent up as it holds up every other
 * process that wants that file.
 */
#ifndef ASSAY_SERVE_SPAWN_H
#define ASSAY_SERVE_SPAWN_H

#include "engine/agent/wire/protocol.h"
#include "engine/event-loop/event-loop.h"

#include <sys/types.h>

struct spawn_folders {
    int directory; /* what `folder` is relative to, and may not leave */
    int null;      /* /dev/null */
};

struct spawned {
    pid_t pid;                     /* also its session and process group */
    int64_t wall_ns, monotonic_ns; /* just before fork */
    int input, output, error;      /* our ends, non-blocking; -1 where the mode is not STREAM */
};

/* -1 in all descriptors. */
void spawned_init(struct spawned *spawned);
void spawned_clear(struct spawned *spawned);

/* 0: it runs. A negative errno and a sentence: it does not, and there is no child. */
int spawn(const struct protocol_run *run, const struct spawn_folders *folders, struct spawned *ret,
          struct failure *failure);

/* As event_loop_add_child() and kill(2), for a program that spawn() has started: its end, and a signal to its
 * whole group, with 0 or a negative errno. Tests run made-up programs in place of these three. */
struct event_source *spawn_watch(struct event_loop *loop, pid_t pid, event_child_callback *callback,
                                 void *context);
int spawn_signal(pid_t pid, int number);

/* Each program takes up to three descriptors of the agent's, and the usual soft limit is 1,024: it is raised
 * to what PROTOCOL_COMMAND_LIMIT programs need, as far as the hard limit lets. Programs get the limit that
 * the agent was started with. */
void spawn_allow_descriptors(void);

/* Raises the capacity of a pipe to SIZE or to what the system grants; returns what it has now. */
size_t spawn_widen_pipe(int descriptor, size_t size);

#endif
