/* Which model suffices: errors that are paired by setting, and rows that only some models predict. */
#include "engine/fit/choice.h"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* models of literals */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

enum { SETTINGS = 20, REPETITIONS = 8, ROWS = SETTINGS * REPETITIONS, MODELS = 4 };

static double response[ROWS];
static uint32_t settings[ROWS];
static struct score_row said[MODELS][ROWS];
static struct contender contenders[MODELS];
static const struct score_rows rows = {.count = ROWS, .response = response, .settings = settings};

/* All models miss each setting by much the same, which is far more than they differ by; model M by `extra` of
 * its own beside. The log score is that of sigma. */
static void make(size_t m, uint64_t mean_parameters, uint64_t noise_parameters, double extra, double sigma) {
    contenders[m] = (struct contender){
        .mean_parameters = mean_parameters, .noise_parameters = noise_parameters, .predicted = said[m]};
    for (size_t i = 0; i < ROWS; i++) {
        size_t setting = i / REPETITIONS;
        double off = ((double)(setting * 7 % SETTINGS) - 9.5) * 10, own = setting % 2 ? extra : -extra;
        response[i] = 1000 + off;
        settings[i] = (uint32_t)setting;
        double error = off + own + (off > 0 ? extra : -extra);
        said[m][i] = (struct score_row){.mean = response[i] - error,
                                        .sigma = sigma,
                                        .log_density = -log(sigma) - error * error / (2 * sigma * sigma),
                                        .share = 0.5};
    }
}

static struct choice choose(size_t count) {
    struct choice choice;
    choice_make(contenders, count, &rows, &choice);
    return choice;
}

/* The difference is far below the standard error of each, and far above that of the pairs. */
TEST(differences_are_paired) {
    make(0, 2, 1, 1, 60);
    make(1, 5, 1, 0, 60);
    struct choice choice = choose(2);
    assert_true(choice.best == 1 && choice.sufficient == 1 && choice.rows == ROWS);
    double squares = pow(contenders[0].score.rmse, 2) - pow(contenders[1].score.rmse, 2);
    assert_close(contenders[0].below, squares / (2 * 60 * 60), 1e-10, "below");
    assert_true(contenders[0].below > 2 * contenders[0].below_error && contenders[1].below == 0);
    assert_true(contenders[0].score.rmse - contenders[1].score.rmse < contenders[1].score.rmse_error);
    /* Standard errors are over settings: eight repetitions make them no smaller. */
    assert_int_equal(contenders[0].score.settings, SETTINGS);
}

TEST(simplest_within_one_standard_error) {
    make(0, 5, 1, 0, 60);
    make(1, 2, 1, 0, 60);
    struct choice choice = choose(2);
    assert_true(choice.sufficient == 1);
    /* One that is as good but for chance: it is worse on some settings and better on others. */
    for (size_t i = 0; i < ROWS; i++)
        said[1][i].mean += (settings[i] % 4 < 2 ? 1 : -1) * (settings[i] % 3 ? 0.3 : -0.4);
    choice = choose(2);
    assert_true(fabs(contenders[1].below + contenders[0].below) <=
                contenders[1].below_error + contenders[0].below_error);
    assert_int_equal(choice.sufficient, 1);
}

/* Of the same mean the simplest noise that is as good; one without noise has no score. */
TEST(noise) {
    make(0, 2, 1, 0, 500);
    make(1, 2, 3, 0, 60);
    make(2, 2, 0, 0, 60);
    for (size_t i = 0; i < ROWS; i++)
        said[2][i].log_density = NAN;
    struct choice choice = choose(3);
    assert_true(choice.sufficient == 1);
    make(0, 2, 1, 0, 60);
    choice = choose(3);
    assert_int_equal(choice.sufficient, 0);
    choice = choose(1);
    assert_true(choice.best == 0 && choice.sufficient == 0);
}

/* Noise that grows: the misfit of small rows is found by the means of all contenders under the common noise,
 * whichever noise they have themselves, and none. The noise is chosen among those of the chosen mean. */
static void make_growing(size_t m, uint64_t mean_parameters, double misfit, double (*sigma_of)(double y)) {
    contenders[m] =
        (struct contender){.mean_parameters = mean_parameters, .noise_parameters = 1, .predicted = said[m]};
    for (size_t i = 0; i < ROWS; i++) {
        double y = exp((double)(i / REPETITIONS) / 2), noise = 0.03 * y * sin(7919.0 * (double)i);
        double sigma = sigma_of(y), error = noise + misfit;
        response[i] = y + noise;
        settings[i] = (uint32_t)(i / REPETITIONS);
        said[m][i] = (struct score_row){.mean = response[i] - error,
                                        .sigma = sigma,
                                        .log_density = -log(sigma) - error * error / (2 * sigma * sigma)};
    }
}

static double grows(double y) {
    return 0.02 * y;
}
static double is_constant(double y) {
    return y > 0 ? 200 : 0;
}
static double is_absent(double y) {
    return y > 0 ? NAN : 0;
}

TEST(common_noise) {
    make_growing(0, 1, 0.5, is_constant); /* 50 % of the smallest rows, a tenth of a percent of the mean */
    make_growing(1, 2, 0, is_absent);
    make_growing(2, 2, 0, is_constant);
    make_growing(3, 2, 0, grows);
    contenders[3].noise_parameters = 2;
    assert_int_equal(choose(4).sufficient, 3);
    assert_true(contenders[1].is_compared && contenders[1].below == 0 && contenders[2].below == 0);
    assert_true(contenders[0].below > 2 * contenders[0].below_error);
    /* Under constant noise the misfit is next to nothing. */
    choose(2);
    assert_true(contenders[0].below < 1e-3);
    contenders[0].predicted = NULL;
    assert_int_equal(choose(2).sufficient, 1);
}

/* One row far beyond its noise weighs no more than 20 to 1. */
TEST(one_row_does_not_decide) {
    make_growing(0, 2, 0, is_constant);
    make_growing(1, 2, 0, grows);
    contenders[1].noise_parameters = 2;
    said[1][0].sigma = 1e-4, said[1][0].log_density = -1e5;
    assert_int_equal(choose(2).sufficient, 1);
    assert_true(contenders[1].score.log_score < contenders[0].score.log_score);
}

/* Segments without a break are the line itself, in whatever order; with as good a mean and more parameters
 * they are not needed; with a better one they are. */
TEST(segments) {
    for (size_t line = 0; line < 2; line++) {
        size_t other = 1 - line;
        make(line, 2, 1, 0, 60);
        make(other, 2, 1, 0, 50);
        contenders[other].is_segmented = true;
        assert_int_equal(choose(2).sufficient, line);
        contenders[other].mean_parameters = 5;
        assert_int_equal(choose(2).sufficient, line);
        make(line, 2, 1, 4, 60);
        assert_int_equal(choose(2).sufficient, other);
    }
}

/* Errors of rounding alone are the same, and none is divided by 0. */
TEST(exact) {
    make(0, 5, 0, 0, NAN);
    make(1, 2, 0, 0, NAN);
    for (size_t i = 0; i < ROWS; i++) {
        said[0][i].mean = response[i];
        said[1][i].mean = response[i] * (1 + 1e-15);
    }
    assert_int_equal(choose(2).sufficient, 1);
}

/* A tenth of the rows may be missing, and is left out of all; more, and the model is not judged. */
TEST(rows_that_some_predict) {
    make(0, 2, 1, 0, 60);
    make(1, 1, 1, 0, 60);
    make(2, 1, 1, 5, 60);
    for (size_t i = 0; i < ROWS; i++) {
        said[0][i].mean = i < ROWS / 10 ? NAN : said[0][i].mean;
        said[1][i].mean = i < ROWS / 2 ? NAN : said[1][i].mean;
    }
    struct choice choice = choose(3);
    assert_true(contenders[0].is_compared && !contenders[1].is_compared && contenders[2].is_compared);
    assert_int_equal(choice.rows, ROWS - ROWS / 10);
    assert_int_equal(choice.rows_beyond, ROWS / 10);
    assert_true(choice.best == 0 && contenders[1].missing == ROWS / 2);
    /* Nothing is predicted, there is nothing, there are no rows. */
    contenders[0].predicted = contenders[1].predicted = contenders[2].predicted = NULL;
    choice = choose(3);
    assert_true(choice.best == SIZE_MAX && choice.sufficient == SIZE_MAX && choice.rows == 0);
    choice = choose(0);
    assert_true(choice.sufficient == SIZE_MAX);
    make(0, 2, 1, 0, 60);
    const struct score_rows none = {.response = response};
    choice_make(contenders, 1, &none, &choice);
    assert_true(choice.sufficient == SIZE_MAX && choice.rows == 0);
}

TEST(units) {
    make(0, 2, 1, 0, 60);
    double mean = said[0][0].mean, density = said[0][0].log_density;
    assert_true(contender_convert(&contenders[0], ROWS, "s", "ms"));
    assert_close(said[0][0].mean, 1000 * mean, 1e-15, "mean");
    assert_close(said[0][0].log_density, density - log(1000), 1e-14, "density");
    assert_true(contender_convert(&contenders[0], ROWS, NULL, "ms"));
    assert_false(contender_convert(&contenders[0], ROWS, "By", "ms"));
}

TEST(parameters) {
    struct model_estimate estimates[2][3] = {{{1}, {.dropped = true}, {.at_bound = true}}, {{1}, {2}, {3}}};
    struct model_component components[2] = {{0.5, 0, 1}, {0.5, 1, 1}};
    struct model_part parts[2] = {
        {.kind = "segment",
         .from = -INFINITY,
         .estimates = estimates[0],
         .noise = {.kind = MODEL_NOISE_HETEROSCEDASTIC, .coefficients = (double[]){0, 1, 2}}},
        {.kind = "segment",
         .from = 5,
         .estimates = estimates[1],
         .noise = {.kind = MODEL_NOISE_MIXTURE, .components = components, .component_count = 2}}};
    struct model_group group = {.rows = 9, .parts = parts, .part_count = 2};
    char x[] = "x", over[] = "x";
    struct model_term terms[3] = {{.name = x}, {.name = x}, {.name = x}};
    const struct model model = {
        .over = over, .terms = terms, .term_count = 3, .groups = &group, .group_count = 1};
    cleanup(contender_clear) struct contender contender = {0};
    contender_describe(&contender, &model);
    assert_int_equal(contender.mean_parameters, 1 + 3 + 1); /* and the break */
    assert_int_equal(contender.noise_parameters, 2 + 4);
    assert_true(contender.rows == 9 && contender.groups == 1);
    assert_string_equal(contender.noise, "N-2");
}
