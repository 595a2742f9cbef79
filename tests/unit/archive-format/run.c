/* run.json: what is written is what is read, and what is not understood. */
#include "archive-format/run.h"
#include "engine/foundation/memory.h"
#include "tests/test.h"

static int read_run(const char *path, struct archive_run *ret) {
    cleanup(document_cleanup) struct document *document = NULL;
    assert_ok(document_read_json(path, &document, &test_failure));
    return archive_run_read(document, ret, &test_failure);
}

TEST(round_trip) {
    cleanup(archive_run_clear) struct archive_run written = {.kind = ARCHIVE_IMPORTED}, found = {0};
    written.run_id = xstrdup("x");
    written.started_ns = INT64_C(1763632800123000000);
    written.counts = (struct archive_counts){.planned = 7, .rows_settled = -1};
    bind_texts_add(&written.options, "threads");
    bind_texts_add(&written.options, "4");
    written.model = xcalloc(1, sizeof *written.model);
    written.model->method = xstrdup("linear");
    written.model->response = xstrdup("time");
    bind_texts_add(&written.model->sizes, "n");
    written.answer = xcalloc(1, sizeof *written.answer);
    written.answer->best = ARCHIVE_BEST_NONE;
    for (int i = 0; i < 2; i++) {
        struct archive_part *part = bind_items_add(&written.parts, sizeof *part);
        part->units_done = i;
        part->status = xstrdup(i ? "completed" : "stopped");
    }
    written.prediction = xcalloc(1, sizeof *written.prediction);
    written.prediction->plugin = xstrdup("predict-hpl");
    struct archive_prediction_model *model = bind_items_add(&written.prediction->models, sizeof *model);
    model->role = xstrdup("dgemm");
    struct archive_model_input *input = bind_items_add(&model->inputs, sizeof *input);
    input->sha256 = xstrdup("ab");
    written.based_on = xcalloc(1, sizeof *written.based_on);
    *written.based_on = (struct archive_origin){.run_id = xstrdup("y"), .archive = xstrdup("y.zip")};
    const char *path = test_path("run.json");
    assert_ok(archive_run_write(path, &written, &test_failure));
    assert_ok(read_run(path, &found));
    assert_string_equal(found.version, ARCHIVE_VERSION);
    assert_int_equal(found.kind, ARCHIVE_IMPORTED);
    assert_string_equal(found.run_id, "x");
    assert_null(found.error);
    assert_true(found.started_ns == written.started_ns && found.ended_ns == 0);
    assert_int_equal(found.counts.planned, 7);
    assert_int_equal(found.counts.rows_settled, -1);
    assert_string_equal(found.options.items[1], "4");
    assert_string_equal(found.model->method, "linear");
    assert_string_equal(found.model->sizes.items[0], "n");
    assert_null(found.model->terms);
    assert_int_equal(found.answer->best, ARCHIVE_BEST_NONE);
    assert_null(found.repeat);
    model = found.prediction->models.items;
    assert_string_equal(model->role, "dgemm");
    assert_string_equal(((const struct archive_model_input *)model->inputs.items)->sha256, "ab");
    assert_string_equal(found.based_on->run_id, "y");
    assert_string_equal(found.based_on->archive, "y.zip");
    assert_null(found.based_on->sha256);
    assert_int_equal(found.parts.count, 2);
    assert_string_equal(((const struct archive_part *)found.parts.items)[1].status, "completed");
}

/* Members that a later version adds are ignored, nulls stand for nothing; what is wrong is refused by its
 * place. */
TEST(of_others) {
    static const struct {
        const char *text, *reason;
    } cases[] = {
        {"{\"archive_version\": \"1.7\", \"new\": [1], \"error\": null, \"model\": null, \"answer\": "
         "\"none\","
         " \"counts\": {\"new\": 1}, \"parts\": [{\"new\": 1}]}",
         NULL},
        {"{\"archive_version\": \"2.0\"}", "this assay reads version 1.x"},
        {"{\"archive_version\": \"1.0\", \"started\": \"today\"}", "'started' is 'today', expected a time"},
        {"{\"archive_version\": \"1.0\", \"parts\": {}}", "'parts' is a mapping, expected a sequence"},
        {"{\"archive_version\": \"1.0\", \"counts\": {\"rows\": -1}}",
         "'rows' is '-1', expected a whole number of at least 0"},
        {"{\"archive_version\": \"1.0\", \"model\": {\"method\": \"x\"}}", "has no 'response'"},
        {"{\"archive_version\": \"1.0\", \"kind\": \"diary\"}", "'kind' is 'diary'"},
        {"{\"archive_version\": \"1.0\", \"kind\": \"prediction\"}", "and has no member 'prediction'"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(archive_run_clear) struct archive_run run = {0};
        print_message("%s\n", cases[i].text);
        test_put("other.json", cases[i].text);
        int r = read_run(test_path("other.json"), &run);
        if (!cases[i].reason) {
            assert_ok(r);
            assert_int_equal(run.answer->best, ARCHIVE_BEST_NONE);
            assert_int_equal(run.kind, ARCHIVE_OF_RUN);
            continue;
        }
        assert_true(r < 0);
        assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
        assert_says(test_failure.text, cases[i].reason);
    }
}
