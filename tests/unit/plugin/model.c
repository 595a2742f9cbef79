#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/plugin/model.h"

#include <stdio.h>
#include <string.h>

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

static void read_good(void **state) {
    (void)state;
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

/* Each replaces a piece of the good file by one that must be refused. */
static void read_bad(void **state) {
    (void)state;
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
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char bad[2048];
        const char *at = strstr(good, cases[i].piece);
        assert_non_null(at);
        snprintf(bad, sizeof bad, "%.*s%s%s", (int)(at - good), good, cases[i].instead,
                 at + strlen(cases[i].piece));
        struct model *model = NULL;
        struct failure failure = {0};
        int r = model_parse("x.json", bad, strlen(bad), &model, &failure);
        if (r == 0 || !strstr(failure.text, cases[i].reason) || strncmp(failure.place, "x.json:", 7) != 0)
            fail_msg("case %zu: %d %s: '%s'; expected '%s'", i, r, failure.place, failure.text,
                     cases[i].reason);
        assert_int_equal(failure.kind, FAILURE_INPUT);
        assert_null(model);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(read_good), cmocka_unit_test(read_bad)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
