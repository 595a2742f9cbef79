#include "engine/plugin/evaluation.h"
#include "tests/test.h"

#define LENGTH(array) (sizeof(array) / sizeof *(array))

/* y = 2 + 3 m n - 4 / m + 5 log2(n)^2 + 7 [kind is b] */
static const struct plugin_factor product[] = {{"m", 1, NULL, NULL}, {"n", 1, NULL, NULL}},
                                  inverse[] = {{"m", -1, NULL, NULL}}, square[] = {{"n", 2, NULL, "log2"}},
                                  dummy[] = {{"kind", 1, "b", NULL}};
static const struct plugin_term terms[] = {{"1", NULL, 0},
                                           {"m*n", product, 2},
                                           {"m^-1", inverse, 1},
                                           {"log2(n)^2", square, 1},
                                           {"kind=b", dummy, 1}};
static const double estimates[] = {2, 3, -4, 5, 7};
static const struct plugin_range domain[] = {
    {"m", 1, 10}, {"n", 1, 100}, {"m*n", 1, 500}, {"elsewhere", 0, 1}};
static const char *const kinds_seen[] = {"a", "b"};
static const struct predict_levels levels[] = {{"kind", kinds_seen, 2}};
static const char *const columns[] = {"other", "n", "kind", "m"};

static struct evaluation *make(const struct predict_model *model, const char *const *names, size_t count) {
    struct evaluation *evaluation = NULL;
    struct failure failure = {0};
    if (evaluation_new(model, names, count, &evaluation, &failure) < 0)
        fail_msg("%s: %s", failure.place, failure.text);
    return evaluation;
}

static void expect_refusal(const struct predict_model *model, const char *const *names, size_t count,
                           const char *sentence) {
    struct evaluation *evaluation = NULL;
    struct failure failure = {0};
    assert_int_equal(evaluation_new(model, names, count, &evaluation, &failure), -EINVAL);
    if (!strstr(failure.text, sentence))
        fail_msg("'%s'; expected '%s'", failure.text, sentence);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_null(evaluation);
}

TEST(linear) {
    const struct plugin_noise noise = {
        .size = sizeof noise, .kind = "N-2", .constant = 1, .coefficients = (double[]){0, 0.5, 0, -3, 0}};
    double covariance[25] = {0};
    covariance[0] = 0.25;
    covariance[6] = 0.01;
    covariance[1] = covariance[5] = -0.02;
    const struct predict_part part = {.kind = "whole",
                                      .from = -INFINITY,
                                      .to = INFINITY,
                                      .estimates = estimates,
                                      .noise = &noise,
                                      .domain = domain,
                                      .domain_count = LENGTH(domain),
                                      .covariance = covariance};
    const struct predict_group groups[] = {{"x", 5, &part, 1}};
    const struct predict_model model = {.size = sizeof model,
                                        .name = "m.json",
                                        .kind = "linear",
                                        .response = "y",
                                        .terms = terms,
                                        .term_count = LENGTH(terms),
                                        .groups = groups,
                                        .group_count = 1,
                                        .levels = levels,
                                        .level_count = 1};
    struct evaluation *evaluation = make(&model, columns, LENGTH(columns));
    assert_true(evaluation_uses_text(evaluation, 2) && !evaluation_uses_number(evaluation, 2));
    assert_true(evaluation_uses_number(evaluation, 1) && !evaluation_uses_number(evaluation, 0));
    struct evaluation_value value;
    char sentence[EVALUATION_SENTENCE_SIZE];
    const char *a[] = {NULL, NULL, "a", NULL}, *b[] = {NULL, NULL, "b", NULL}, *c[] = {NULL, NULL, "c", NULL};

    assert_int_equal(evaluation_row(evaluation, 0, (double[]){NAN, 8, NAN, 4}, b, &value), 0);
    assert_true(value.mean == 2 + 3 * 32 - 1 + 5 * 9 + 7);
    assert_true(value.sigma == 0); /* 1 + 16 - 27 is below zero */
    assert_true(value.left == 1 && !value.left_by && !evaluation_outside(&value));
    assert_int_equal(evaluation_row(evaluation, 0, (double[]){NAN, 2, NAN, 4}, a, &value), 0);
    assert_true(value.mean == 2 + 24 - 1 + 5);
    assert_true(value.sigma == 1 + 4 - 3);
    double expected = sqrt(0.25 + 64 * 0.01 - 2 * 8 * 0.02);
    assert_true(fabs(evaluation_standard_error(evaluation, 0, (double[]){0, 2, 0, 4}, a) - expected) < 1e-15);

    /* The column's range, not that of the product; above, below, and where a factor has no sense. */
    evaluation_row(evaluation, 0, (double[]){0, 100, 0, 25}, a, &value);
    assert_string_equal(value.left_by, "m");
    assert_true(value.left == 2.5 && value.left_above && evaluation_outside(&value));
    assert_string_equal(evaluation_describe(&value, sentence),
                        "'m' is 2.5 times the greatest value that was measured");
    evaluation_row(evaluation, 0, (double[]){0, 0.25, 0, 1}, a, &value);
    assert_string_equal(value.left_by, "n");
    assert_true(value.left == 4 && !value.left_above);
    assert_string_equal(evaluation_describe(&value, sentence),
                        "'n' is 4 times below the least value that was measured");
    evaluation_row(evaluation, 0, (double[]){0, 100, 0, 10}, a, &value);
    assert_string_equal(value.left_by, "m*n");
    assert_true(value.left == 2);
    evaluation_row(evaluation, 0, (double[]){0, 10, 0, -1}, a, &value);
    assert_string_equal(value.left_by, "m");
    assert_true(isinf(value.left));

    /* A level that was never seen is not the one that others are compared with. */
    assert_int_equal(evaluation_row(evaluation, 0, (double[]){0, 2, 0, 4}, c, &value), 0);
    assert_true(isinf(value.left) && strcmp(value.left_by, "kind") == 0);

    /* No numbers, no mean. */
    assert_int_equal(evaluation_row(evaluation, 0, (double[]){0, NAN, 0, 4}, a, &value), -EDOM);
    assert_true(isnan(value.mean));
    assert_int_equal(evaluation_row(evaluation, 0, (double[]){0, -1, 0, 4}, a, &value), -EDOM);
    assert_int_equal(evaluation_row(evaluation, 0, (double[]){0, 2, 0, 0}, a, &value), -EDOM);
    assert_int_equal(evaluation_row(evaluation, 0, (double[]){0, 2, 0, 4}, NULL, &value), -EDOM);
    evaluation_free(evaluation);
    evaluation_free(NULL);

    expect_refusal(&model, (const char *const[]){"m", "n", "Kind"}, 3, "the column 'kind'");
    expect_refusal(&model, (const char *const[]){"m", "n", "Kind"}, 3, "did you mean 'Kind'?");
}

static const struct plugin_factor size_factor[] = {{"size", 1, NULL, NULL}};
static const struct plugin_term line[] = {{"1", NULL, 0}, {"size", size_factor, 1}};

TEST(piecewise) {
    const struct plugin_component components[] = {{0.25, 3, 1}, {0.75, -1, 2}};
    const struct plugin_noise mixture = {.size = sizeof mixture,
                                         .kind = "mixture",
                                         .components = components,
                                         .component_count = 2},
                              constant = {.size = sizeof constant, .kind = "N-1", .constant = 0.5};
    const struct plugin_range low = {"size", 2, 80}, middle = {"size", 120, 900}, high = {"size", 2000, 4000};
    const struct predict_part parts[] = {
        {.from = -INFINITY, .to = 100, .estimates = (double[]){1, 0}, .domain = &low, .domain_count = 1},
        {.from = 100,
         .to = 1000,
         .estimates = (double[]){10, 1},
         .noise = &mixture,
         .domain = &middle,
         .domain_count = 1},
        {.from = 1500,
         .to = INFINITY,
         .estimates = (double[]){100, 2},
         .noise = &constant,
         .domain = &high,
         .domain_count = 1}};
    const struct predict_group groups[] = {{"x", 5, parts, 1}, {"y", 5, parts, 3}};
    struct predict_model model = {.size = sizeof model,
                                  .name = "m.json",
                                  .kind = "piecewise",
                                  .terms = line,
                                  .term_count = 2,
                                  .groups = groups,
                                  .group_count = 2,
                                  .over = "size"};
    static const char *const names[] = {"size"};
    struct evaluation *evaluation = make(&model, names, 1);
    static const struct {
        double x, mean, sigma, left;
        bool above;
    } rows[] = {
        {2, 1, NAN, 1, false},
        {99.5, 1, NAN, 1, false}, /* between what two segments saw */
        {100, 110, 2.5, 1, false},
        {999, 1009, 2.5, 1, false},
        {1100, 1110, 2.5, 1.1, true}, /* in the gap, nearer to the left */
        {1300, 2700, 0.5, 1500. / 1300, false},
        {1500, 3100, 0.5, 1, false},
        {8000, 16100, 0.5, 2, true},
        {1, 1, NAN, 2, false},
        {0, 1, NAN, INFINITY, false},
    };
    for (size_t i = 0; i < LENGTH(rows); i++) {
        struct evaluation_value value;
        assert_int_equal(evaluation_row(evaluation, 1, &rows[i].x, NULL, &value), 0);
        if (value.mean != rows[i].mean ||
            !(isnan(rows[i].sigma) ? isnan(value.sigma) : fabs(value.sigma - rows[i].sigma) < 1e-12) ||
            value.left != rows[i].left || (value.left_by && value.left_above != rows[i].above))
            fail_msg("size %g: mean %g, sigma %g, left %g by %s", rows[i].x, value.mean, value.sigma,
                     value.left, value.left_by ? value.left_by : "nothing");
    }
    struct evaluation_value value;
    assert_int_equal(evaluation_row(evaluation, 1, (double[]){NAN}, NULL, &value), -EDOM);
    assert_int_equal(evaluation_row(evaluation, 0, (double[]){1e6}, NULL, &value), 0);
    assert_true(value.mean == 1 && value.left == 1e6 / 80);
    evaluation_free(evaluation);

    const struct predict_part overlapping[] = {parts[1], parts[0]};
    const struct predict_group bad = {"x", 5, overlapping, 2};
    model.groups = &bad;
    model.group_count = 1;
    expect_refusal(&model, names, 1, "segment 2 of the group 'x'");
    model.over = NULL;
    expect_refusal(&model, names, 1, "has 2 parts");
    model.over = "length";
    expect_refusal(&model, names, 1, "the column 'length'");
    model.kind = "population";
    expect_refusal(&model, names, 1, "of the kind 'population'");
}

/* Terms that a part leaves out are none of those that the greatest is taken of. */
TEST(maximum) {
    static const struct plugin_factor flop[] = {{"flop", 1, NULL, NULL}}, byte[] = {{"byte", 1, NULL, NULL}};
    static const struct plugin_term bounds[] = {{"flop", flop, 1}, {"byte", byte, 1}};
    static const char *const names[] = {"byte", "flop"};
    const struct predict_part parts[] = {
        {.estimates = (double[]){-2, -3}, .covariance = (double[]){0.25, 0, 0, 4}},
        {.estimates = (double[]){-2, 0}, .dropped = (bool[]){false, true}}};
    const struct predict_group groups[] = {{"x", 5, &parts[0], 1}, {"y", 5, &parts[1], 1}};
    const struct predict_model model = {.size = sizeof model,
                                        .name = "m.json",
                                        .kind = "maximum",
                                        .terms = bounds,
                                        .term_count = 2,
                                        .groups = groups,
                                        .group_count = 2};
    struct evaluation *evaluation = make(&model, names, 2);
    struct evaluation_value value;
    const double row[] = {1, 10};
    evaluation_row(evaluation, 0, row, NULL, &value);
    assert_true(value.mean == -3);
    assert_true(evaluation_standard_error(evaluation, 0, row, NULL) == 2);
    assert_true(evaluation_standard_error(evaluation, 0, (double[]){8, 10}, NULL) == 5);
    evaluation_row(evaluation, 1, row, NULL, &value);
    assert_true(value.mean == -20);
    assert_true(isnan(evaluation_standard_error(evaluation, 1, row, NULL)));
    evaluation_free(evaluation);
}

/* A rate of what is done one after the other, and of what is done at once. */
TEST(rates) {
    static const struct plugin_factor intensity[] = {{"flop", 1, NULL, NULL}, {"byte", -1, NULL, NULL}};
    static const struct plugin_term bounds[] = {{"1", NULL, 0}, {"flop*byte^-1", intensity, 2}};
    static const char *const names[] = {"byte", "flop"};
    const struct predict_part parts[] = {
        {.estimates = (double[]){12, 3}, .covariance = (double[]){0.25, 0, 0, 4}},
        {.estimates = (double[]){12, 0}, .dropped = (bool[]){false, true}}};
    const struct predict_group groups[] = {{"x", 5, &parts[0], 1}, {"y", 5, &parts[1], 1}};
    struct predict_model model = {.size = sizeof model,
                                  .name = "m.json",
                                  .kind = "minimum",
                                  .terms = bounds,
                                  .term_count = 2,
                                  .groups = groups,
                                  .group_count = 2};
    struct evaluation *evaluation = make(&model, names, 2);
    struct evaluation_value value;
    const double row[] = {4, 8}, steep[] = {1, 8}; /* 2 and 8 flop a byte */
    evaluation_row(evaluation, 0, row, NULL, &value);
    assert_true(value.mean == 6 && evaluation_standard_error(evaluation, 0, row, NULL) == 4);
    evaluation_row(evaluation, 0, steep, NULL, &value);
    assert_true(value.mean == 12 && evaluation_standard_error(evaluation, 0, steep, NULL) == 0.5);
    evaluation_row(evaluation, 1, row, NULL, &value);
    assert_true(value.mean == 12);
    evaluation_free(evaluation);
    model.kind = "harmonic";
    evaluation = make(&model, names, 2);
    evaluation_row(evaluation, 0, row, NULL, &value);
    assert_true(fabs(value.mean - 4) < 1e-15); /* 1 / (1/12 + 1/6) */
    /* d mean = (4/12)^2 db1 + (4/6)^2 2 db2 */
    assert_true(fabs(evaluation_standard_error(evaluation, 0, row, NULL) - hypot(0.5 / 9, 2 * 8.0 / 9)) <
                1e-14);
    evaluation_row(evaluation, 1, row, NULL, &value);
    assert_true(fabs(value.mean - 12) < 1e-14);
    evaluation_free(evaluation);
}

/* Within each range, outside of all rows together. */
TEST(hull) {
    static const char *const names[] = {"m", "n"};
    static const struct plugin_factor factors[] = {{"m", 1, NULL, NULL}, {"n", 1, NULL, NULL}};
    static const struct plugin_term both[] = {{"m", factors, 1}, {"n", factors + 1, 1}};
    const struct predict_hull seen = {.factors = names,
                                      .factor_count = 2,
                                      .scale = (double[]){0.5, 1},
                                      .directions = (double[]){1, 0, 0, 1, 1, 1, 1, -1},
                                      .direction_count = 4,
                                      .minimum = (double[]){0, 0, 0, -10},
                                      .maximum = (double[]){10, 10, 10, 10}};
    const struct plugin_range ranges[] = {{"m", 0, 20}, {"n", 0, 10}};
    const struct predict_part part = {
        .estimates = (double[]){1, 1}, .domain = ranges, .domain_count = LENGTH(ranges)};
    const struct predict_group group = {"x", 5, &part, 1};
    const struct predict_model model = {.size = sizeof model,
                                        .name = "m.json",
                                        .kind = "linear",
                                        .terms = both,
                                        .term_count = 2,
                                        .groups = &group,
                                        .group_count = 1,
                                        .hull = &seen};
    struct evaluation *evaluation = make(&model, names, 2);
    struct evaluation_value value;
    char sentence[EVALUATION_SENTENCE_SIZE];
    evaluation_row(evaluation, 0, (double[]){10, 5}, NULL, &value);
    assert_true(value.beyond_hull == 0 && !evaluation_outside(&value));
    evaluation_row(evaluation, 0, (double[]){18, 6}, NULL, &value);
    assert_true(value.beyond_hull == 0.5 && !value.left_by && evaluation_outside(&value));
    assert_non_null(strstr(evaluation_describe(&value, sentence), "together lie outside"));
    evaluation_row(evaluation, 0, (double[]){40, 6}, NULL, &value);
    assert_true(value.beyond_hull == 1.6 && value.left == 2);
    evaluation_free(evaluation);
}

/* Parts by the text of a column, each name with segments of its own. */
TEST(named_parts) {
    static const struct plugin_factor by_n[] = {{"n", 1, NULL, NULL}};
    static const struct plugin_term terms_of_n[] = {{"1", NULL, 0}, {"n", by_n, 1}};
    static const struct plugin_range low = {"n", 1, 9}, high = {"n", 12, 90};
    const double few[] = {1, 2}, many[] = {3, 4}, other[] = {5, 6}, cost[] = {7, 0};
    const bool constant[] = {false, true};
    const struct predict_part parts[] = {
        {.kind = "segment",
         .name = "Send",
         .from = 0,
         .to = 10,
         .estimates = few,
         .domain = &low,
         .domain_count = 1},
        {.kind = "segment",
         .name = "Send",
         .from = 10,
         .to = INFINITY,
         .estimates = many,
         .domain = &high,
         .domain_count = 1},
        {.kind = "segment",
         .name = "Recv",
         .from = 0,
         .to = INFINITY,
         .estimates = other,
         .domain = &low,
         .domain_count = 1},
        {.kind = "whole",
         .name = "Test",
         .from = -INFINITY,
         .to = INFINITY,
         .estimates = cost,
         .dropped = constant},
        {.kind = "protocol", .name = "protocol", .from = -INFINITY, .to = INFINITY, .estimates = cost},
    };
    struct predict_group group = {"all", 9, parts, LENGTH(parts)};
    struct predict_model model = {.size = sizeof model,
                                  .name = "m.json",
                                  .kind = "smpi",
                                  .response = "y",
                                  .terms = terms_of_n,
                                  .term_count = 2,
                                  .groups = &group,
                                  .group_count = 1,
                                  .over = "n",
                                  .named_by = "kind"};
    struct evaluation *evaluation = make(&model, columns, LENGTH(columns));
    const char **names = NULL;
    size_t count = 0;
    assert_int_equal(evaluation_columns(&model, &names, &count), 0);
    assert_int_equal(count, 2);
    assert_string_equal(names[1], "kind");
    free(names);
    assert_true(evaluation_uses_text(evaluation, 2));
    static const struct {
        const char *text;
        double n, mean, left;
    } rows[] = {{"Send", 5, 11, 1},         {"mpi_send", 10, 43, 1}, {"Send", 180, 723, 2},
                {"RECV", 10, 65, 10.0 / 9}, {"MPI_Recv", 9, 59, 1},  {"Test", 1e9, 7, 1},
                {"Send", 0.5, 2, 2}};
    struct evaluation_value value;
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const double values[] = {0, rows[i].n, 0, 0};
        const char *const texts[] = {NULL, NULL, rows[i].text, NULL};
        assert_int_equal(evaluation_row(evaluation, 0, values, texts, &value), 0);
        assert_true(value.mean == rows[i].mean && fabs(value.left - rows[i].left) < 1e-12);
        bool segment = strcmp(rows[i].text, "Test") != 0;
        assert_true(evaluation_is_of_row(evaluation, evaluation_part(evaluation, 0, values, texts)) ==
                    segment);
    }
    static const char *const strangers[] = {"Bcast", "protocol", "", NULL};
    for (size_t i = 0; i < LENGTH(strangers); i++) {
        const double values[] = {0, 5, 0, 0};
        const char *const texts[] = {NULL, NULL, strangers[i], NULL};
        assert_int_equal(evaluation_row(evaluation, 0, values, texts, &value), -EDOM);
        assert_true(isnan(value.mean) && !evaluation_part(evaluation, 0, values, texts));
        assert_true(isnan(evaluation_standard_error(evaluation, 0, values, texts)));
    }
    evaluation_free(evaluation);
    model.named_by = NULL;
    assert_false(evaluation_is_possible(&model));
    expect_refusal(&model, columns, LENGTH(columns), "does not tell which column names the operation");
    model.named_by = "operation";
    expect_refusal(&model, columns, LENGTH(columns), "the column 'operation', which is not there");
    model.named_by = "kind";
    const struct predict_part crossed[] = {parts[1], parts[0]};
    group.parts = crossed;
    group.part_count = 2;
    expect_refusal(&model, columns, LENGTH(columns), "expected segments in order");
}
