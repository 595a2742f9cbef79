/* The grade of a model and the sentence behind it: from the scores of its groups alone. */
#include "engine/model/verdict.h"
#include "engine/foundation/text.h"
#include "engine/model/read.h"
#include "engine/model/write.h"
#include "tests/test.h"

/* A model of the kind KIND with a group for each of VALUES ("" ends them), whose noise is NOISE. */
static struct model *make_model(const char *kind, const char *noise, const char *const *values) {
    cleanup(text_clear) struct text text;
    struct model *model = NULL;
    text_init(&text, 1 << 20);
    text_printf(&text,
                "{\"assay_model\": 2, \"kind\": \"%s\", \"response\": {\"name\": \"t\", \"unit\": \"s\"}, "
                "\"weights\": null, \"by\": [\"node\"], \"terms\": [{\"name\": \"1\", \"unit\": null, "
                "\"factors\": []}], \"columns\": [], \"origin\": {\"plugin\": \"p\", \"version\": \"1\", "
                "\"engine\": \"1\", \"created\": \"2020-01-01T00:00:00Z\", \"rows\": 9, \"seed\": 1, "
                "\"settings\": {}, \"inputs\": []}, \"units\": {}, \"skipped\": [], \"groups\": [",
                kind);
    for (size_t g = 0; values[g]; g++)
        text_printf(&text,
                    "%s{\"labels\": {\"node\": \"n%zu\"}, \"rows\": 9, \"values\": {%s}, \"notes\": [], "
                    "\"parts\": [{\"kind\": \"whole\", \"estimates\": [{\"term\": \"1\", \"estimate\": 1, "
                    "\"standard_error\": null, \"t\": null, \"p\": null}], \"covariance\": null, \"noise\": "
                    "%s, \"values\": {}, \"domain\": {}}]}",
                    g ? ", " : "", g, values[g], noise);
    text_printf(&text, "]}\n");
    assert_ok(model_file_parse("m.json", text.bytes, text.length, &model, &test_failure));
    return model;
}

#define SCORES(relative, median)                                                                             \
    "\"cv_relative\": " #relative ", \"cv_median_relative\": " #median ", \"settings\": 9"
#define NORMAL "{\"kind\": \"N-1\", \"distribution\": \"normal\", \"constant\": 1}"
#define MIXTURE                                                                                              \
    "{\"kind\": \"mixture\", \"distribution\": \"normal\", \"components\": [{\"weight\": 1, \"mean\": 0, "   \
    "\"sigma\": 1}]}"

TEST(grades) {
    static const struct {
        const char *kind, *noise, *values[4];
        enum report_grade grade;
        const char *expected;
    } cases[] = {
        {"linear",
         NORMAL,
         {SCORES(0.1, 0.05)},
         REPORT_USABLE,
         "usable: cross-validated error 10 % (median 5 %)"},
        {"linear",
         NORMAL,
         {SCORES(0.69, 0.01)},
         REPORT_NOT_USABLE,
         "not usable for prediction: cross-validated error 69 %"},
        {"linear", NORMAL, {SCORES(0.01, 0.06)}, REPORT_NOT_USABLE, "(median 6 %)"},
        {"linear",
         NORMAL,
         {SCORES(0.01, 0.01) ", \"nonpositive_rows\": 2"},
         REPORT_NOT_USABLE,
         "predicts 0 or less for 2 of the 9 rows"},
        /* The worst group counts, and is named; another is bad by its median alone. */
        {"linear",
         NORMAL,
         {SCORES(0.01, 0.01), SCORES(0.3, 0.02), SCORES(0.02, 0.06)},
         REPORT_NOT_USABLE,
         "1 of 3 groups are usable, the worst is 'n1'"},
        {"linear",
         NORMAL,
         {SCORES(0.01, 0.01), SCORES(null, null)},
         REPORT_USABLE,
         "the prediction error is not known for 1 of 2 groups"},
        {"linear",
         NORMAL,
         {SCORES(null, null)},
         REPORT_UNKNOWN,
         "fitted to 9 rows; its prediction error is not known"},
        {"linear", NORMAL, {""}, REPORT_UNKNOWN, "its prediction error is not known"},
        {"linear",
         NORMAL,
         {"\"nonpositive_rows\": 1"},
         REPORT_NOT_USABLE,
         "not usable for prediction: fitted to 9 rows; its prediction error is not known; it predicts 0 or "
         "less"},
        {"linear", NORMAL, {"\"refused_by_simgrid\": 0"}, REPORT_UNKNOWN, "prediction error is not known"},
        {"linear",
         NORMAL,
         {"\"refused_by_simgrid\": 2"},
         REPORT_UNKNOWN,
         "not known; SimGrid cannot use this model: see its note"},
        {"linear",
         NORMAL,
         {"\"refused_by_simgrid\": 0", "\"refused_by_simgrid\": 1"},
         REPORT_UNKNOWN,
         "; SimGrid cannot use 1 of 2 groups: see the note of group 'n1'"},
        {"population", NORMAL, {""}, REPORT_UNKNOWN, "its prediction error is not known"},
        /* The error of a mixture's mean says nothing. */
        {"linear",
         MIXTURE,
         {SCORES(0.69, 0.3) ", \"cv_log_score\": -1.5"},
         REPORT_UNKNOWN,
         "mean log density of rows left out: -1.5"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct model *model = make_model(cases[i].kind, cases[i].noise, cases[i].values);
        cleanup_free char *sentence = model_verdict(model), *warning = model_verdict_warning(model, "f");
        cleanup(text_clear) struct text text;
        text_init(&text, 1 << 20);
        assert_says(sentence, cases[i].expected);
        assert_int_equal(model_grade(model), cases[i].grade);
        assert_true((warning != NULL) == (cases[i].grade == REPORT_NOT_USABLE));
        if (warning)
            assert_says(warning, "'f' is not usable for prediction: ");
        /* The file has it as a word. */
        cleanup_free char *member = NULL;
        assert_true(asprintf(&member, "\"grade\": \"%s\"", report_grade_word(cases[i].grade)) > 0);
        assert_int_equal(model_file_append(model, &text, NULL), 0);
        assert_says(text.bytes, member);
        model_free(model);
    }
}
