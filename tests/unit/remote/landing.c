/* Where files from nodes land: which paths are taken, and that nothing leads out. */
#include "engine/remote/nodes/landing.h"

#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

#include <dirent.h>
#include <sys/stat.h>
#include <unistd.h>

static struct place {
    const char *folder;
    struct landing *landing;
    struct failure failure;
} place;

static int set_up(void **state) {
    memset(&place, 0, sizeof place);
    place.folder = test_own_folder();
    assert_int_equal(
        landing_new(test_formatted("%s/a/b", place.folder), "node", &place.landing, &place.failure), 0);
    return 0;
}

static int tear_down(void **state) {
    landing_free(place.landing);
    return 0;
}

static const char *path_of(const char *name) {
    return test_formatted("%s/a/b/node/%s", place.folder, name);
}

static int add(const char *path, const char *content, unsigned mode) {
    cleanup_close int file = landing_add(place.landing, path, mode, &place.failure);
    if (file >= 0)
        assert_int_equal(file_write_all(file, content, strlen(content)), 0);
    return file < 0 ? file : 0;
}

static int land(const char *path, const char *content, unsigned mode) {
    int r = add(path, content, mode);
    return r < 0 ? r : landing_commit(place.landing, &place.failure);
}

TEST(paths) {
    static const char *const bad[] = {"",    "/",    "/etc/passwd", "..",       "../x", "a/../../x", "a/..",
                                      ".",   "./a",  "a/.",         "a//b",     "a/",   "//a",       "a/./b",
                                      "../", "a/b/", "a\nb",        "a/\33[1m", "\177", "a\302\233b"};
    static const char *const good[] = {"a",   "a/b",       "...",   ".hidden", "a..b",
                                       "..a", "a/..b/c..", "a b c", "-rf",     "~"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++)
        if (!landing_problem(bad[i]))
            fail_msg("'%s' was taken", bad[i]);
    for (size_t i = 0; i < sizeof good / sizeof *good; i++)
        if (landing_problem(good[i]))
            fail_msg("'%s' was refused: %s", good[i], landing_problem(good[i]));
    char path[5000];
    memset(path, 'a', sizeof path);
    path[255] = '\0';
    assert_null(landing_problem(path));
    path[255] = 'a';
    path[256] = '\0';
    assert_non_null(landing_problem(path));
    for (size_t i = 0; i + 1 < sizeof path; i += 2)
        path[i] = 'a', path[i + 1] = '/';
    path[2 * LANDING_DEPTH_MAX - 1] = '\0';
    assert_null(landing_problem(path));
    path[2 * LANDING_DEPTH_MAX - 1] = '/';
    path[2 * LANDING_DEPTH_MAX + 1] = '\0';
    assert_non_null(landing_problem(path));
}

TEST(files_land) {
    struct stat status;
    assert_int_equal(land("x/y/z", "content", 0640), 0);
    assert_file(path_of("x/y/z"), "content");
    assert_int_equal(stat(path_of("x/y/z"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0640);
    /* The owner may always read and write, and nobody gets more than permissions. */
    assert_int_equal(land("x/y/z", "again", 06000), 0);
    assert_file(path_of("x/y/z"), "again");
    assert_int_equal(stat(path_of("x/y/z"), &status), 0);
    assert_int_equal(status.st_mode & 07777, 0600);
    assert_int_equal(landing_make_folder(place.landing, "f/g/h", &place.failure), 0);
    assert_true(file_is_folder(path_of("f/g/h")));
    assert_int_equal(landing_commit(place.landing, &place.failure), 0);
}

/* How many entries FOLDER/node has. */
static int count_entries(void) {
    int count = -2; /* . and .. */
    DIR *folder = opendir(path_of("."));
    assert_non_null(folder);
    while (readdir(folder))
        count++;
    closedir(folder);
    return count;
}

TEST(what_is_not_committed_is_not_there) {
    assert_int_equal(land("x", "old", 0644), 0);
    assert_int_equal(add("x", "new", 0644), 0);
    assert_file(path_of("x"), "old");
    landing_drop_last(place.landing);
    assert_int_equal(landing_commit(place.landing, &place.failure), 0);
    assert_file(path_of("x"), "old");
    assert_int_equal(add("y", "new", 0644), 0);
    int scratch = landing_open_scratch(place.landing, &place.failure);
    assert_int_equal(file_write_all(scratch, "z", 1), 0);
    close(scratch);
    landing_free(take_pointer(place.landing));
    assert_int_equal(count_entries(), 1);
}

TEST(many_land_together) {
    char name[32];
    for (int i = 0; i < 300; i++) {
        snprintf(name, sizeof name, "folder-%d/%d", i % 7, i);
        assert_int_equal(add(name, name, 0644), 0);
    }
    assert_false(file_exists(path_of(name)));
    assert_int_equal(landing_commit(place.landing, &place.failure), 0);
    assert_file(path_of("folder-0/0"), "folder-0/0");
    assert_file(path_of(name), name);
}

/* One of many that cannot have its name keeps none of the others from theirs. */
TEST(one_in_the_way_harms_no_other) {
    assert_int_equal(landing_make_folder(place.landing, "b", &place.failure), 0);
    static const char *const names[] = {"a", "b", "c"};
    for (int i = 0; i < 3; i++)
        assert_int_equal(add(names[i], "", 0644), 0);
    assert_int_equal(landing_commit(place.landing, &place.failure), -EISDIR);
    assert_true(file_exists(path_of("a")));
    assert_true(file_exists(path_of("c")));
    assert_int_equal(landing_commit(place.landing, &place.failure), 0);
    landing_free(take_pointer(place.landing));
    assert_int_equal(count_entries(), 3);
}

TEST(no_link_is_followed) {
    char victim[128];
    snprintf(victim, sizeof victim, "%s/victim", place.folder);
    assert_int_equal(mkdir(victim, 0777), 0);
    assert_int_equal(symlink(victim, path_of("link")), 0);
    assert_true(land("link/file", "x", 0644) < 0);
    assert_true(landing_make_folder(place.landing, "link/folder", &place.failure) < 0);
    assert_true(landing_make_folder(place.landing, "link", &place.failure) < 0);
    assert_int_equal(rmdir(victim), 0); /* nothing is in it */
    /* The last part is replaced. */
    assert_int_equal(land("link", "x", 0644), 0);
    assert_file(path_of("link"), "x");
    /* A file is no folder, and a folder no file. */
    assert_int_equal(land("link/file", "x", 0644), -ENOTDIR);
    assert_int_equal(landing_make_folder(place.landing, "folder", &place.failure), 0);
    assert_int_equal(land("folder", "x", 0644), -EISDIR);
    assert_non_null(strstr(place.failure.text, "/a/b/node/folder"));
}

TEST(the_folder_itself_is_no_link) {
    char folder[128], link[160];
    snprintf(folder, sizeof folder, "%s/a", place.folder);
    snprintf(link, sizeof link, "%s/other", folder);
    assert_int_equal(symlink("/tmp", link), 0);
    struct landing *landing = NULL;
    assert_true(landing_new(folder, "other", &landing, &place.failure) < 0);
    assert_non_null(strstr(place.failure.text, "it exists and is not a folder"));
    assert_null(landing);
    /* But the way there may be one: the user named it. */
    assert_int_equal(landing_new(link, place.folder + strlen("/tmp/"), &landing, &place.failure), 0);
    landing_free(landing);
}

TEST_EACH(set_up, tear_down)
