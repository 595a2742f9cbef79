/* Where plugins and experiments are found, in trees that the test makes itself. */
#include "engine/foundation/installation.h"

#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

#include <libgen.h>
#include <unistd.h>

static const char *root;

static void put(const char *path) {
    test_put_in(root, path, "x\n", 2, 0644);
}

static int set_up(void **state) {
    root = test_own_folder();
    put("prefix/lib/assay/plugins/fit-linear.so");
    put("prefix/lib/assay/plugins/predict-hpl.so");
    put("prefix/lib/assay/plugins/README");
    put("prefix/share/assay/experiments/dgemm/experiment.yaml");
    put("prefix/share/assay/experiments/hpl/experiment.yaml");
    put("prefix/share/assay/experiments/no-experiment/notes.txt");
    put("mine/experiments/dgemm/experiment.yaml");
    put("mine/experiments/sort/experiment.yaml");
    put("yours/plugins/fit-linear.so");
    return 0;
}

static void open_tree(const char *path, struct installation *ret) {
    cleanup_free char *prefix = file_join(root, "prefix");
    assert_int_equal(installation_init(ret, prefix, path, &test_failure), 0);
}

static void expect_found(const struct installation *installation, enum installation_kind kind,
                         const char *name, const char *expected) {
    struct failure failure = {0};
    cleanup_free char *path = NULL, *full = file_join(root, expected);
    assert_int_equal(installation_find(installation, kind, name, &path, &failure), 0);
    assert_string_equal(path, full);
}

static void expect_missing(const struct installation *installation, enum installation_kind kind,
                           const char *name, const char *expected) {
    struct failure failure = {0};
    char *path = NULL;
    assert_true(installation_find(installation, kind, name, &path, &failure) < 0);
    assert_null(path);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    if (!strstr(failure.text, expected))
        fail_msg("\"%s\" does not say \"%s\"", failure.text, expected);
}

TEST(prefix_alone) {
    cleanup(installation_clear) struct installation installation = {0};
    open_tree(NULL, &installation);
    expect_found(&installation, INSTALLATION_EXPERIMENT, "dgemm", "prefix/share/assay/experiments/dgemm");
    expect_found(&installation, INSTALLATION_PLUGIN, "fit-linear", "prefix/lib/assay/plugins/fit-linear.so");
    assert_non_null(strstr(installation.agent, "/prefix/libexec/assay/assay-agent"));
    assert_non_null(strstr(installation.agent_source, "/prefix/share/assay/agent-source"));
}

TEST(path_comes_first) {
    cleanup_free char *path = text_format(":%s/absent:%s/mine::%s/yours:", root, root, root);
    cleanup(installation_clear) struct installation installation = {0};
    open_tree(path, &installation);
    assert_int_equal(installation.folders[INSTALLATION_PLUGIN].count, 4);
    expect_found(&installation, INSTALLATION_EXPERIMENT, "dgemm", "mine/experiments/dgemm");
    expect_found(&installation, INSTALLATION_EXPERIMENT, "hpl", "prefix/share/assay/experiments/hpl");
    expect_found(&installation, INSTALLATION_PLUGIN, "fit-linear", "yours/plugins/fit-linear.so");
}

TEST(relative_entries_are_pinned) {
    cleanup_free char *here = getcwd(NULL, 0);
    assert_int_equal(chdir(root), 0);
    cleanup(installation_clear) struct installation installation = {0};
    open_tree("mine", &installation);
    assert_int_equal(chdir("/"), 0);
    expect_found(&installation, INSTALLATION_EXPERIMENT, "sort", "mine/experiments/sort");
    assert_int_equal(chdir(here), 0);
}

TEST(missing_names) {
    cleanup(installation_clear) struct installation installation = {0}, empty = {0};
    open_tree(NULL, &installation);
    expect_missing(&installation, INSTALLATION_EXPERIMENT, "dgem",
                   "no experiment 'dgem'; did you mean 'dgemm'?");
    expect_missing(&installation, INSTALLATION_PLUGIN, "spline", "there are: fit-linear, predict-hpl");
    expect_missing(&installation, INSTALLATION_EXPERIMENT, "no-experiment", "there is no experiment");
    expect_missing(&installation, INSTALLATION_EXPERIMENT, "../../etc",
                   "cannot be the name of an experiment");
    expect_missing(&installation, INSTALLATION_PLUGIN, "", "cannot be the name of a plugin");
    assert_int_equal(installation_init(&empty, "/nowhere", NULL, &test_failure), 0);
    expect_missing(&empty, INSTALLATION_PLUGIN, "fit-linear", "none at all in /nowhere/lib/assay/plugins");
}

TEST(list_is_sorted_and_unique) {
    cleanup_free char *path = file_join(root, "mine");
    cleanup(installation_clear) struct installation installation = {0};
    open_tree(path, &installation);
    cleanup(installation_names_clear) struct installation_names names = {0};
    assert_int_equal(installation_list(&installation, INSTALLATION_EXPERIMENT, &names, &test_failure), 0);
    assert_int_equal(names.count, 3);
    assert_string_equal(names.items[0], "dgemm");
    assert_string_equal(names.items[1], "hpl");
    assert_string_equal(names.items[2], "sort");
}

TEST(too_many_folders) {
    cleanup(text_clear) struct text path;
    text_init(&path, 4096);
    for (int i = 0; i <= INSTALLATION_FOLDERS_MAX; i++)
        assert_int_equal(text_printf(&path, "/f%d:", i), 0);
    struct installation installation = {0};
    struct failure failure = {0};
    assert_int_equal(installation_init(&installation, "/usr", path.bytes, &failure), -E2BIG);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_null(installation.prefix);
}

TEST(prefix_of_the_program) {
    cleanup(installation_clear) struct installation installation = {0};
    assert_int_equal(installation_init(&installation, NULL, NULL, &test_failure), 0);
    char program[4096];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    assert_true(length > 0);
    program[length] = '\0';
    assert_string_equal(installation.prefix, dirname(dirname(program)));
}

TEST_EACH(set_up, NULL)
