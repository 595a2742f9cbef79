/*
 * A testbed says where nodes come from. One file a backend; a campaign names one by its `testbed:` key.
 *
 * A backend reserves nodes and, for each, makes the transport over which an agent is spoken to. Reserving and
 * releasing may talk to the outside world; everything else about a node goes through its agent.
 */
#ifndef ASSAY_TESTBED_TESTBED_H
#define ASSAY_TESTBED_TESTBED_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/remote/transport.h"

#include <stddef.h>

struct testbed; /* a reservation in progress or held */

/* What a backend needs to know of the run. */
struct testbed_request {
    const char *run_id;        /* unique; names what the backend makes outside */
    const char *agent_program; /* path of the agent's binary on this machine */
    const char *workspace; /* folder on a node in which the agent makes its own; NULL: the node's choice */
};

struct testbed_backend {
    const char *name; /* as a campaign writes it */
    const char *summary;
    /* Reserves; on success *RET is held until release. */
    int (*reserve)(const struct testbed_request *request, struct testbed **ret, struct failure *failure);
    size_t (*node_count)(const struct testbed *testbed);
    const char *(*node_name)(const struct testbed *testbed, size_t node);
    /* A transport to the agent of a node, not yet started; the caller's. The agent gets a folder of its own
     * on the node, made when it starts and removed when it leaves. */
    int (*connect)(struct testbed *testbed, size_t node, struct event_loop *loop, struct transport **ret,
                   struct failure *failure);
    /* Gives the nodes back and frees. What could not be given back is said in FAILURE, after all was tried.
     */
    int (*release)(struct testbed *testbed, struct failure *failure);
};

/* The backend called NAME, or NULL with a failure at FILE:LINE:COLUMN that names the nearest. */
const struct testbed_backend *testbed_find(const char *name, const char *file, size_t line, size_t column,
                                           struct failure *failure);

extern const struct testbed_backend testbed_local;

#endif
