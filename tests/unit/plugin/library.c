/* Plugins that must be refused (tests/plugins), each in one sentence that says why; and one that must not. */
#include "engine/plugin/library.h"
#include "tests/test.h"

static struct installation installation;

static int set_up(void **state) {
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/plugins", test_build());
    return installation_init(&installation, test_build(), path, &test_failure);
}

static int tear_down(void **state) {
    installation_clear(&installation);
    return 0;
}
TEST_GROUP(set_up, tear_down)

TEST(refusals) {
    static const struct {
        const char *prefix, *name, *reason;
    } cases[] = {
        {"fit", "other-abi", "the plugin has ABI 7, but this assay has ABI 4"},
        {"fit", "no-symbol", "the file has no symbol 'assay_plugin'"},
        {"fit", "short", "the plugin lacks its name, version, summary or functions"},
        {"fit", "nameless", "the plugin lacks its name, version, summary or functions"},
        {"fit", "predicts", "the plugin has the kind 2; expected the kind 1"},
        {"fit", "misnamed", "the plugin calls itself 'otherwise'; expected 'misnamed'"},
        {"fit", "bare", "the plugin has no function fit()"},
        {"fit", "unresolved", "undefined symbol"},
        {"fit", "linaer", "did you mean 'fit-linear'?"},
        {"fit", "zzzzzzzz", "fit-linear"},
        {"fit", "../x", "is not the name of a plugin"},
        {"predict", "slope", "there is no plugin 'predict-slope'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(library_cleanup) struct library *library = NULL;
        assert_true(library_open(&installation, cases[i].prefix, cases[i].name, &library, &test_failure) < 0);
        assert_says(test_failure.text, cases[i].reason);
        assert_int_equal(test_failure.kind, FAILURE_INPUT);
        assert_null(library);
    }
}

TEST(no_shared_object) {
    cleanup(installation_clear) struct installation own = {0};
    cleanup(library_cleanup) struct library *library = NULL;
    test_put("plugins/fit-text.so", "not an object\n");
    assert_ok(installation_init(&own, test_build(), test_folder(), &test_failure));
    assert_true(library_open(&own, "fit", "text", &library, &test_failure) < 0);
    assert_says(test_failure.text, "cannot load the plugin '/tmp/assay-unit-");
}

TEST(a_good_one) {
    cleanup(library_cleanup) struct library *library = NULL;
    assert_ok(library_open(&installation, "fit", "slope", &library, &test_failure));
    assert_string_equal(library->plugin->name, "slope");
    assert_non_null(library->fit);
    assert_null(library->predict);
    const struct plugin_message message = {"the rows are odd"}, silent = {""};
    assert_int_equal(library_failure(library, -EINVAL, &message, &test_failure), -EINVAL);
    assert_string_equal(test_failure.text, "slope: the rows are odd");
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    assert_int_equal(library_failure(library, -EIO, &silent, &test_failure), -EIO);
    assert_int_equal(test_failure.kind, FAILURE_SYSTEM);
}
