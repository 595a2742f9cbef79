/* Paths as users write them: what of others root refuses, and whose links everybody else follows. */
#include "engine/foundation/path.h"

#include "engine/foundation/file.h"
#include "engine/foundation/installation.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OTHER = 65534, COLLEAGUE = 65533 };

static const char *top;

static const char *below(const char *name) {
    return test_formatted("%s/%s", top, name);
}

static int set_up(void **state) {
    unsetenv(PATH_TRUST_VARIABLE);
    unsetenv("SUDO_UID");
    top = test_own_folder();
    assert_int_equal(chmod(top, 0755), 0);
    return 0;
}

TEST_EACH(set_up, NULL)

static void folder(const char *name, mode_t mode, uid_t owner, gid_t group) {
    assert_int_equal(mkdir(below(name), 0700) | chown(below(name), owner, group) | chmod(below(name), mode),
                     0);
}

static void file(const char *name, mode_t mode, uid_t owner) {
    assert_ok(file_replace(below(name), "x", 1, 0600, &test_failure));
    assert_int_equal(chown(below(name), owner, owner) | chmod(below(name), mode), 0);
}

static void link_of(const char *target, const char *name, uid_t owner) {
    assert_int_equal(symlink(target, below(name)) | lchown(below(name), owner, owner), 0);
}

static int make(const char *name, struct failure *failure) {
    cleanup_close int made = path_make(below(name), failure);
    return made < 0 ? made : 0;
}

TEST(root_uses_nothing_of_others) {
    static const struct {
        const char *path;
        enum path_use use;
        const char *part; /* NULL: it is used */
    } cases[] = {
        {"sticky", PATH_PLACE, NULL},
        {"sticky/ours/new", PATH_PLACE, NULL},
        {"sticky/ours/file", PATH_SOURCE, NULL},
        {"sticky/theirs", PATH_PLACE, "sticky/theirs"},
        {"sticky/theirs/new", PATH_PLACE, "sticky/theirs"},
        {"sticky/file", PATH_PLACE, NULL},
        {"sticky/file", PATH_SOURCE, "it belongs to user 65534 and has mode 0644"},
        {"sticky/link", PATH_PLACE, "the link '"},
        {"sticky/link/file", PATH_SOURCE, "the link '"},
        {"everybody", PATH_PLACE, "everybody"},
        {"everybody/file", PATH_SOURCE, "everybody"},
        {"group/new", PATH_PLACE, "group"},
        {"sticky/own/everybody", PATH_PLACE, "everybody"},
        {"sticky/ours/writable", PATH_SOURCE, "it belongs to user 0 and has mode 0666"},
        {"sticky/ours/../../group", PATH_PLACE, "group"},
        {"new/new", PATH_SOURCE, NULL},
    };
    test_need_root();
    folder("sticky", 01777, 0, 0);
    folder("sticky/ours", 0755, 0, 0);
    folder("sticky/theirs", 0755, OTHER, OTHER);
    folder("everybody", 0777, 0, 0);
    folder("group", 02775, 0, OTHER);
    file("sticky/ours/file", 0600, 0);
    file("sticky/ours/writable", 0666, 0);
    file("sticky/file", 0644, OTHER);
    link_of(below("sticky/ours"), "sticky/link", OTHER);
    link_of("..", "sticky/own", 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = below(cases[i].path);
        int r = path_check(path, cases[i].use, &test_failure);
        if (r != (cases[i].part ? -EXDEV : 0))
            fail_msg("'%s' is %d: %s", path, r, test_failure.text);
        if (r < 0) {
            assert_says(test_failure.text, cases[i].part);
            assert_int_equal(test_failure.kind, FAILURE_INPUT);
        }
    }
    assert_says(test_failure.text, "' belongs to user 0 and has mode 2775; root uses only what root owns");
    assert_says(test_failure.text, "name its folder in ASSAY_TRUSTED_FOLDERS");
    /* From the working directory. */
    assert_int_equal(chdir(below("everybody")), 0);
    assert_error(path_check("new", PATH_PLACE, &test_failure), -EXDEV, "everybody' belongs to user 0");
    assert_int_equal(chdir("/"), 0);
    /* Whatever the umask: root makes no folder that root refuses. */
    mode_t before = umask(0);
    assert_ok(make("new/er", &test_failure));
    umask(before);
    assert_ok(path_check(below("new/er/file"), PATH_SOURCE, &test_failure));
    assert_error(make("sticky/theirs/new", &test_failure), -EXDEV, "sticky/theirs' belongs to user 65534");
    assert_error(make("sticky/link", &test_failure), -EXDEV, "who may let it lead anywhere");
    assert_false(file_exists(below("sticky/theirs/new")));
    /* No file that the user names is written through a link of another's. */
    link_of(below("sticky/ours/file"), "sticky/out", OTHER);
    assert_error(file_write_output(below("sticky/out"), "y", 1, &test_failure), -EXDEV, "the link '");
    assert_ok(file_write_output(below("sticky/file"), "y", 1, &test_failure));
    struct stat status;
    assert_int_equal(stat(below("sticky/file"), &status), 0);
    assert_int_equal(status.st_uid, 0);
}

TEST(folders_that_are_trusted) {
    char list[256];
    test_need_root();
    folder("shared", 02775, OTHER, OTHER);
    folder("shared/sub", 0777, COLLEAGUE, COLLEAGUE);
    folder("other", 0777, 0, 0);
    file("shared/sub/file", 0644, COLLEAGUE);
    link_of("sub/file", "shared/link", COLLEAGUE);
    snprintf(list, sizeof list, "/nowhere::%s", below("shared"));
    assert_error(path_check(below("shared/sub/file"), PATH_SOURCE, &test_failure), -EXDEV,
                 "/shared' belongs");
    assert_null(path_trust_environment());
    setenv(PATH_TRUST_VARIABLE, list, 1);
    assert_ok(path_check(below("shared/sub/file"), PATH_SOURCE, &test_failure));
    assert_ok(make("shared/sub/new", &test_failure));
    assert_error(path_check(below("shared/link"), PATH_PLACE, &test_failure), -EXDEV, "the link '");
    assert_error(path_check(below("shared/../other"), PATH_PLACE, &test_failure), -EXDEV, "/other' belongs");
    assert_says(path_trust_environment()[0], "ASSAY_TRUSTED_FOLDERS=/nowhere::/tmp/");
    unsetenv(PATH_TRUST_VARIABLE);
    /* Who became root by sudo could do anyway what they can do here. */
    setenv("SUDO_UID", "65534", 1);
    assert_error(path_check(below("shared/sub/file"), PATH_SOURCE, &test_failure), -EXDEV,
                 "/shared' belongs");
    assert_int_equal(chmod(below("shared"), 0755), 0);
    assert_error(path_check(below("shared/sub/file"), PATH_SOURCE, &test_failure), -EXDEV, "/sub' belongs");
    assert_ok(path_check(below("shared/new"), PATH_SOURCE, &test_failure));
    unsetenv("SUDO_UID");
    /* Where assay is installed, unless everybody may write there. */
    assert_int_equal(chmod(below("shared"), 02775), 0);
    path_trust(below("shared"));
    assert_ok(path_check(below("shared/sub/file"), PATH_SOURCE, &test_failure));
    assert_int_equal(chmod(below("shared"), 0777), 0);
    assert_error(path_check(below("shared/sub/file"), PATH_SOURCE, &test_failure), -EXDEV,
                 "/shared' belongs");
    path_trust(NULL);
}

static int as_other(void) {
    static const struct {
        const char *path;
        bool refused;
    } cases[] = {{"project", false},           {"project/new", false},       {"project/own/new", false},
                 {"project/of-root/x", false}, {"project/of-another", true}, {"project/of-another/x", true},
                 {"project/owners", true},     {"apps/current/x", false},    {"apps", false}};
    if (setgid(OTHER) < 0 || setuid(OTHER) < 0)
        return 100;
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        if ((path_check(below(cases[i].path), PATH_SOURCE, NULL) == -EXDEV) != cases[i].refused)
            return (int)i + 1;
    return 0;
}

/* A folder of colleagues is used; their links in it are not. */
TEST(others_than_root) {
    int status;
    test_need_root();
    folder("project", 02775, COLLEAGUE, OTHER);
    folder("target", 0755, COLLEAGUE, COLLEAGUE);
    folder("apps", 0755, COLLEAGUE, COLLEAGUE);
    link_of("../target", "project/own", OTHER);
    link_of("../target", "project/of-root", 0);
    link_of("../target", "project/of-another", COLLEAGUE - 1);
    link_of("../target", "project/owners", COLLEAGUE);
    link_of("../target", "apps/current", COLLEAGUE);
    pid_t child = fork();
    if (child == 0)
        _exit(as_other());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

/* Plugins and experiments are run. */
TEST(folders_of_assay_path) {
    test_need_root();
    static const char *const names[] = {"good", "everybody", "theirs", "file"};
    struct installation installation;
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        char name[64];
        folder(names[i], 0755, 0, 0);
        snprintf(name, sizeof name, "%s/plugins", names[i]);
        folder(name, i == 1 ? 0777 : 0755, i == 2 ? OTHER : 0, 0);
        snprintf(name, sizeof name, "%s/plugins/fit-x.so", names[i]);
        file(name, 0644, i == 3 ? OTHER : 0);
        char *found = NULL;
        assert_ok(installation_init(&installation, "/nowhere", below(names[i]), &test_failure));
        int r = installation_find(&installation, INSTALLATION_PLUGIN, "fit-x", &found, &test_failure);
        assert_int_equal(r, i == 0 ? 0 : -EXDEV);
        assert_true((found != NULL) == (i == 0));
        free(found);
        installation_clear(&installation);
    }
}
