/*
 * Transports to many nodes by ssh: makes once what all share (the ssh client, the package of the agent), then
 * a transport for each destination.
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
    const char *workspace; /* as in transport-ssh.h; NULL: the first folder that can be used */
    const char *label;     /* shown with an agent that is left over: one word of A-Z a-z 0-9 _ @ % + = : , . /
                              -; NULL: none */
    const char *sudo;      /* as in agent-transport.h */
    const char *folder_prefix;             /* the run directory of node N is called PREFIX-N */
    bool remove_directory, leave_controls; /* as in transport-ssh.h */
    const struct agent_image *image; /* borrowed; the image that the nodes were deployed with; NULL: none */
    struct agent_link_policy policy; /* members that are 0 have the defaults of link.h */
    const struct launcher_words *launcher; /* borrowed; programs in place of libssh; NULL: libssh */
};

/* Reads the package of the agent and the ssh configuration. RET: ssh_nodes_free(). The options are copied. */
int ssh_nodes_new(struct event_loop *loop, const struct ssh_nodes_options *options,
                  const struct installation *installation, struct ssh_nodes **ret, struct failure *failure);
/* To be called after the links and transports are freed. NULL is fine. */
void ssh_nodes_free(struct ssh_nodes *nodes);

/* RET: a transport to DESTINATION, [user@]host[:port], not started; the node is named by ssh_node_name().
 * FAILURE_INPUT when the destination names no host. */
int ssh_nodes_transport(struct ssh_nodes *nodes, const char *destination, struct transport **ret,
                        struct failure *failure);
const struct agent_link_policy *ssh_nodes_policy(const struct ssh_nodes *nodes);

/* The host of DESTINATION as a name of files: every character but ASCII letters, digits, ".", "-" and "_"
 * replaced by "_", and so are "." and "-" at the beginning. The caller frees. */
char *ssh_node_name(const char *destination);
/* FAILURE_INPUT, without file and line, when NAME, which is ssh_node_name() of DESTINATION, is empty or too
 * long, or the port of DESTINATION is none. */
int ssh_node_check_name(const char *name, const char *destination, struct failure *failure);

#endif
