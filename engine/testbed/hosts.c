/* The testbed `hosts`: a list of machines that ssh reaches. Nothing is reserved. */
#include "engine/testbed/testbed.h"

#include "engine/foundation/memory.h"
#include "engine/testbed/host-settings.h"

#include <stdlib.h>

struct testbed {
    const struct testbed_settings *settings;
    struct launcher_words words;
    struct access *access;
};

static size_t expected_nodes(const struct testbed_settings *settings) {
    return settings->host_count;
}

static size_t spare_nodes(const struct testbed_settings *settings) {
    return settings->hosts.count - settings->host_count;
}

static bool kills_agents(const struct testbed_settings *settings) {
    return access_kills_agents(&settings->access);
}

static int reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct testbed **ret, struct failure *failure) {
    struct testbed *testbed = xcalloc(1, sizeof *testbed);
    testbed->settings = settings;
    int r = access_open(&settings->access, request, access_launcher(&settings->access, &testbed->words), NULL,
                        &testbed->access, failure);
    if (r < 0)
        free(testbed);
    else
        *ret = testbed;
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
    return ssh_nodes_transport(access_nodes(testbed->access), testbed->settings->hosts.names[node], ret,
                               failure);
}

static struct agent_link_policy policy(const struct testbed *testbed) {
    return *ssh_nodes_policy(access_nodes(testbed->access));
}

static int release(struct testbed *testbed, struct failure *failure) {
    (void)failure;
    access_close(testbed->access);
    free(testbed);
    return 0;
}

const struct testbed_backend testbed_hosts = {
    .name = "hosts",
    .summary = "machines that ssh reaches",
    .bind = host_settings_bind,
    .free_settings = host_settings_free,
    .expected_nodes = expected_nodes,
    .spare_nodes = spare_nodes,
    .kills_agents = kills_agents,
    .describe = host_settings_describe,
    .resolve = host_settings_resolve,
    .reserve = reserve,
    .node_count = node_count,
    .node_name = node_name,
    .connect = connect_node,
    .policy = policy,
    .agent = access_agent,
    .deadline = testbed_job_deadline,
    .release = release,
};
