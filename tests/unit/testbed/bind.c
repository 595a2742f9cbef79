/* What a campaign says of its testbed: bound, or refused with its place. */
#include "engine/documents/document.h"
#include "engine/remote/launch/package.h"
#include "engine/testbed/host-settings.h"
#include "engine/testbed/testbed.h"
#include "tests/test.h"

static struct testbed_choice choice; /* the last that was bound */

static int set_up(void **state) {
    return setenv("HOME", "/home/somebody", 1);
}

static int tear_down(void **state) {
    testbed_choice_clear(&choice);
    return 0;
}

/* Binds `testbed:` of the document TEXT. The choice outlives the document, as it must. */
static int bind(const char *text, const char *const *nodes, size_t node_count) {
    struct document *document;
    assert_ok(document_parse_yaml("c.yaml", text, strlen(text), &document, &test_failure));
    struct testbed_written written = {.document = document,
                                      .node = document_get(document->root, "testbed"),
                                      .folder = test_folder(),
                                      .nodes = nodes,
                                      .node_count = node_count};
    testbed_choice_clear(&choice);
    int r = testbed_bind(&written, &choice, &test_failure);
    document_free(document);
    return r;
}

static void bound(const char *text) {
    assert_ok(bind(text, NULL, 0));
}

static void refused(const char *text, const char *place, const char *part) {
    assert_refused(bind(text, NULL, 0), place, part);
    assert_null(choice.backend);
}

TEST(nothing_written_is_local) {
    bound("experiment: x\n");
    assert_ptr_equal(choice.backend, &testbed_local);
    assert_int_equal(choice.backend->expected_nodes(choice.settings), 1);
    bound("testbed: local\n");
    assert_ptr_equal(choice.backend, &testbed_local);
    testbed_choice_clear(&choice);
    testbed_choice_clear(&choice); /* again */
}

TEST(hosts_have_defaults) {
    bound("testbed: {hosts: 'root@a-[1-2].site:22,b'}\n");
    const struct testbed_settings *settings = choice.settings;
    assert_ptr_equal(choice.backend, &testbed_hosts);
    assert_int_equal(choice.backend->expected_nodes(settings), 3);
    assert_string_equal(settings->hosts.names[1], "root@a-2.site:22");
    assert_string_equal(settings->names[1], "a-2.site");
    assert_string_equal(settings->names[2], "b");
    assert_null(settings->access.user);
    assert_int_equal(settings->access.port, 0);
    assert_int_equal(settings->access.host_keys, HOST_KEYS_KNOWN);
    assert_int_equal(settings->access.window, 64);
    assert_int_equal(settings->access.agent, AGENT_AUTO);
    assert_true(settings->access.timeout == 20 && settings->access.lease == 300);
}

TEST(every_key_is_taken) {
    test_put("id_a", "key");
    test_put("id_b", "key");
    test_put("config", "");
    test_put("list.txt", "c-[1-3] # three\nd\n");
    bound("testbed:\n  hosts: {file: list.txt}\n  user: me\n  port: 2222\n  identity: [id_a, id_b]\n"
          "  jump: gate\n  ssh-config: config\n  known-hosts: ~/keys\n  host-keys: accept-new\n"
          "  window: 8\n  timeout: 3 s\n  agent: source\n  lease: 10 min\n");
    const struct testbed_settings *settings = choice.settings;
    assert_int_equal(settings->hosts.count, 4);
    assert_string_equal(settings->names[3], "d");
    assert_string_equal(settings->access.user, "me");
    assert_int_equal(settings->access.port, 2222);
    assert_int_equal(settings->access.identities.count, 2);
    assert_string_equal(settings->access.identities.items[1], test_path("id_b"));
    assert_string_equal(settings->access.jump, "gate");
    assert_string_equal(settings->access.known_hosts, "/home/somebody/keys");
    assert_int_equal(settings->access.host_keys, HOST_KEYS_ACCEPT_NEW);
    assert_int_equal(settings->access.window, 8);
    assert_int_equal(settings->access.agent, AGENT_SOURCE);
    assert_true(settings->access.timeout == 3 && settings->access.lease == 600);
    struct text words;
    text_init(&words, 1 << 16);
    assert_int_equal(choice.backend->describe(settings, &words), 0);
    assert_says(words.bytes, "4: c-[1-3],d\n");
    assert_says(words.bytes, "user me, port 2222");
    assert_says(words.bytes, "through gate");
    assert_says(words.bytes, "10 min");
    text_clear(&words);
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    choice.backend->resolve(settings, object);
    text_init(&words, 1 << 16);
    assert_int_equal(json_print(object, false, &words), 0);
    assert_says(words.bytes, "\"hosts\":[\"c-1\",\"c-2\",\"c-3\",\"d\"],\"user\":\"me\",\"port\":2222");
    assert_says(words.bytes, "\"host-keys\":\"accept-new\"");
    text_clear(&words);
}

/* Resolved, and bound again from that. Its hash is known, so that the image may be away. */
static void assert_deploys_again(const char *text, const char *part) {
    char path[512];
    cleanup(text_clear) struct text words;
    bound(text);
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cJSON *testbed = cJSON_AddObjectToObject(object, "testbed");
    choice.backend->resolve(choice.settings, testbed);
    text_init(&words, 1 << 16);
    assert_int_equal(json_print(object, false, &words), 0);
    snprintf(path, sizeof path, "%s\"deploy\":{\"image\":\"%s/a.tar\",\"sha256\":\"abc\"}", part,
             test_folder());
    assert_says(words.bytes, path);
    bound(words.bytes);
}

TEST(what_is_deployed_is_resolved) {
    assert_deploys_again("testbed: {local: , deploy: {image: a.tar, sha256: abc}}\n", "\"local\":null,");
    assert_deploys_again("testbed: {hosts: a, deploy: {image: a.tar, sha256: abc}}\n", "");
    assert_deploys_again("testbed: {slurm: {walltime: 1 h}, deploy: {image: a.tar, sha256: abc}}\n", "");
    const char *const nodes[] = {"e-[1-2]"};
    assert_int_equal(bind("testbed: {local: , deploy: {image: a.tar, sha256: abc}}\n", nodes, 1), -EINVAL);
    assert_says(test_failure.text, "'deploy' of the testbed 'local'");
}

/* The words of sudo in CAMPAIGN, with blanks between. */
static void expect_sudo(const char *campaign, const char *expected) {
    bound(campaign);
    const struct bind_texts *words = &choice.settings->access.sudo;
    char joined[256] = "";
    for (size_t i = 0, length = 0; i < words->count; i++)
        length +=
            (size_t)snprintf(joined + length, sizeof joined - length, "%s%s", i ? " " : "", words->items[i]);
    assert_string_equal(joined, expected);
}

TEST(sudo_is_a_truth_or_a_command) {
    expect_sudo("testbed: {hosts: a}\n", "");
    expect_sudo("testbed: {hosts: a, sudo: no}\n", "");
    expect_sudo("testbed: {hosts: a, sudo: false}\n", "");
    expect_sudo("testbed: {hosts: a, sudo: yes}\n", "sudo -n");
    expect_sudo("testbed: {hosts: a, sudo: true}\n", "sudo -n");
    expect_sudo("testbed: {hosts: a, sudo: sudo-g5k}\n", "sudo-g5k");
    expect_sudo("testbed: {hosts: a, sudo: [doas, -n]}\n", "doas -n");
    refused("testbed: {hosts: a, sudo: ['a b']}\n", "c.yaml:1:28", "letters, digits");
    refused("testbed: {hosts: a, sudo: 'a,b'}\n", "c.yaml:1:27", "letters, digits");
}

TEST(what_is_wrong_has_its_place) {
    refused("testbed: locale\n", "c.yaml:1:10", "'locale'; did you mean 'local'?");
    refused("testbed: [a]\n", "c.yaml:1:11", "there is no testbed 'a'");
    refused("testbed: [[local]]\n", "c.yaml:1:11", "a sequence, expected a name or a mapping");
    refused("testbed: ~\n", "c.yaml:1:10", "nothing, expected a name or a mapping");
    refused("testbed: {local: x}\n", "c.yaml:1:18", "'local'");
    refused("testbed: {local: , user: me}\n", "c.yaml:1:20", "'user'");
    refused("testbed: {local: , deploy: {sha256: a}}\n", "c.yaml:1:28", "names no image");
    refused("testbed: hosts\n", "c.yaml:1:10", "has no 'hosts'");
    refused("testbed: {user: me}\n", "c.yaml:1:10", "has no 'hosts'");
    refused("testbed: {host: a}\n", "c.yaml:1:11", "did you mean 'hosts'?");
    refused("testbed: {user: me, slum: {nodes: 1}}\n", "c.yaml:1:21",
            "no testbed 'slum'; did you mean 'slurm'?");
    refused("testbed: {hosts: 'root@'}\n", "c.yaml:1:18", "names no host");
    char long_name[256];
    snprintf(long_name, sizeof long_name, "testbed: {hosts: %0200d}\n", 1);
    bound(long_name);
    snprintf(long_name, sizeof long_name, "testbed: {hosts: %0201d}\n", 1);
    refused(long_name, "c.yaml:1:18", "has a name of 201 bytes; expected at most 200");
    refused("testbed: {hosts: a, prt: 1}\n", "c.yaml:1:21", "did you mean 'port'?");
    refused("testbed: {hosts: a, port: 65536}\n", "c.yaml:1:27", "from 1 to 65535");
    refused("testbed: {hosts: a, window: 1025}\n", "c.yaml:1:29", "from 1 to 1024");
    refused("testbed: {hosts: a, lease: 1 s}\n", "c.yaml:1:28", "from 2 to");
    refused("testbed: {hosts: a, timeout: soon}\n", "c.yaml:1:30", "a time");
    refused("testbed: {hosts: a, host-keys: any}\n", "c.yaml:1:32", "'known', 'accept-new'");
    refused("testbed: {hosts: a, agent: none}\n", "c.yaml:1:28", "'auto', 'binary', 'source'");
    refused("testbed: {hosts: a, identity: nowhere}\n", "c.yaml:1:31", "cannot read the key");
    refused("testbed: {hosts: a, ssh-config: nowhere}\n", "c.yaml:1:33", "cannot read");
    refused("testbed: {hosts: []}\n", "c.yaml:1:18", "is empty");
    refused("testbed: {hosts: [a, [b]]}\n", "c.yaml:1:22", "a sequence, expected names or ranges");
    refused("testbed: {hosts: 'a[1-'}\n", "c.yaml:1:18", "column");
    refused("testbed: {hosts: {file: nowhere.txt}}\n", "c.yaml:1:25", "there is no file");
    refused("testbed: {hosts: {fil: x}}\n", "c.yaml:1:19", "did you mean 'file'?");
    /* Results are told apart by these names, in folders of an archive that any system can unpack. */
    refused("testbed: {hosts: 'u@n:1,v@n:2'}\n", "c.yaml:1:18", "two nodes would be called 'n'");
    refused("testbed: {hosts: 'Node,node'}\n", "c.yaml:1:18", "two nodes would be called");
}

TEST(nodes_of_the_command_line_come_first) {
    const char *const nodes[] = {"e-[1-2]", "f"};
    assert_ok(bind("testbed: local\n", nodes, 2));
    assert_ptr_equal(choice.backend, &testbed_hosts);
    assert_int_equal(choice.settings->hosts.count, 3);
    assert_string_equal(choice.settings->names[2], "f");

    /* The other keys stay, also those of a mapping that has no hosts of its own. */
    assert_int_equal(bind("testbed: {hosts: {file: nowhere}, user: me}\n", nodes, 1), 0);
    assert_int_equal(choice.settings->hosts.count, 2);
    assert_string_equal(choice.settings->access.user, "me");
    assert_int_equal(bind("testbed: {user: me}\n", nodes, 1), 0);
    assert_string_equal(choice.settings->access.user, "me");
    assert_ok(bind("testbed: hosts\n", nodes, 1));

    char at[300];
    snprintf(at, sizeof at, "@%s/more.txt", test_folder());
    test_put("more.txt", "g\nh-[1-3]\n");
    const char *const files[] = {at};
    assert_ok(bind("experiment: x\n", files, 1));
    assert_int_equal(choice.settings->hosts.count, 4);

    /* A campaign that is wrong is wrong all the same. */
    assert_int_equal(bind("testbed: locale\n", nodes, 1), -EINVAL);
    assert_string_equal(test_failure.place, "c.yaml:1:10");
    const char *const bad[] = {"a[2-1]"};
    assert_int_equal(bind("testbed: local\n", bad, 1), -EINVAL);
    assert_string_equal(test_failure.place, "--nodes");
}

/* One of a list counts; nodes from the command line stand for all of it. */
TEST(lists_of_testbeds) {
    static const char text[] = "testbed: [local, {hosts: [a, b]}]\n";
    struct document *document;
    assert_ok(document_parse_yaml("c.yaml", text, strlen(text), &document, &test_failure));
    struct testbed_written written = {
        .document = document, .node = document_get(document->root, "testbed"), .folder = test_folder()};
    for (; written.choice < 2; written.choice++) {
        assert_ok(testbed_bind(&written, &choice, &test_failure));
        assert_string_equal(choice.backend->name, written.choice ? "hosts" : "local");
        assert_true(choice.number == written.choice + 1 && choice.count == 2);
        testbed_choice_clear(&choice);
    }
    assert_int_equal(testbed_bind(&written, &choice, &test_failure), -EINVAL);
    document_free(document);
    const char *const nodes[] = {"c"};
    assert_ok(bind(text, nodes, 1));
    assert_int_equal(choice.count, 0);
    bound("testbed: [local]\n"); /* no different from the one alone */
    assert_int_equal(choice.count, 0);
    assert_int_equal(bind("testbed: []\n", NULL, 0), -EINVAL);
    assert_string_equal(test_failure.place, "c.yaml:1:10");
    assert_ok(bind("testbed: [local, locale]\n", NULL, 0));
}

TEST_EACH(set_up, tear_down)
