#include "engine/remote/nodes/ssh-nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/remote/launch/transport-ssh.h"
#include "engine/remote/nodes/group.h"
#include "engine/remote/ssh/config.h"

#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct ssh_nodes {
    struct event_loop *loop;
    struct ssh_client *client;
    struct agent_package *package;
    char *workspace, *label, *sudo, *folder_prefix;
    bool remove_directory, leave_controls;
    struct agent_link_policy policy;
    const struct launcher_words *launcher;
    const struct agent_image *image;
};

static void free_nodes(struct ssh_nodes **nodes) {
    ssh_nodes_free(*nodes);
}

void ssh_nodes_free(struct ssh_nodes *nodes) {
    if (!nodes)
        return;
    ssh_client_free(nodes->client);
    agent_package_free(nodes->package);
    free(nodes->workspace);
    free(nodes->label);
    free(nodes->sudo);
    free(nodes->folder_prefix);
    free(nodes);
}

/* Raises the soft limit of descriptors, often 1,024, to the hard one: a node needs one descriptor, or three
 * behind a gateway. Where that fails, connecting to one node too many fails with a message. */
static void allow_many_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int ssh_nodes_new(struct event_loop *loop, const struct ssh_nodes_options *options,
                  const struct installation *installation, struct ssh_nodes **ret, struct failure *failure) {
    cleanup(free_nodes) struct ssh_nodes *nodes = xcalloc(1, sizeof *nodes);
    nodes->loop = loop;
    nodes->leave_controls = options->leave_controls;
    nodes->remove_directory = options->remove_directory;
    nodes->policy = options->policy;
    nodes->launcher = options->launcher;
    nodes->image = options->image;
    nodes->workspace = options->workspace ? xstrdup(options->workspace) : NULL;
    nodes->label = options->label ? xstrdup(options->label) : NULL;
    nodes->sudo = options->sudo ? xstrdup(options->sudo) : NULL;
    nodes->folder_prefix = xstrdup(options->folder_prefix);
    allow_many_descriptors();
    int r = agent_package_new(installation, options->agent, &nodes->package, failure);
    if (r == 0)
        r = ssh_client_new(loop, &options->ssh, &nodes->client, failure);
    if (r == 0)
        *ret = take_pointer(nodes);
    return r;
}

/* ---- names */

/* The start and the length of the host in [user@]host[:port]. An IPv6 address has brackets, or no port. */
static const char *find_host(const char *destination, size_t *ret_length) {
    const char *at = strrchr(destination, '@');
    const char *host = at ? at + 1 : destination;
    if (*host == '[') {
        *ret_length = strcspn(++host, "]");
        return host;
    }
    const char *colon = strchr(host, ':');
    *ret_length = colon && !strchr(colon + 1, ':') ? (size_t)(colon - host) : strlen(host);
    return host;
}

static bool is_plain(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '.' ||
           c == '-' || c == '_';
}

char *ssh_node_name(const char *destination) {
    size_t length;
    const char *host = find_host(destination, &length);
    char *name = xstrndup(host, length);
    for (char *at = name; *at; at++)
        if (!is_plain(*at) || (at == name && (*at == '.' || *at == '-')))
            *at = '_';
    return name;
}

int ssh_node_check_name(const char *name, const char *destination, struct failure *failure) {
    size_t length = strlen(name);
    if (length == 0)
        return failure_input(failure, NULL, 0, 0, "'%s' names no host; expected [user@]host[:port]",
                             destination);
    if (length > NODE_NAME_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "the host '%.60s...' has a name of %zu bytes; expected at most %d (an alias in "
                             "the ssh configuration gives a shorter one)",
                             name, length, NODE_NAME_MAX);
    cleanup_free char *user = NULL, *host = NULL;
    unsigned port;
    return strchr(destination, ':') ? ssh_destination_parse(destination, &user, &host, &port, failure) : 0;
}

int ssh_nodes_transport(struct ssh_nodes *nodes, const char *destination, struct transport **ret,
                        struct failure *failure) {
    cleanup_free char *name = ssh_node_name(destination);
    int r = ssh_node_check_name(name, destination, failure);
    if (r < 0)
        return r;
    cleanup_free char *folder = xformat("%s-%s", nodes->folder_prefix, name);
    return transport_ssh_new(
        nodes->loop,
        &(struct transport_ssh_options){.client = nodes->client,
                                        .destination = destination,
                                        .node = name,
                                        .launcher = nodes->launcher,
                                        .agent = {.package = nodes->package,
                                                  .image = nodes->image,
                                                  .folder = folder,
                                                  .workspace = nodes->workspace,
                                                  .label = nodes->label,
                                                  .sudo = nodes->sudo,
                                                  .remove_directory = nodes->remove_directory,
                                                  .leave_controls = nodes->leave_controls}},
        ret, failure);
}

const struct agent_link_policy *ssh_nodes_policy(const struct ssh_nodes *nodes) {
    return &nodes->policy;
}
