#include "engine/model/check.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static const char good[] =
    "{\"assay_model\": 2, \"kind\": \"piecewise\", \"over\": \"x\", \"response\": {\"name\": \"y\", "
    "\"unit\": \"s\"},\n"
    "\"weights\": null, \"by\": [\"node\"],\n"
    "\"terms\": [{\"name\": \"1\", \"unit\": \"s\", \"factors\": []}, {\"name\": \"x\", \"unit\": \"s\", "
    "\"factors\": [{\"column\": \"x\", \"power\": 1}]}],\n"
    "\"columns\": [{\"name\": \"x\", \"unit\": null, \"type\": \"number\"}, {\"name\": \"op\", \"unit\": "
    "null, \"type\": \"string\", \"levels\": [\"a\"]}],\n"
    "\"hull\": {\"columns\": [\"x\", \"op\"], \"scale\": [1, 1], \"directions\": [], \"minimum\": [], "
    "\"maximum\": []},\n"
    "\"origin\": {\"plugin\": \"fit-x\", \"version\": \"1\", \"engine\": \"0.2\", \"created\": "
    "\"2026-11-22T08:00:00.5Z\", \"rows\": 9, \"folds_by\": \"row\", \"inputs\": [{\"name\": \"a.csv\", "
    "\"sha256\": \"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\", \"rows\": 9}]},\n"
    "\"groups\": [\n"
    "{\"labels\": {\"node\": \"n1\"}, \"rows\": 9, \"parts\": [{\"kind\": \"segment\", \"to\": 4, "
    "\"estimates\": [{\"term\": \"1\", \"estimate\": 4, \"standard_error\": 2, \"t\": 2, \"p\": 0.1}, "
    "{\"term\": \"x\", \"estimate\": 3, \"standard_error\": 3}],\n"
    "\"covariance\": [[4, -3], [-3, 9]], \"noise\": {\"kind\": \"N-2\", \"constant\": 0.5, \"coefficients\": "
    "[0, 0.25]}, \"domain\": {\"x\": [-1, 3]}},\n"
    "{\"kind\": \"segment\", \"from\": 4, \"estimates\": [{\"term\": \"1\", \"estimate\": 3}, {\"term\": "
    "\"x\", \"estimate\": 4}], \"covariance\": null, \"domain\": {\"x\": [-1, 8]}}]},\n"
    "{\"labels\": {\"node\": \"n2\"}, \"rows\": 9, \"parts\": [{\"kind\": \"whole\", \"estimates\": "
    "[{\"term\": \"1\", \"estimate\": 3}, {\"term\": \"x\", \"estimate\": 4}], \"covariance\": null}]}],\n"
    "\"skipped\": []}\n";

static struct model_findings check(const char *text) {
    struct model_findings findings = {0};
    struct model *model;
    assert_ok(model_file_check_bytes("x.json", text, strlen(text), &findings, &model, &test_failure));
    model_free(model);
    return findings;
}

TEST(nothing_wrong) {
    cleanup(model_findings_clear) struct model_findings findings = check(good);
    if (findings.count > 0)
        fail_msg("%zu: %s", findings.items[0].line, findings.items[0].sentence);
}

/* GOOD with a PIECE replaced, and the one finding that is expected. */
static const struct {
    const char *piece, *instead, *finding;
    size_t line;
    bool warning;
} cases[] = {
    {"\"origin\"", "\"origins\"", "'origin' is missing", 1, false},
    {"\"plugin\": \"fit-x\", ", "", "'plugin' is missing; expected a text", 6, false},
    {"2026-11-22T08", "2026-13-22T08", "'created' is '2026-13-22T08:00:00.5Z'; expected a time", 6, false},
    {"\"folds_by\": \"row\"", "\"folds_by\": \"rows\"",
     "'folds_by' is 'rows'; expected setting, row or columns", 6, false},
    {"\"inputs\": [{", "\"inputs\": [], \"x\": [{", "'inputs' is empty; expected at least one file", 6,
     false},
    {"\"sha256\": ", "\"sha\": ", "the input 'a.csv' has no 'sha256'", 6, true},
    {"{\"name\": \"x\", \"unit\": null", "{\"name\": \"z\", \"unit\": null",
     "'columns' has no 'x', but terms use this column", 3, false},
    {"[\"x\", \"op\"]", "[\"x\", \"z\"]", "'columns' has no 'z', but hulls use this column", 5, false},
    {"\"type\": \"number\"", "\"type\": \"real\"", "the type is 'real'; expected integer", 4, false},
    {"\"factors\": []}, {\"name\": \"x\", \"unit\": \"s\", \"factors\": [{\"column\": \"x\", \"power\": 1}]}",
     "\"factors\": []}, {\"name\": \"x\", \"unit\": \"s\", \"factors\": [{\"column\": \"op\", \"power\": 1, "
     "\"level\": \"b\"}]}",
     "'b' is no level of the column 'op'", 3, false},
    {"\"standard_error\": 2, \"t\": 2", "\"standard_error\": 2.1",
     "the standard error of '1' is 2.1, but the root of its variance is 2; expected equal values", 8, false},
    {"\"t\": 2", "\"t\": 2.1", "t of '1' is 2.1; expected 2, the estimate divided by its standard error", 8,
     false},
    {"\"p\": 0.1", "\"p\": 1.1", "p of '1' is 1.1; expected 0 to 1", 8, false},
    {"[[4, -3], [-3", "[[4, -3], [-2",
     "covariance is not symmetric: for 'x' and '1' its two entries are -2 and -3", 8, false},
    {"[[4, -3], [-3", "[[4, -7], [-7", "covariance is not positive semidefinite", 8, false},
    {"\"domain\": {\"x\": [-1, 3]}", "\"domain\": {\"z\": [-1, 3]}",
     "the domain has a range of 'z', which is neither a column nor a term", 9, false},
    {"\"constant\": 0.5", "\"constant\": 0.125",
     "sigma is below 0, and so undefined, at 1 of the 2 corners of the domain", 9, false},
    {"[-1, 3]", "[-1.5, 3]", "the predicted time is 0 or less at 1 of the 2 corners of the domain", 8, true},
    {"\"from\": 4", "\"from\": 4.5",
     "the segment begins at 4.5, but the segment before it ends at 4; expected no gap", 10, false},
    {"\"n2\"}, \"rows\": 9", "\"n2\"}, \"rows\": 0", "the group has 0 rows; expected at least 1", 11, false},
    {"\"n2\"", "\"n1\"", "the group 'n1' occurs twice", 11, false},
    {"[{\"column\": \"x\", \"power\": 1}]",
     "[{\"column\": \"x\", \"power\": 1}, {\"column\": \"x\", \"power\": 2}]", "the factor 'x' occurs twice",
     3, false},
    {"{\"kind\": \"segment\", \"from\"", "{\"kind\": \"\\u001b[2Jsegment\", \"from\"",
     "[2Jsegment' has a control character", 10, false},
    {"[\"a\"]", "[\"a\\u009b\"]", "has a control character", 4, false},
    {"\"name\": \"y\", \"unit\": \"s\"", "\"name\": \"y\", \"unit\": \"parsec/fortnight?\"",
     "'parsec/fortnight?' is not a unit for 'y'", 1, false},
    {"{\"name\": \"x\", \"unit\": null", "{\"name\": \"x\", \"unit\": \"parsec/fortnight\"",
     "the unit 'parsec/fortnight' of 'x' is not known, so that values cannot be converted", 4, true},
    {"{\"kind\": \"N-2\", \"constant\": 0.5, \"coefficients\": [0, 0.25]}",
     "{\"kind\": \"mixture\", \"components\": [{\"weight\": 0.5, \"mean\": 7, \"sigma\": 1}, {\"weight\": "
     "0.5, "
     "\"mean\": 9, \"sigma\": 1}]}",
     "the mean of the mixture is 8, and its standard deviation is 1.41421; expected a mean near 0", 9, false},
    {"\"kind\": \"whole\"", "\"kind\": \"whole\", \"values\": {\"heterogeneity\": -1}",
     "'heterogeneity' is -1; expected 0 to inf", 11, false},
    /* What reading refuses is found as well. */
    {"[-1, 8]", "[9, 8]", "the range of 'x' is 9 to 8; expected the minimum first", 10, false},
};

TEST(findings) {
    for (size_t i = 0; i < LENGTH(cases); i++) {
        const char *at = strstr(good, cases[i].piece);
        assert_non_null(at);
        size_t size = sizeof good + strlen(cases[i].instead);
        cleanup_free char *text = malloc(size);
        snprintf(text, size, "%.*s%s%s", (int)(at - good), good, cases[i].instead,
                 at + strlen(cases[i].piece));
        cleanup(model_findings_clear) struct model_findings findings = check(text);
        size_t found = findings.count;
        for (size_t k = 0; k < findings.count; k++)
            if (strstr(findings.items[k].sentence, cases[i].finding))
                found = k;
        if (found == findings.count)
            fail_msg("'%s' is not found, but '%s'", cases[i].finding,
                     findings.count ? findings.items[0].sentence : "nothing");
        assert_int_equal(findings.items[found].line, cases[i].line);
        assert_true(findings.items[found].warning == cases[i].warning);
        assert_true((findings.error_count == 0) == cases[i].warning);
    }
    struct model_findings findings = {0};
    assert_int_equal(model_file_check_bytes("x.json", "{", 1, &findings, NULL, &test_failure), -EINVAL);
    assert_int_equal(model_file_check("/nowhere.json", &findings, NULL, &test_failure), -ENOENT);
    assert_int_equal(findings.count, 0);
}

/* What is wrong everywhere is told a thousand times, and counted. */
TEST(a_thousand_are_kept) {
    enum { COUNT = 60000 };
    const char *begin = strstr(good, "[{\"name\": \"x\", \"unit\": null"), *end = strstr(good, ",\n\"hull\"");
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    assert_int_equal(text_printf(&text, "%.*s[1", (int)(begin - good), good), 0);
    for (size_t i = 1; i < COUNT; i++)
        assert_int_equal(text_append_string(&text, ",1"), 0);
    assert_int_equal(text_printf(&text, "]%s", end), 0);
    cleanup(model_findings_clear) struct model_findings findings = check(text.bytes);
    assert_int_equal(findings.count, 1000);
    assert_true(findings.error_count >= 1000 && findings.error_count < 3 * COUNT);
}

/* Whatever piece is lost, nothing breaks. */
TEST(pieces) {
    for (size_t i = 0; i < sizeof good - 1; i++) {
        cleanup_free char *text = strdup(good);
        text[i] = text[i] == '0' ? '9' : '0';
        cleanup(model_findings_clear) struct model_findings findings = {0};
        struct model *model = NULL;
        int r = model_file_check_bytes("x.json", text, strlen(text), &findings, &model, &test_failure);
        assert_true(r == 0 || (r < 0 && test_failure.text[0] != '\0' && !model));
        model_free(model);
        model = NULL;
        if (model_file_parse("x.json", text, strlen(text), &model, &test_failure) == 0)
            model_free(model);
        else
            assert_true(r < 0 || findings.error_count > 0);
    }
}
