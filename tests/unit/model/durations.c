/* How long a campaign's units take by a model: the longest of its groups, in seconds. */
#include "engine/model/durations.h"
#include "tests/test.h"

static const char *scores = ""; /* of each group */

static void write_model(const char *kind, const char *unit, const char *column) {
    FILE *file = fopen(test_path("model.json"), "w");
    fprintf(file,
            "{\"assay_model\": 2, \"kind\": \"%s\", \"response\": {\"name\": \"duration\", \"unit\": %s}, "
            "\"weights\": null, \"by\": [\"node\"], \"terms\": [{\"name\": \"size\", \"unit\": null, "
            "\"factors\": [{\"column\": \"%s\", \"power\": 1}]}], \"columns\": [], \"origin\": {\"plugin\": "
            "\"fit-linear\", \"version\": \"1\", \"engine\": \"1\", \"created\": \"2020-01-01T00:00:00Z\", "
            "\"rows\": 9, \"seed\": 1, \"settings\": {}, \"inputs\": []}, \"units\": {}, \"skipped\": [], "
            "\"groups\": [",
            kind, unit, column);
    for (int g = 0; g < 2; g++)
        fprintf(file,
                "%s{\"labels\": {\"node\": \"%d\"}, \"rows\": 9, \"values\": {%s}, \"notes\": [], \"parts\": "
                "[{\"kind\": \"whole\", \"estimates\": [{\"term\": \"size\", \"estimate\": %d, "
                "\"standard_error\": null, \"t\": null, \"p\": null}], \"covariance\": null, \"values\": {}, "
                "\"domain\": {\"%s\": [1, 10]}}]}",
                g > 0 ? ", " : "", g, scores, g == 0 ? 30 : 20, column);
    fputs("]}\n", file);
    fclose(file);
}

static struct design *make_design(void) {
    static const double sizes[] = {1, 5, 40, -3};
    struct design *design = NULL;
    struct design_column *column = NULL;
    assert_int_equal(design_new(4, &design, NULL), 0);
    assert_int_equal(design_add_column(design, "size", COLUMN_NUMBER, &column, NULL), 0);
    memcpy(column->numbers, sizes, sizeof sizes);
    assert_int_equal(design_add_column(design, "kind", COLUMN_STRING, &column, NULL), 0);
    return design;
}

TEST(longest_group) {
    cleanup(design_cleanup) struct design *design = make_design();
    char warning[EXTRAPOLATION_SENTENCE_SIZE];
    double seconds[4];
    write_model("linear", "\"ms\"", "size");
    assert_int_equal(durations_predict(test_path("model.json"), design, seconds, warning, NULL), 0);
    assert_close(seconds[0], 0.03, 1e-15, "seconds");
    assert_close(seconds[1], 0.15, 1e-15, "seconds");
    assert_close(seconds[2], 1.2, 1e-15, "seconds");
    assert_true(isnan(seconds[3]));
    assert_says(warning, "2 of 4 rows are outside the domain of the model");
    assert_null(strstr(warning, "usable"));
    scores = "\"cv_relative\": 0.69, \"cv_median_relative\": 0.01, \"settings\": 9";
    write_model("linear", "\"ms\"", "size");
    scores = "";
    assert_int_equal(durations_predict(test_path("model.json"), design, seconds, warning, NULL), 0);
    assert_says(warning, "2 of 4 rows are outside the domain of the model");
    assert_says(warning, "; not usable for prediction: cross-validated error 69 % in the worst group");
}

TEST(refusals) {
    static const struct {
        const char *kind, *unit, *column, *expected;
    } cases[] = {{"population", "\"s\"", "size", "gives no value for a row"},
                 {"linear", "\"By\"", "size", "has the unit 'By'; expected a time"},
                 {"linear", "null", "size", "has the unit ''; expected a time"},
                 {"linear", "\"s\"", "sise", "the model uses 'sise', which is no column of the design"},
                 {"linear", "\"s\"", "kind", "the model uses 'kind', which is a text there"}};
    cleanup(design_cleanup) struct design *design = make_design();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char warning[EXTRAPOLATION_SENTENCE_SIZE];
        double seconds[4];
        write_model(cases[i].kind, cases[i].unit, cases[i].column);
        assert_true(durations_predict(test_path("model.json"), design, seconds, warning, &test_failure) < 0);
        assert_says(test_failure.text, cases[i].expected);
    }
}
