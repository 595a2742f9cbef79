#include "engine/model/read.h"
#include "engine/model/report.h"
#include "engine/model/write.h"
#include "engine/numerics/distribution.h"
#include "tests/test.h"

#include <unistd.h>

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* Everything that a file can have, as it is written. */
static const char rich[] =
    "{\n"
    "  \"assay_model\": 2,\n"
    "  \"kind\": \"piecewise\",\n"
    "  \"over\": \"x\",\n"
    "  \"response\": {\"name\": \"y\", \"unit\": \"us\"},\n"
    "  \"grade\": \"unknown\",\n"
    "  \"weights\": \"w\",\n"
    "  \"by\": [\"node\", \"core\"],\n"
    "  \"terms\": [\n"
    "    {\"name\": \"1\", \"unit\": \"us\", \"factors\": []},\n"
    "    {\"name\": \"log2(x)^-2\", \"unit\": null, \"factors\": [{\"column\": \"x\", \"power\": -2, "
    "\"function\": \"log2\"}]},\n"
    "    {\"name\": \"op[b]\", \"unit\": \"us\", \"factors\": [{\"column\": \"op\", \"power\": 1, \"level\": "
    "\"b\"}]}\n"
    "  ],\n"
    "  \"columns\": [\n"
    "    {\"name\": \"x\", \"unit\": \"By\", \"type\": \"integer\"},\n"
    "    {\"name\": \"op\", \"unit\": null, \"type\": null, \"levels\": [\"a\", \"b \\\"\\u0007\"]}\n"
    "  ],\n"
    "  \"hull\": {\"columns\": [\"x\", \"z\"], \"scale\": [1, 0.5], \"directions\": [[1, 0], [1, -1]], "
    "\"minimum\": [0, -1], \"maximum\": [3, 4]},\n"
    "  \"origin\": {\n"
    "    \"plugin\": \"fit-x\", \"version\": \"1.0\", \"engine\": \"0.2\", \"created\": "
    "\"2026-11-22T08:00:00Z\",\n"
    "    \"rows\": 20, \"seed\": 18446744073709551615,\n"
    "    \"where\": \"x > 3\",\n"
    "    \"folds_by\": \"columns\",\n"
    "    \"folds_columns\": [\"x\"],\n"
    "    \"settings\": {\"select\": \"auto\", \"break\": null},\n"
    "    \"inputs\": [\n"
    "      {\"name\": \"a.zip\", \"sha256\": "
    "\"0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef\", \"run_id\": \"r\", "
    "\"experiment\": \"e\", \"rows\": 12},\n"
    "      {\"name\": \"b.csv\", \"sha256\": null, \"run_id\": null, \"experiment\": null, \"rows\": 8}\n"
    "    ]\n"
    "  },\n"
    "  \"units\": {\"cv_rmse\": \"us\", \"r2\": \"1\", \"odd\": null},\n"
    "  \"main_values\": [\"r2\"],\n"
    "  \"groups\": [\n"
    "    {\"labels\": {\"node\": \"a\", \"core\": \"3\"}, \"rows\": 9, \"values\": {\"cv_rmse\": 0.1}, "
    "\"parts\": [{\"kind\": \"segment\", \"to\": 4, \"estimates\": [{\"term\": \"1\", \"estimate\": 1e-300, "
    "\"standard_error\": 0.3, \"t\": 0.30000000000000004, \"p\": null}, {\"term\": \"log2(x)^-2\", "
    "\"estimate\": 0, \"standard_error\": null, \"t\": null, \"p\": null, \"at_bound\": true}, {\"term\": "
    "\"op[b]\", \"estimate\": 0, \"standard_error\": null, \"t\": null, \"p\": null, \"dropped\": true}], "
    "\"covariance\": [[4, 1, 0], [1, 9, 0], [0, 0, 0]], \"freedom\": 7.5, \"noise\": {\"kind\": \"N-2\", "
    "\"distribution\": \"half-normal\", \"method\": \"rule\", \"constant\": 0.5, \"coefficients\": [0, "
    "-0.25, 0], "
    "\"floor\": {\"sigma\": 0.125, \"freedom\": 3, \"covariance\": [[1, 0, 0], [0, 2, 0], [0, 0, 0]]}}, "
    "\"values\": "
    "{\"r2\": 0.5, \"odd\": null}, \"domain\": {\"x\": [1, 3.5]}}, {\"kind\": \"segment\", \"name\": "
    "\"last\", \"from\": 4, \"estimates\": [{\"term\": \"1\", \"estimate\": 3, \"standard_error\": null, "
    "\"t\": null, \"p\": null}, {\"term\": \"log2(x)^-2\", \"estimate\": 4, \"standard_error\": null, \"t\": "
    "null, \"p\": null}, {\"term\": \"op[b]\", \"estimate\": 5, \"standard_error\": null, \"t\": null, "
    "\"p\": null}], \"covariance\": null, \"noise\": {\"kind\": \"mixture\", \"distribution\": \"normal\", "
    "\"components\": [{\"weight\": 0.25, \"mean\": -3, \"sigma\": 1}, {\"weight\": 0.75, \"mean\": 1, "
    "\"sigma\": 0}]}, \"values\": {}, \"domain\": {}}], \"notes\": [\"one\", \"two\"]},\n"
    "    {\"labels\": {\"node\": \"a\", \"core\": \"10\"}, \"rows\": 11, \"values\": {}, \"parts\": "
    "[{\"kind\": \"whole\", \"estimates\": [{\"term\": \"1\", \"estimate\": 3, \"standard_error\": null, "
    "\"t\": null, \"p\": null}, {\"term\": \"log2(x)^-2\", \"estimate\": 4, \"standard_error\": null, \"t\": "
    "null, \"p\": null}, {\"term\": \"op[b]\", \"estimate\": 5, \"standard_error\": null, \"t\": null, "
    "\"p\": null}], \"covariance\": null, \"noise\": {\"kind\": \"N-1\", \"distribution\": \"normal\", "
    "\"constant\": 0.25}, \"values\": {}, \"domain\": {}}], \"notes\": []}\n"
    "  ],\n"
    "  \"skipped\": [\n"
    "    {\"labels\": {\"node\": \"b\", \"core\": \"1\"}, \"rows\": 1, \"reason\": \"1 row\"}\n"
    "  ]\n"
    "}\n";

static struct model *parse(const char *bytes) {
    struct model *model;
    assert_ok(model_file_parse("x.json", bytes, strlen(bytes), &model, &test_failure));
    return model;
}

static void expect_bytes(const struct model *model, const char *expected) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    assert_int_equal(model_file_append(model, &text, NULL), 0);
    if (strcmp(text.bytes, expected) != 0) {
        size_t at = 0;
        while (text.bytes[at] == expected[at])
            at++;
        fail_msg("byte %zu: %.80s; expected %.80s", at, text.bytes + at, expected + at);
    }
}

TEST(same_bytes) {
    struct model *model = parse(rich);
    expect_bytes(model, rich);
    char path[] = "/tmp/assay-model-XXXXXX";
    int descriptor = mkstemp(path);
    struct model *again;
    assert_ok(model_file_write(model, path, &test_failure));
    assert_ok(model_file_read(path, &again, &test_failure));
    assert_string_equal(again->file, path);
    expect_bytes(again, rich);
    close(descriptor);
    unlink(path);
    assert_int_equal(model_file_read(path, &again, &test_failure), -ENOENT);
    assert_int_equal(model_file_write(model, "/nowhere/at/all.json", &test_failure), -ENOENT);
    model_free(model), model_free(again);
    model_free(NULL);
}

TEST(reads_all) {
    struct model *model = parse(rich);
    assert_string_equal(model->file, "x.json");
    assert_string_equal(model->kind, "piecewise");
    assert_string_equal(model->over, "x");
    assert_null(model->named_by);
    assert_string_equal(model->response, "y");
    assert_string_equal(model->response_unit, "us");
    assert_true(model->response_seconds == 1e-6);
    assert_string_equal(model->weights, "w");
    assert_true(model->terms[1].factors[0].power == -2 && !model->terms[1].unit);
    assert_string_equal(model->terms[1].factors[0].function, "log2");
    assert_string_equal(model->terms[2].factors[0].level, "b");
    assert_true(model->column_count == 2 && model->columns[1].level_count == 2);
    assert_string_equal(model->columns[1].levels[1], "b \"\a");
    assert_true(model->hull->direction_count == 2 && model->hull->directions[3] == -1);
    assert_true(model->hull->scale[1] == 0.5 && model->hull->maximum[1] == 4);
    assert_true(model->origin.rows == 20 && model->origin.seed == UINT64_MAX);
    assert_true(model->origin.setting_count == 2 && !model->origin.setting_values[1]);
    assert_true(model->origin.input_count == 2 && model->origin.inputs[1].sha256[0] == '\0');
    const struct model_group *group = &model->groups[0];
    assert_string_equal(group->name, "a/3");
    assert_string_equal(group->labels[1], "3");
    assert_true(group->rows == 9 && group->part_count == 2 && group->note_count == 2);
    const struct model_part *first = group->parts, *last = first + 1;
    assert_true(isinf(first->from) && first->to == 4 && last->from == 4 && isinf(last->to));
    assert_true(first->estimates[0].estimate == 1e-300 && isnan(first->estimates[0].p));
    assert_true(first->estimates[2].dropped && first->estimates[1].at_bound && !first->estimates[0].dropped);
    assert_true(first->covariance[4] == 9 && !last->covariance);
    assert_true(first->noise.kind == MODEL_NOISE_HETEROSCEDASTIC && first->noise.half_normal);
    assert_true(first->noise.constant == 0.5 && first->noise.coefficients[1] == -0.25);
    assert_true(first->freedom == 7.5 && last->freedom == 0 && !last->noise.floor.covariance);
    assert_true(first->noise.floor.sigma == 0.125 && first->noise.floor.freedom == 3);
    assert_true(first->noise.floor.covariance[4] == 2);
    assert_true(last->noise.kind == MODEL_NOISE_MIXTURE && last->noise.components[0].mean == -3);
    assert_true(!last->noise.method && !last->noise.half_normal);
    assert_true(group[1].parts[0].noise.kind == MODEL_NOISE_HOMOSCEDASTIC);
    assert_string_equal(model->skipped[0].name, "b/1");
    assert_string_equal(model->skipped[0].reason, "1 row");

    assert_true(model_group_value(group, "r2") == 0.5 && model_group_value(group, "cv_rmse") == 0.1);
    assert_true(isnan(model_group_value(group, "odd")) && isnan(model_group_value(group, "none")));
    assert_string_equal(group->values[0].unit, "us");
    assert_null(first->values[1].unit);
    assert_string_equal(model_column_unit(model, "x"), "By");
    assert_string_equal(model_column_unit(model, "y"), "us");
    assert_null(model_column_unit(model, "op"));
    assert_true(model_range_find(first, "x")->maximum == 3.5 && !model_range_find(last, "x"));
    size_t found = 9;
    assert_ok(model_group_find(model, "a/10", &found, &test_failure));
    assert_int_equal(found, 1);
    assert_error(model_group_find(model, "a/4", &found, &test_failure), -EINVAL,
                 "the model has no group 'a/4'; did you mean 'a/3'?");
    double seconds;
    assert_ok(model_response_seconds(model, &seconds, &test_failure));
    assert_true(seconds == 1e-6);
    model->response_seconds = NAN;
    assert_error(model_response_seconds(model, &seconds, &test_failure), -EINVAL,
                 "the response 'y' has the unit us; expected a time");
    assert_true(model_unit_seconds(NULL) == 0 && isnan(model_unit_seconds("By")));
    model_free(model);
}

TEST(reports_main_values_first) {
    struct model *model = parse(rich);
    cleanup(report_cleanup) struct report *report = report_new();
    model_report_group(report->root, model, &model->groups[0], false);
    cleanup_free char *brief = report_render(report, false), *all = report_render(report, true);
    assert_says(brief, "r2               0.5\n");
    assert_null(strstr(brief, "cv_rmse"));
    assert_says(all, "cv_rmse  0.1 us\n");
    model_free(model);
}

/* What a hand-written file may leave out. */
TEST(small) {
    struct model *model =
        parse("{\"assay_model\": 2, \"future\": [1], \"kind\": \"linear\", \"response\": {\"name\": \"y\"}, "
              "\"by\": [], \"terms\": [{\"name\": \"1\", \"factors\": []}], \"columns\": [], \"groups\": "
              "[{\"labels\": {}, \"rows\": 1, \"parts\": [{\"kind\": \"whole\", \"estimates\": [{\"term\": "
              "\"1\", \"estimate\": 2}]}]}]}");
    assert_string_equal(model->groups[0].name, "all");
    assert_true(model->response_seconds == 0 && model->groups[0].parts[0].noise.kind == MODEL_NOISE_NONE);
    model_free(model);
}

static char *replace(const char *text, const char *piece, const char *instead) {
    const char *at = strstr(text, piece);
    if (!at)
        fail_msg("no %s", piece);
    size_t size = strlen(text) + strlen(instead) + 1;
    char *ret = malloc(size);
    snprintf(ret, size, "%.*s%s%s", (int)(at - text), text, instead, at + strlen(piece));
    return ret;
}

static const struct {
    const char *piece, *instead, *place, *reason;
} bad[] = {
    {"\"kind\": \"piecewise\"", "\"kind\": 3", "x.json:3:11", "'kind' is a number; expected text"},
    {"\"response\": {\"name\": \"y\", \"unit\": \"us\"}", "\"response\": \"y\"", "x.json:5:15",
     "'response' is text"},
    {"\"terms\": [\n", "\"term\": [\n", "x.json:1:1", "'terms' is missing; expected a"},
    {"\"power\": -2", "\"power\": 0", "", "'power' is 0; expected a whole number, not 0, from -1000 to 1000"},
    {"\"power\": -2", "\"power\": 2.5", "", "'power' is 2.5"},
    {"\"power\": -2", "\"power\": -2000", "", "'power' is -2000"},
    {"\"power\": 1, \"level\"", "\"power\": 2, \"level\"", "",
     "'power' is 2; expected 1, because the factor is a level"},
    {"\"log2\"}", "\"ln\"}", "", "'function' is 'ln'; expected log2"},
    {"\"column\": \"op\"", "\"colum\": \"op\"", "x.json:12:49", "'column' is missing"},
    {"\"levels\": [\"a\"", "\"levels\": [1", "", "'levels' has a number; expected texts"},
    {"[1, 0.5], \"directions\"", "[1], \"directions\"", "", "'scale' is not a list of 2 numbers"},
    {"[1, -1]]", "[1]]", "", "'directions' is not a list of 2 numbers"},
    {"[3, 4]}", "[-3, 4]}", "", "the hull goes from 0 to -3 in direction 1; expected the minimum first"},
    {"[0, -1]", "[0, 1e999]", "", "'minimum' is 1e999; expected a number that a double can hold"},
    {"\"seed\": 18446744073709551615", "\"seed\": -1", "", "'seed' is -1; expected a whole number from 0"},
    {"\"rows\": 20", "\"rows\": 2.5", "", "'rows' is 2.5; expected a whole number from 0"},
    {"\"sha256\": \"01", "\"sha256\": \"", "", "expected 64 hexadecimal digits"},
    {"\"break\": null", "\"break\": 3", "", "'break' is a number; expected text"},
    {"\"core\": \"3\"", "\"cor\": \"3\"", "x.json:34:16", "'core' is missing; expected text"},
    {"\"core\": \"3\"", "\"core\": \"3\", \"c\": \"4\"", "x.json:34:16",
     "the group has 3 labels; expected 2, a label for each column of 'by'"},
    {"\"to\": 4", "\"to\": 5", "",
     "the segment begins at 4, but the segment before it ends at 5; expected ascending segments"},
    {"\"to\": 4", "\"from\": 4, \"to\": 4", "", "the part goes from 4 to 4; expected 'from' below 'to'"},
    {"\"over\": \"x\",", "", "", "the group has 2 parts; expected 1, because the model has neither 'over'"},
    {"\"estimate\": 1e-300", "\"estimate\": null", "", "'estimate' is nothing; expected a number"},
    {"{\"term\": \"1\", \"estimate\": 1e-300", "{\"term\": \"2\", \"estimate\": 1e-300", "",
     "the estimate belongs to the term '2'; expected '1', in the order of 'terms'"},
    {"{\"term\": \"1\", \"estimate\": 1e-300, \"standard_error\": 0.3, \"t\": 0.30000000000000004, \"p\": "
     "null}, ",
     "", "", "'estimates' has 2 entries; expected 3, one for each term"},
    {"\"estimate\": 0, \"standard_error\": null, \"t\": null, \"p\": null, \"dropped\"",
     "\"estimate\": 1, \"standard_error\": null, \"t\": null, \"p\": null, \"dropped\"", "",
     "the estimate of 'op[b]' is 1; expected 0, because the term is dropped"},
    {"\"dropped\": true", "\"dropped\": 1", "", "'dropped' is a number; expected true or false"},
    {"[[4, 1, 0]", "[[4, 1]", "",
     "'covariance' is not a square matrix of 3 rows; expected a row for each term"},
    {"[[4, 1, 0], ", "[", "", "'covariance' is not a square matrix of 3 rows; expected"},
    {"[[4, 1, 0]", "[[4, \"1\", 0]", "", "'covariance' is text; expected a number"},
    {"\"N-2\"", "\"N-3\"", "", "the noise has the kind 'N-3'; expected N-1, N-2 or mixture"},
    {"[0, -0.25, 0]", "[0, -0.25]", "", "'coefficients' is not a list of 3 numbers"},
    {"\"constant\": 0.25", "\"constant\": -1", "", "sigma is -1; expected 0 or more"},
    {"\"freedom\": 7.5", "\"freedom\": -7.5", "", "there are -7.5 degrees of freedom; expected more than 0"},
    {"\"sigma\": 0.125, \"freedom\": 3", "\"sigma\": -0.125, \"freedom\": 3", "", "'floor' is incomplete"},
    {"half-normal", "cauchy", "", "the distribution is 'cauchy'; expected normal or half-normal"},
    {"\"weight\": 0.25", "\"weight\": -0.25", "", "a component has the weight -0.25"},
    {"\"weight\": 0.25", "\"weight\": 0.3", "", "the weights of the components add up to 1.05; expected 1"},
    {"\"sigma\": 0}", "\"sigma\": -1}", "", "the sigma -1; expected both at least 0"},
    {"\"r2\": 0.5", "\"r2\": 1e400", "", "'r2' is 1e400; expected a number that a double can hold"},
    {"[1, 3.5]", "[4, 3.5]", "", "the range of 'x' is 4 to 3.5; expected the minimum first"},
    {"[1, 3.5]", "3.5", "", "'x' is not a list of 2 numbers"},
    {"\"reason\": \"1 row\"", "\"reason\": null", "", "'reason' is nothing; expected text"},
};

TEST(refusals) {
    for (size_t i = 0; i < LENGTH(bad); i++) {
        cleanup_free char *text = replace(rich, bad[i].piece, bad[i].instead);
        struct model *model = NULL;
        int r = model_file_parse("x.json", text, strlen(text), &model, &test_failure);
        if (r == 0 || !strstr(test_failure.text, bad[i].reason) ||
            strncmp(test_failure.place, "x.json:", 7) != 0 ||
            strncmp(test_failure.place, bad[i].place, strlen(bad[i].place)) != 0)
            fail_msg("%s: %d %s: '%s'; expected %s '%s'", bad[i].instead, r, test_failure.place,
                     test_failure.text, bad[i].place, bad[i].reason);
        assert_int_equal(test_failure.kind, FAILURE_INPUT);
        assert_null(model);
    }
    static const char *const formats[][3] = {
        {"\"assay_model\": 2", "\"assay_mode\": 2", "this is not a model file of assay"},
        {"\"assay_model\": 2", "\"assay_model\": 1", "the format 1; this assay reads format 2: fit it again"},
        {"\"assay_model\": 2", "\"assay_model\": 3", "the format 3; this assay reads format 2"},
        {"\"assay_model\": 2", "\"assay_model\": [1]", "the format ?"},
        {"]\n}\n", "", ""}};
    for (size_t i = 0; i < LENGTH(formats); i++) {
        cleanup_free char *text = replace(rich, formats[i][0], formats[i][1]);
        struct model *model;
        assert_error(model_file_parse("x.json", text, strlen(text), &model, &test_failure), -EINVAL,
                     formats[i][2]);
    }
    const char smpi[] =
        "{\"assay_model\": 2, \"kind\": \"smpi\", \"response\": {\"name\": \"y\"}, \"by\": [], \"terms\": "
        "[{\"name\": \"1\", \"factors\": []}], \"columns\": [], \"groups\": []}";
    struct model *model;
    assert_error(model_file_parse("x.json", smpi, sizeof smpi - 1, &model, &test_failure), -EINVAL,
                 "the model has no groups");
}

/* All that is refused one by one is found at once, each with its place. */
TEST(findings) {
    char *text = strdup(rich);
    size_t count = 0;
    static const size_t together[] = {0, 3, 8, 9, 10, 13, 15, 17, 19, 24, 27, 31, 33, 34, 40, 41};
    for (size_t i = 0; i < LENGTH(together); i++, count++) {
        char *next = replace(text, bad[together[i]].piece, bad[together[i]].instead);
        free(text);
        text = next;
    }
    struct document *document;
    cleanup(model_findings_clear) struct model_findings findings = {0};
    struct model *model;
    assert_ok(document_parse_json("x.json", text, strlen(text), &document, &test_failure));
    assert_ok(model_from_document(document, &findings, &model, &test_failure));
    for (size_t i = 0; i < LENGTH(together); i++) {
        size_t k = 0;
        while (k < findings.count && !strstr(findings.items[k].sentence, bad[together[i]].reason))
            k++;
        if (k == findings.count)
            fail_msg("not found: %s", bad[together[i]].reason);
        assert_true(findings.items[k].line > 0 && findings.items[k].column > 0 && !findings.items[k].warning);
    }
    assert_true(findings.error_count >= LENGTH(together) && findings.count == findings.error_count);
    model_free(model);
    document_free(document);
    free(text);
}

TEST(units_of_values) {
    struct model *model = parse(rich);
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    free(model->groups[0].values[0].name);
    model->groups[0].values[0].name = strdup("r2");
    assert_error(model_file_append(model, &text, &test_failure), -EINVAL,
                 "the value 'r2' has the unit us in one part of the model and 1 in another");
    assert_int_equal(text.length, 0);
    model_free(model);
}

static double index_as_draw(void *context, const char *stream, uint64_t index) {
    assert_true(strcmp(stream, "a/3/0") == 0 || strcmp(stream, "a/3/1") == 0 ||
                strcmp(stream, "a/10/0") == 0);
    static const double draws[] = {1, -2, 100, 0.5, -1, 100, 0, 0};
    return draws[index];
}

TEST(draws) {
    struct model *model = parse(rich);
    struct model *drawn = model_draw(model, index_as_draw, NULL);
    const struct model_estimate *estimates = drawn->groups[0].parts[0].estimates;
    /* Medians of the factors; the floor has its share of the covariance, and its own factor. */
    double scale = sqrt(7.5 / distribution_chi_squared_quantile(0.5, 7.5));
    double low = sqrt(3 / distribution_chi_squared_quantile(0.5, 3));
    assert_close(estimates[0].estimate, scale * sqrt(3) + low * 0.5, 1e-7, "first");
    assert_close(estimates[1].estimate, scale * (1 / sqrt(3) - 2 * sqrt(7 - 1 / 3.)) - low * sqrt(2), 1e-7,
                 "second");
    assert_close(drawn->groups[0].parts[0].noise.constant, scale * 0.375 + low * 0.125, 1e-12, "noise");
    assert_close(drawn->groups[0].parts[0].noise.coefficients[1], scale * -0.25, 1e-12, "noise");
    assert_true(estimates[2].estimate == 0); /* its variance is 0 */
    assert_true(model->groups[0].parts[0].estimates[1].estimate == 0);
    assert_true(drawn->groups[0].parts[1].estimates[2].estimate == 5); /* it has no covariance */
    model_draw_free(drawn);
    model_draw_free(NULL);
    model_free(model);
}
