/* The next rows of a model: what is read of it, groups, costs, weights, and what cannot be. */
#include "engine/plugin/next-rows.h"
#include "tests/test.h"

/* y = 1 + 2 x, observed from 1 to 9; the groups' members come after. */
#define HEAD                                                                                                 \
    "{\"assay_model\": 1, \"kind\": \"linear\", \"response\": {\"name\": \"y\", \"unit\": \"ms\"},\n"        \
    " \"formula\": [{\"name\": \"1\", \"unit\": \"ms\", \"factors\": []},\n"                                 \
    "  {\"name\": \"x\", \"unit\": \"ms\", \"factors\": [{\"factor\": \"x\", \"power\": 1}]}],\n"            \
    " \"factors\": [{\"name\": \"x\", \"unit\": \"1\"%s}], \"weights\": %s, \"by\": [\"node\", \"mode\"],\n" \
    " \"origin\": {\"inputs\": [{\"file\": \"a.csv\", \"run_id\": null}, {\"file\": \"b.zip\", \"run_id\": " \
    "\"r\", \"experiment\": \"e\"}]},\n"                                                                     \
    " \"groups\": [%s]}"
#define GROUP(node, mode, one, x, sigma, covariance)                                                         \
    "{\"labels\": {\"node\": \"" node "\", \"mode\": \"" mode                                                \
    "\"}, \"n\": 9, \"terms\": [{\"name\": \"1\", "                                                          \
    "\"estimate\": " one "}, {\"name\": \"x\", \"estimate\": " x "}], \"sigma\": " sigma                     \
    ", \"domain\": [{\"name\": \"x\", \"minimum\": 1, \"maximum\": 9}], \"covariance\": " covariance "}"
/* Of sigma^2 times the same, for 1 and 0.5. */
#define WIDE "[[4, -0.5], [-0.5, 0.1]]"
#define HALF "[[1, -0.125], [-0.125, 0.025]]"

struct fixture {
    struct model *model;
    struct model_fit *fit;
    struct design *design;
    struct next_request request;
    size_t groups[8];
};

static void begin(struct fixture *fixture, const char *type, const char *weights, const char *groups) {
    char json[8192];
    snprintf(json, sizeof json, HEAD, type, weights, groups);
    struct failure failure = {0};
    *fixture = (struct fixture){0};
    if (model_parse("m.json", json, strlen(json), &fixture->model, &failure) < 0 ||
        model_fit_read(fixture->model, &fixture->fit, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    for (size_t i = 0; i < fixture->fit->view->group_count; i++)
        fixture->groups[i] = i;
}

/* Candidates 1 to 9, in each of MODES where there are any. */
static void with_candidates(struct fixture *fixture, const char *const *modes, size_t mode_count) {
    struct failure failure = {0};
    struct design_column *column = NULL;
    size_t count = 9 * (mode_count ? mode_count : 1);
    assert_int_equal(design_new(count, &fixture->design, &failure), 0);
    assert_int_equal(design_add_column(fixture->design, "x", DESIGN_INTEGER, &column, &failure), 0);
    for (size_t i = 0; i < count; i++)
        column->integers[i] = (int64_t)(i % 9) + 1;
    if (mode_count)
        assert_int_equal(design_add_column(fixture->design, "mode", DESIGN_TEXT, &column, &failure), 0);
    for (size_t i = 0; mode_count && i < count; i++)
        column->codes[i] = text_set_add(&column->labels, modes[i / 9], strlen(modes[i / 9]));
    fixture->request = (struct next_request){
        .fit = fixture->fit,
        .groups = fixture->groups,
        .group_count = fixture->fit->view->group_count,
        .candidates = fixture->design,
        .criterion = OPTIMAL_I,
        .budget = INFINITY,
        .rows_most = 4,
    };
}

static void end(struct fixture *fixture) {
    design_free(fixture->design);
    model_fit_free(fixture->fit);
    model_free(fixture->model);
}

static struct next_rows find(const struct fixture *fixture) {
    struct next_rows next = {0};
    struct failure failure = {0};
    if (next_rows_find(&fixture->request, &next, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    return next;
}

static void refused(const struct fixture *fixture, const char *part) {
    struct next_rows next = {0};
    struct failure failure = {0};
    char sentence[2100];
    assert_true(next_rows_find(&fixture->request, &next, &failure) < 0);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    if (!strstr(failure_describe(&failure, sentence, sizeof sentence), part))
        fail_msg("found '%s', expected '%s'", sentence, part);
}

TEST(reading) {
    struct fixture fixture;
    begin(&fixture, "", "\"w\"",
          GROUP("a", "on", "1", "2", "0.5", WIDE) "," GROUP("b", "on", "2", "2", "null", "null"));
    const struct model_fit *fit = fixture.fit;
    assert_string_equal(fit->weights, "w");
    assert_int_equal(fit->by_count, 2);
    assert_string_equal(fit->groups[1].labels[0], "b");
    assert_string_equal(fit->groups[1].labels[1], "on");
    assert_true(fit->groups[0].sigma == 0.5 && isnan(fit->groups[1].sigma));
    assert_true(fit->groups[0].covariance[1] == -0.5 && fit->groups[0].covariance[3] == 0.1);
    assert_null(fit->groups[1].covariance);
    assert_int_equal(fit->factor_count, 1);
    assert_true(fit->factors[0].whole); /* by its ends */
    assert_int_equal(fit->input_count, 2);
    assert_null(fit->inputs[0].run_id);
    assert_string_equal(fit->inputs[1].experiment, "e");
    assert_true(model_seconds(fixture.model) == 1e-3);
    double low, high;
    assert_true(model_fit_domain(fit, fixture.groups, 2, "x", &low, &high) && low == 1 && high == 9);
    assert_false(model_fit_domain(fit, fixture.groups, 2, "z", &low, &high));
    end(&fixture);
    begin(&fixture, ", \"type\": \"number\"", "null", GROUP("a", "on", "1", "2", "0.5", WIDE));
    assert_false(fixture.fit->factors[0].whole);
    assert_null(fixture.fit->weights);
    end(&fixture);
}

/* The terms and what the model predicts are those of the plain formula. */
TEST(terms) {
    struct fixture fixture;
    begin(&fixture, "", "null", GROUP("a", "on", "1", "2", "0.5", WIDE));
    with_candidates(&fixture, NULL, 0);
    double *terms = NULL;
    struct failure failure = {0};
    assert_int_equal(model_fit_terms(fixture.fit, fixture.design, &terms, &failure), 0);
    for (size_t i = 0; i < 9; i++) {
        assert_true(terms[2 * i] == 1 && terms[2 * i + 1] == (double)i + 1);
        assert_true(model_fit_response(fixture.fit, 0, terms + 2 * i) == 1 + 2 * ((double)i + 1));
    }
    free(terms);
    free(fixture.design->columns[0].name);
    fixture.design->columns[0].name = strdup("z");
    assert_int_equal(model_fit_terms(fixture.fit, fixture.design, &terms, &failure), -22);
    assert_string_equal(failure.text, "no column 'x', which the model's terms use");
    end(&fixture);
}

/* The root of the mean of x'Cx over x = 1..9, for C = scale * WIDE. */
static double wide_error(double scale) {
    double sum = 0;
    for (double x = 1; x <= 9; x++)
        sum += scale * (4 - x + 0.1 * x * x);
    return sqrt(sum / 9);
}

TEST(groups) {
    struct fixture fixture;
    /* Two that are as sure but for sigma, one that nobody knows. */
    begin(&fixture, "", "null",
          GROUP("a", "on", "1", "2", "1", WIDE) "," GROUP("b", "on", "3", "2", "0.5", HALF) "," GROUP(
              "c", "on", "1", "2", "0", "[[0, 0], [0, 0]]"));
    with_candidates(&fixture, NULL, 0);
    struct next_rows next = find(&fixture);
    assert_int_equal(next.classes, 1);
    assert_int_equal(next.undefined, 1);
    assert_true(fabs(next.error_before - wide_error((1 + 0.25) / 2)) < 1e-12);
    assert_true(next.error_after < next.error_before);
    assert_true(fabs(next.response - 12) < 1e-12); /* the mean of 1 + 2 x and 3 + 2 x, in ms */
    assert_true(next.cost_is_time && !next.unit_assumed);
    double cost = 0;
    for (size_t i = 0; i < next.rows.count; i++) {
        double x = design_number(fixture.design, next.rows.items[i], 0);
        assert_true(fabs(next.costs[i] - (3 + 2 * x) * 1e-3) < 1e-15); /* the slower group */
        cost += next.costs[i];
    }
    assert_int_equal(next.rows.count, 4);
    assert_true(fabs(cost - next.cost) < 1e-15);
    next_rows_clear(&next);
    fixture.groups[0] = 1;
    fixture.request.group_count = 1;
    next = find(&fixture);
    assert_true(fabs(next.error_before - wide_error(0.25)) < 1e-12);
    next_rows_clear(&next);
    fixture.groups[0] = 2;
    refused(&fixture, "m.json: the model has no uncertainty to reduce");
    end(&fixture);
}

/* A column that makes groups: rows go where it is least sure, and cost what is measured there. */
TEST(kinds) {
    static const char *const modes[] = {"on", "off"}, *const odd[] = {"on", "of"};
    struct fixture fixture;
    begin(&fixture, "", "null",
          GROUP("a", "on", "1", "2", "0.5", HALF) "," GROUP("a", "off", "1", "20", "1", WIDE));
    with_candidates(&fixture, modes, 2);
    struct next_rows next = find(&fixture);
    assert_int_equal(next.classes, 2); /* they are as sure, and are measured apart */
    size_t off = 0;
    for (size_t i = 0; i < next.rows.count; i++) {
        bool is_off = next.rows.items[i] >= 9;
        double x = design_number(fixture.design, next.rows.items[i], 0);
        off += is_off;
        assert_true(fabs(next.costs[i] - (1 + (is_off ? 20 : 2) * x) * 1e-3) < 1e-15);
    }
    assert_true(off >= 3); /* four times the variance */
    next_rows_clear(&next);
    design_free(fixture.design);
    with_candidates(&fixture, odd, 2);
    assert_true(next_rows_has_group(fixture.fit, fixture.groups, 2, fixture.design, 8));
    assert_false(next_rows_has_group(fixture.fit, fixture.groups, 2, fixture.design, 9));
    refused(&fixture, "row 10 of the design: the model has no group with these values");
    end(&fixture);
    static const char *const number[] = {"0.5"}; /* the same label, written otherwise */
    begin(&fixture, "", "null", GROUP("a", "0.50", "1", "2", "0.5", HALF));
    with_candidates(&fixture, number, 1);
    assert_true(next_rows_has_group(fixture.fit, fixture.groups, 1, fixture.design, 0));
    next = find(&fixture);
    assert_int_equal(next.rows.count, 4);
    next_rows_clear(&next);
    end(&fixture);
}

TEST(budget) {
    struct fixture fixture;
    begin(&fixture, "", "null", GROUP("a", "on", "-3", "2", "0.5", HALF));
    with_candidates(&fixture, NULL, 0);
    fixture.request.rows_most = 1000;
    fixture.request.budget = 20e-3;
    struct next_rows next = find(&fixture);
    assert_true(next.cost <= 20e-3 && next.rows.cost <= 20e-3 * (1 + 1e-9) && next.rows.cost > 19e-3);
    /* The model predicts -1 ms at 1: that is not chosen, however cheap, and counts in the average. */
    assert_int_equal(next.barred, 1);
    for (size_t i = 0; i < next.rows.count; i++)
        assert_true(next.costs[i] > 0 && next.rows.items[i] > 0);
    assert_true(fabs(next.error_before - wide_error(0.25)) < 1e-12);
    assert_true(next.rows.count <= 40);
    next_rows_clear(&next);
    fixture.request.budget = 0.9e-3;
    refused(&fixture, "the budget of 900 us is too small for one row: the fastest of all takes 1 ms");
    fixture.request.budget = 3;
    fixture.request.cost = "x";
    next = find(&fixture);
    assert_true(!next.cost_is_time && next.cost <= 3 && next.cost > 0 && next.barred == 0);
    next_rows_clear(&next);
    fixture.request.cost = "y - 1";
    refused(&fixture, "row 1 of the design: --cost y - 1 is -2 here, where y is predicted to be -1");
    fixture.request.cost = "xx";
    refused(&fixture, "--cost");
    end(&fixture);
    begin(&fixture, "", "null", GROUP("a", "on", "-30", "2", "0.5", HALF));
    with_candidates(&fixture, NULL, 0);
    refused(&fixture, "the model predicts that each of 9 candidates takes 0 s or less");
    end(&fixture);
}

/* Only how weights of one's own compare counts; those of the fit count as they are, and must be given. */
TEST(weights) {
    struct fixture fixture;
    begin(&fixture, "", "null", GROUP("a", "on", "1", "2", "1", WIDE));
    with_candidates(&fixture, NULL, 0);
    fixture.request.weights = "1 / y^2";
    struct next_rows one = find(&fixture), other;
    fixture.request.weights = "1e9 / y^2";
    other = find(&fixture);
    assert_int_equal(one.rows.count, other.rows.count);
    for (size_t i = 0; i < one.rows.count; i++)
        assert_int_equal(one.rows.items[i], other.rows.items[i]);
    assert_true(fabs(one.error_after - other.error_after) < 1e-12 * one.error_after);
    next_rows_clear(&other);
    fixture.request.weights = NULL;
    other = find(&fixture);
    assert_true(other.error_after != one.error_after);
    next_rows_clear(&one);
    next_rows_clear(&other);
    end(&fixture);
    begin(&fixture, "", "\"w\"", GROUP("a", "on", "1", "2", "1", WIDE));
    with_candidates(&fixture, NULL, 0);
    refused(&fixture, "m.json: the model was fitted with the weights 'w'");
    fixture.request.weights = "1";
    one = find(&fixture);
    fixture.request.weights = "4"; /* a quarter of the variance */
    other = find(&fixture);
    assert_true(other.error_after < one.error_after);
    next_rows_clear(&one);
    next_rows_clear(&other);
    end(&fixture);
}

/* Noise that grows with x is the same as weights that say so. */
TEST(noise) {
    static const char noise[] =
        "\"noise\": {\"kind\": \"N-2\", \"distribution\": \"normal\", \"sigma\": "
        "[{\"name\": \"1\", \"estimate\": 0}, {\"name\": \"x\", \"estimate\": 0.5}]}, "
        "\"n\": 9";
    char group[2048];
    const char *plain = GROUP("a", "on", "1", "2", "1", WIDE), *at = strstr(plain, "\"n\": 9");
    snprintf(group, sizeof group, "%.*s%s%s", (int)(at - plain), plain, noise, at + strlen("\"n\": 9"));
    struct fixture fixture;
    begin(&fixture, "", "\"w\"", plain);
    with_candidates(&fixture, NULL, 0);
    fixture.request.weights = "4 / x^2";
    struct next_rows weighted = find(&fixture), noisy;
    end(&fixture);
    begin(&fixture, "", "null", group);
    with_candidates(&fixture, NULL, 0);
    noisy = find(&fixture);
    assert_int_equal(noisy.rows.count, weighted.rows.count);
    for (size_t i = 0; i < noisy.rows.count; i++)
        assert_int_equal(noisy.rows.items[i], weighted.rows.items[i]);
    assert_true(fabs(noisy.error_after - weighted.error_after) < 1e-12 * weighted.error_after);
    assert_true(noisy.error_after < noisy.error_before);
    next_rows_clear(&noisy);
    next_rows_clear(&weighted);
    end(&fixture);
}

/* More classes than are looked at: some stand for others, and the mean stays what it is. */
TEST(many_classes) {
    char groups[32768] = "";
    size_t length = 0;
    for (int i = 0; i < 70; i++)
        length += (size_t)snprintf(groups + length, sizeof groups - length,
                                   "%s" GROUP("%d", "on", "1", "2", "1", "[[%d, 0], [0, 0.1]]"), i ? "," : "",
                                   i, i + 1);
    char *json = malloc(40000);
    assert_non_null(json);
    snprintf(json, 40000, HEAD, "", "null", groups);
    struct failure failure = {0};
    struct fixture fixture = {0};
    assert_int_equal(model_parse("m.json", json, strlen(json), &fixture.model, &failure), 0);
    assert_int_equal(model_fit_read(fixture.model, &fixture.fit, &failure), 0);
    free(json);
    with_candidates(&fixture, NULL, 0);
    size_t all[70];
    for (size_t i = 0; i < 70; i++)
        all[i] = i;
    fixture.request.groups = all;
    struct next_rows next = find(&fixture);
    assert_int_equal(next.distinct, 70);
    assert_true(next.classes < 70 && next.classes > 30);
    double before = 0;
    for (int x = 1; x <= 9; x++)
        before += (35.5 + 0.1 * x * x) / 9; /* the mean over 1..70, exactly */
    assert_true(fabs(next.error_before - sqrt(before)) < 1e-12);
    next_rows_clear(&next);
    end(&fixture);
}

TEST(bad_models) {
    static const struct {
        const char *kind, *covariance, *part;
    } cases[] = {
        {"linaer", WIDE, "the model is of the kind 'linaer'"},
        {"segmented", WIDE, "of which no uncertainty is known; expected 'linear'"},
        {"linear", "[[1, 2]]", "'covariance' is missing or is not a "},
        {"linear", "[[1, 2], [1]]", "'covariance' is missing or is not a "},
        {"linear", "[[1, 2], [2, \"3\"]]", "'covariance' is missing or is not a number"},
        {"linear", "[[1, 5], [5, 1]]", "'covariance' is not symmetric"},
        {"linear", "[[1, 0.5], [0.4, 1]]", "'covariance' is not symmetric"},
        {"linear", "[[-1, 0], [0, 1]]", "'covariance' is not symmetric"},
        {"linear", "7", "'covariance' is missing or is not a "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char group[1024], json[4096];
        snprintf(group, sizeof group, GROUP("a", "on", "1", "2", "1", "%s"), cases[i].covariance);
        snprintf(json, sizeof json, HEAD, "", "null", group);
        char *at = strstr(json, "\"linear\"");
        char whole[4200];
        snprintf(whole, sizeof whole, "%.*s\"%s\"%s", (int)(at - json), json, cases[i].kind,
                 at + strlen("\"linear\""));
        struct model *model = NULL;
        struct model_fit *fit = NULL;
        struct failure failure = {0};
        int r = model_parse("m.json", whole, strlen(whole), &model, &failure);
        assert_int_equal(r < 0 ? r : model_fit_read(model, &fit, &failure), -22);
        if (!strstr(failure.text, cases[i].part))
            fail_msg("found '%s', expected '%s'", failure.text, cases[i].part);
        assert_non_null(strstr(failure.place, "m.json:"));
        model_free(model);
    }
    static const char parts[] =
        "{\"assay_model\": 1, \"kind\": \"segmented\", \"response\": {\"name\": \"y\"}, \"formula\": "
        "[{\"name\": "
        "\"1\", \"factors\": []}], \"groups\": [{\"labels\": {}, \"n\": 3, \"parts\": []}]}";
    struct model *model = NULL;
    struct failure failure = {0};
    assert_int_equal(model_parse("m.json", parts, strlen(parts), &model, &failure), -22);
    assert_string_equal(failure.text, "'parts' is missing or is not a sequence of at least one part");
}
