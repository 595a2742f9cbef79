/*
 * An agent is two processes: the worker, which serves the engine, and its parent, the guardian, which sleeps.
 * All processes that are started on the node descend from the guardian, which adopts those that lose their
 * parent (PR_SET_CHILD_SUBREAPER). When the worker ends, in whatever way, the guardian ends all other
 * descendants: SIGTERM, a grace, SIGKILL. When the guardian is killed, the kernel sends the worker SIGTERM
 * (PR_SET_PDEATHSIG), which ends it in order. Only when both are killed at once can a grandchild outlive
 * them; children of the worker get SIGKILL from the kernel even then. The run directory stays when the
 * guardian is killed, until `assay nodes clean` removes it (run-directory.h).
 *
 * Controls that the worker had set and not restored when it died are restored by the guardian, once all
 * descendants have ended that could still set them.
 */
#ifndef ASSAY_DAEMON_GUARDIAN_H
#define ASSAY_DAEMON_GUARDIAN_H

#include "engine/agent/machine/run-directory.h"
#include "engine/foundation/failure.h"

#include <stddef.h>

struct guardian_options {
    const int *descriptors; /* that the guardian closes, because other processes wait for their end */
    size_t count;
    bool ignore_hangup;  /* SIGHUP does not end the agent */
    const char *root;    /* root of the machine whose controls are restored; NULL: "/" */
    bool leave_controls; /* restore no controls: the worker sets none */
};

/* Forks the worker from the guardian. Returns in the worker with 0, or a negative errno when it cannot fork.
 * The guardian never returns: it closes stdin, stdout and the descriptors of OPTIONS, waits for the worker,
 * ends all descendants, restores controls, removes DIRECTORY if it may be removed (a failure goes to stderr),
 * and ends with the worker's status. */
int guardian_start(const struct run_directory *directory, const struct guardian_options *options,
                   struct failure *failure);

#endif
