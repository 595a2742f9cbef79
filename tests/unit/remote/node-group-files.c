/* Files and folders to many agents and back from them. */
#include "tests/unit/remote/group-fixture.h"

#include "engine/foundation/hash.h"

#include <fcntl.h>
#include <sys/stat.h>

enum { NODES = 8 };

static void make(const struct group_fixture *fixture, const char *name) {
    assert_int_equal(file_make_folders(group_path(fixture, name), NULL), 0);
}

static void write_file(const struct group_fixture *fixture, const char *name, const char *content) {
    write_whole(group_path(fixture, name), content, strlen(content));
}

static void assert_content(const char *path, const char *expected, size_t length) {
    struct text text;
    text_init(&text, 64 << 20);
    if (file_read(path, &text, NULL) < 0)
        fail_msg("%s is not there", path);
    assert_int_equal(text.length, length);
    assert_memory_equal(text.bytes, expected, length);
    text_clear(&text);
}

static struct failure *put(struct group_fixture *fixture, const struct node_put *what, size_t *left_out) {
    struct failure *failures = NULL;
    assert_done(fixture, node_group_put(fixture->group, what, &failures, left_out, &fixture->failure));
    return failures;
}

static void assert_all_well(struct group_fixture *fixture, struct failure *failures) {
    assert_done(fixture, node_failures_merge(fixture->group, failures, "it", &fixture->failure));
    free(failures);
}

/* In the run directory of node K, from 0. */
static const char *on_node(const struct group_fixture *fixture, size_t node, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "n%zu/%s", node + 1, name);
    return group_path(fixture, path);
}

/* ---- put */

static void test_put_a_tree(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, NODES);
    make(&fixture, "src/a/b");
    make(&fixture, "src/empty");
    write_file(&fixture, "src/a/b/deep", "deep\n");
    write_file(&fixture, "src/a.c", "int a;\n");
    write_file(&fixture, "src/nothing", "");
    write_file(&fixture, "src/.hidden", "hidden\n");
    write_file(&fixture, "src/tool", "#!/bin/sh\n");
    assert_int_equal(chmod(group_path(&fixture, "src/tool"), 0755), 0);
    assert_int_equal(symlink("a.c", group_path(&fixture, "src/link")), 0);
    assert_int_equal(mkfifo(group_path(&fixture, "src/fifo"), 0600), 0);
    size_t left_out = 0;
    char source[128];
    snprintf(source, sizeof source, "%s", group_path(&fixture, "src"));
    struct node_put what = {.local = source, .remote = "there/it"};
    assert_all_well(&fixture, put(&fixture, &what, &left_out));
    assert_int_equal(left_out, 2);
    for (size_t i = 0; i < NODES; i++) {
        struct stat status;
        assert_content(on_node(&fixture, i, "there/it/a/b/deep"), "deep\n", 5);
        assert_content(on_node(&fixture, i, "there/it/nothing"), "", 0);
        assert_content(on_node(&fixture, i, "there/it/.hidden"), "hidden\n", 7);
        assert_true(file_is_folder(on_node(&fixture, i, "there/it/empty")));
        assert_false(file_exists(on_node(&fixture, i, "there/it/link")));
        assert_int_equal(stat(on_node(&fixture, i, "there/it/tool"), &status), 0);
        assert_int_equal(status.st_mode & 0777, 0755);
    }
    /* Into the run directory itself. */
    what.remote = ".";
    assert_all_well(&fixture, put(&fixture, &what, NULL));
    assert_content(on_node(&fixture, 3, "a.c"), "int a;\n", 7);
    group_close(&fixture);
}

static void test_put_one_file(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, NODES);
    write_file(&fixture, "one", "one\n");
    char one[128];
    snprintf(one, sizeof one, "%s", group_path(&fixture, "one"));
    struct node_put what = {.local = one, .remote = "new/folder/called"};
    assert_all_well(&fixture, put(&fixture, &what, NULL));
    for (size_t i = 0; i < NODES; i++)
        assert_content(on_node(&fixture, i, "new/folder/called"), "one\n", 4);
    /* Again, over what is there. */
    write_file(&fixture, "one", "another\n");
    assert_all_well(&fixture, put(&fixture, &what, NULL));
    assert_content(on_node(&fixture, 7, "new/folder/called"), "another\n", 8);
    group_close(&fixture);
}

static void test_put_refuses_what_is_wrong_here(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 2);
    struct failure *failures = NULL;
    struct node_put what = {.local = group_path(&fixture, "nowhere"), .remote = "x"};
    assert_int_equal(node_group_put(fixture.group, &what, &failures, NULL, &fixture.failure), -ENOENT);
    assert_int_equal(fixture.failure.kind, FAILURE_INPUT);
    what.local = "/dev/null";
    assert_int_equal(node_group_put(fixture.group, &what, &failures, NULL, &fixture.failure), -EINVAL);
    write_file(&fixture, "one", "one\n");
    what.local = group_path(&fixture, "one");
    static const char *const folders[] = {".", "folder/", "/"};
    for (size_t i = 0; i < 3; i++) {
        what.remote = folders[i];
        assert_int_equal(node_group_put(fixture.group, &what, &failures, NULL, &fixture.failure), -EISDIR);
    }
    assert_null(failures);
    group_close(&fixture);
}

/* Where something is in the way on one node, the others have it all. */
static void test_put_harms_no_other(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 4);
    make(&fixture, "src/a");
    for (int i = 0; i < 40; i++) {
        char name[64];
        snprintf(name, sizeof name, "src/a/%d", i);
        write_file(&fixture, name, name);
    }
    write_whole(on_node(&fixture, 2, "there"), "a file", 6);
    char source[128];
    snprintf(source, sizeof source, "%s", group_path(&fixture, "src"));
    struct node_put what = {.local = source, .remote = "there"};
    struct failure *failures = put(&fixture, &what, NULL);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(failures[i].code < 0, i == 2);
    assert_true(node_failures_merge(fixture.group, failures, "put 'src'", &fixture.failure) < 0);
    assert_non_null(strstr(fixture.failure.text, "put 'src' failed on 1 of 4 nodes: n3: "));
    free(failures);
    assert_content(on_node(&fixture, 3, "there/a/39"), "src/a/39", 8);
    /* Nothing may be written outside the run directory. */
    what.remote = "../out";
    failures = put(&fixture, &what, NULL);
    for (size_t i = 0; i < 4; i++)
        assert_true(failures[i].code < 0);
    free(failures);
    assert_false(file_exists(group_path(&fixture, "out")));
    group_close(&fixture);
}

static void kill_it(struct event_source *self, void *context) {
    (void)self;
    kill(*(pid_t *)context, SIGKILL);
}

/* More than the windows of all links hold, so that it takes a while; and an agent dies on the way. */
static void test_put_something_large(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 16);
    enum { SIZE = SANITIZED ? 6 << 20 : 24 << 20 };
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 2654435761u >> 24);
    write_whole(group_path(&fixture, "large"), bytes, SIZE);
    pid_t pid = agent_link_greeting(node_group_link(fixture.group, 5))->pid;
    struct event_source *timer = event_loop_add_timer(fixture.loop, 50 * EVENT_MILLISECOND, 0, kill_it, &pid);
    struct node_put what = {.local = group_path(&fixture, "large"), .remote = "large"};
    forget_peak();
    long before = peak_kib("VmRSS:");
    struct failure *failures = put(&fixture, &what, NULL);
    long grown = peak_kib("VmHWM:") - before;
    event_source_remove(timer);
    print_message("%d MiB to 16 nodes: %ld KiB more memory\n", SIZE >> 20, grown);
    if (!SANITIZED)
        assert_true(grown < 60 << 10);
    for (size_t i = 0; i < 16; i++) {
        assert_int_equal(failures[i].code < 0, i == 5);
        char hex[HASH_HEX_SIZE], expected[HASH_HEX_SIZE];
        if (i == 5)
            continue;
        assert_int_equal(hash_file(on_node(&fixture, i, "large"), hex, NULL, NULL), 0);
        assert_int_equal(hash_bytes(bytes, SIZE, expected), 0);
        assert_string_equal(hex, expected);
    }
    free(failures);
    /* And back; the one that is lost says so. */
    assert_done(&fixture, node_group_get(fixture.group, "large", group_path(&fixture, "got"), &failures,
                                         &fixture.failure));
    assert_int_equal(failures[5].code, -ENOTCONN);
    assert_content(group_path(&fixture, "got/n16/large"), bytes, SIZE);
    free(failures);
    free(bytes);
    group_close(&fixture);
}

struct changing {
    struct group_fixture *fixture;
    bool done;
};

/* Changes the end of the file once its beginning has come to a node: it was hashed long since. */
static void change_it(struct event_source *self, void *context) {
    struct changing *changing = context;
    DIR *folder = opendir(on_node(changing->fixture, 0, "x"));
    const struct dirent *entry;
    while (folder && !changing->done && (entry = readdir(folder)))
        changing->done = strlen(entry->d_name) > 2; /* .assay-*.part, not "." and ".." */
    if (folder)
        closedir(folder);
    if (!changing->done)
        return;
    event_source_remove(self);
    FILE *file = fopen(group_path(changing->fixture, "src/a"), "r+e");
    assert_non_null(file);
    assert_int_equal(fseek(file, -7, SEEK_END), 0);
    fputs("changed", file);
    fclose(file);
}

/* Its bytes change after it was hashed: no node may have it and be told that all is well. */
static void test_put_a_file_that_changes(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 2);
    enum { SIZE = 64 << 20 }; /* more than all that is under way at once */
    char *bytes = calloc(1, SIZE);
    make(&fixture, "src");
    write_whole(group_path(&fixture, "src/a"), bytes, SIZE);
    free(bytes);
    struct changing changing = {&fixture, false};
    event_loop_add_timer(fixture.loop, 0, EVENT_MILLISECOND, change_it, &changing);
    struct node_put what = {.local = group_path(&fixture, "src"), .remote = "x"};
    struct failure *failures = put(&fixture, &what, NULL);
    assert_true(changing.done);
    for (size_t i = 0; i < 2; i++)
        assert_non_null(strstr(failures[i].text, "it was changed while it was sent"));
    free(failures);
    group_close(&fixture);
}

/* ---- get */

static struct failure *get(struct group_fixture *fixture, const char *remote) {
    struct failure *failures = NULL;
    assert_done(fixture, node_group_get(fixture->group, remote, group_path(fixture, "got"), &failures,
                                        &fixture->failure));
    return failures;
}

static void test_get_trees(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 32);
    for (size_t i = 0; i < 32; i++) {
        char content[32];
        snprintf(content, sizeof content, "node %zu\n", i + 1);
        assert_int_equal(file_make_folders(on_node(&fixture, i, "results/deep/er"), NULL), 0);
        assert_int_equal(file_make_folders(on_node(&fixture, i, "results/empty"), NULL), 0);
        write_whole(on_node(&fixture, i, "results/deep/er/file"), content, strlen(content));
        write_whole(on_node(&fixture, i, "results/deep.txt"), "", 0);
        assert_int_equal(chmod(on_node(&fixture, i, "results/deep.txt"), 0700), 0);
        assert_int_equal(symlink("/etc/passwd", on_node(&fixture, i, "results/link")), 0);
        for (int k = 0; k < 20; k++) {
            char name[64];
            snprintf(name, sizeof name, "results/many-%d", k);
            write_whole(on_node(&fixture, i, name), name, strlen(name));
        }
    }
    assert_all_well(&fixture, get(&fixture, "results///"));
    for (size_t i = 0; i < 32; i++) {
        char path[128], content[32];
        struct stat status;
        snprintf(path, sizeof path, "got/n%zu/results/deep/er/file", i + 1);
        snprintf(content, sizeof content, "node %zu\n", i + 1);
        assert_content(group_path(&fixture, path), content, strlen(content));
        snprintf(path, sizeof path, "got/n%zu/results/deep.txt", i + 1);
        assert_int_equal(stat(group_path(&fixture, path), &status), 0);
        assert_int_equal(status.st_mode & 0777, 0700);
        snprintf(path, sizeof path, "got/n%zu/results/empty", i + 1);
        assert_true(file_is_folder(group_path(&fixture, path)));
        snprintf(path, sizeof path, "got/n%zu/results/link", i + 1);
        assert_int_equal(lstat(group_path(&fixture, path), &status), -1);
        snprintf(path, sizeof path, "got/n%zu/results/many-19", i + 1);
        assert_content(group_path(&fixture, path), "results/many-19", 15);
    }
    /* Again, over what is there; one file; and all of the run directory. */
    assert_all_well(&fixture, get(&fixture, "results"));
    assert_all_well(&fixture, get(&fixture, "results/deep/er/file"));
    assert_content(group_path(&fixture, "got/n7/file"), "node 7\n", 7);
    assert_all_well(&fixture, get(&fixture, "."));
    assert_content(group_path(&fixture, "got/n9/results/deep/er/file"), "node 9\n", 7);
    group_close(&fixture);
}

static void test_get_what_says_that_it_is_empty(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 2);
    assert_all_well(&fixture, get(&fixture, "/proc/sys/kernel/ostype"));
    assert_content(group_path(&fixture, "got/n2/ostype"), "Linux\n", 6);
    group_close(&fixture);
}

static void test_get_names_those_that_have_it_not(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 4);
    for (size_t i = 0; i < 3; i++)
        write_whole(on_node(&fixture, i, "it"), "it", 2);
    struct failure *failures = get(&fixture, "it");
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(failures[i].code, i == 3 ? -ENOENT : 0);
    free(failures);
    assert_content(group_path(&fixture, "got/n3/it"), "it", 2);
    static const char *const bad[] = {"", "..", "a/.."};
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(
            node_group_get(fixture.group, bad[i], group_path(&fixture, "got"), &failures, &fixture.failure),
            -EINVAL);
        assert_int_equal(fixture.failure.kind, FAILURE_INPUT);
    }
    group_close(&fixture);
}

/* What lies where the files are to go is replaced or in the way, and never followed. */
static void test_get_follows_no_link_here(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(file_make_folders(on_node(&fixture, i, "r/sub"), NULL), 0);
        write_whole(on_node(&fixture, i, "r/sub/file"), "from the node", 13);
    }
    make(&fixture, "victim");
    write_file(&fixture, "victim/file", "mine");
    make(&fixture, "got/n1/r/sub");
    make(&fixture, "got/n2/r");
    assert_int_equal(symlink("../../../../victim/file", group_path(&fixture, "got/n1/r/sub/file")), 0);
    assert_int_equal(symlink("../../../victim", group_path(&fixture, "got/n2/r/sub")), 0);
    assert_int_equal(symlink("../victim", group_path(&fixture, "got/n3")), 0);
    struct failure *failures = get(&fixture, "r");
    assert_int_equal(failures[0].code, 0);
    assert_true(failures[1].code < 0);
    assert_true(failures[2].code < 0);
    free(failures);
    assert_content(group_path(&fixture, "victim/file"), "mine", 4);
    assert_content(group_path(&fixture, "got/n1/r/sub/file"), "from the node", 13);
    struct stat status;
    assert_int_equal(lstat(group_path(&fixture, "got/n1/r/sub/file"), &status), 0);
    assert_true(S_ISREG(status.st_mode));
    /* Nothing staged is left lying. */
    DIR *folder = opendir(group_path(&fixture, "got/n1"));
    assert_non_null(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        assert_null(strstr(entry->d_name, ".assay-"));
    closedir(folder);
    group_close(&fixture);
}

/* A file that is written to all the time is never called whole. */
static void test_get_a_file_that_changes(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 2);
    enum { SIZE = 32 << 20 };
    char *bytes = calloc(1, SIZE);
    write_whole(on_node(&fixture, 0, "it"), bytes, SIZE);
    write_whole(on_node(&fixture, 1, "it"), bytes, 10);
    free(bytes);
    const char *arguments[] = {"sh", "-c", "while :; do date +%N | dd of=it conv=notrunc 2>/dev/null; done",
                               NULL};
    struct remote_command *writer;
    struct remote_command_callbacks none = {0};
    assert_done(&fixture, remote_command_start(node_group_link(fixture.group, 0),
                                               &(struct remote_command_specification){.arguments = arguments},
                                               &none, NULL, &writer, &fixture.failure));
    struct failure *failures = get(&fixture, "it");
    assert_int_equal(failures[0].code, -EBUSY);
    assert_non_null(strstr(failures[0].text, "'it' has changed while it was read"));
    assert_int_equal(failures[1].code, 0);
    assert_false(file_exists(group_path(&fixture, "got/n1/it")));
    free(failures);
    remote_command_free(writer);
    group_close(&fixture);
}

static void stop_it(struct event_source *self, void *context) {
    (void)self;
    event_loop_stop(context);
}

/* What is under way when somebody presses Ctrl-C is forgotten, and the group goes on. */
static void test_both_can_be_interrupted(void **state) {
    (void)state;
    struct group_fixture fixture;
    group_open(&fixture, 4);
    enum { SIZE = 40 << 20 };
    char *bytes = calloc(1, SIZE);
    write_whole(group_path(&fixture, "large"), bytes, SIZE);
    for (size_t i = 0; i < 4; i++)
        write_whole(on_node(&fixture, i, "there"), bytes, SIZE);
    free(bytes);
    struct failure *failures = NULL;
    struct event_source *timer =
        event_loop_add_timer(fixture.loop, 150 * EVENT_MILLISECOND, 0, stop_it, fixture.loop);
    struct node_put what = {.local = group_path(&fixture, "large"), .remote = "large"};
    assert_int_equal(node_group_put(fixture.group, &what, &failures, NULL, &fixture.failure), -EINTR);
    event_loop_resume(fixture.loop);
    event_source_set_timer(timer, 20 * EVENT_MILLISECOND, 0);
    assert_int_equal(
        node_group_get(fixture.group, "there", group_path(&fixture, "got"), &failures, &fixture.failure),
        -EINTR);
    event_loop_resume(fixture.loop);
    event_source_remove(timer);
    assert_null(failures);
    assert_all_well(&fixture, get(&fixture, "there"));
    group_close(&fixture);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_put_a_tree),
        cmocka_unit_test(test_put_one_file),
        cmocka_unit_test(test_put_refuses_what_is_wrong_here),
        cmocka_unit_test(test_put_harms_no_other),
        cmocka_unit_test(test_put_something_large),
        cmocka_unit_test(test_put_a_file_that_changes),
        cmocka_unit_test(test_get_trees),
        cmocka_unit_test(test_get_what_says_that_it_is_empty),
        cmocka_unit_test(test_get_names_those_that_have_it_not),
        cmocka_unit_test(test_get_follows_no_link_here),
        cmocka_unit_test(test_get_a_file_that_changes),
        cmocka_unit_test(test_both_can_be_interrupted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
