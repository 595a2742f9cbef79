/* The user's ssh configuration: what each keyword does, and that OpenSSH understands the same files as we do.
 */
#include "engine/remote/ssh/config.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

#include <strings.h>
#include <sys/stat.h>
#include <unistd.h>

static char scratch[64];

static int set_up(void **state) {
    snprintf(scratch, sizeof scratch, "/tmp/assay-ssh-config.XXXXXX");
    assert_non_null(mkdtemp(scratch));
    assert_int_equal(setenv("HOME", scratch, 1), 0);
    return 0;
}

static int tear_down(void **state) {
    return file_remove_tree(scratch, NULL);
}

/* NAME below the scratch folder, which is also $HOME. */
static char *put(const char *name, const char *content) {
    char *path = file_join(scratch, name);
    cleanup_free char *folder = strndup(path, (size_t)(file_base_name(path) - path));
    struct failure failure = {0};
    assert_int_equal(file_make_folders(folder, &failure), 0);
    assert_int_equal(file_replace(path, content, strlen(content), 0600, &failure), 0);
    return path;
}

static void free_config(struct ssh_config **config) {
    ssh_config_free(*config);
}

static void look_up(const char *content, const char *destination, struct ssh_host *ret) {
    cleanup_free char *path = put("config", content);
    cleanup(free_config) struct ssh_config *config = NULL;
    struct failure failure = {0};
    char said[2200];
    if (ssh_config_read(path, &config, &failure) < 0 ||
        ssh_config_look_up(config, destination, ret, &failure) < 0)
        fail_msg("%s", failure_describe(&failure, said, sizeof said));
}

static void expect_refused(const char *content, unsigned line, const char *sentence) {
    cleanup_free char *path = put("config", content);
    cleanup(free_config) struct ssh_config *config = NULL;
    struct failure failure = {0};
    struct ssh_host host = {0};
    int r = ssh_config_read(path, &config, &failure);
    if (r == 0)
        r = ssh_config_look_up(config, "node", &host, &failure);
    if (r == 0)
        fail_msg("was taken: %s", content);
    char place[128];
    snprintf(place, sizeof place, "%s:%u", path, line);
    assert_string_equal(failure.place, place);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_null(host.host_name);
    if (!strstr(failure.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", failure.text, sentence);
}

TEST(all_keywords) {
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    look_up("# a comment\n"
            "HOST node-*\n"
            "  hostname=%h.Site.Example\r\n"
            "\tUser = alice\n"
            "  Port 2222 # not 22\n"
            "  IdentityFile ~/.ssh/id_%r\n"
            "  IdentityFile /keys/%n-%p-%%\n"
            "  IdentitiesOnly yes\n"
            "  IdentityAgent ~/agent\n"
            "  ProxyJump bob@front:2200,[fe80::1]:22\n"
            "  UserKnownHostsFile ~/known \"/etc/known\"\n"
            "  HostKeyAlias all-nodes\n"
            "  ConnectTimeout 1m30s\n"
            "  ForwardAgent yes 'quote\n"
            "  NoSuchKeyword\n",
            "node-7", &host);
    assert_string_equal(host.host_name, "node-7.site.example");
    assert_string_equal(host.user, "alice");
    assert_int_equal(host.port, 2222);
    cleanup_free char *first = file_join(scratch, ".ssh/id_alice");
    assert_int_equal(host.identity_count, 2);
    assert_string_equal(host.identities[0], first);
    assert_string_equal(host.identities[1], "/keys/node-7-2222-%");
    assert_true(host.identities_only);
    cleanup_free char *agent = file_join(scratch, "agent");
    assert_string_equal(host.identity_agent, agent);
    assert_string_equal(host.proxy_jump, "bob@front:2200,[fe80::1]:22");
    assert_null(host.proxy_command);
    cleanup_free char *known = text_format("%s/known /etc/known", scratch);
    assert_string_equal(host.known_hosts, known);
    assert_string_equal(host.host_key_alias, "all-nodes");
    assert_int_equal(host.connect_timeout, 90);
}

TEST(nothing_said) {
    static const char *const paths[] = {"none", ""};
    for (size_t i = 0; i < 2; i++) {
        cleanup(free_config) struct ssh_config *config = NULL;
        cleanup(ssh_host_clear) struct ssh_host host = {0};
        struct failure failure = {0};
        assert_int_equal(ssh_config_read(paths[i], &config, &failure), 0);
        assert_int_equal(ssh_config_look_up(config, "Node", &host, &failure), 0);
        assert_string_equal(host.host_name, "node");
        assert_true(!host.user && host.port == 0 && host.identity_count == 0 && !host.identities_only);
        assert_true(!host.identity_agent && !host.proxy_jump && !host.proxy_command && !host.known_hosts);
        assert_true(!host.host_key_alias && host.connect_timeout == 0);
    }
}

TEST(first_value_counts) {
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    look_up(
        "User before\nIdentityFile /a\n"
        "Host other\nUser wrong\nPort 1\nIdentityFile /wrong\n"
        "Host n* !node2\nPort 22\nIdentityFile /b\nIdentityFile /a\nConnectTimeout none\nIdentitiesOnly no\n"
        "Host *\nPort 23\nUser late\nIdentityFile none\nConnectTimeout 5\nIdentitiesOnly yes\n",
        "node", &host);
    assert_string_equal(host.user, "before");
    assert_int_equal(host.port, 22);
    assert_int_equal(host.identity_count, 2);
    assert_string_equal(host.identities[0], "/a");
    assert_string_equal(host.identities[1], "/b");
    assert_int_equal(host.connect_timeout, 0);
    assert_false(host.identities_only);
    ssh_host_clear(&host);
    look_up("Host n* !node2\nPort 22\nHost node?\nUser x\n", "node2", &host);
    assert_int_equal(host.port, 0);
    assert_string_equal(host.user, "x");
}

TEST(proxies) {
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    look_up("ProxyCommand ssh -W %h:%p gw\nProxyJump gw\n", "node", &host);
    assert_string_equal(host.proxy_command, "ssh -W %h:%p gw");
    assert_null(host.proxy_jump);
    ssh_host_clear(&host);
    look_up("Host gw\nProxyJump none\nHost *\nProxyJump gw\nProxyCommand nc\n", "gw", &host);
    assert_string_equal(host.proxy_jump, "none");
    assert_null(host.proxy_command);
}

TEST(match) {
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    look_up("HostName %h.example\n"
            "Match exec \"touch /tmp/no\" host *\nUser exec\n"
            "Match !user root\nUser not-root\n"
            "Match host node\nUser by-old-name\n"
            "Match originalhost node.example\nUser by-new-name\n"
            "Match host NODE.*,!x originalhost=n*\nUser both\n"
            "Match !host *.example\nPort 1\n"
            "Match all\nPort 2\n",
            "node", &host);
    assert_string_equal(host.user, "both");
    assert_int_equal(host.port, 2);
}

TEST(include) {
    cleanup_free char *a = put(".ssh/conf.d/10-a", "User a\nHost x\nPort 10\nInclude deeper\n");
    cleanup_free char *b = put(".ssh/conf.d/20-b", "Port 20\n");
    cleanup_free char *deeper = put(".ssh/deeper", "HostKeyAlias deep\n");
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    look_up("Include conf.d/* no-such-file ~/none\nHost node\nHostKeyAlias after\n", "node", &host);
    assert_string_equal(host.user, "a");
    assert_int_equal(host.port, 20);
    assert_string_equal(host.host_key_alias, "after");
    ssh_host_clear(&host);
    look_up("Include conf.d/*\n", "x", &host);
    assert_int_equal(host.port, 10);
    assert_string_equal(host.host_key_alias, "deep");
    ssh_host_clear(&host);
    /* From lines that are for others: nothing, though a Host line in it would match. */
    look_up("Host other\nInclude conf.d/*\nHost *\nPort 30\n", "x", &host);
    assert_int_equal(host.port, 30);
    assert_null(host.user);
    ssh_host_clear(&host);
    /* What it says of Host ends with it. */
    look_up("Include conf.d/10-a\nPort 40\n", "node", &host);
    assert_int_equal(host.port, 40);
    cleanup_free char *loop = put(".ssh/loop", "\nInclude loop\n");
    cleanup_free char *config = put("config", "Include loop\n");
    cleanup(free_config) struct ssh_config *parsed = NULL;
    struct failure failure = {0};
    assert_int_equal(ssh_config_read(config, &parsed, &failure), -EINVAL);
    assert_non_null(strstr(failure.place, "/.ssh/loop:2"));
    assert_non_null(strstr(failure.text, "16 levels"));
    /* Twice each at every level: bounded all the same. */
    cleanup_free char *twice = put(".ssh/loop", "Host *\n");
    for (int level = 1; level <= 14; level++) {
        char name[32], content[80];
        snprintf(name, sizeof name, ".ssh/level%d", level);
        snprintf(content, sizeof content, "Include level%d\nInclude level%d\n", level + 1, level + 1);
        free(put(name, content));
    }
    free(put(".ssh/level15", "Port 1\n"));
    free(put("config", "Include level1\n"));
    assert_int_equal(ssh_config_read(config, &parsed, &failure), -EINVAL);
    assert_non_null(strstr(failure.text, "more than 1024 files"));
}

TEST(usual_files) {
    free(put(".ssh/config", "Host usual\nPort 4242\n"));
    cleanup(free_config) struct ssh_config *config = NULL;
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    struct failure failure = {0};
    assert_int_equal(ssh_config_read(NULL, &config, &failure), 0);
    assert_int_equal(ssh_config_look_up(config, "usual", &host, &failure), 0);
    assert_int_equal(host.port, 4242);
    cleanup_free char *path = file_join(scratch, ".ssh/config");
    assert_int_equal(unlink(path), 0);
    struct ssh_config *none = NULL;
    assert_int_equal(ssh_config_read(NULL, &none, &failure), 0);
    ssh_config_free(none);
}

TEST(agent_variable) {
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    assert_int_equal(setenv("MY_AGENT", "/run/mine", 1), 0);
    look_up("IdentityAgent $MY_AGENT\n", "n", &host);
    assert_string_equal(host.identity_agent, "/run/mine");
    ssh_host_clear(&host);
    assert_int_equal(unsetenv("MY_AGENT"), 0);
    look_up("IdentityAgent $MY_AGENT\n", "n", &host);
    assert_string_equal(host.identity_agent, "none");
    ssh_host_clear(&host);
    look_up("IdentityAgent SSH_AUTH_SOCK\n", "n", &host);
    assert_string_equal(host.identity_agent, "SSH_AUTH_SOCK");
}

TEST(refusals) {
    expect_refused("\nPort\n", 2, "Port has no value");
    expect_refused("Host n\n  User = # nobody\n", 2, "User has no value");
    expect_refused("Port 22 23\n", 1, "more than one value");
    expect_refused("Port 65536\n", 1, "'65536' is not a port");
    expect_refused("Port 0\n", 1, "'0' is not a port");
    expect_refused("Host other\nPort x\n", 2, "'x' is not a port");
    expect_refused("ConnectTimeout soon\n", 1, "'soon' is not a time");
    expect_refused("ConnectTimeout 999999999999\n", 1, "is not a time");
    expect_refused("IdentitiesOnly perhaps\n", 1, "neither yes nor no");
    expect_refused("User \"x\n", 1, "a quote is not closed");
    expect_refused("ProxyJump a b\n", 1, "more than one value"); /* OpenSSH: the host "a b" */
    expect_refused("ProxyJump a,,b\n", 1, "ProxyJump: '' is not a destination");
    expect_refused("ProxyJump -oProxyCommand=x\n", 1, "begins with '-'");
    expect_refused("HostName %x\n", 1, "'%x' in '%x' is not known");
    expect_refused("HostName a%\n", 1, "is not known");
    expect_refused("IdentityFile /%C\n", 1, "'%C' in '/%C' is not known");
    expect_refused("IdentityFile ~nobody-of-this-name/x\n", 1, "no such user");
    expect_refused("Match host\n", 1, "Match host has no pattern");
    expect_refused("Match all host x\n", 1, "'all' must be the only");
    expect_refused("UserKnownHostsFile \"a b\"\n", 1, "has a blank");
    struct failure failure = {0};
    struct ssh_config *config = NULL;
    assert_true(ssh_config_read("/nonexistent/config", &config, &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_non_null(strstr(failure.text, "/nonexistent/config"));
    assert_null(config);
}

/* ---- against OpenSSH */

/* What was looked up, as openssh-9.2.txt says it. */
static void describe(const struct ssh_host *host, struct text *ret) {
    if (host->user)
        text_printf(ret, " | user %s", host->user);
    text_printf(ret, " | hostname %s | port %u", host->host_name, host->port ? host->port : 22);
    for (size_t i = 0; i < host->identity_count; i++)
        text_printf(ret, " | identityfile %s", host->identities[i]);
    if (host->proxy_jump && strcasecmp(host->proxy_jump, "none") != 0)
        text_printf(ret, " | proxyjump %s", host->proxy_jump);
    if (host->connect_timeout)
        text_printf(ret, " | connecttimeout %u", host->connect_timeout);
    text_printf(ret, " | identitiesonly %s", host->identities_only ? "yes" : "no");
    if (host->host_key_alias)
        text_printf(ret, " | hostkeyalias %s", host->host_key_alias);
}

/* What OpenSSH refuses, we refuse too. */
static void compare(const char *content, const char *destination, const char *theirs) {
    cleanup(ssh_host_clear) struct ssh_host host = {0};
    cleanup(text_clear) struct text ours;
    text_init(&ours, 1 << 20);
    cleanup_free char *path = put("config", content);
    cleanup(free_config) struct ssh_config *config = NULL;
    struct failure failure = {0};
    int r = ssh_config_read(path, &config, &failure);
    if (r == 0)
        r = ssh_config_look_up(config, destination, &host, &failure);
    if (r == 0)
        describe(&host, &ours);
    else
        text_append_string(&ours, " | refused");
    if (strcmp(ours.bytes, theirs) != 0)
        fail_msg("'%s' of\n%s\nssh: %s\nwe:  %s", destination, content, theirs, ours.bytes);
}

TEST(as_openssh_reads_them) {
    cleanup(text_clear) struct text record, inner, outer;
    struct text *at = NULL;
    cleanup_free char *path = file_join(getenv("ASSAY_SOURCE"), "tests/unit/remote/openssh-9.2.txt");
    cleanup_free char *included = file_join(scratch, "included");
    struct failure failure = {0};
    size_t answers = 0;
    text_init(&record, 1 << 20);
    text_init(&inner, 1 << 16);
    text_init(&outer, 1 << 16);
    assert_int_equal(file_read(path, &record, &failure), 0);
    for (char *rest = record.bytes, *line; (line = strsep(&rest, "\n"));) {
        char *theirs = strstr(line, " | ");
        if (strcmp(line, "%% included") == 0 || strcmp(line, "%% config") == 0) {
            at = line[3] == 'i' ? &inner : &outer;
            text_reset(at);
        } else if (strncmp(line, "%% ", 3) == 0) {
            assert_non_null(theirs);
            cleanup_free char *destination = strndup(line + 3, (size_t)(theirs - line - 3));
            free(put("included", inner.bytes));
            compare(outer.bytes, destination, theirs);
            answers++;
        } else if (at && strcmp(line, "Include INCLUDED") == 0) {
            text_printf(at, "Include %s\n", included);
        } else if (at) {
            text_printf(at, "%s\n", line);
        }
    }
    assert_true(answers > 180);
}

/* ---- destinations */

static void expect_destination(const char *destination, const char *user, const char *host, unsigned port) {
    cleanup_free char *its_user = NULL, *its_host = NULL;
    unsigned its_port = 1;
    struct failure failure = {0};
    if (ssh_destination_parse(destination, &its_user, &its_host, &its_port, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_string_equal(its_host, host);
    assert_int_equal(its_port, port);
    assert_true((user == NULL) == (its_user == NULL));
    if (user)
        assert_string_equal(its_user, user);
}

TEST(destinations) {
    expect_destination("node", NULL, "node", 0);
    expect_destination("alice@node_1.site:2222", "alice", "node_1.site", 2222);
    expect_destination("ssh://alice@node:22", "alice", "node", 22);
    expect_destination("ssh://node/", NULL, "node", 0);
    expect_destination("[fe80::1%eth0]:22", NULL, "fe80::1%eth0", 22);
    expect_destination("root@[::1]", "root", "::1", 0);
    expect_destination("fe80::1%eth0", NULL, "fe80::1%eth0", 0);
    expect_destination("10.0.0.1:1", NULL, "10.0.0.1", 1);
    static const char *const bad[] = {"",
                                      "@node",
                                      "node:",
                                      "node:0",
                                      "node:65536",
                                      "node:2x",
                                      "node:+1",
                                      "-node",
                                      "a@-node",
                                      "-a@node",
                                      "a b",
                                      "a@b@c",
                                      "[::1",
                                      "[]:22",
                                      "[::1]x",
                                      "[::1]:",
                                      "no;de",
                                      "node\n",
                                      "a$(b)",
                                      "ssh://",
                                      "ssh://a/b",
                                      "h:1:2:x",
                                      "us/er@node",
                                      "`id`",
                                      "n\xc3\xa9",
                                      "user:password@node",
                                      "/etc/passwd",
                                      "..@@"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *user = NULL, *host = NULL;
        unsigned port = 7;
        struct failure failure = {0};
        if (ssh_destination_parse(bad[i], &user, &host, &port, &failure) == 0)
            fail_msg("'%s' was taken", bad[i]);
        assert_int_equal(failure.kind, FAILURE_INPUT);
        assert_true(!user && !host && port == 7);
    }
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[256] = '\0';
    char *user = NULL, *host = NULL;
    unsigned port;
    assert_true(ssh_destination_parse(longest, &user, &host, &port, NULL) < 0);
}

TEST_GROUP(set_up, tear_down)
