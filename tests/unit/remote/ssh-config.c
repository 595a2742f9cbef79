/* What `ssh -G` says of hosts, and how often it is asked: a program called ssh, in front of the real one,
 * counts.
 */
#include "engine/remote/ssh/config.h"

#include "engine/foundation/file.h"
#include "tests/test.h"

#include <pwd.h>
#include <sys/stat.h>
#include <unistd.h>

static struct ssh_config *config; /* open_config() frees the last one */
static struct ssh_host host;      /* that was looked up last */
static char path[128], included[128], counter[128];

static void put(const char *where, const char *text) {
    assert_int_equal(file_replace(where, text, strlen(text), 0644, NULL), 0);
}

static int set_up(void **state) {
    const char *folder = test_own_folder();
    snprintf(path, sizeof path, "%s/config", folder);
    snprintf(included, sizeof included, "%s/included", folder);
    snprintf(counter, sizeof counter, "%s/count", folder);
    cleanup_free char *program = text_format("%s/ssh", folder);
    cleanup_free char *script =
        text_format("#!/bin/sh\necho >>%s\nPATH=${PATH#*:} exec ssh \"$@\"\n", counter);
    put(program, script);
    cleanup_free char *search = text_format("%s:%s", folder, getenv("PATH"));
    return chmod(program, 0755) < 0 || setenv("PATH", search, 1) < 0 ? -1 : 0;
}

static int tear_down(void **state) {
    ssh_host_clear(&host);
    ssh_config_free(config);
    config = NULL;
    char *real = strchr(getenv("PATH"), ':') + 1;
    cleanup_free char *copy = strdup(real);
    setenv("PATH", copy, 1);
    return 0;
}

static size_t runs(void) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 16);
    return file_read(counter, &text, NULL) == 0 ? text.length : 0;
}

static void require_ssh(void) {
    if (access("/usr/bin/ssh", X_OK) < 0)
        test_skip("there is no ssh");
}

static void open_config(const char *text) {
    ssh_config_free(config);
    config = NULL;
    struct failure failure = {0};
    require_ssh();
    put(path, text);
    if (ssh_config_new(path, "/home/alice", &config, &failure) < 0)
        fail_msg("%s", failure.text);
}

static void look_up(const char *destination) {
    ssh_host_clear(&host);
    struct failure failure = {0};
    if (ssh_config_look_up(config, destination, &host, &failure) < 0)
        fail_msg("%s", failure.text);
}

static void expect_name(const char *destination, const char *name) {
    look_up(destination);
    assert_string_equal(host.host_name, name);
}

TEST(values) {
    open_config("Host node\n HostName %h.site\n User bob\n Port 2222\n"
                " IdentityFile ~/.ssh/%r@%h\n IdentityFile /keys/100%%\n"
                " CertificateFile ~/.ssh/%h-cert.pub\n CertificateFile \"/a b/c.pub\"\n"
                " IdentitiesOnly yes\n IdentityAgent /home/alice/agent\n"
                " ProxyJump gate,x@b:33\n HostKeyAlias kept\n"
                " UserKnownHostsFile /a /b\n ConnectTimeout 90\n"
                "Host other\n ProxyCommand nc %h %p\n IdentityAgent none\n");
    look_up("node");
    assert_string_equal(host.host_name, "node.site");
    assert_string_equal(host.user, "bob");
    assert_int_equal(host.port, 2222);
    assert_int_equal(host.identity_count, 2);
    assert_string_equal(host.identities[0], "/home/alice/.ssh/bob@node.site");
    assert_string_equal(host.identities[1], "/keys/100%");
    assert_int_equal(host.certificate_count, 2);
    assert_string_equal(host.certificates[0], "/home/alice/.ssh/node.site-cert.pub");
    assert_string_equal(host.certificates[1], "/a b/c.pub");
    assert_true(host.identities_only);
    assert_string_equal(host.identity_agent, "/home/alice/agent");
    assert_string_equal(host.proxy_jump, "gate,x@b:33");
    assert_null(host.proxy_command);
    assert_string_equal(host.host_key_alias, "kept");
    assert_memory_equal(host.known_hosts, "/a /b /", 7); /* and those of the system */
    assert_int_equal(host.connect_timeout, 90);
    look_up("other");
    assert_string_equal(host.host_name, "other");
    assert_string_equal(host.user, getpwuid(getuid())->pw_name);
    assert_int_equal(host.port, 22);
    assert_string_equal(host.proxy_command, "nc %h %p");
    assert_null(host.proxy_jump);
    assert_string_equal(host.identity_agent, "none");
    assert_false(host.identities_only);
    assert_int_equal(host.connect_timeout, 0);
}

TEST(tokens_and_variables_in_paths) {
    char local[256] = "", expected[700];
    assert_int_equal(gethostname(local, sizeof local - 1), 0);
    assert_int_equal(setenv("ASSAY_KEYS", "/keys", 1), 0);
    open_config("Host node\n HostKeyAlias kept\n IdentityFile ${ASSAY_KEYS}/%u/%l\n"
                " CertificateFile ${ASSAY_KEYS}/%k-%L-cert.pub\n");
    look_up("node");
    snprintf(expected, sizeof expected, "/keys/%s/%s", getpwuid(getuid())->pw_name, local);
    assert_string_equal(host.identities[0], expected);
    snprintf(expected, sizeof expected, "/keys/kept-%.*s-cert.pub", (int)strcspn(local, "."), local);
    assert_string_equal(host.certificates[0], expected);
    unsetenv("ASSAY_KEYS");
}

TEST(hosts_that_are_alike_cost_one_run) {
    cleanup_free char *text = text_format("Include %s\nHost dahu-*\n User bob\nMatch final all\n", included);
    put(included, "Host dahu-3\n HostName 10.0.0.3\n");
    open_config(text);
    expect_name("dahu-1", "dahu-1");
    expect_name("dahu-2", "dahu-2");
    expect_name("dahu-40", "dahu-40");
    assert_int_equal(runs(), 1);
    expect_name("dahu-3", "10.0.0.3");
    assert_int_equal(runs(), 2);
    expect_name("gros-1", "gros-1");
    expect_name("gros-2", "gros-2");
    assert_int_equal(runs(), 3);
    look_up("dahu-9");
    assert_string_equal(host.user, "bob");
}

TEST(one_address_for_all) {
    open_config("Host *\n HostName 127.0.0.1\n");
    expect_name("node-a", "127.0.0.1");
    expect_name("node-b", "127.0.0.1");
    assert_int_equal(runs(), 1);
}

/* Each of these may tell any two hosts apart. */
TEST(hosts_that_may_differ_cost_a_run_each) {
    static const char *const texts[] = {"Host *\n HostName %h.site\n",
                                        "Host *\n UserKnownHostsFile /keys/%h\n", "Match host x\n User y\n",
                                        "Host [x] \"y\"\n User z\n"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        (void)unlink(counter);
        open_config(texts[i]);
        expect_name("node-1", i == 0 ? "node-1.site" : "node-1");
        expect_name("node-2", i == 0 ? "node-2.site" : "node-2");
        assert_int_equal(runs(), 2);
        expect_name("node-2", i == 0 ? "node-2.site" : "node-2");
        assert_int_equal(runs(), 2);
    }
}

TEST(none) {
    assert_int_equal(ssh_config_new("none", "/home/alice", &config, NULL), 0);
    look_up("Node");
    assert_string_equal(host.host_name, "Node");
    assert_int_equal(host.port, 22);
    assert_int_equal(host.identity_count, 0);
    assert_int_equal(runs(), 0);
}

TEST(refusals) {
    struct failure failure = {0};
    ssh_host_clear(&host);
    assert_int_equal(ssh_config_new("/nowhere/config", "/", &config, &failure), -ENOENT);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_non_null(strstr(failure.text, "'/nowhere/config'"));
    open_config("Host x\n Port many\n");
    assert_true(ssh_config_look_up(config, "x", &host, &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_non_null(strstr(failure.text, "config line 2"));
    assert_null(host.host_name);
}

TEST_EACH(set_up, tear_down)
