/* Names of nodes from destinations, and transports that share one client. Nothing is connected. */
#include "engine/remote/nodes/ssh-nodes.h"

#include "tests/test.h"

TEST(names) {
    static const char *const names[][2] = {
        {"dahu-3", "dahu-3"},
        {"root@dahu-3.grenoble:2222", "dahu-3.grenoble"},
        {"me@work@dahu-3", "dahu-3"},
        {"10.77.0.3:22", "10.77.0.3"},
        {"[fe80::1]:22", "fe80__1"},
        {"root@[fe80::1]", "fe80__1"},
        {"fe80::1", "fe80__1"},
        {"..", "_."},
        {".hidden", "_hidden"},
        {"-oProxyCommand=x", "_oProxyCommand_x"},
        {"a/b", "a_b"},
        {"na\xc3\xafve", "na__ve"},
        {"root@", ""},
        {":22", ""},
    };
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char *name = ssh_node_name(names[i][0]);
        assert_string_equal(name, names[i][1]);
        free(name);
    }
}

TEST(transports) {
    struct failure failure = {0};
    struct installation installation = {0};
    const char *build = getenv("ASSAY_BUILD");
    assert_non_null(build);
    assert_int_equal(installation_init(&installation, build, NULL, &failure), 0);
    struct event_loop *loop = event_loop_new(&failure);
    assert_non_null(loop);
    struct ssh_nodes_options options = {.ssh = {.config = "none"},
                                        .label = "me",
                                        .folder_prefix = "assay-test",
                                        .policy = {.lease_ns = 7 * EVENT_SECOND}};
    struct ssh_nodes *nodes = NULL;
    if (ssh_nodes_new(loop, &options, &installation, &nodes, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    assert_int_equal(ssh_nodes_policy(nodes)->lease_ns, 7 * EVENT_SECOND);
    struct transport *transports[300];
    for (size_t i = 0; i < 300; i++) {
        char destination[32];
        snprintf(destination, sizeof destination, "root@n%zu:22", (i * 7) % 300);
        if (ssh_nodes_transport(nodes, destination, &transports[i], &failure) < 0)
            fail_msg("%s: %s", failure.place, failure.text);
        assert_int_equal(strncmp(transports[i]->node, "n", 1), 0);
        assert_true(transports[i]->session != 0);
        assert_true(i == 0 || transports[i]->session != transports[i - 1]->session);
    }
    struct transport *another = NULL;
    assert_int_equal(ssh_nodes_transport(nodes, "root@:22", &another, &failure), -EINVAL);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_null(another);
    for (size_t i = 0; i < 300; i++)
        transport_free(transports[i]);
    ssh_nodes_free(nodes);
    event_loop_free(loop);
    installation_clear(&installation);
}
