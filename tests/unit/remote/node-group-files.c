/* Files and folders to many agents and back from them: what is large, what changes meanwhile, and
 * interruptions. The rest is in integration/command-line/nodes-files.sh. */
#include "tests/test.h"
#include "tests/unit/remote/group-fixture.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/hash.h"

#include <glob.h>
#include <sys/stat.h>

enum { NODES = 8, LARGE = 8, MANY = 17 /* more than are asked at once */ };

static void make(const char *name) {
    assert_int_equal(file_make_folders(group_path(name), NULL), 0);
}

static void assert_content(const char *path, const char *expected, size_t length) {
    cleanup(text_clear) struct text text;
    text_init(&text, 64 << 20);
    if (file_read(path, &text, NULL) < 0)
        fail_msg("%s is not there", path);
    assert_int_equal(text.length, length);
    assert_memory_equal(text.bytes, expected, length);
}

static struct failure *put(const struct node_put *what, size_t *left_out) {
    struct failure *given = NULL;
    assert_done(&fixture, node_group_put(fixture.group, what, &given, left_out, &fixture.failure));
    return given;
}

static void assert_all_well(struct failure *given) {
    assert_done(&fixture, node_failures_merge(fixture.group, given, "it", &fixture.failure));
    free(given);
}

/* In the run directory of node K, from 0. */
static const char *on_node(size_t node, const char *name) {
    char path[256];
    snprintf(path, sizeof path, "n%zu/%s", node + 1, name);
    return group_path(path);
}

/* ---- put */

static void kill_it(struct event_source *self, void *context) {
    kill(*(pid_t *)context, SIGKILL);
}

/* More than the windows of all links hold, so that it takes a while; and an agent dies on the way. */
TEST(put_something_large) {
    group_open(LARGE);
    enum { SIZE = SANITIZED ? 6 << 20 : 16 << 20 };
    char *bytes = malloc(SIZE);
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 2654435761u >> 24);
    write_whole(group_path("large"), bytes, SIZE);
    /* What is stopped takes no more than the window. */
    pid_t pid = agent_link_greeting(node_group_link(fixture.group, 5))->pid;
    assert_int_equal(kill(pid, SIGSTOP), 0);
    struct event_source *timer = event_loop_add_timer(fixture.loop, 50 * EVENT_MILLISECOND, 0, kill_it, &pid);
    struct node_put what = {.local = group_path("large"), .remote = "large"};
    forget_peak();
    long before = peak_kib("VmRSS:");
    failures = put(&what, NULL);
    long grown = peak_kib("VmHWM:") - before;
    event_source_remove(timer);
    print_message("%d MiB to %d nodes: %ld KiB more memory\n", SIZE >> 20, LARGE, grown);
    if (!SANITIZED)
        assert_true(grown < 60 << 10);
    char hex[HASH_HEX_SIZE], expected[HASH_HEX_SIZE];
    assert_int_equal(hash_bytes(bytes, SIZE, expected), 0);
    for (size_t i = 0; i < LARGE; i++) {
        assert_int_equal(failures[i].code < 0, i == 5);
        if (i == 5)
            continue;
        assert_int_equal(hash_file(on_node(i, "large"), hex, NULL, NULL), 0);
        assert_string_equal(hex, expected);
    }
    free(take_pointer(failures));
    /* And back; the one that is lost says so. */
    assert_done(&fixture,
                node_group_get(fixture.group, "large", group_path("got"), &failures, &fixture.failure));
    assert_int_equal(failures[5].code, -ENOTCONN);
    assert_content(group_path("got/n8/large"), bytes, SIZE);
    free(take_pointer(failures));
    free(bytes);
}

/* What happens once there is a file PATTERN with something in it: FILE is changed at WHENCE; without a FILE
 * the loop is stopped. */
struct awaited {
    const char *pattern, *file;
    long offset;
    int whence;
    bool done;
};

static void look_for_it(struct event_source *self, void *context) {
    struct awaited *awaited = context;
    glob_t found = {0};
    struct stat status = {0};
    char path[256]; /* group_path() has few, which the test needs meanwhile */
    snprintf(path, sizeof path, "%s/%s", fixture.folder, awaited->pattern);
    if (glob(path, 0, NULL, &found) == 0)
        (void)stat(found.gl_pathv[0], &status);
    globfree(&found);
    if (status.st_size == 0 || awaited->done)
        return;
    awaited->done = true;
    if (!awaited->file) {
        event_loop_stop(fixture.loop);
        return;
    }
    snprintf(path, sizeof path, "%s/%s", fixture.folder, awaited->file);
    FILE *file = fopen(path, "r+e");
    assert_non_null(file);
    assert_int_equal(fseek(file, awaited->offset, awaited->whence), 0);
    fputs("changed", file);
    fclose(file);
}

static void await(struct awaited *awaited) {
    assert_non_null(
        event_loop_add_timer(fixture.loop, EVENT_MILLISECOND, EVENT_MILLISECOND, look_for_it, awaited));
}

/* Its bytes change while it is sent: all nodes have what it had. */
TEST(put_a_file_that_changes) {
    group_open(2);
    enum { SIZE = 32 << 20 }; /* more than all that is under way at once */
    char *bytes = calloc(1, SIZE);
    make("src");
    write_whole(group_path("src/a"), bytes, SIZE);
    struct awaited awaited = {"n1/x", "src/a", -7, SEEK_END, false};
    await(&awaited);
    struct node_put what = {.local = group_path("src"), .remote = "x"};
    assert_all_well(put(&what, NULL));
    assert_true(awaited.done);
    for (size_t i = 0; i < 2; i++)
        assert_content(on_node(i, "x/a"), bytes, SIZE);
    free(bytes);
}

/* ---- get */

static struct failure *get(const char *remote) {
    struct failure *given = NULL;
    assert_done(&fixture, node_group_get(fixture.group, remote, group_path("got"), &given, &fixture.failure));
    return given;
}

TEST(get_trees) {
    group_open(MANY);
    for (size_t i = 0; i < MANY; i++) {
        char content[32];
        snprintf(content, sizeof content, "node %zu\n", i + 1);
        assert_int_equal(file_make_folders(on_node(i, "results/deep/er"), NULL), 0);
        assert_int_equal(file_make_folders(on_node(i, "results/empty"), NULL), 0);
        write_whole(on_node(i, "results/deep/er/file"), content, strlen(content));
        write_whole(on_node(i, "results/deep.txt"), "", 0);
        assert_int_equal(chmod(on_node(i, "results/deep.txt"), 0700), 0);
        assert_int_equal(symlink("/etc/passwd", on_node(i, "results/link")), 0);
        for (int k = 0; k < 7; k++) {
            char name[64];
            snprintf(name, sizeof name, "results/many-%d", k);
            write_whole(on_node(i, name), name, strlen(name));
        }
    }
    assert_all_well(get("results///"));
    for (size_t i = 0; i < MANY; i++) {
        char path[128], content[32];
        struct stat status;
        snprintf(path, sizeof path, "got/n%zu/results/deep/er/file", i + 1);
        snprintf(content, sizeof content, "node %zu\n", i + 1);
        assert_content(group_path(path), content, strlen(content));
        snprintf(path, sizeof path, "got/n%zu/results/deep.txt", i + 1);
        assert_int_equal(stat(group_path(path), &status), 0);
        assert_int_equal(status.st_mode & 0777, 0700);
        snprintf(path, sizeof path, "got/n%zu/results/empty", i + 1);
        assert_true(file_is_folder(group_path(path)));
        snprintf(path, sizeof path, "got/n%zu/results/link", i + 1);
        assert_int_equal(lstat(group_path(path), &status), -1);
        snprintf(path, sizeof path, "got/n%zu/results/many-6", i + 1);
        assert_content(group_path(path), "results/many-6", 14);
    }
    /* Again, over what is there; one file; and all of the run directory. */
    assert_all_well(get("results"));
    assert_all_well(get("results/deep/er/file"));
    assert_content(group_path("got/n7/file"), "node 7\n", 7);
    assert_all_well(get("."));
    assert_content(group_path("got/n9/results/deep/er/file"), "node 9\n", 7);
}

TEST(get_a_file_that_changes) {
    group_open(2);
    enum { SIZE = 32 << 20 };
    char *bytes = calloc(1, SIZE);
    write_whole(on_node(0, "it"), bytes, SIZE);
    write_whole(on_node(1, "it"), bytes, 10);
    free(bytes);
    struct awaited awaited = {"got/n1/.assay-*/*", "n1/it", -7, SEEK_END, false};
    await(&awaited);
    failures = get("it");
    assert_true(awaited.done);
    assert_int_equal(failures[0].code, -EBUSY);
    assert_non_null(strstr(failures[0].text, "'it' changed while it was read"));
    assert_int_equal(failures[1].code, 0);
    assert_false(file_exists(group_path("got/n1/it")));
}

/* What is under way when somebody presses Ctrl-C is forgotten, and the group goes on. */
TEST(both_can_be_interrupted) {
    group_open(4);
    enum { SIZE = 16 << 20 };
    char *bytes = calloc(1, SIZE);
    write_whole(group_path("large"), bytes, SIZE);
    for (size_t i = 0; i < 4; i++)
        write_whole(on_node(i, "there"), bytes, SIZE);
    free(bytes);
    failures = NULL;
    struct awaited on_put = {.pattern = "n1/new"};
    struct awaited on_get = {.pattern = "got/n1/.assay-*/*"};
    await(&on_put);
    await(&on_get);
    struct node_put what = {.local = group_path("large"), .remote = "new/large"};
    assert_int_equal(node_group_put(fixture.group, &what, &failures, NULL, &fixture.failure), -EINTR);
    event_loop_resume(fixture.loop);
    assert_int_equal(node_group_get(fixture.group, "there", group_path("got"), &failures, &fixture.failure),
                     -EINTR);
    event_loop_resume(fixture.loop);
    assert_null(failures);
    assert_all_well(get("there"));
}
