/* The next rows of a model: groups, costs, weights, noise, the domain, and what cannot be. */
#include "engine/next/next.h"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* models of literals */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { GROUPS_MAX = 72 };

/* y = one + slope x in ms, observed from 1 to 9, in groups by node and mode. */
static struct model_term terms[] = {
    {.name = "1"},
    {.name = "x", .factors = (struct model_factor[]){{.column = "x", .power = 1}}, .factor_count = 1}};
static struct model_column column = {.about.name = "x", .about.unit = "1", .about.type = COLUMN_INTEGER};
static struct model_range domain = {"x", 1, 9};
static struct model_estimate estimates[GROUPS_MAX][2];
static struct model_value sigmas[GROUPS_MAX];
static struct model_part parts[GROUPS_MAX];
static struct model_group groups[GROUPS_MAX];
static char *labels[GROUPS_MAX][2];
static struct model model;
static struct next_request request;

/* Of sigma^2 times the same, for 1 and 0.5. */
static double wide[] = {4, -0.5, -0.5, 0.1}, half[] = {1, -0.125, -0.125, 0.025}, zero[4];

static int begin(void **state) {
    static char *by[] = {"node", "mode"};
    model = (struct model){.file = "m.json",
                           .kind = "linear",
                           .response = "y",
                           .response_unit = "ms",
                           .response_seconds = 1e-3,
                           .terms = terms,
                           .term_count = 2,
                           .columns = &column,
                           .column_count = 1,
                           .by = by,
                           .by_count = 2,
                           .groups = groups};
    column.about.type = COLUMN_INTEGER;
    request = (struct next_request){.model = &model,
                                    .candidates = test_put("rows.csv", "x\n1\n2\n3\n4\n5\n6\n7\n8\n9\n"),
                                    .criterion = OPTIMAL_I,
                                    .budget = INFINITY,
                                    .rows_most = 4};
    return 0;
}
TEST_EACH(begin, NULL)

static void add_group(char *node, char *mode, double one, double slope, double sigma, double *covariance) {
    size_t g = model.group_count++;
    estimates[g][0] = (struct model_estimate){.estimate = one};
    estimates[g][1] = (struct model_estimate){.estimate = slope};
    sigmas[g] = (struct model_value){"sigma", sigma};
    parts[g] = (struct model_part){.kind = "whole",
                                   .estimates = estimates[g],
                                   .covariance = covariance,
                                   .values = &sigmas[g],
                                   .value_count = 1,
                                   .domain = &domain,
                                   .domain_count = 1};
    labels[g][0] = node, labels[g][1] = mode;
    groups[g] = (struct model_group){.name = node, .labels = labels[g], .parts = &parts[g], .part_count = 1};
}

static struct next_rows find(void) {
    struct next_rows next = {0};
    assert_ok(next_find(&request, &next, &test_failure));
    return next;
}

static void refused(const char *part) {
    cleanup(next_clear) struct next_rows next = {0};
    char sentence[2100];
    assert_true(next_find(&request, &next, &test_failure) < 0);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    assert_says(failure_describe(&test_failure, sentence, sizeof sentence), part);
}

/* The root of the mean of x'Cx over x = 1..9, for C = scale * wide. */
static double wide_error(double scale) {
    double sum = 0;
    for (double x = 1; x <= 9; x++)
        sum += scale * (4 - x + 0.1 * x * x);
    return sqrt(sum / 9);
}

TEST(groups_by_themselves) {
    add_group("a", "on", 1, 2, 1, wide);
    add_group("b", "on", 3, 2, 0.5, half);
    add_group("c", "on", 1, 2, 0, zero);
    add_group("d", "on", 1, 2, NAN, NULL);
    struct next_rows next = find();
    assert_int_equal(next.group_count, 2);
    assert_int_equal(next.note_count, 1);
    assert_string_equal(next.notes[0], "2 of 4 groups have no standard errors, and are left out");
    assert_close(next.error_before, wide_error((1 + 0.25) / 2), 1e-12, "before");
    assert_true(next.error_after < next.error_before && next.cost_is_time);
    assert_close(next.response, 12, 1e-12, "response"); /* the mean of 1 + 2 x and 3 + 2 x, in ms */
    double cost = 0;
    assert_int_equal(next.rows.count, 4);
    for (size_t i = 0; i < 4; i++) {
        double x = design_number(next.candidates, next.rows.items[i], 0);
        assert_close(next_cost(&next, i), (3 + 2 * x) * 1e-3, 1e-14, "cost"); /* the slower group */
        cost += next_cost(&next, i);
    }
    assert_close(next.cost, cost, 1e-14, "all costs");
    next_clear(&next);
    request.group = "b";
    next = find();
    assert_close(next.error_before, wide_error(0.25), 1e-12, "one group");
    next_clear(&next);
    request.group = "c";
    refused("m.json: the model has no uncertainty that more measurements could reduce");
    request.group = "d";
    refused("m.json: the model has no covariance of its coefficients");
    request.group = "e";
    refused("e");
}

/* A column that makes groups: rows go where it is least sure, and cost what is measured there. The same
 * number is the same label, however it was written. */
TEST(classes) {
    add_group("a", "0.50", 1, 2, 0.5, half);
    add_group("a", "1", 1, 20, 1, wide);
    char table[256] = "x,mode\n";
    for (int i = 0; i < 18; i++)
        snprintf(table + strlen(table), sizeof table - strlen(table), "%d,%s\n", i % 9 + 1,
                 i < 9 ? "0.5" : "1");
    test_put("rows.csv", table);
    struct next_rows next = find();
    size_t second = 0;
    for (size_t i = 0; i < next.rows.count; i++) {
        bool is_second = next.rows.items[i] >= 9;
        double x = design_number(next.candidates, next.rows.items[i], 0);
        second += is_second;
        assert_close(next_cost(&next, i), (1 + (is_second ? 20 : 2) * x) * 1e-3, 1e-14, "cost");
    }
    assert_true(second >= 3); /* four times the variance */
    next_clear(&next);
    test_put("rows.csv", "x,mode\n1,0.5\n1,2\n");
    refused(":3: the model has no group with this row's values of the columns that form groups");
}

TEST(budget) {
    add_group("a", "on", -3, 2, 0.5, half);
    request.rows_most = 1000;
    request.budget = 20e-3;
    struct next_rows next = find();
    assert_true(next.cost <= 20e-3 * (1 + 1e-9) && next.rows.cost <= 20e-3 * (1 + 1e-9) &&
                next.rows.cost > 19e-3);
    /* The model predicts -1 ms at 1: that is not chosen, however cheap, and counts in the average. */
    assert_true(next.barred[0] && next.shares[0] == 1);
    assert_says(next.notes[0], "1 of 9 candidates are left out");
    for (size_t i = 0; i < next.rows.count; i++)
        assert_true(next_cost(&next, i) > 0 && next.rows.items[i] > 0);
    assert_close(next.error_before, wide_error(0.25), 1e-12, "before");
    next_clear(&next);
    request.budget = 0.9e-3;
    refused("the budget of 900 us is too small for a single row: the fastest row takes 1 ms");
    request.budget = 3;
    request.cost = "x";
    next = find();
    assert_true(!next.cost_is_time && next.cost <= 3 && next.cost > 0 && !next.barred[0]);
    next_clear(&next);
    request.cost = "y - 1";
    refused("2: --cost y - 1 is -2 for this row, where y is predicted to be -1");
    request.cost = "xx";
    refused("--cost");
    request.cost = NULL;
    estimates[0][0].estimate = -30;
    refused("the model predicts a time of 0 s or less for each of the 9 candidates; give the cost of");
    model.response_seconds = NAN;
    model.response_unit = "By/s";
    refused("the model predicts 'y' in By/s, which is no time");
}

/* Only how weights of one's own compare counts; those of the fit count as they are, and must be given. */
TEST(weights) {
    add_group("a", "on", 1, 2, 1, wide);
    request.weights = "1 / y^2";
    struct next_rows one = find(), other;
    request.weights = "1e9 / y^2";
    other = find();
    assert_int_equal(one.rows.count, other.rows.count);
    assert_memory_equal(one.rows.items, other.rows.items, one.rows.count * sizeof *one.rows.items);
    assert_close(one.error_after, other.error_after, 1e-12, "after");
    next_clear(&other);
    request.weights = NULL;
    other = find();
    assert_true(other.error_after != one.error_after);
    next_clear(&one), next_clear(&other);
    model.weights = "w";
    refused("m.json: the model was fitted with the weights 'w'");
    request.weights = "1";
    one = find();
    request.weights = "4"; /* a quarter of the variance */
    other = find();
    assert_true(other.error_after < one.error_after);
    next_clear(&one), next_clear(&other);
    /* Noise that grows with x is the same as weights that say so. */
    request.weights = "4 / x^2";
    one = find();
    model.weights = NULL;
    request.weights = NULL;
    parts[0].noise =
        (struct model_noise){.kind = MODEL_NOISE_HETEROSCEDASTIC, .coefficients = (double[]){0, 0.5}};
    other = find();
    assert_memory_equal(one.rows.items, other.rows.items, one.rows.count * sizeof *one.rows.items);
    assert_close(one.error_after, other.error_after, 1e-12, "after");
    next_clear(&one), next_clear(&other);
}

/* Many groups that are unsure in different ways: each counts by itself. */
TEST(many_groups) {
    static double covariances[70][4];
    double before = 0;
    for (int g = 0; g < 70; g++) {
        covariances[g][0] = g + 1, covariances[g][3] = 0.1;
        add_group("a", "on", 1, 2, 1, covariances[g]);
    }
    cleanup(next_clear) struct next_rows next = find();
    for (int x = 1; x <= 9; x++)
        before += (35.5 + 0.1 * x * x) / 9; /* the mean over 1..70, exactly */
    assert_close(next.error_before, sqrt(before), 1e-12, "before");
    assert_true(next.error_after < next.error_before);
}

/* The grid is that of the domain, as --within and the experiment's bounds and conditions have it. */
TEST(domain_of_experiments) {
    static const char *within[] = {"x=2..20"}, *settings[] = {"nb=64"};
    static struct design_factor items[] = {
        {.about = {.name = "nb", .type = COLUMN_INTEGER}, .minimum = 1, .maximum = 1000},
        {.about = {.name = "x", .type = COLUMN_INTEGER}, .minimum = 1, .maximum = 12}};
    static const struct design_factors factors = {.items = items, .count = 2};
    add_group("a", "on", 1, 2, 1, wide);
    request.candidates = NULL;
    struct next_rows next = find();
    assert_true(next.candidate_count == 9 && next.candidates->column_count == 1);
    assert_true(next.shares[0] < next.shares[1]); /* half of a cell of the grid */
    next_clear(&next);
    request.within = within, request.within_count = 1;
    request.settings = settings, request.setting_count = 1;
    request.factors = &factors;
    cleanup(expression_cleanup) struct expression *condition = NULL;
    const char *names[] = {"nb", "x"};
    assert_int_equal(expression_parse("x != 5", names, 2, "require", 0, 0, &condition, NULL), 0);
    request.conditions = &condition, request.condition_count = 1;
    next = find();
    assert_int_equal(next.candidate_count, 10); /* 2 to 12 without 5 */
    assert_string_equal(next.candidates->columns[0].about.name, "nb");
    assert_says(next.notes[0], "'x' from 2 to 20 leaves the domain of the model, 1 to 9");
    next_clear(&next);
    within[0] = "x=5..5";
    refused("the domain is empty: none of the 1 candidates satisfies the experiment's conditions");
    within[0] = "x=13..14";
    refused("the domain is empty: no whole number of 'x' lies within all of the model's groups");
    within[0] = "xx=1..2";
    refused("--within: 'xx' is no factor of the model; did you mean 'x'?");
    request.within_count = request.setting_count = 0;
    refused("nb");
}

TEST(bad_models) {
    add_group("a", "on", 1, 2, 1, (double[]){1, 5, 5, 1});
    refused("the covariance of group 1 is not positive semidefinite");
    model.kind = "piecewise";
    refused("the model has the kind 'piecewise'; expected a model of the kind 'linear'");
    model.kind = "linear";
    parts[0].covariance = wide;
    test_put("rows.csv", "z\n1\n");
    refused("no column 'x', which the terms of the model use");
    test_put("rows.csv", "x\na\n");
    refused("the column 'x' has texts");
    request.candidates = NULL;
    parts[0].domain_count = 0;
    refused("the model does not state the range of 'x' in 'domain'; fit the model again");
    struct model_factor *factor = terms[1].factors;
    factor->level = "b";
    refused("the terms of the model use the category 'x'");
    factor->level = NULL;
}
