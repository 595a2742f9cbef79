/* Machines that ssh reaches, by a list. Nobody lends them, so there is nothing to reserve: they are there or
 * they are not. */
#include "engine/testbed/testbed.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/remote/launch/agent-transport.h"
#include "engine/remote/nodes/ssh-nodes.h"
#include "engine/testbed/host-settings.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

struct testbed {
    const struct testbed_settings *settings;
    struct launcher_words words;
    struct ssh_nodes *nodes;
    char *accepted_hosts; /* a file of the run; NULL: unknown host keys are refused */
};

static void free_testbed(struct testbed *testbed) {
    if (!testbed)
        return;
    ssh_nodes_free(testbed->nodes);
    free(testbed->accepted_hosts);
    free(testbed);
}

static void free_testbed_pointer(struct testbed **testbed) {
    free_testbed(*testbed);
}

static size_t expected_nodes(const struct testbed_settings *settings) {
    return settings->host_count;
}

static size_t spare_nodes(const struct testbed_settings *settings) {
    return settings->hosts.count - settings->host_count;
}

static int64_t nanoseconds(double seconds) {
    return (int64_t)llround(seconds * 1e9);
}

static int64_t least(int64_t a, int64_t b) {
    return a < b ? a : b;
}

/* An agent with a short lease must hear from us more often, and a link that is silent must be given up while
 * there is time left to find the agent again. */
static struct agent_link_policy make_policy(const struct testbed_settings *settings) {
    int64_t lease = nanoseconds(settings->lease);
    return (struct agent_link_policy){.lease_ns = lease,
                                      .heartbeat_ns = least(AGENT_LINK_HEARTBEAT_NS, lease / 8),
                                      .silence_ns = least(AGENT_LINK_SILENCE_NS, lease / 4)};
}

static int reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct testbed **ret, struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = xcalloc(1, sizeof *testbed);
    testbed->settings = settings;
    if (settings->host_keys == HOST_KEYS_ACCEPT_NEW)
        testbed->accepted_hosts = file_join(request->folder, "known_hosts");
    cleanup_free char *label = xformat("%s:%s", request->run_name, request->run_id);
    cleanup_free char *prefix = xformat("assay-%s", request->run_id);
    struct ssh_nodes_options options = {.ssh = {.user = settings->user,
                                                .port = (unsigned)settings->port,
                                                .identities = (const char *const *)settings->identities.items,
                                                .identity_count = settings->identities.count,
                                                .jump = settings->jump,
                                                .config = settings->config,
                                                .known_hosts = settings->known_hosts,
                                                .accepted_hosts = testbed->accepted_hosts,
                                                .window = (unsigned)settings->window,
                                                .timeout_ns = nanoseconds(settings->timeout)},
                                        .agent = (enum agent_kind)settings->agent,
                                        .workspace = request->workspace,
                                        .label = label,
                                        .folder_prefix = prefix,
                                        .remove_directory = true,
                                        .launcher = host_settings_launcher(settings, &testbed->words),
                                        .policy = make_policy(settings)};
    int r = ssh_nodes_new(request->loop, &options, request->installation, &testbed->nodes, failure);
    if (r == 0)
        *ret = take_pointer(testbed);
    return r;
}

static size_t node_count(const struct testbed *testbed) {
    return testbed->settings->host_count;
}

static const char *node_name(const struct testbed *testbed, size_t node) {
    return testbed->settings->names[node];
}

static int connect_node(struct testbed *testbed, size_t node, struct transport **ret,
                        struct failure *failure) {
    return ssh_nodes_transport(testbed->nodes, testbed->settings->hosts.names[node], ret, failure);
}

static struct agent_link_policy policy(const struct testbed *testbed) {
    return *ssh_nodes_policy(testbed->nodes);
}

static struct testbed_agent agent(const struct testbed *testbed, const struct transport *transport) {
    (void)testbed;
    const struct agent_arrival *agent = agent_transport_arrival(transport);
    if (!agent)
        return (struct testbed_agent){0};
    return (struct testbed_agent){
        .path = agent->path, .delivered = agent->delivered, .built = agent->built, .damage = agent->damage};
}

static int64_t deadline(const struct testbed *testbed) {
    (void)testbed;
    return testbed_job_deadline();
}

static int release(struct testbed *testbed, struct failure *failure) {
    (void)failure;
    free_testbed(testbed);
    return 0;
}

const struct testbed_backend testbed_hosts = {
    .name = "hosts",
    .summary = "machines that ssh reaches",
    .bind = host_settings_bind,
    .free_settings = host_settings_free,
    .expected_nodes = expected_nodes,
    .spare_nodes = spare_nodes,
    .describe = host_settings_describe,
    .resolve = host_settings_resolve,
    .reserve = reserve,
    .node_count = node_count,
    .node_name = node_name,
    .connect = connect_node,
    .policy = policy,
    .agent = agent,
    .deadline = deadline,
    .release = release,
};
