/* Whole files and folders, in a folder that the test makes itself. */
#include "engine/foundation/file.h"

#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *root;
static struct failure failure;

static int set_up(void **state) {
    root = test_folder();
    return 0;
}

static char *in_root(const char *name) {
    return file_join(root, name);
}

/* The name beside NAME that its bytes have first. */
static char *staged_for(const char *name) {
    return text_format("%s/.%s.%ld.part", root, name, (long)getpid());
}

static void put(const char *name, const char *content) {
    cleanup_free char *path = in_root(name);
    assert_int_equal(file_replace(path, content, strlen(content), 0644, &failure), 0);
}

TEST(read_and_replace) {
    cleanup_free char *path = in_root("a");
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    put("a", "one");
    put("a", "two");
    text_append_string(&text, "before ");
    assert_int_equal(file_read(path, &text, &failure), 0);
    assert_string_equal(text.bytes, "before two");
    uint64_t size = 0;
    assert_int_equal(file_size(path, &size, &failure), 0);
    assert_int_equal(size, 3);
    /* Nothing is left beside it. */
    cleanup_free char *beside = staged_for("a");
    assert_false(file_exists(beside));
}

TEST(read_big_and_empty) {
    size_t length = 300000;
    cleanup_free char *content = malloc(length);
    for (size_t i = 0; i < length; i++)
        content[i] = (char)(i * 7);
    cleanup_free char *path = in_root("big");
    assert_int_equal(file_replace(path, content, length, 0600, &failure), 0);
    struct stat status;
    assert_int_equal(stat(path, &status), 0);
    assert_int_equal(status.st_mode & 0777, 0600);
    cleanup(text_clear) struct text text;
    text_init(&text, length); /* just as large as it may be */
    assert_int_equal(file_read(path, &text, &failure), 0);
    assert_int_equal(text.length, length);
    assert_memory_equal(text.bytes, content, length);
    text_reset(&text);
    put("empty", "");
    cleanup_free char *empty = in_root("empty");
    assert_int_equal(file_read(empty, &text, &failure), 0);
    assert_int_equal(text.length, 0);
}

TEST(read_limit) {
    put("limit", "12345");
    cleanup_free char *path = in_root("limit");
    cleanup(text_clear) struct text text;
    text_init(&text, 6);
    text_append_string(&text, "ab");
    assert_int_equal(file_read(path, &text, &failure), -EFBIG);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_non_null(strstr(failure.text, path));
    assert_non_null(strstr(failure.text, "6 bytes"));
    assert_string_equal(text.bytes, "ab"); /* untouched */
}

TEST(read_refusals) {
    cleanup(text_clear) struct text text;
    text_init(&text, 100);
    cleanup_free char *missing = in_root("missing");
    assert_int_equal(file_read(missing, &text, &failure), -ENOENT);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_int_equal(file_read(root, &text, &failure), -EISDIR);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    put("plain", "x");
    cleanup_free char *below = in_root("plain/x");
    assert_int_equal(file_read(below, &text, &failure), -ENOTDIR);
    assert_int_equal(failure.kind, FAILURE_INPUT);
}

/* Files of /proc say that they are empty. */
TEST(read_proc) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    assert_int_equal(file_read("/proc/self/status", &text, &failure), 0);
    assert_non_null(strstr(text.bytes, "Pid:"));
}

TEST(replace_fails_whole) {
    cleanup_free char *path = in_root("no-folder/x");
    assert_int_equal(file_replace(path, "x", 1, 0644, &failure), -ENOENT);
    /* A folder of that name stays, and nothing is left beside it. */
    cleanup_free char *folder = in_root("folder/inside");
    assert_int_equal(file_make_folders(folder, &failure), 0);
    cleanup_free char *taken = in_root("folder");
    assert_true(file_replace(taken, "x", 1, 0644, &failure) < 0);
    cleanup_free char *beside = staged_for("folder");
    assert_false(file_exists(beside));
    assert_true(file_is_folder(folder));
}

static void expect(const char *name, const char *content) {
    cleanup_free char *path = in_root(name);
    cleanup(text_clear) struct text text;
    text_init(&text, 1000);
    assert_int_equal(file_read(path, &text, &failure), 0);
    assert_string_equal(text.bytes, content);
}

/* Links are followed, to a file and to nothing, and stay links. */
TEST(output_through_links) {
    struct stat status;
    put("linked", "old");
    cleanup_free char *link = in_root("near"), *chain = in_root("chain"), *dangling = in_root("dangling"),
                      *made = in_root("made");
    assert_int_equal(symlink("linked", link), 0);
    assert_int_equal(symlink("near", chain), 0);
    assert_int_equal(file_write_output(chain, "new", 3, &failure), 0);
    expect("linked", "new");
    assert_true(lstat(link, &status) == 0 && S_ISLNK(status.st_mode));
    assert_true(lstat(chain, &status) == 0 && S_ISLNK(status.st_mode));
    assert_true(file_is_same(chain, link));
    assert_false(file_is_same(chain, root));

    assert_int_equal(symlink("made", dangling), 0);
    struct file_output output = FILE_OUTPUT_NONE;
    assert_int_equal(file_output_open(dangling, 0666, &output, &failure), 0);
    file_output_clear(&output); /* not committed: as if nothing had been */
    assert_false(file_exists(made));
    assert_int_equal(file_write_output(dangling, "made", 4, &failure), 0);
    expect("made", "made");
    assert_true(lstat(dangling, &status) == 0 && S_ISLNK(status.st_mode));
}

/* A file is untouched until commit. */
TEST(output_is_whole) {
    put("whole", "old");
    cleanup_free char *path = in_root("whole"), *beside = staged_for("whole");
    struct file_output output = FILE_OUTPUT_NONE;
    assert_int_equal(file_output_open(path, 0666, &output, &failure), 0);
    assert_true(file_output_is_file(&output));
    assert_int_equal(file_output_write(&output, "new", 3, &failure), 0);
    expect("whole", "old");
    file_output_clear(&output);
    expect("whole", "old");
    assert_false(file_exists(beside));
    assert_int_equal(file_write_output(root, "x", 1, &failure), -EISDIR);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    cleanup_free char *nowhere = in_root("nowhere/x");
    assert_int_equal(file_write_output(nowhere, "x", 1, &failure), -ENOENT);
    assert_int_equal(failure.kind, FAILURE_INPUT);
}

/* A FIFO gets the bytes and stays a FIFO. */
TEST(output_into_fifo) {
    struct stat status;
    cleanup_free char *path = in_root("fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    cleanup_close int reader = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    assert_true(reader >= 0);
    assert_int_equal(file_write_output(path, "through", 7, &failure), 0);
    char bytes[16];
    assert_int_equal(read(reader, bytes, sizeof bytes), 7);
    assert_memory_equal(bytes, "through", 7);
    assert_true(lstat(path, &status) == 0 && S_ISFIFO(status.st_mode));
    assert_false(file_is_same(path, path)); /* nothing to lose in it */
}

static void expect_read(const char *path, int (*read_it)(const char *, struct text *, struct failure *),
                        int code, const char *says) {
    cleanup(text_clear) struct text text;
    text_init(&text, 100);
    failure = (struct failure){0};
    assert_int_equal(read_it(path, &text, &failure), code);
    assert_non_null(strstr(code < 0 ? failure.text : text.bytes, says));
    assert_true(code == 0 || (failure.kind == FAILURE_INPUT && text.length == 0));
}

TEST(inputs_are_files_or_pipes) {
    cleanup_free char *fifo = in_root("input");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect_read(fifo, file_read, -EINVAL, "is a pipe; expected a file");
    expect_read("/dev/zero", file_read, -EINVAL, "is a device; expected a file");
    expect_read("/dev/zero", file_read_or_pipe, -EINVAL, "is a device; expected a file or a pipe");
    expect_read("/dev/null", file_read, 0, "");
    expect_read(root, file_read, -EISDIR, "Is a directory");
    expect_read(root, file_read_or_pipe, -EISDIR, "Is a directory");
    expect_read(fifo, file_read_or_pipe, -ENODATA, "is a pipe to which nothing is written");
    for (int written = 4; written <= 101; written += 97) {
        int writer =
            open(fifo, O_RDWR | O_CLOEXEC); /* opens at once, and holds the bytes until it is closed */
        char bytes[101] = "here";
        assert_int_equal(write(writer, bytes, (size_t)written), written);
        char *path = text_format("/proc/self/fd/%d", writer);
        cleanup_close int reader = open(path, O_RDONLY | O_CLOEXEC);
        free(path);
        close(writer);
        expect_read(fifo, file_read_or_pipe, written > 100 ? -EFBIG : 0,
                    written > 100 ? "larger than the limit of 100 bytes" : "here");
    }
}

TEST(make_folders) {
    cleanup_free char *path = in_root("a1/b/c//d/");
    assert_int_equal(file_make_folders(path, &failure), 0);
    assert_true(file_is_folder(path));
    assert_int_equal(file_make_folders(path, &failure), 0);
    assert_int_equal(file_make_folders("/", &failure), 0);
    assert_int_equal(file_make_folders("", &failure), -ENOENT);
    put("file", "x");
    cleanup_free char *taken = in_root("file"), *below = in_root("file/x");
    assert_int_equal(file_make_folders(taken, &failure), -ENOTDIR);
    assert_int_equal(file_make_folders(below, &failure), -ENOTDIR);
}

TEST(remove_tree_stays_inside) {
    cleanup_free char *outside = in_root("outside"), *tree = in_root("tree"), *deep = in_root("tree/a/b/c");
    assert_int_equal(file_make_folders(outside, &failure), 0);
    put("outside/kept", "x");
    assert_int_equal(file_make_folders(deep, &failure), 0);
    put("tree/a/b/c/file", "x");
    cleanup_free char *link_out = in_root("tree/a/out"), *dangling = in_root("tree/dangling");
    assert_int_equal(symlink(outside, link_out), 0);
    assert_int_equal(symlink("/nowhere", dangling), 0);
    assert_int_equal(file_remove_tree(tree, &failure), 0);
    assert_false(file_exists(tree));
    cleanup_free char *kept = in_root("outside/kept");
    assert_true(file_exists(kept));
    /* A link given by name goes, what it names stays. */
    cleanup_free char *named = in_root("link");
    assert_int_equal(symlink(outside, named), 0);
    assert_int_equal(file_remove_tree(named, &failure), 0);
    assert_true(file_exists(kept));
    assert_int_equal(file_remove_tree(tree, &failure), 0); /* missing is fine */
}

TEST(names) {
    static const char *const cases[][3] = {
        {"a", "b", "a/b"}, {"a/", "b", "a/b"}, {"/", "b", "/b"}, {"", "b", "/b"}};
    for (size_t i = 0; i < 4; i++) {
        cleanup_free char *joined = file_join(cases[i][0], cases[i][1]);
        assert_string_equal(joined, cases[i][2]);
    }
    assert_string_equal(file_base_name("a/b/c.yaml"), "c.yaml");
    assert_string_equal(file_base_name("c.yaml"), "c.yaml");
    assert_string_equal(file_base_name("a/"), "");
}

TEST(write_all_reports) {
    int full = open("/dev/full", O_WRONLY | O_CLOEXEC);
    if (full < 0)
        test_skip("there is no /dev/full");
    assert_int_equal(file_write_all(full, "x", 1), -ENOSPC);
    close(full);
    assert_int_equal(file_write_all(-1, "x", 1), -EBADF);
    assert_int_equal(file_write_all(-1, "", 0), 0);
}

TEST_GROUP(set_up, NULL)
