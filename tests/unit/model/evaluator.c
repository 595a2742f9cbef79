#include "engine/model/evaluator.h"
#include "engine/model/extrapolation.h"
#include "engine/model/noise.h"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* models of literals */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define LENGTH(array) (sizeof(array) / sizeof *(array))
#define ESTIMATES(...)                                                                                       \
    (struct model_estimate[]) {                                                                              \
        __VA_ARGS__                                                                                          \
    }

/* y = 2 + 3 m n - 4 / m + 5 log2(n)^2 + 7 [kind is b] */
static struct model_term terms[] = {
    {.name = "1"},
    {.name = "m*n",
     .factors = (struct model_factor[]){{.column = "m", .power = 1}, {.column = "n", .power = 1}},
     .factor_count = 2},
    {.name = "m^-1", .factors = (struct model_factor[]){{.column = "m", .power = -1}}, .factor_count = 1},
    {.name = "log2(n)^2",
     .factors = (struct model_factor[]){{.column = "n", .power = 2, .function = "log2"}},
     .factor_count = 1},
    {.name = "kind[b]",
     .factors = (struct model_factor[]){{.column = "kind", .power = 1, .level = "b"}},
     .factor_count = 1}};
static struct model_range domain[] = {{"m", 1, 10}, {"n", 1, 100}, {"m*n", 1, 500}, {"elsewhere", 0, 1}};
static struct model_column columns[] = {
    {.about.name = "kind", .about.type = COLUMN_STRING, .levels = (char *[]){"a", "b"}, .level_count = 2}};

static struct evaluator *make(const struct model *model) {
    struct evaluator *evaluator = NULL;
    assert_ok(evaluator_new(model, &evaluator, &test_failure));
    return evaluator;
}

static struct evaluator_value value;

/* The inputs of the model above: m, n, kind. */
static int predict(const struct evaluator *evaluator, double m, double n, const char *kind) {
    double inputs[] = {m, n, evaluator_code(evaluator, 2, kind)};
    return evaluator_predict(evaluator, evaluator->model->groups, inputs, &value);
}

TEST(linear) {
    double covariance[25] = {0};
    covariance[0] = 0.25;
    covariance[6] = 0.01;
    covariance[1] = covariance[5] = -0.02;
    struct model_part part = {"whole",
                              .from = -INFINITY,
                              .to = INFINITY,
                              .estimates = ESTIMATES({2}, {3}, {-4}, {5}, {7}),
                              .noise = {.kind = MODEL_NOISE_HETEROSCEDASTIC,
                                        .constant = 1,
                                        .coefficients = (double[]){0, 0.5, 0, -3, 0}},
                              .domain = domain,
                              .domain_count = LENGTH(domain),
                              .covariance = covariance};
    struct model_group group = {.name = "x", .rows = 5, .parts = &part, .part_count = 1};
    const struct model model = {.file = "m.json",
                                .kind = "linear",
                                .response = "y",
                                .terms = terms,
                                .term_count = LENGTH(terms),
                                .columns = columns,
                                .column_count = 1,
                                .groups = &group,
                                .group_count = 1};
    cleanup(evaluator_cleanup) struct evaluator *evaluator = make(&model);
    assert_int_equal(evaluator->input_count, 3);
    assert_string_equal(evaluator->inputs[1].name, "n");
    assert_true(evaluator->inputs[2].is_text && !evaluator->inputs[1].is_text);
    char sentence[EXTRAPOLATION_SENTENCE_SIZE];

    assert_int_equal(predict(evaluator, 4, 8, "b"), 0);
    assert_true(value.mean == 2 + 3 * 32 - 1 + 5 * 9 + 7);
    assert_true(isnan(value.sigma)); /* 1 + 16 - 27 is below 0, which no standard deviation is */
    assert_true(value.extrapolated_by == 1 && !value.extrapolation && !extrapolation_is_outside(&value));
    assert_int_equal(predict(evaluator, 4, 2, "a"), 0);
    assert_true(value.mean == 2 + 24 - 1 + 5);
    assert_true(value.sigma == 1 + 4 - 3);
    assert_true(fabs(value.standard_error - sqrt(0.25 + 64 * 0.01 - 2 * 8 * 0.02)) < 1e-15);

    /* The column's range, not that of the product; above, below, and where a factor has no sense. */
    predict(evaluator, 25, 100, "a");
    assert_string_equal(value.extrapolation, "m");
    assert_true(value.extrapolated_by == 2.5 && value.extrapolated_above && extrapolation_is_outside(&value));
    assert_string_equal(extrapolation_describe(&value, sentence),
                        "'m' is 2.5 times the greatest measured value");
    predict(evaluator, 1, 0.25, "a");
    assert_string_equal(value.extrapolation, "n");
    assert_true(value.extrapolated_by == 4 && !value.extrapolated_above);
    assert_string_equal(extrapolation_describe(&value, sentence),
                        "'n' is 4 times smaller than the least measured value");
    predict(evaluator, 10, 100, "a");
    assert_string_equal(value.extrapolation, "m*n");
    assert_true(value.extrapolated_by == 2);
    predict(evaluator, -1, 10, "a");
    assert_string_equal(value.extrapolation, "m");
    assert_true(isinf(value.extrapolated_by));
    assert_says(extrapolation_describe(&value, sentence), "'m' is outside its measured range");

    /* A level that was never seen is not the one that others are compared with. */
    assert_int_equal(predict(evaluator, 4, 2, "c"), 0);
    assert_true(isinf(value.extrapolated_by) && strcmp(value.extrapolation, "kind") == 0);

    /* No numbers, no mean. */
    static const double odd[][2] = {{4, NAN}, {4, -1}, {0, 2}};
    for (size_t i = 0; i < LENGTH(odd); i++) {
        assert_int_equal(predict(evaluator, odd[i][0], odd[i][1], "a"), -EDOM);
        assert_true(isnan(value.mean) && isnan(value.sigma));
    }
    assert_int_equal(predict(evaluator, 4, 2, NULL), -EDOM);
    assert_int_equal(predict(evaluator, 4, 2, ""), -EDOM);

    /* Rows, from columns. */
    const double m[] = {4, 4, 4}, n[] = {8, 2, 2},
                 codes[] = {evaluator_code(evaluator, 2, "b"), evaluator_code(evaluator, 2, "a")};
    const uint32_t kinds[] = {0, 1, 1}, groups[] = {0, 0, UINT32_MAX};
    const struct evaluator_column data[] = {
        {.numbers = m}, {.numbers = n}, {.codes = kinds, .values = codes}};
    double means[3], sigmas[3];
    evaluator_rows(evaluator, &group, groups, 3, data, means, sigmas);
    assert_true(means[0] == 149 && isnan(sigmas[0]) && means[1] == 30 && sigmas[1] == 2);
    assert_true(isnan(means[2]) && isnan(sigmas[2]));
    evaluator_rows(evaluator, &group, NULL, 3, data, means, NULL);
    assert_true(means[2] == 30);
    evaluator_free(NULL);
}

/* A column that is a number in one term and a category in another. */
TEST(both) {
    struct model_term both[] = {
        {.name = "m", .factors = (struct model_factor[]){{.column = "m", .power = 1}}, .factor_count = 1},
        {.name = "m[10]",
         .factors = (struct model_factor[]){{.column = "m", .power = 1, .level = "10"}},
         .factor_count = 1}};
    struct model_part part = {"whole", .estimates = ESTIMATES({2}, {100})};
    struct model_group group = {.parts = &part, .part_count = 1};
    const struct model model = {
        .kind = "linear", .terms = both, .term_count = 2, .groups = &group, .group_count = 1};
    cleanup(evaluator_cleanup) struct evaluator *evaluator = make(&model);
    double mean, sigma;
    assert_int_equal(evaluator->input_count, 2);
    assert_true(evaluator->inputs[1].is_text && strcmp(evaluator->inputs[1].name, "m") == 0);
    evaluator_row(evaluator, &group, (double[]){10, evaluator_code(evaluator, 1, "10")}, &mean, &sigma);
    assert_true(mean == 120 && isnan(sigma));
    evaluator_row(evaluator, &group, (double[]){9, evaluator_code(evaluator, 1, "9")}, &mean, &sigma);
    assert_true(mean == 18);
}

static struct model_term line[] = {
    {.name = "1"},
    {.name = "size", .factors = (struct model_factor[]){{.column = "size", .power = 1}}, .factor_count = 1}};

TEST(piecewise) {
    struct model_range low = {"size", 2, 80}, middle = {"size", 120, 900}, high = {"size", 2000, 4000};
    struct model_part parts[] = {
        {"segment", .from = -INFINITY, .to = 100, .estimates = ESTIMATES({1}, {0}), .domain = &low,
         .domain_count = 1},
        {"segment", .from = 100, .to = 1000, .estimates = ESTIMATES({10}, {1}),
         .noise = {.kind = MODEL_NOISE_MIXTURE,
                   .components = (struct model_component[]){{0.25, 3, 1}, {0.75, -1, 2}},
                   .component_count = 2},
         .domain = &middle, .domain_count = 1},
        {"segment", .from = 1500, .to = INFINITY, .estimates = ESTIMATES({100}, {2}),
         .noise = {.kind = MODEL_NOISE_HOMOSCEDASTIC, .constant = 0.5}, .domain = &high, .domain_count = 1}};
    struct model_group groups[] = {{.name = "x", .parts = parts, .part_count = 1},
                                   {.name = "y", .parts = parts, .part_count = 3}};
    struct model model = {.file = "m.json",
                          .kind = "piecewise",
                          .terms = line,
                          .term_count = 2,
                          .groups = groups,
                          .group_count = 2,
                          .over = "size"};
    struct evaluator *evaluator = make(&model);
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
        assert_int_equal(evaluator_predict(evaluator, &groups[1], &rows[i].x, &value), 0);
        if (value.mean != rows[i].mean ||
            !(isnan(rows[i].sigma) ? isnan(value.sigma) : fabs(value.sigma - rows[i].sigma) < 1e-12) ||
            value.extrapolated_by != rows[i].left ||
            (value.extrapolation && value.extrapolated_above != rows[i].above))
            fail_msg("size %g: mean %g, sigma %g, left %g by %s", rows[i].x, value.mean, value.sigma,
                     value.extrapolated_by, value.extrapolation ? value.extrapolation : "nothing");
    }
    assert_int_equal(evaluator_predict(evaluator, &groups[1], (double[]){NAN}, &value), -EDOM);
    assert_int_equal(evaluator_predict(evaluator, &groups[0], (double[]){1e6}, &value), 0);
    assert_true(value.mean == 1 && value.extrapolated_by == 1e6 / 80);
    evaluator_free(evaluator);

    model.kind = "population";
    assert_error(evaluator_new(&model, &evaluator, &test_failure), -EINVAL,
                 "the kind 'population', which gives no value for a row");
}

static double mean_at(const struct evaluator *evaluator, size_t group, const double *inputs) {
    assert_int_equal(evaluator_predict(evaluator, &evaluator->model->groups[group], inputs, &value), 0);
    return value.mean;
}

/* Terms that a part leaves out are none of those that the greatest is taken of. */
TEST(maximum) {
    struct model_term bounds[] = {{.name = "flop",
                                   .factors = (struct model_factor[]){{.column = "flop", .power = 1}},
                                   .factor_count = 1},
                                  {.name = "byte",
                                   .factors = (struct model_factor[]){{.column = "byte", .power = 1}},
                                   .factor_count = 1}};
    struct model_part parts[] = {
        {"whole", .estimates = ESTIMATES({-2}, {-3}), .covariance = (double[]){0.25, 0, 0, 4}},
        {"whole", .estimates = ESTIMATES({-2}, {.dropped = true})}};
    struct model_group groups[] = {{.name = "x", .parts = &parts[0], .part_count = 1},
                                   {.name = "y", .parts = &parts[1], .part_count = 1}};
    const struct model model = {
        .kind = "maximum", .terms = bounds, .term_count = 2, .groups = groups, .group_count = 2};
    cleanup(evaluator_cleanup) struct evaluator *evaluator = make(&model);
    const double row[] = {10, 1};
    assert_true(mean_at(evaluator, 0, row) == -3 && value.standard_error == 2);
    assert_true(evaluator_standard_error(evaluator, &groups[0], (double[]){10, 8}) == 5);
    assert_true(mean_at(evaluator, 1, row) == -20 && isnan(value.standard_error));
}

/* A rate of what is done one after the other, and of what is done at once. */
TEST(rates) {
    struct model_term bounds[] = {
        {.name = "1"},
        {.name = "flop*byte^-1",
         .factors = (struct model_factor[]){{.column = "flop", .power = 1}, {.column = "byte", .power = -1}},
         .factor_count = 2}};
    struct model_part parts[] = {
        {"whole", .estimates = ESTIMATES({12}, {3}), .covariance = (double[]){0.25, 0, 0, 4}},
        {"whole", .estimates = ESTIMATES({12}, {.dropped = true})}};
    struct model_group groups[] = {{.name = "x", .parts = &parts[0], .part_count = 1},
                                   {.name = "y", .parts = &parts[1], .part_count = 1}};
    struct model model = {
        .kind = "minimum", .terms = bounds, .term_count = 2, .groups = groups, .group_count = 2};
    struct evaluator *evaluator = make(&model);
    const double row[] = {8, 4}, steep[] = {8, 1}; /* 2 and 8 flop a byte */
    assert_true(mean_at(evaluator, 0, row) == 6 && value.standard_error == 4);
    assert_true(mean_at(evaluator, 0, steep) == 12 && value.standard_error == 0.5);
    assert_true(mean_at(evaluator, 1, row) == 12);
    evaluator_free(evaluator);
    model.kind = "harmonic";
    evaluator = make(&model);
    assert_true(fabs(mean_at(evaluator, 0, row) - 4) < 1e-15); /* 1 / (1/12 + 1/6) */
    /* d mean = (4/12)^2 db1 + (4/6)^2 2 db2 */
    assert_true(fabs(value.standard_error - hypot(0.5 / 9, 2 * 8.0 / 9)) < 1e-14);
    assert_true(fabs(mean_at(evaluator, 1, row) - 12) < 1e-14);
    evaluator_free(evaluator);
}

/* Within each range, outside of all rows together. */
TEST(hull) {
    struct model_factor factors[] = {{.column = "m", .power = 1}, {.column = "n", .power = 1}};
    struct model_term both[] = {{.name = "m", .factors = factors, .factor_count = 1},
                                {.name = "n", .factors = factors + 1, .factor_count = 1}};
    struct model_hull seen = {.columns = (char *[]){"m", "n"},
                              .column_count = 2,
                              .scale = (double[]){0.5, 1},
                              .directions = (double[]){1, 0, 0, 1, 1, 1, 1, -1},
                              .direction_count = 4,
                              .minimum = (double[]){0, 0, 0, -10},
                              .maximum = (double[]){10, 10, 10, 10}};
    struct model_range ranges[] = {{"m", 0, 20}, {"n", 0, 10}};
    struct model_part part = {
        .kind = "whole", .estimates = ESTIMATES({1}, {1}), .domain = ranges, .domain_count = 2};
    struct model_group group = {.name = "x", .parts = &part, .part_count = 1};
    const struct model model = {
        .kind = "linear", .terms = both, .term_count = 2, .groups = &group, .group_count = 1, .hull = &seen};
    struct evaluator *evaluator = make(&model);
    char sentence[EXTRAPOLATION_SENTENCE_SIZE];
    mean_at(evaluator, 0, (double[]){10, 5});
    assert_true(value.outside_hull == 0 && !extrapolation_is_outside(&value));
    mean_at(evaluator, 0, (double[]){18, 6});
    assert_true(value.outside_hull == 0.5 && !value.extrapolation && extrapolation_is_outside(&value));
    assert_says(extrapolation_describe(&value, sentence), "measured range, but the combination lies outside");
    struct extrapolation_tally tally = {.is_time = true};
    extrapolation_count(&tally, &value);
    assert_says(extrapolation_summarise(&tally, sentence),
                "the row is outside the domain of the model: each value is within its measured range");
    mean_at(evaluator, 0, (double[]){40, 6});
    assert_true(value.outside_hull == 1.6 && value.extrapolated_by == 2);
    extrapolation_count(&tally, &value);
    mean_at(evaluator, 0, (double[]){-1, 0});
    extrapolation_count(&tally, &value);
    mean_at(evaluator, 0, (double[]){1, 1});
    extrapolation_count(&tally, &value);
    assert_string_equal(
        extrapolation_summarise(&tally, sentence),
        "3 of 4 rows are outside the domain of the model; in the farthest row, 'm' is outside its "
        "measured range; a time of 0 or less is predicted for 1 of 4 rows");
    tally = (struct extrapolation_tally){0};
    extrapolation_count(&tally, &value);
    assert_null(extrapolation_summarise(&tally, sentence));
    evaluator_free(evaluator);
    seen.columns[1] = "k"; /* nothing of the model's */
    evaluator = make(&model);
    mean_at(evaluator, 0, (double[]){18, 6});
    assert_true(value.outside_hull == 0);
    evaluator_free(evaluator);
}

/* Parts by the text of a column, each name with segments of its own. */
TEST(named_parts) {
    struct model_term terms_of_n[] = {
        {.name = "1"},
        {.name = "n", .factors = (struct model_factor[]){{.column = "n", .power = 1}}, .factor_count = 1}};
    struct model_range low = {"n", 1, 9}, high = {"n", 12, 90};
    struct model_part parts[] = {
        {"segment", .name = "Send", .from = 0, .to = 10, .estimates = ESTIMATES({1}, {2}), .domain = &low,
         .domain_count = 1},
        {"segment", .name = "Send", .from = 10, .to = INFINITY, .estimates = ESTIMATES({3}, {4}),
         .domain = &high, .domain_count = 1},
        {"segment", .name = "Recv", .from = 0, .to = INFINITY, .estimates = ESTIMATES({5}, {6}),
         .domain = &low, .domain_count = 1},
        {"whole", .name = "Test", .from = -INFINITY, .to = INFINITY,
         .estimates = ESTIMATES({7}, {.dropped = true})},
        {"protocol", .name = "protocol", .from = -INFINITY, .to = INFINITY, .estimates = ESTIMATES({7}, {0})},
    };
    struct model_group group = {.name = "all", .parts = parts, .part_count = LENGTH(parts)};
    const struct model model = {.file = "m.json",
                                .kind = "smpi",
                                .response = "y",
                                .terms = terms_of_n,
                                .term_count = 2,
                                .groups = &group,
                                .group_count = 1,
                                .over = "n",
                                .named_by = "kind"};
    cleanup(evaluator_cleanup) struct evaluator *evaluator = make(&model);
    assert_int_equal(evaluator->input_count, 2);
    assert_true(evaluator->over == 0 && evaluator->named_by == 1 && evaluator->inputs[1].is_text);
    static const struct {
        const char *text;
        double n, mean, left;
    } rows[] = {{"Send", 5, 11, 1},         {"mpi_send", 10, 43, 1}, {"Send", 180, 723, 2},
                {"RECV", 10, 65, 10.0 / 9}, {"MPI_Recv", 9, 59, 1},  {"Test", 1e9, 7, 1},
                {"Send", 0.5, 2, 2}};
    for (size_t i = 0; i < LENGTH(rows); i++) {
        const double inputs[] = {rows[i].n, evaluator_code(evaluator, 1, rows[i].text)};
        assert_int_equal(evaluator_predict(evaluator, &group, inputs, &value), 0);
        assert_true(value.mean == rows[i].mean && fabs(value.extrapolated_by - rows[i].left) < 1e-12);
        bool segment = strcmp(rows[i].text, "Test") != 0;
        assert_true(evaluator_is_measured(evaluator, evaluator_part(evaluator, &group, inputs)) == segment);
    }
    static const char *const others[] = {"Bcast", "protocol", "", NULL};
    for (size_t i = 0; i < LENGTH(others); i++) {
        const double inputs[] = {5, evaluator_code(evaluator, 1, others[i])};
        assert_int_equal(evaluator_predict(evaluator, &group, inputs, &value), -EDOM);
        assert_true(isnan(value.mean) && !evaluator_part(evaluator, &group, inputs));
        assert_true(isnan(evaluator_standard_error(evaluator, &group, inputs)));
    }
}

/* ---- Noise */

static struct model_component components[] = {{0.25, -3, 0.5}, {0.75, 1, 2}};
static const struct model_noise noises[] = {
    {.kind = MODEL_NOISE_HOMOSCEDASTIC, .constant = 2},
    {.kind = MODEL_NOISE_HOMOSCEDASTIC, .half_normal = true, .constant = 2},
    {.kind = MODEL_NOISE_MIXTURE, .components = components, .component_count = 2}};
static const struct model_noise none;

/* What is between two places is the density summed up between them; mean and deviation are as they say. */
TEST(noise_integrates) {
    for (size_t k = 0; k < LENGTH(noises); k++) {
        double sum = 0, mean = 0, squares = 0, step = 1e-3;
        for (double at = -10 + step / 2; at < 20; at += step) {
            double density = noise_density(&noises[k], 2, at), one = isinf(density) ? 0 : step * exp(density);
            sum += one;
            mean += one * at;
            squares += one * at * at;
            double share = noise_share(&noises[k], 2, at + step / 2);
            if (fabs(sum - share) > 5e-4)
                fail_msg("noise %zu at %g: %.9g, expected %.9g", k, at, share, sum);
        }
        assert_true(fabs(mean) < 2e-3);
        assert_true(fabs(sqrt(squares) - noise_sigma(&noises[k], NULL, 0)) < 2e-3);
        assert_true(noise_share(&noises[k], 2, 1e3) == 1 && noise_share(&noises[k], 2, -1e3) == 0);
    }
}

TEST(noise_known) {
    const double z = 1.959963984540054;
    assert_true(fabs(noise_share(&noises[0], 2, -z * 2) - 0.025) < 1e-15);
    assert_true(fabs(noise_share(&noises[0], 2, z * 2) - 0.975) < 1e-15);
    assert_true(noise_share(&noises[0], 0, -0.1) == 0 && noise_share(&noises[0], 0, 0) == 1);
    assert_true(isnan(noise_share(&none, 2, 5)) && isnan(noise_share(&noises[0], NAN, 5)));
    assert_true(isnan(noise_share(&noises[1], 2, NAN)));
    assert_true(isnan(noise_density(&none, 2, 0)) && isnan(noise_density(&noises[0], NAN, 0)));
    assert_true(noise_density(&noises[0], 0, 1) == -INFINITY);
    assert_true(noise_density(&noises[1], 2, -3) == -INFINITY); /* its edge is at -2.65 */
    assert_true(isnan(noise_sigma(&none, NULL, 0)));
    assert_true(noise_draw(&noises[0], 2, -1.5, 0.9) == -3);
    double edge = -2 / sqrt(M_PI / 2 - 1);
    assert_true(fabs(noise_draw(&noises[1], 2, 0, 0) - edge) < 1e-12);
    assert_true(noise_draw(&noises[1], 2, -1, 0) == noise_draw(&noises[1], 2, 1, 0));
    assert_true(noise_draw(&noises[2], 2, 1, 0.2) == -2.5 && noise_draw(&noises[2], 2, 1, 0.26) == 3);
    assert_true(isnan(noise_draw(&none, 2, 1, 0)));
}
