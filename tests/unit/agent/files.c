/* The tools --pack and --unpack: paths, links, hashes, and tars that somebody else has made. */
#include "engine/agent/files/sha256.h"
#include "engine/agent/files/tar.h"
#include "engine/foundation/text.h"
#include "tests/unit/agent/engine.h"

TEST_EACH(set_up, tear_down)

static const char *tool_in, *tool_out;

static void enter_run(void) {
    dup2(open(tool_in, O_RDONLY | O_CLOEXEC), 0);
    dup2(open(tool_out, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 1);
    if (chdir(below("run")) < 0)
        _exit(125);
}

/* Runs a tool in the folder RUN; stdin and stdout are files. */
static int run_tool(const char *tool, const char *path, const char *in, const char *out) {
    struct engine caller = {.name = ""};
    tool_in = in;
    tool_out = out;
    start(&caller, (const char *const[]){tool, path, NULL}, enter_run);
    close_stream(&caller);
    return relay_end(&caller);
}

static struct tar_writer tar;
static const char *hash; /* what entries say; NULL: the truth */

static void tar_open(void) {
    int file = open(below("tar"), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    assert_true(file >= 0);
    tar_begin(&tar, file, UINT64_MAX);
}

static void tar_add(const char *name, unsigned mode, const char *content) {
    struct tar_entry entry = {.type = content ? TAR_FILE : TAR_FOLDER, .mode = mode};
    snprintf(entry.path, sizeof entry.path, "%s", name);
    if (content) {
        struct sha256 sum;
        unsigned char digest[SHA256_SIZE];
        sha256_init(&sum);
        sha256_add(&sum, content, strlen(content));
        sha256_end(&sum, digest);
        sha256_to_hex(digest, entry.sha256);
        entry.size = strlen(content);
        if (hash)
            snprintf(entry.sha256, sizeof entry.sha256, "%s", hash);
    }
    tar_put_entry(&tar, &entry);
    if (content) {
        tar_put_bytes(&tar, content, entry.size);
        tar_put_padding(&tar, entry.size);
    }
}

static int unpack(const char *path) {
    if (tar.waiting.length > 0) {
        assert_int_equal(tar_end(&tar), 0);
        close(tar.output);
    }
    return run_tool("--unpack", path, below("tar"), "/dev/null");
}

static int unpack_one(const char *path, const char *name, const char *content) {
    tar_open();
    tar_add(name, 0640, content);
    return unpack(path);
}

static void expect_words(const char *sentence) {
    char expected[1100];
    snprintf(expected, sizeof expected, "assay-agent: %s\n", sentence);
    assert_string_equal(words, expected);
}

static void make_run(void) {
    assert_int_equal(file_make_folders(below("run"), NULL), 0);
}

TEST(a_tar_becomes_files) {
    struct stat status;
    char name[300];
    make_run();
    tar_open();
    tar_add("a", 0755, NULL);
    tar_add("a/tool", 0755, "#!/bin/sh\n");
    tar_add("a/empty", 0600, "");
    memset(name, 'n', sizeof name);
    memcpy(name, "a/", 2);
    name[250] = '\0';
    tar_add(name, 0644, "long");
    assert_int_equal(unpack("new/folder"), 0);
    assert_string_equal(words, "");
    assert_file(below("run/new/folder/a/tool"), "#!/bin/sh\n");
    assert_file(below("run/new/folder/a/empty"), "");
    assert_int_equal(stat(below("run/new/folder/a/tool"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0755);
    char path[600];
    snprintf(path, sizeof path, "%s/%s", below("run/new/folder"), name);
    assert_file(path, "long");
    /* Nothing at all makes the folder. */
    assert_int_equal(run_tool("--unpack", "only/this", "/dev/null", "/dev/null"), 0);
    assert_true(file_is_folder(below("run/only/this")));
}

TEST(there_and_back) {
    make_run();
    tar_open();
    tar_add("t", 0755, NULL);
    tar_add("t/one", 0700, "one");
    tar_add("t/sub", 0755, NULL);
    tar_add("t/sub/two", 0644, "two");
    assert_int_equal(unpack("."), 0);
    assert_int_equal(symlink("one", below("run/t/link")), 0);
    assert_int_equal(mkfifo(below("run/t/fifo"), 0600), 0);
    assert_int_equal(run_tool("--pack", "t/", "/dev/null", below("tar")), 0);
    assert_int_equal(unpack("again"), 0);
    assert_file(below("run/again/t/sub/two"), "two");
    assert_false(file_exists(below("run/again/t/link")));
    assert_false(file_exists(below("run/again/t/fifo")));
    /* Without a name of its own; what is made up as it is read, and says that it is empty. */
    assert_int_equal(run_tool("--pack", below("run/t/."), "/dev/null", below("tar")), 0);
    assert_int_equal(unpack("top"), 0);
    assert_file(below("run/top/one"), "one");
    assert_int_equal(run_tool("--pack", "/proc/sys/kernel/ostype", "/dev/null", below("tar")), 0);
    assert_int_equal(unpack("."), 0);
    assert_file(below("run/ostype"), "Linux\n");
    /* More than is kept in memory. */
    assert_int_equal(truncate(below("run/t/one"), 3000001), 0);
    assert_int_equal(run_tool("--pack", "t/one", "/dev/null", below("tar")), 0);
    assert_int_equal(unpack("large"), 0);
    struct stat status;
    assert_int_equal(stat(below("run/large/one"), &status), 0);
    assert_int_equal(status.st_size, 3000001);
}

TEST(what_cannot_be_packed_is_said) {
    make_run();
    assert_int_equal(run_tool("--pack", "none", "/dev/null", below("tar")), 1);
    expect_words("cannot read 'none': No such file or directory");
    assert_int_equal(run_tool("--pack", "../tar", "/dev/null", below("tar")), 1);
    expect_words("'../tar' leads out of the run directory; expected a path below it");
    assert_int_equal(run_tool("--pack", "/dev/null", "/dev/null", below("tar")), 1);
    expect_words("'/dev/null' is neither a file nor a folder");
}

TEST(what_does_not_fit_its_hash_gets_no_name) {
    make_run();
    hash = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";
    assert_int_equal(unpack_one(".", "file", "content"), 1);
    hash = NULL;
    expect_words("'file' has SHA-256 ed7002b439e9ac84... here, and had 0123456789abcdef... when it was sent");
    assert_int_equal(rmdir(below("run")), 0);
}

TEST(tars_that_are_none) {
    make_run();
    char garbage[2048];
    memset(garbage, 'x', sizeof garbage);
    assert_int_equal(file_replace(below("tar"), garbage, sizeof garbage, 0600, NULL), 0);
    assert_int_equal(unpack("."), 1);
    expect_words("the archive on stdin is malformed: a header is damaged");
    tar_open();
    tar_add("file", 0600, "content");
    assert_int_equal(tar_end(&tar), 0);
    close(tar.output);
    for (off_t size = 1; size < 3 * 512 + 7; size += 101) { /* until all of the content is there */
        assert_int_equal(truncate(below("tar"), size), 0);
        assert_int_equal(run_tool("--unpack", ".", below("tar"), "/dev/null"), 1);
        tar_open();
        tar_add("file", 0600, "content");
        assert_int_equal(tar_end(&tar), 0);
        close(tar.output);
    }
    assert_int_equal(rmdir(below("run")), 0);
}

TEST(paths_are_confined) {
    char sentence[512];
    make_run();
    static const char *const bad[] = {"..", "a/../b", "out/x", "out", "far/x"};
    assert_int_equal(symlink("..", below("run/out")), 0);
    assert_int_equal(symlink("/tmp", below("run/far")), 0);
    assert_int_equal(mkdir(below("run/in"), 0700), 0);
    assert_int_equal(symlink("in/../in", below("run/alias")), 0);
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(unpack_one(bad[i], "file", "x"), 1);
        snprintf(sentence, sizeof sentence, "'%s' leads out of the run directory%s; expected a path below it",
                 bad[i], i < 2 ? "" : " through a link");
        expect_words(sentence);
    }
    assert_false(file_exists(below("file")));
    assert_int_equal(unpack_one("alias", "file", "x"), 0);
    assert_file(below("run/in/file"), "x");
    assert_int_equal(unpack_one("", "file", "x"), 1);
    expect_words("a path is empty; expected a path below the run directory");
    /* What is no file is not replaced by one. */
    assert_int_equal(unpack_one(".", "in", "x"), 1);
    expect_words("cannot write 'in': the path is a folder");
    assert_int_equal(unpack_one("/dev", "null", "x"), 1);
    expect_words("cannot write '/dev/null': the path is not a file");
}

TEST(absolute_paths_follow_links) {
    char sentence[512];
    make_run();
    assert_int_equal(unpack_one(below("a/b"), "file", "one"), 0);
    assert_file(below("a/b/file"), "one");
    /* At the end too; they stay links. */
    assert_int_equal(symlink("b/../b/file", below("a/link")), 0);
    assert_int_equal(symlink(below("a"), below("d")), 0);
    assert_int_equal(symlink("loop", below("loop")), 0);
    assert_int_equal(unpack_one(below("d"), "link", "two"), 0);
    assert_file(below("a/b/file"), "two");
    char target[64] = "";
    assert_int_equal(readlink(below("a/link"), target, sizeof target), 11);
    assert_int_equal(unpack_one(below("loop"), "x", "x"), 1);
    snprintf(sentence, sizeof sentence, "cannot make folder '%s': Too many levels of symbolic links",
             below("loop"));
    expect_words(sentence);
}

/* What another user owns, made, or may write to is no way for root. */
TEST(what_others_own_is_no_way) {
    static const struct {
        const char *tool, *what, *path, *name, *part;
    } ways[] = {
        {"--unpack", "write", "all", "file", "all/file"},
        {"--unpack", "make folder", "all/folder", NULL, "all/folder"},
        {"--unpack", "make folder", "all/own/../all/folder", NULL, "all/folder"},
        {"--pack", "read", "all/file", NULL, "all/file"},
        {"--pack", "read", "all/folder/secret", NULL, "all/folder"},
        {"--pack", "read", "all/folder", NULL, "all/folder"},
        {"--unpack", "make folder", "theirs", NULL, "theirs"},
        {"--unpack", "make folder", "theirs/deep/er", NULL, "theirs"},
        {"--pack", "read", "theirs/log", NULL, "theirs"},
        {"--pack", "read", "theirs", NULL, "theirs"},
        {"--unpack", "make folder", "everybody", NULL, "everybody"},
        {"--pack", "read", "everybody/log", NULL, "everybody"},
        {"--unpack", "make folder", "group", NULL, "group"},
        {"--unpack", "make folder", "all/own/../group/new", NULL, "group"},
    };
    static const struct {
        const char *name;
        mode_t mode;
        uid_t owner, group;
    } folders[] = {{"all", 01777, 0, 0},
                   {"theirs", 0777, 65534, 65534},
                   {"everybody", 0777, 0, 0},
                   {"group", 02775, 0, 65534}};
    const uid_t other = 65534;
    char path[256], sentence[1024];
    test_need_root();
    make_run();
    unsetenv("SUDO_UID");
    assert_int_equal(unpack_one(below("ours"), "secret", "ours"), 0);
    assert_int_equal(chmod(below("ours/secret"), 0600), 0);
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%s", below(folders[i].name));
        assert_int_equal(mkdir(path, 0700) | chown(path, folders[i].owner, folders[i].group) |
                             chmod(path, folders[i].mode),
                         0);
        snprintf(path, sizeof path, "%s/log", below(folders[i].name));
        assert_int_equal(symlink("../ours/secret", path) | lchown(path, other, other), 0);
    }
    assert_int_equal(symlink("../ours/secret", below("all/file")), 0);
    assert_int_equal(symlink(below("ours"), below("all/folder")), 0);
    assert_int_equal(symlink(below("ours"), below("all/own")), 0);
    assert_int_equal(lchown(below("all/file"), other, other) | lchown(below("all/folder"), other, other), 0);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        snprintf(path, sizeof path, "%s", below(ways[i].path));
        tar_open();
        tar_add(ways[i].name ? ways[i].name : "new", 0644, "theirs");
        assert_int_equal(tar_end(&tar), 0);
        close(tar.output);
        if (run_tool(ways[i].tool, path, below("tar"), below("packed")) != 1)
            fail_msg("%s %s is done", ways[i].tool, path);
        snprintf(sentence, sizeof sentence, "cannot %s '%s%s%s': ", ways[i].what, path,
                 ways[i].name ? "/" : "", ways[i].name ? ways[i].name : "");
        assert_says(words, sentence);
        snprintf(sentence, sizeof sentence, "%s' belongs to user ", below(ways[i].part));
        assert_says(words, sentence);
    }
    assert_file(below("ours/secret"), "ours");
    assert_false(file_exists(below("ours/new")));
    assert_false(file_exists(below("theirs/deep")));
    /* One of our own is a way, and a folder that is shared on purpose; links of others in it are not. */
    assert_int_equal(unpack_one(below("all/own"), "secret", "new"), 0);
    assert_file(below("ours/secret"), "new");
    snprintf(path, sizeof path, "/nowhere:%s", below("theirs"));
    setenv("ASSAY_TRUSTED_FOLDERS", path, 1);
    assert_int_equal(unpack_one(below("theirs/deep"), "file", "shared"), 0);
    assert_file(below("theirs/deep/file"), "shared");
    assert_int_equal(unpack_one(below("theirs"), "log", "newer"), 1);
    assert_int_equal(unpack_one(below("everybody"), "file", "newer"), 1);
    unsetenv("ASSAY_TRUSTED_FOLDERS");
    assert_file(below("ours/secret"), "new");
}
