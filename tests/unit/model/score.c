#include "engine/model/score.h"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* models of literals */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

/* y = 2 + 3 x, sigma 0.5 in the group a; no noise in b. */
static struct model_term terms[] = {
    {.name = "1"},
    {.name = "x", .factors = (struct model_factor[]){{.column = "x", .power = 1}}, .factor_count = 1}};
static struct model_range domain[] = {{"x", 1, 4}};
static struct model_part parts[] = {
    {"whole", .estimates = (struct model_estimate[]){{2}, {3}},
     .noise = {.kind = MODEL_NOISE_HOMOSCEDASTIC, .constant = 0.5}, .domain = domain, .domain_count = 1},
    {"whole", .estimates = (struct model_estimate[]){{-20}, {3}}, .domain = domain, .domain_count = 1}};
static struct model_group groups[] = {{.name = "a", .parts = &parts[0], .part_count = 1},
                                      {.name = "b", .parts = &parts[1], .part_count = 1}};
static const struct model model = {
    .kind = "linear", .terms = terms, .term_count = 2, .groups = groups, .group_count = 2};

enum { ROWS = 8 };
static const double x[ROWS] = {1, 1, 2, 2, 4, 8, 1, 2};
static const double y[ROWS] = {5.5, 4.5, 9, 8, 14.25, NAN, 5, 8};
static const uint32_t settings[ROWS] = {7, 7, 2, 2, 3, 4, 7, 2}, of[ROWS] = {0, 0, 0, 0, 0, 0, UINT32_MAX, 1};

static void predict(const struct score_rows *rows, struct score_row *ret) {
    struct evaluator *evaluator;
    assert_int_equal(evaluator_new(&model, &evaluator, NULL), 0);
    score_predict(evaluator, groups, rows, NULL, ROWS, ret);
    evaluator_free(evaluator);
}

TEST(sums) {
    const struct evaluator_column columns[] = {{.numbers = x}};
    struct score_rows rows = {ROWS, y, NULL, settings, of, columns};
    struct score_row predicted[ROWS];
    predict(&rows, predicted);
    assert_true(predicted[4].mean == 14 && predicted[4].sigma == 0.5 && !predicted[4].extrapolated);
    assert_close(predicted[4].log_density, -0.5 * 0.25 - log(0.5) - 0.5 * log(2 * M_PI), 1e-15, "density");
    assert_true(isnan(predicted[5].mean) && !predicted[5].without_group && predicted[6].without_group);
    assert_true(predicted[7].mean == -14 && isnan(predicted[7].log_density));

    static const uint32_t first[] = {0, 1, 2, 3, 4, 5, 6};
    struct score score = score_sum(&rows, predicted, first, 7);
    assert_int_equal(score.rows, 5);
    assert_int_equal(score.settings, 3);
    assert_int_equal(score.rows_without_group, 1);
    assert_int_equal(score.rows_missing, 1);
    assert_int_equal(score.extrapolated, 0);
    assert_int_equal(score.nonpositive, 0);
    /* Errors 0.5, -0.5, 1, 0, 0.25: squares by setting 0.5, 1, 0.0625 of 2, 2 and 1 rows. */
    double square = 1.5625 / 5, off[] = {0.5 - 2 * square, 1 - 2 * square, 0.0625 - square}, sum = 0;
    for (size_t s = 0; s < 3; s++)
        sum += off[s] * off[s];
    assert_close(score.rmse, sqrt(square), 1e-15, "rmse");
    assert_close(score.rmse_error, sqrt(sum * 3 / 2) / 5 / (2 * sqrt(square)), 1e-14, "rmse error");
    double measured = (5.5 + 4.5 + 9 + 8 + 14.25) / 5;
    assert_close(score.relative, sqrt(square) / measured, 1e-15, "relative");
    assert_close(score.relative_error, score.rmse_error / measured, 1e-15, "relative error");
    assert_close(score.median_relative, 0.5 / 5.5, 1e-15, "median"); /* of 0, 0.018, 0.091, 0.111, 0.111 */
    assert_close(score.bias, 0.25, 1e-15, "bias");
    assert_true(score.noise == 0.5 && score.coverage == 0.8); /* 1 is beyond 1.96 times 0.5 */
    double density = -log(0.5) - 0.5 * log(2 * M_PI);
    assert_close(score.log_score, density - 0.5 * 1.5625 / 0.25 / 5, 1e-14, "log score");
    assert_close(score.log_score_error, sqrt(sum * 3 / 2) / 5 * 2, 1e-13, "log score error");

    /* A row without noise leaves no log score; its mean is not positive. */
    score = score_sum(&rows, predicted, NULL, ROWS);
    assert_true(isnan(score.log_score) && isnan(score.log_score_error) && isnan(score.coverage));
    assert_true(score.rows == 6 && score.nonpositive == 1 && score.settings == 3);
    /* One setting has no standard error; no rows have nothing. */
    score = score_sum(&rows, predicted, first, 2);
    assert_true(score.settings == 1 && score.rmse == 0.5 && isnan(score.rmse_error));
    score = score_sum(&rows, predicted, first, 0);
    assert_true(score.rows == 0 && isnan(score.rmse) && isnan(score.relative) && isnan(score.log_score) &&
                isnan(score.median_relative) && isnan(score.bias) && isnan(score.coverage));
    score = score_sum(&rows, predicted, (uint32_t[]){3}, 1);
    assert_true(score.rmse == 0 && score.rmse_error == 0);
    rows.settings = NULL;
    assert_int_equal(score_sum(&rows, predicted, first, 7).settings, 5);
}

/* A weight of w is as w rows for the mean, and a smaller sigma for the noise; rows of weight 0 are none. */
TEST(weights) {
    static const double far[ROWS] = {1, 1, 2, 40, 4, 8, 1, 2}, weights[ROWS] = {4, 1, 0, 1, -1, 1, 1, 1};
    static const uint32_t first[] = {0, 1, 2, 3, 4};
    const struct evaluator_column columns[] = {{.numbers = far}};
    const struct score_rows rows = {ROWS, y, weights, settings, NULL, columns};
    struct score_row predicted[ROWS];
    predict(&rows, predicted);
    assert_true(predicted[0].sigma == 0.25 && predicted[3].extrapolated);
    struct score score = score_sum(&rows, predicted, first, 5);
    assert_int_equal(score.rows, 3);
    assert_int_equal(score.rows_missing, 2);
    assert_int_equal(score.extrapolated, 1);
    assert_close(score.rmse, sqrt((4 * 0.25 + 0.25 + 114 * 114) / 6), 1e-15, "rmse");
    assert_close(score.relative, score.rmse / ((4 * 5.5 + 4.5 + 8) / 6), 1e-15, "relative");
}

/* The covariance of the estimates widens intervals. */
TEST(intervals) {
    const struct evaluator_column columns[] = {{.numbers = x}};
    const struct score_rows rows = {ROWS, y, NULL, settings, NULL, columns};
    struct score_row predicted[ROWS];
    parts[0].covariance = (double[]){0.5, 0, 0, 0};
    predict(&rows, predicted);
    assert_close(predicted[2].share, 0.5 * erfc(-1 / (sqrt(0.75) * M_SQRT2)), 1e-14, "share");
    assert_true(score_sum(&rows, predicted, (uint32_t[]){0, 1, 2, 3, 4}, 5).coverage == 1);
    parts[0].covariance = NULL;
}

/* A difference of two models is that of pairs: it is surer than the two scores are. */
TEST(differences) {
    enum { MANY = 400 };
    static double response[MANY];
    static uint32_t setting[MANY];
    static struct score_row a[MANY], b[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        setting[i] = i / 4;
        double noise = test_random() - 0.5, lack = (i / 4 % 10) * 0.1;
        response[i] = 10;
        a[i] = (struct score_row){.mean = 10 - noise - lack - 0.01, .log_density = -1};
        b[i] = (struct score_row){.mean = 10 - noise - lack, .log_density = -0.5};
    }
    const struct score_rows rows = {MANY, response, NULL, setting, NULL, NULL};
    struct score_difference difference = score_compare(&rows, a, b, NULL, MANY);
    assert_int_equal(difference.settings, 100);
    assert_close(difference.log_score, 0.5, 1e-12, "log score");
    assert_true(difference.log_score_error < 1e-12);
    a[3].mean = NAN;
    assert_int_equal(score_compare(&rows, a, b, NULL, MANY).rows, MANY - 1);
    /* The error of rows that share what their setting lacks is not that of rows by themselves. */
    struct score_rows apart = rows;
    apart.settings = NULL;
    assert_true(score_sum(&rows, b, NULL, MANY).rmse_error >
                1.3 * score_sum(&apart, b, NULL, MANY).rmse_error);
}
