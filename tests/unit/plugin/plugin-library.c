/* Plugins that must be refused (tests/plugins), each in one sentence that says why; and one that must not. */
#include "engine/plugin/plugin-library.h"
#include "engine/foundation/file.h"
#include "tests/test.h"

#include <unistd.h>

static void refused(const char *name, enum assay_plugin_kind kind, const char *reason) {
    char path[4096];
    struct failure failure = {0};
    struct plugin_library *library = NULL;
    snprintf(path, sizeof path, "%s/tests/plugins/plugins/%s.so", test_build(), name);
    assert_true(file_exists(path));
    int r = plugin_library_load(path, kind, &library, &failure);
    if (r == 0 || !strstr(failure.text, reason) || !strstr(failure.text, name))
        fail_msg("%s: %d '%s'; expected '%s'", name, r, failure.text, reason);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_null(library);
}

TEST(refusals) {
    refused("fit-other-abi", ASSAY_PLUGIN_FIT, "it has ABI 7 and this assay speaks ABI 2");
    refused("fit-no-symbol", ASSAY_PLUGIN_FIT, "it has no symbol 'assay_plugin'");
    refused("fit-short", ASSAY_PLUGIN_FIT, "it describes itself in 16 bytes; expected at least 48");
    refused("fit-predicts", ASSAY_PLUGIN_FIT, "it is of the kind 'predict' (2); expected 'fit'");
    refused("fit-misnamed", ASSAY_PLUGIN_FIT,
            "it calls itself 'fit-otherwise'; expected the name of its file");
    refused("fit-bare", ASSAY_PLUGIN_FIT, "it lacks operations that a fit plugin must have");
    refused("fit-nameless", ASSAY_PLUGIN_FIT, "it does not say its name, version, summary and operations");
    refused("fit-unresolved", ASSAY_PLUGIN_FIT, "undefined symbol");
    refused("fit-passes", ASSAY_PLUGIN_PREDICT, "it is of the kind 'fit' (1); expected 'predict'");
}

TEST(no_shared_object) {
    char path[] = "/tmp/fit-text-XXXXXX.so";
    int descriptor = mkstemps(path, 3);
    assert_true(descriptor >= 0);
    assert_int_equal(file_write_all(descriptor, "not an object\n", 14), 0);
    close(descriptor);
    struct failure failure = {0};
    struct plugin_library *library = NULL;
    assert_true(plugin_library_load(path, ASSAY_PLUGIN_FIT, &library, &failure) < 0);
    assert_true(strstr(failure.text, "cannot load the plugin '/tmp/fit-text-") == failure.text);
    assert_null(library);
    unlink(path);
}

TEST(a_good_one) {
    struct failure failure = {0};
    struct installation installation = {0};
    struct plugin_library *library = NULL;
    char path[4096];
    snprintf(path, sizeof path, "%s/tests/plugins", test_build());
    assert_int_equal(installation_init(&installation, test_build(), path, &failure), 0);
    assert_int_equal(plugin_library_open(&installation, ASSAY_PLUGIN_FIT, "passes", &library, &failure), 0);
    assert_string_equal(plugin_library_plugin(library)->name, "fit-passes");
    assert_non_null(plugin_library_fit(library));
    assert_null(plugin_library_predict(library));
    const struct plugin_message message = {"the rows are odd"};
    assert_int_equal(plugin_library_failure(library, -EINVAL, &message, &failure), -EINVAL);
    assert_string_equal(failure.text, "fit-passes: the rows are odd");
    assert_int_equal(failure.kind, FAILURE_INPUT);
    const struct plugin_message silent = {""};
    assert_int_equal(plugin_library_failure(library, -EIO, &silent, &failure), -EIO);
    assert_int_equal(failure.kind, FAILURE_SYSTEM);
    plugin_library_close(library);
    plugin_library_close(NULL);

    /* Both kinds come from the installation itself; near names are offered. */
    library = NULL;
    assert_int_equal(plugin_library_open(&installation, ASSAY_PLUGIN_PREDICT, "hpl", &library, &failure), 0);
    plugin_library_close(library);
    library = NULL;
    assert_true(plugin_library_open(&installation, ASSAY_PLUGIN_FIT, "linaer", &library, &failure) < 0);
    assert_true(strstr(failure.text, "did you mean 'fit-linear'?") != NULL);
    assert_true(plugin_library_open(&installation, ASSAY_PLUGIN_FIT, "zzzzzzzz", &library, &failure) < 0);
    assert_true(strstr(failure.text, "there are: ") != NULL && strstr(failure.text, "fit-linear") != NULL);
    assert_true(plugin_library_open(&installation, ASSAY_PLUGIN_FIT, "../x", &library, &failure) < 0);
    assert_true(strstr(failure.text, "is not the name of a method") != NULL);
    assert_null(library);
    installation_clear(&installation);
}
