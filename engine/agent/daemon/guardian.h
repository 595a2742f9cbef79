/*
 * Two processes make an agent: the one that works and, above it, a guardian that sleeps. Whatever is started
 * on the node descends from the guardian, which adopts what loses its parent (PR_SET_CHILD_SUBREAPER). When
 * the worker ends, in whatever way, the guardian ends all that is left of that family: SIGTERM, a grace,
 * SIGKILL. When the guardian is killed, the kernel sends the worker SIGTERM (PR_SET_PDEATHSIG), which makes
 * it leave in order. Only when both are killed at once can a grandchild outlive them; children of the worker
 * get SIGKILL from the kernel even then. What the guardian would have removed stays when it is killed, until
 * `assay nodes clean` removes it (run-directory.h).
 *
 * Controls that the worker had set and not restored when it died are restored by the guardian, once nothing
 * of the worker's is left that could be setting it.
 */
#ifndef ASSAY_DAEMON_GUARDIAN_H
#define ASSAY_DAEMON_GUARDIAN_H

#include "engine/agent/machine/run-directory.h"
#include "engine/foundation/failure.h"

#include <stddef.h>

/* What of the worker the guardian must not hold: descriptors whose end others wait for. */
struct guardian_options {
    const int *descriptors;
    size_t count;
    bool ignore_hangup;  /* SIGHUP is nothing to leave for */
    const char *root;    /* the machine whose controls it restores; NULL: "/" */
    bool leave_controls; /* it does not: the worker is one that sets nothing, and is to leave what it found */
};

/* Forks. Returns in the worker: 0, or a negative errno when it cannot fork. The
 * guardian never returns: it closes stdin, stdout and what OPTIONS names, waits, cleans up, removes DIRECTORY
 * if that is ours to remove, prints if it cannot, and ends as the worker did. */
int guardian_start(const struct run_directory *directory, const struct guardian_options *options,
                   struct failure *failure);

#endif
