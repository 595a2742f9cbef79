/*
 * Transports to the nodes of a list: what all of them share (the ssh client, the agent's package, names) set
 * up once, and a transport a destination.
 *
 *     struct ssh_nodes *nodes;
 *     ssh_nodes_new(loop, &options, installation, &nodes, failure);
 *     for (...) {
 *         ssh_nodes_transport(nodes, list.names[i], &transport, failure);
 *         node_group_add(group, transport, ssh_nodes_policy(nodes), failure);
 *     }
 *     ...
 *     node_group_free(group);
 *     ssh_nodes_free(nodes);
 */
#ifndef ASSAY_NODES_SSH_NODES_H
#define ASSAY_NODES_SSH_NODES_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/remote/launch/agent-transport.h"
#include "engine/remote/launch/launcher.h"
#include "engine/remote/launch/package.h"
#include "engine/remote/launch/transport.h"
#include "engine/remote/link/link.h"
#include "engine/remote/ssh/client.h"

#include <stdbool.h>
#include <stddef.h>

struct ssh_nodes;

struct ssh_nodes_options {
    struct ssh_client_options ssh;
    enum agent_kind agent;
    const char *workspace; /* as in transport-ssh.h; NULL: a folder that will do */
    const char *label;     /* for who finds an agent left over: one word of A-Z a-z 0-9 _ @ % + = : , . / -;
                              NULL: none */
    const char *sudo;      /* as in agent-transport.h */
    const char *folder_prefix;             /* the run directory of node N is called PREFIX-N */
    bool remove_directory, leave_controls; /* as in transport-ssh.h */
    const struct agent_image *image;       /* borrowed; what the agents are deployed in; NULL: nothing */
    struct agent_link_policy policy;       /* members that are 0: agent-link.h's definitions */
    const struct launcher_words *launcher; /* borrowed; programs in place of libssh; NULL: libssh */
};

/* The options are copied. Reads the agent and its sources, and the ssh configuration. */
int ssh_nodes_new(struct event_loop *loop, const struct ssh_nodes_options *options,
                  const struct installation *installation, struct ssh_nodes **ret, struct failure *failure);
/* After the transports and the links that use them. NULL is fine. */
void ssh_nodes_free(struct ssh_nodes *nodes);

/* A transport, not started, to DESTINATION, [user@]host[:port]. The node's name is that of
 * ssh_node_name(). FAILURE_INPUT when that names no host. */
int ssh_nodes_transport(struct ssh_nodes *nodes, const char *destination, struct transport **ret,
                        struct failure *failure);
const struct agent_link_policy *ssh_nodes_policy(const struct ssh_nodes *nodes);

/* The host of DESTINATION as it is written there, every character that file names had better not have
 * replaced by "_" (all but letters, digits and "." "-" "_" in ASCII, and "." and "-" at the beginning). NULL
 * when out of memory; the caller frees. */
char *ssh_node_name(const char *destination);
/* Can a node be called NAME, which is ssh_node_name() of DESTINATION? FAILURE_INPUT, without a place, if
 * there is none or it is too long. */
int ssh_node_check_name(const char *name, const char *destination, struct failure *failure);

#endif
