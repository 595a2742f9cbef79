/* The files of known host keys: who is meant by a line, what it says of a key, and the file of this run. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/remote/ssh/host-keys.h"
#include "tests/test.h"

#include <libssh/libssh.h>

#include <sys/stat.h>
#include <unistd.h>

/* Two real keys: libssh parses what it is asked about. */
#define KEY_A "AAAAC3NzaC1lZDI1NTE5AAAAIGf7QbDq2ha6sPyAE6HuSXa29THVhjNXMPqia4Z1Z+AO"
#define KEY_B "AAAAC3NzaC1lZDI1NTE5AAAAIDW+7FR2oZgBXImk/lFO2hcO31Lrh2yXJRJ0hEnb6L6P"
#define KEY_384                                                                                              \
    "AAAAE2VjZHNhLXNoYTItbmlzdHAzODQAAAAIbmlzdHAzODQAAABhBHnNQsJPhPNDqXJzwKLCLVy9oSmK"                       \
    "DLs3/eV/UxuDqW/"                                                                                        \
    "izEo448cXkzexaPSAsLKPeYoBofi9MpCFF8gAQ6gKzbybUCvwB2tD26Dmdhj00Q1P5hh9QbS631poaCzQeRloqw=="
#define KEY_RSA                                                                                              \
    "AAAAB3NzaC1yc2EAAAADAQABAAABAQC3Hf8sj69gGHw0yYRCJJ6ZALVPrT52OT4oGvumQgqGECzsE43hmMys6DdPvg"             \
    "zeuPUjRlxKodLLqnLVW4b7S0fpaJ0ioWRPEk/wLgBeOfIekW1YZWGzyAes151AbnzTMEQS7KZVcaJXuTySnQnQaPVY"             \
    "rrvNnQhf5CXR9FywZXT31BTglRHdm+tcjoypA3WlEAK2CCXE9n3hnNBLx+jDvU4fH3XUmAW0owKIEnuiGPKtfE5drf"             \
    "obR0LDfnZuB9r7MqYpmSrLFy7qQigSb4FtlP+KWMdjDKOKx79EwujSs0tqXNmOuvIVIvn65N9v8w5qXMAw2dMGURza1B+FsUftupTt"
#define ED "ssh-ed25519"

static struct event_loop *loop;
static struct host_keys *keys; /* open_keys() frees the last ones */
static struct failure failure;
static const char *folder;
static char path[128], accepted[128];

static int set_up(void **state) {
    folder = test_folder();
    loop = event_loop_new(&failure);
    snprintf(path, sizeof path, "%s/known", folder);
    snprintf(accepted, sizeof accepted, "%s/accepted", folder);
    return loop ? 0 : -1;
}

static int tear_down(void **state) {
    host_keys_free(keys);
    event_loop_free(loop);
    return 0;
}

static void put(const char *text) {
    assert_int_equal(file_replace(path, text, strlen(text), 0600, NULL), 0);
}

static struct host_key_finding look_up_at(const struct host_key_place *place, const char *base64) {
    ssh_key key = NULL;
    assert_int_equal(ssh_pki_import_pubkey_base64(base64, SSH_KEYTYPE_ED25519, &key), SSH_OK);
    struct host_key_finding found = host_keys_look_up(keys, place, key);
    ssh_key_free(key);
    return found;
}

static struct host_key_finding look_up(const char *name, const char *key) {
    const char *files[] = {path};
    struct host_key_place place = {.name = name, .files = files, .file_count = 1};
    return look_up_at(&place, key);
}

static void open_keys(const char *run_file) {
    host_keys_free(keys);
    assert_int_equal(host_keys_new(loop, run_file, &keys, &failure), 0);
}

/* Of the file TEXT: what it says of KEY_A shown by NAME. */
static enum host_key_verdict verdict(const char *text, const char *name) {
    put(text);
    open_keys(NULL);
    enum host_key_verdict found = look_up(name, KEY_A).verdict;
    return found;
}

TEST(names) {
    assert_int_equal(verdict("node " ED " " KEY_A "\n", "node"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("NoDe " ED " " KEY_A " a comment\r\n", "node"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("\t node\t" ED "  " KEY_A, "node"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("other " ED " " KEY_A "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("a,node,b " ED " " KEY_A "\n", "node"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("nod " ED " " KEY_A "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("nodes " ED " " KEY_A "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("[node]:2222 " ED " " KEY_A "\n", "[node]:2222"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("[node]:2222 " ED " " KEY_A "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("node " ED " " KEY_A "\n", "[node]:2222"), HOST_KEY_UNKNOWN);
}

TEST(patterns) {
    assert_int_equal(verdict("* " ED " " KEY_A "\n", "node"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("n?de-* " ED " " KEY_A "\n", "node-17"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("n?de-* " ED " " KEY_A "\n", "node17"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("*.site.org " ED " " KEY_A "\n", "a.b.site.org"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("*a*b*c " ED " " KEY_A "\n", "xaxbxbxc"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("*a*b*c " ED " " KEY_A "\n", "xaxbxbxd"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("*,!node " ED " " KEY_A "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("!node,* " ED " " KEY_A "\n", "other"), HOST_KEY_KNOWN);
    assert_int_equal(verdict(",,!,node, " ED " " KEY_A "\n", "node"), HOST_KEY_KNOWN);
    /* 62 times "a*": a match that goes back is not to take for ever */
    char text[512], name[256];
    size_t length = 0;
    for (int i = 0; i < 62; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "a*");
    snprintf(text + length, sizeof text - length, "b " ED " " KEY_A "\n");
    memset(name, 'a', sizeof name);
    name[sizeof name - 1] = '\0';
    assert_int_equal(verdict(text, name), HOST_KEY_UNKNOWN);
}

/* libssh is not to match what a user's file has: some of its versions take exponential time. */
TEST(patterns_are_matched_without_libssh) {
    assert_int_equal(verdict("a*?c,!*d " ED " " KEY_A "\n", "abc"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("a*?c " ED " " KEY_A "\n", "ac"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("!a*d,a* " ED " " KEY_A "\n", "abd"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("[a*]:22?2 " ED " " KEY_A "\n", "[ab]:2222"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("\\node,node[1] " ED " " KEY_A "\n", "node1"), HOST_KEY_UNKNOWN);
    /* More patterns than libssh takes in a line. */
    char text[8192] = "";
    size_t length = 0;
    for (int i = 0; i < 500; i++)
        length += (size_t)snprintf(text + length, sizeof text - length, "x%d*,", i);
    snprintf(text + length, sizeof text - length, "node " ED " " KEY_A "\n");
    assert_int_equal(verdict(text, "node"), HOST_KEY_KNOWN);
}

static struct host_key_finding look_up_with_port(const char *text) {
    const char *files[] = {path};
    struct host_key_place place = {
        .name = "[node]:2222", .name_without_port = "node", .files = files, .file_count = 1};
    put(text);
    open_keys(NULL);
    return look_up_at(&place, KEY_A);
}

TEST(name_without_port) {
    assert_int_equal(look_up_with_port("node " ED " " KEY_A "\n").verdict, HOST_KEY_KNOWN);
    assert_int_equal(look_up_with_port("node " ED " " KEY_B "\n").verdict, HOST_KEY_UNKNOWN);
    assert_int_equal(look_up_with_port("@revoked node " ED " " KEY_A "\n").verdict, HOST_KEY_REVOKED);
    assert_int_equal(look_up_with_port("node " ED " " KEY_A "\n[node]:2222 " ED " " KEY_B "\n").verdict,
                     HOST_KEY_CHANGED);
}

TEST(authorities_are_found) {
    struct host_key_finding found = look_up_with_port("\n@cert-authority *,!x " ED " " KEY_A "\n");
    assert_int_equal(found.verdict, HOST_KEY_UNKNOWN);
    assert_string_equal(found.file, path);
    assert_int_equal(found.line, 2);
    assert_null(look_up_with_port("@cert-authority *,!*node* " ED " " KEY_A "\n").file);
}

/* Made by `ssh-keygen -H` of "node.site.org ...". */
TEST(hashed_name) {
    static const char line[] =
        "|1|kZs+AsHa2+isJRSYV0DdwGAkam8=|vBqk8TkuBxyvBzcXrZUiTBUPTbc= " ED " " KEY_A "\n";
    assert_int_equal(verdict(line, "node.site.org"), HOST_KEY_KNOWN);
    assert_int_equal(verdict(line, "other.site.org"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("|1|x " ED " " KEY_A "\n|2|a|b " ED " " KEY_A "\n| " ED " " KEY_A "\n", "node"),
                     HOST_KEY_UNKNOWN);
}

TEST(verdicts) {
    assert_int_equal(verdict("", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("# node " ED " " KEY_A "\n\n  \n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("node\nnode " ED "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("node " ED " " KEY_B "\n", "node"), HOST_KEY_CHANGED);
    assert_int_equal(verdict("node " ED " " KEY_B "\nnode " ED " " KEY_A "\n", "node"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("node ssh-rsa " KEY_RSA "\n", "node"), HOST_KEY_CHANGED);
    assert_int_equal(verdict("@revoked * " ED " " KEY_A "\nnode " ED " " KEY_A "\n", "node"),
                     HOST_KEY_REVOKED);
    assert_int_equal(verdict("node " ED " " KEY_A "\n@revoked * " ED " " KEY_A "\n", "node"),
                     HOST_KEY_REVOKED);
    assert_int_equal(verdict("@revoked * " ED " " KEY_B "\nnode " ED " " KEY_A "\n", "node"), HOST_KEY_KNOWN);
    assert_int_equal(verdict("@revoked * " ED " " KEY_B "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("@cert-authority * " ED " " KEY_A "\n", "node"), HOST_KEY_UNKNOWN);
    assert_int_equal(verdict("@revoked\n@revoked x\n@ y z w\n", "node"), HOST_KEY_UNKNOWN);
}

TEST(says_where) {
    put("# one\n\nother " ED " " KEY_A "\nnode " ED " " KEY_B "\n");
    open_keys(NULL);
    struct host_key_finding found = look_up("node", KEY_A);
    assert_int_equal(found.verdict, HOST_KEY_CHANGED);
    assert_string_equal(found.file, path);
    assert_int_equal(found.line, 4);
    found = look_up("new", KEY_A);
    assert_int_equal(found.verdict, HOST_KEY_UNKNOWN);
    assert_null(found.file);
}

static void check_algorithms(const char *text, const char *expected) {
    put(text);
    open_keys(NULL);
    const char *files[] = {path};
    struct host_key_place place = {.name = "node", .files = files, .file_count = 1};
    cleanup(text_clear) struct text algorithms;
    text_init(&algorithms, 1024);
    host_keys_algorithms(keys, &place, &algorithms);
    assert_string_equal(algorithms.bytes, expected);
}

TEST(algorithms) {
#define ECDSA "ecdsa-sha2-nistp256,ecdsa-sha2-nistp384,ecdsa-sha2-nistp521"
    check_algorithms("", "ssh-ed25519," ECDSA ",rsa-sha2-512,rsa-sha2-256");
    check_algorithms("other ssh-rsa " KEY_RSA "\n", "ssh-ed25519," ECDSA ",rsa-sha2-512,rsa-sha2-256");
    check_algorithms("node ssh-rsa " KEY_RSA "\n", "rsa-sha2-512,rsa-sha2-256,ssh-ed25519," ECDSA);
    check_algorithms("@revoked node ssh-rsa " KEY_RSA "\n",
                     "ssh-ed25519," ECDSA ",rsa-sha2-512,rsa-sha2-256");
    check_algorithms("node ecdsa-sha2-nistp384 " KEY_384 "\nnode sk-ssh-future y\n",
                     "ecdsa-sha2-nistp384,ssh-ed25519,ecdsa-sha2-nistp256,ecdsa-sha2-nistp521,rsa-sha2-512,"
                     "rsa-sha2-256");
}

TEST(accepts) {
    put("");
    unlink(accepted);
    open_keys(accepted);
    assert_false(file_exists(accepted));
    assert_int_equal(host_keys_accept(keys, "node", ED, KEY_A, &failure), 0);
    assert_int_equal(host_keys_accept(keys, "[node]:2222", ED, KEY_B, &failure), 0);
    assert_file(accepted, "node " ED " " KEY_A "\n[node]:2222 " ED " " KEY_B "\n");
    assert_int_equal(look_up("node", KEY_A).verdict, HOST_KEY_KNOWN);
    struct host_key_finding found = look_up("[node]:2222", KEY_A);
    assert_int_equal(found.verdict, HOST_KEY_CHANGED);
    assert_string_equal(found.file, accepted);
    assert_int_equal(found.line, 2);
    open_keys(accepted); /* another run of the same */
    assert_int_equal(look_up("node", KEY_A).verdict, HOST_KEY_KNOWN);
    assert_int_equal(look_up("node", KEY_B).verdict, HOST_KEY_CHANGED);
}

TEST(accepts_after_others) {
    put("");
    static const char without_newline[] = "x " ED " " KEY_B;
    assert_int_equal(file_replace(accepted, without_newline, sizeof without_newline - 1, 0600, NULL), 0);
    open_keys(accepted);
    for (int i = 0; i < 200; i++) { /* the text moves in memory */
        char name[32];
        snprintf(name, sizeof name, "node-%d", i);
        assert_int_equal(host_keys_accept(keys, name, ED, KEY_A, &failure), 0);
    }
    assert_int_equal(look_up("x", KEY_A).verdict, HOST_KEY_CHANGED);
    assert_int_equal(look_up("node-0", KEY_A).verdict, HOST_KEY_KNOWN);
    struct host_key_finding found = look_up("node-199", KEY_A);
    assert_int_equal(found.verdict, HOST_KEY_KNOWN);
    assert_int_equal(found.line, 201);
    open_keys(accepted);
    assert_int_equal(look_up("node-199", KEY_A).line, 201);
}

TEST(cannot_accept) {
    put("");
    open_keys(NULL);
    assert_int_equal(host_keys_accept(keys, "node", ED, KEY_A, &failure), -ENOTSUP);
    char nowhere[160];
    snprintf(nowhere, sizeof nowhere, "%s/none/accepted", folder);
    open_keys(nowhere);
    assert_int_equal(host_keys_accept(keys, "node", ED, KEY_A, &failure), -ENOENT);
    assert_non_null(strstr(failure.text, nowhere));
    assert_int_equal(look_up("node", KEY_A).verdict, HOST_KEY_UNKNOWN);
}

TEST(missing_files) {
    unlink(path);
    open_keys(NULL);
    assert_int_equal(look_up("node", KEY_A).verdict, HOST_KEY_UNKNOWN);
    char none[160];
    snprintf(none, sizeof none, "%s/none", folder);
    assert_int_equal(host_keys_read(keys, none, &failure), -ENOENT);
    assert_int_equal(failure.kind, FAILURE_INPUT);
}

static void expect_unreadable(const char *file) {
    struct host_key_finding found = look_up("node", KEY_A);
    assert_int_equal(found.verdict, HOST_KEY_UNREADABLE);
    assert_string_equal(found.file, file);
    assert_non_null(strstr(found.reason, file));
}

/* What is there and cannot be read might name another key: it is not the same as nothing. */
TEST(unreadable_files) {
    (void)unlink(path);
    assert_int_equal(mkdir(path, 0700), 0);
    open_keys(accepted);
    expect_unreadable(path);
    assert_int_equal(host_keys_read(keys, path, &failure), -EISDIR); /* again, though it was tried before */
    assert_non_null(strstr(failure.text, path));
    assert_int_equal(rmdir(path), 0);

    assert_int_equal(symlink(path, path), 0); /* leads to itself */
    open_keys(NULL);
    expect_unreadable(path);
    put(""); /* in its place */

    open_keys(NULL);
    assert_int_equal(truncate(path, HOST_KEYS_FILE_MAX + 1), 0);
    expect_unreadable(path);

    put("node " ED " " KEY_A "\n");
    assert_int_equal(truncate(path, 200), 0); /* bytes that are not there */
    open_keys(NULL);
    expect_unreadable(path);

    /* More lines than are kept, in fewer bytes than the limit. */
    size_t length = (size_t)15 << 20;
    char *many = malloc(length + 1);
    assert_non_null(many);
    for (size_t i = 0; i < length; i++)
        many[i] = "a b c\n"[i % 6];
    many[length] = '\0';
    put(many);
    free(many);
    open_keys(NULL);
    expect_unreadable(path);
    put("");
}

/* RevokedHostKeys of ssh_config(5). */
TEST(revoked_keys) {
    char revoked[160];
    snprintf(revoked, sizeof revoked, "%s/revoked", folder);
    const char *files[] = {path};
    struct host_key_place place = {.name = "node", .files = files, .file_count = 1, .revoked = revoked};
    static const struct {
        const char *text;
        enum host_key_verdict verdict;
        size_t line;
    } cases[] = {{"", HOST_KEY_KNOWN, 1},
                 {"# of 2026\n\n" ED " " KEY_B "\n", HOST_KEY_KNOWN, 1},
                 {"# of 2026\n\n" ED " " KEY_B "\n\t" ED " " KEY_A " node\n", HOST_KEY_REVOKED, 4},
                 {"SSHKRL\n\1", HOST_KEY_UNREADABLE, 0},
                 {NULL, HOST_KEY_UNREADABLE, 0}};
    put("node " ED " " KEY_A "\n");
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        if (cases[i].text)
            assert_int_equal(file_replace(revoked, cases[i].text, strlen(cases[i].text), 0600, NULL), 0);
        else
            assert_int_equal(unlink(revoked), 0);
        open_keys(NULL);
        struct host_key_finding found = look_up_at(&place, KEY_A);
        assert_int_equal(found.verdict, cases[i].verdict);
        assert_int_equal(found.line, cases[i].line);
        if (cases[i].text && found.verdict == HOST_KEY_UNREADABLE)
            assert_non_null(strstr(found.reason, "launcher: {attach: [ssh, "));
    }
}

/* A key that is known elsewhere is not to be trusted either: it may be revoked there. Worse news goes first.
 */
TEST(unreadable_beside_others) {
    char bad[160];
    snprintf(bad, sizeof bad, "%s/bad", folder);
    assert_int_equal(mkdir(bad, 0700), 0);
    const char *files[] = {bad, path};
    struct host_key_place place = {.name = "node", .files = files, .file_count = 2};
    static const struct {
        const char *text;
        enum host_key_verdict verdict;
    } cases[] = {{"", HOST_KEY_UNREADABLE},
                 {"node " ED " " KEY_A "\n", HOST_KEY_UNREADABLE},
                 {"node " ED " " KEY_B "\n", HOST_KEY_CHANGED},
                 {"@revoked node " ED " " KEY_A "\n", HOST_KEY_REVOKED}};
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        put(cases[i].text);
        open_keys(NULL);
        assert_int_equal(look_up_at(&place, KEY_A).verdict, cases[i].verdict);
    }
    assert_int_equal(rmdir(bad), 0);
    char below[192]; /* below a file: as one that is not there */
    snprintf(below, sizeof below, "%s/known", path);
    files[0] = below;
    put("");
    open_keys(NULL);
    assert_int_equal(look_up_at(&place, KEY_A).verdict, HOST_KEY_UNKNOWN);
}

TEST_GROUP(set_up, tear_down)
