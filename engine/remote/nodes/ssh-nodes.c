#include "engine/remote/nodes/ssh-nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/remote/launch/transport-ssh.h"
#include "engine/remote/nodes/group.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

struct named {
    char *name, *destination;
};

struct ssh_nodes {
    struct event_loop *loop;
    struct ssh_client *client;
    struct agent_package *package;
    char *workspace, *label, *folder_prefix;
    bool write_anywhere, remove_directory, leave_controls;
    struct agent_link_policy policy;
    struct named *taken; /* by name */
    size_t taken_count, taken_capacity;
};

static void free_nodes(struct ssh_nodes **nodes) {
    ssh_nodes_free(*nodes);
}

void ssh_nodes_free(struct ssh_nodes *nodes) {
    if (!nodes)
        return;
    ssh_client_free(nodes->client);
    agent_package_free(nodes->package);
    for (size_t i = 0; i < nodes->taken_count; i++) {
        free(nodes->taken[i].name);
        free(nodes->taken[i].destination);
    }
    free(nodes->taken);
    free(nodes->workspace);
    free(nodes->label);
    free(nodes->folder_prefix);
    free(nodes);
}

/* A node takes a descriptor, or three behind a gateway, and the soft limit is often 1,024. Where it cannot be
 * raised, connecting to one node too many says so. */
static void allow_many_descriptors(void) {
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) == 0 && limit.rlim_cur < limit.rlim_max) {
        limit.rlim_cur = limit.rlim_max;
        setrlimit(RLIMIT_NOFILE, &limit);
    }
}

int ssh_nodes_new(struct event_loop *loop, const struct ssh_nodes_options *options,
                  const struct installation *installation, struct ssh_nodes **ret, struct failure *failure) {
    cleanup(free_nodes) struct ssh_nodes *nodes = calloc(1, sizeof *nodes);
    if (!nodes)
        return failure_memory(failure);
    nodes->loop = loop;
    nodes->write_anywhere = options->write_anywhere;
    nodes->leave_controls = options->leave_controls;
    nodes->remove_directory = options->remove_directory;
    nodes->policy = options->policy;
    nodes->workspace = options->workspace ? strdup(options->workspace) : NULL;
    nodes->label = options->label ? strdup(options->label) : NULL;
    nodes->folder_prefix = strdup(options->folder_prefix);
    if ((options->workspace && !nodes->workspace) || (options->label && !nodes->label) ||
        !nodes->folder_prefix)
        return failure_memory(failure);
    allow_many_descriptors();
    int r = agent_package_new(installation, options->agent, &nodes->package, failure);
    if (r == 0)
        r = ssh_client_new(loop, &options->ssh, &nodes->client, failure);
    if (r == 0)
        *ret = take_pointer(nodes);
    return r;
}

/* ---- names */

/* Finds the host in [user@]host[:port]. An IPv6 address has brackets, or no port. */
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
    char *name = strndup(host, length);
    for (char *at = name; name && *at; at++)
        if (!is_plain(*at) || (at == name && (*at == '.' || *at == '-')))
            *at = '_';
    return name;
}

int ssh_node_check_name(const char *name, const char *destination, struct failure *failure) {
    size_t length = strlen(name);
    if (length == 0)
        return failure_input(failure, NULL, 0, 0, "'%s' names no host; expected [user@]host[:port]",
                             destination);
    if (length > NODE_NAME_MOST)
        return failure_input(failure, NULL, 0, 0,
                             "the host '%.60s...' has a name of %zu bytes; expected at most %d (an alias in "
                             "the ssh configuration gives a shorter one)",
                             name, length, NODE_NAME_MOST);
    return 0;
}

/* Where NAME is, or would be. */
static size_t position(const struct ssh_nodes *nodes, const char *name) {
    size_t low = 0, high = nodes->taken_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (strcmp(nodes->taken[middle].name, name) < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int take_name(struct ssh_nodes *nodes, const char *name, const char *destination,
                     struct failure *failure) {
    size_t at = position(nodes, name);
    if (at < nodes->taken_count && strcmp(nodes->taken[at].name, name) == 0)
        return failure_input(failure, NULL, 0, 0,
                             "two nodes would be called '%s': '%s' and '%s'; expected names that differ "
                             "(an alias in the ssh configuration gives one)",
                             name, nodes->taken[at].destination, destination);
    if (nodes->taken_count == NODE_GROUP_MOST)
        return failure_input(failure, NULL, 0, 0, "there are more than %d nodes", NODE_GROUP_MOST);
    struct named named = {.name = strdup(name), .destination = strdup(destination)};
    if (!named.name || !named.destination ||
        list_reserve(&nodes->taken, &nodes->taken_capacity, nodes->taken_count + 1, sizeof *nodes->taken,
                     NODE_GROUP_MOST) < 0) {
        free(named.name);
        free(named.destination);
        return failure_memory(failure);
    }
    memmove(nodes->taken + at + 1, nodes->taken + at, (nodes->taken_count - at) * sizeof *nodes->taken);
    nodes->taken[at] = named;
    nodes->taken_count++;
    return 0;
}

int ssh_nodes_transport(struct ssh_nodes *nodes, const char *destination, struct transport **ret,
                        struct failure *failure) {
    cleanup_free char *name = ssh_node_name(destination);
    if (!name)
        return failure_memory(failure);
    int r = ssh_node_check_name(name, destination, failure);
    if (r < 0)
        return r;
    cleanup_free char *folder = xformat("%s-%s", nodes->folder_prefix, name);
    r = take_name(nodes, name, destination, failure);
    if (r < 0)
        return r;
    return transport_ssh_new(nodes->loop,
                             &(struct transport_ssh_options){.client = nodes->client,
                                                             .package = nodes->package,
                                                             .destination = destination,
                                                             .node = name,
                                                             .folder = folder,
                                                             .workspace = nodes->workspace,
                                                             .label = nodes->label,
                                                             .remove_directory = nodes->remove_directory,
                                                             .write_anywhere = nodes->write_anywhere,
                                                             .leave_controls = nodes->leave_controls},
                             ret, failure);
}

const struct agent_link_policy *ssh_nodes_policy(const struct ssh_nodes *nodes) {
    return &nodes->policy;
}
