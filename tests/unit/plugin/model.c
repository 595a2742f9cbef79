#include "engine/plugin/model.h"
#include "tests/test.h"

static const char good[] =
    "{\"assay_model\": 1, \"kind\": \"linear\", \"response\": {\"name\": \"y\", \"unit\": \"s\"}, "
    "\"future\": [1],\n"
    " \"formula\": [{\"name\": \"1\", \"unit\": \"s\", \"factors\": []},\n"
    "  {\"name\": \"m^2*n\", \"unit\": \"s\", \"factors\": [{\"factor\": \"m\", \"power\": 2}, {\"factor\": "
    "\"n\", "
    "\"power\": 1}]}],\n"
    " \"groups\": [{\"labels\": {\"node\": \"a\", \"core\": \"3\"}, \"n\": 12, \"terms\": [{\"name\": \"1\", "
    "\"estimate\": 0.1},\n"
    "  {\"name\": \"m^2*n\", \"estimate\": 2e-300}], \"domain\": [{\"name\": \"m\", \"minimum\": -1, "
    "\"maximum\": 2.5}]}],\n"
    " \"skipped\": [{}, {}]}";

TEST(read_good) {
    struct model *model;
    struct failure failure = {0};
    if (model_parse("x.json", good, strlen(good), &model, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    const struct predict_model *view = model_view(model);
    assert_string_equal(view->name, "x.json");
    assert_string_equal(view->kind, "linear");
    assert_string_equal(view->response, "y");
    assert_string_equal(view->response_unit, "s");
    assert_int_equal(view->term_count, 2);
    assert_int_equal(view->terms[0].factor_count, 0);
    assert_int_equal(view->terms[1].factor_count, 2);
    assert_string_equal(view->terms[1].factors[0].name, "m");
    assert_int_equal(view->terms[1].factors[0].power, 2);
    assert_int_equal(view->group_count, 1);
    assert_string_equal(view->groups[0].name, "a/3");
    assert_int_equal(view->groups[0].rows, 12);
    assert_true(view->groups[0].parts[0].estimates[0] == 0.1 &&
                view->groups[0].parts[0].estimates[1] == 2e-300);
    assert_int_equal(view->groups[0].parts[0].domain_count, 1);
    assert_true(view->groups[0].parts[0].domain[0].minimum == -1 &&
                view->groups[0].parts[0].domain[0].maximum == 2.5);
    assert_int_equal(model_skipped_count(model), 2);
    model_free(model);
    model_free(NULL);
}

/* The file GOOD with PIECE replaced by INSTEAD is refused. */
static void expect_refusal(const char *good_file, const char *piece, const char *instead,
                           const char *reason) {
    char bad[4096];
    const char *at = strstr(good_file, piece);
    assert_non_null(at);
    snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good_file), good_file, instead, at + strlen(piece));
    struct model *model = NULL;
    struct failure failure = {0};
    int r = model_parse("x.json", bad, strlen(bad), &model, &failure);
    if (r == 0 || !strstr(failure.text, reason) || strncmp(failure.place, "x.json:", 7) != 0)
        fail_msg("%s: %d %s: '%s'; expected '%s'", instead, r, failure.place, failure.text, reason);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_null(model);
}

TEST(read_bad) {
    static const struct {
        const char *piece, *instead, *reason;
    } cases[] = {
        {"\"assay_model\": 1", "\"assay_mode\": 1", "not a model file of assay"},
        {"\"assay_model\": 1", "\"assay_model\": 2", "of format 2; this assay reads format 1"},
        {"\"assay_model\": 1", "\"assay_model\": [1]", "of format ?"},
        {"\"kind\": \"linear\"", "\"kind\": 3", "'kind' is missing or is not"},
        {"\"response\": {\"name\": \"y\", \"unit\": \"s\"}", "\"response\": \"y\"",
         "'response' is missing or is not"},
        {"\"power\": 2", "\"power\": 0", "'power' is missing or is not other than 0"},
        {"\"power\": 2", "\"power\": 2.5", "'power' is missing or is not"},
        {"\"factor\": \"m\"", "\"fact\": \"m\"", "'factor' is missing"},
        {"\"n\": 12", "\"n\": -12", "'n' is missing or is not"},
        {"\"estimate\": 0.1", "\"estimate\": null", "'estimate' is missing or is not"},
        {"\"estimate\": 0.1", "\"estimate\": 1e999",
         "'estimate' is missing or is not a number that a double"},
        {"{\"name\": \"1\", \"estimate\"", "{\"name\": \"2\", \"estimate\"",
         "the formula's term at this place"},
        {", \"estimate\": 0.1},\n", ", \"estimate\": 0.1}], \"old\": [", "as long as the formula"},
        {"\"minimum\": -1", "\"minimum\": \"-1\"", "'minimum' is missing or is not"},
        {"\"groups\": [{", "\"groups\": [], \"old\": [{", "the model has no groups"},
        {"\"labels\": {", "\"label\": {", "'labels' is missing"},
        {"\"skipped\": [{}, {}]}", "\"skipped\": [", ""},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(good, cases[i].piece, cases[i].instead, cases[i].reason);
}

/* Everything that a file can have, as the fuzz corpus has it. */
static const char rich[] =
    "{\"assay_model\": 1, \"kind\": \"piecewise\", \"over\": \"x\", \"response\": {\"name\": \"y\"},\n"
    " \"formula\": [{\"name\": \"1\", \"factors\": []}, {\"name\": \"x\", \"factors\": [{\"factor\": \"x\", "
    "\"power\": -2, \"function\": \"log2\"}]}, {\"name\": \"op=b\", \"factors\": [{\"factor\": \"op\", "
    "\"power\": 1, "
    "\"level\": \"b\"}]}],\n"
    " \"factors\": [{\"name\": \"x\"}, {\"name\": \"op\", \"levels\": [\"a\", \"b\"]}],\n"
    " \"hull\": {\"factors\": [\"x\", \"z\"], \"scale\": [1, 0.5], \"directions\": [[1, 0], [1, -1]], "
    "\"minimum\": "
    "[0, -1], \"maximum\": [3, 4]},\n"
    " \"groups\": [{\"labels\": {}, \"n\": 9, \"parts\": [\n"
    "  {\"kind\": \"segment\", \"to\": 4, \"terms\": [{\"name\": \"1\", \"estimate\": 1}, {\"name\": \"x\", "
    "\"estimate\": 2}, {\"name\": \"op=b\", \"estimate\": 0, \"dropped\": true}],\n"
    "   \"covariance\": [[4, 1, 0], [1, 9, 0], [0, 0, 0]], \"domain\": [], \"r2\": 0.5, \"cv_rmse\": null,\n"
    "   \"noise\": {\"kind\": \"N-2\", \"distribution\": \"half-normal\", \"method\": \"rule\", \"sigma\": "
    "[{\"name\": "
    "\"1\", \"estimate\": 0.5}, {\"name\": \"x\", \"estimate\": -0.25}]}},\n"
    "  {\"kind\": \"segment\", \"name\": \"last\", \"from\": 4, \"terms\": [{\"name\": \"1\", \"estimate\": "
    "3}, "
    "{\"name\": \"x\", \"estimate\": 4}, {\"name\": \"op=b\", \"estimate\": 5}], \"covariance\": null, "
    "\"domain\": [],\n"
    "   \"noise\": {\"kind\": \"mixture\", \"distribution\": \"normal\", \"components\": [{\"weight\": 0.25, "
    "\"mean\": "
    "-3, \"sigma\": 1}, {\"weight\": 0.75, \"mean\": 1, \"sigma\": 0}]}}]}]}";

TEST(read_rich) {
    struct model *model;
    struct failure failure = {0};
    if (model_parse("x.json", rich, strlen(rich), &model, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    const struct predict_model *view = model_view(model);
    assert_string_equal(view->over, "x");
    assert_int_equal(view->terms[1].factors[0].power, -2);
    assert_string_equal(view->terms[1].factors[0].function, "log2");
    assert_string_equal(view->terms[2].factors[0].level, "b");
    assert_int_equal(view->level_count, 1);
    assert_string_equal(view->levels[0].column, "op");
    assert_string_equal(view->levels[0].texts[1], "b");
    assert_int_equal(view->hull->direction_count, 2);
    assert_true(view->hull->directions[3] == -1 && view->hull->scale[1] == 0.5 &&
                view->hull->maximum[1] == 4);
    assert_int_equal(view->groups[0].part_count, 2);
    const struct predict_part *first = &view->groups[0].parts[0], *last = first + 1;
    assert_true(isinf(first->from) && first->to == 4 && last->from == 4 && isinf(last->to));
    assert_true(first->dropped[2] && !first->dropped[0] && !last->dropped);
    assert_true(first->covariance[4] == 9 && !last->covariance);
    assert_int_equal(first->value_count, 2);
    assert_true(first->values[0].value == 0.5 && isnan(first->values[1].value));
    assert_true(first->noise->constant == 0.5 && first->noise->coefficients[1] == -0.25);
    assert_int_equal(last->noise->component_count, 2);
    assert_true(last->noise->components[0].mean == -3 && !last->noise->method);
    assert_string_equal(last->name, "last");
    model_free(model);
}

TEST(read_bad_parts) {
    static const struct {
        const char *piece, *instead, *reason;
    } cases[] = {
        {"\"power\": -2", "\"power\": -2000", "'power' is missing or is not a whole number in range"},
        {"\"log2\"", "\"ln\"", "one that this assay knows: log2"},
        {"\"power\": 1, \"level\"", "\"power\": 2, \"level\"", "1, as that of a level must be"},
        {"[\"a\", \"b\"]", "[\"a\", 1]", "'levels' is missing or is not a sequence of texts"},
        {"[1, 0.5], \"directions\"", "[1], \"directions\"", "'scale' is missing or is not"},
        {"[1, -1]]", "[1]]", "'directions' is missing or is not a number for each factor"},
        {"[3, 4]}", "[-3, 4]}", "'minimum' is not at most the maximum"},
        {"[0, -1]", "[0, 1e999]", "'minimum' is missing or is not a number that a double can hold"},
        {"\"to\": 4", "\"to\": 5", "'from' is not at least the 'to' of the segment before"},
        {"\"to\": 4", "\"from\": 4, \"to\": 4", "'from' is not below 'to'"},
        {"\"over\": \"x\"", "\"over\": null", "'parts' is not one part alone"},
        {"\"estimate\": 0, \"dropped\": true", "\"estimate\": 1, \"dropped\": true", "'estimate' is not 0"},
        {"\"dropped\": true", "\"dropped\": 1", "'dropped' is missing or is not true or false"},
        {"[[4, 1, 0]", "[[4, 7, 0]", "'covariance' is not symmetric"},
        {"[[4, 1, 0]", "[[4, 1]", "'covariance' is missing or is not a square"},
        {"\"N-2\"", "\"N-3\"", "'kind' is missing or is not N-1, N-2 or mixture"},
        {"\"N-2\"", "\"N-1\"", "'name' is missing or is not 1"},
        {"half-normal", "cauchy", "'distribution' is missing or is not normal or half-normal"},
        {"\"weight\": 0.25", "\"weight\": -0.25", "'weight' is not 0 or more"},
        {"\"weight\": 0.25", "\"weight\": 0.3", "such that the weights add up to 1"},
        {"\"sigma\": 0}", "\"sigma\": -1}", "'sigma' is not 0 or more"},
        {"\"r2\": 0.5", "\"r2\": 1e400", "'r2' is missing or is not a number that a double can hold"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        expect_refusal(rich, cases[i].piece, cases[i].instead, cases[i].reason);
}
