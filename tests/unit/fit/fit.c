/* The host of fit plugins: groups, columns and units, missing rows, folds, scores, against numbers by hand.
 */
#include "engine/fit/fit.h"
#include "engine/model/model.h"
#include "tests/test.h"

static struct installation installation;

static int set_up(void **state) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s/tests/plugins", getenv("ASSAY_BUILD"));
    return installation_init(&installation, NULL, folder, &test_failure);
}

static int tear_down(void **state) {
    installation_clear(&installation);
    return 0;
}
TEST_GROUP(set_up, tear_down)

/* Fits CONTENT by the plugin NAME. */
static int try_run(const char *name, const char *content, const struct fit_options *options,
                   struct fit **ret) {
    const char *const paths[] = {test_put("table.csv", content)};
    struct library *library = NULL;
    cleanup(table_cleanup) struct table *table = NULL;
    int r = library_open(&installation, "fit", name, &library, &test_failure);
    r = r < 0 ? r : table_open(paths, 1, NULL, &table, &test_failure);
    r = r < 0 ? r : fit_run(library, table, options, ret, &test_failure);
    library_close(library);
    return r;
}

static struct fit *run(const char *name, const char *content, const struct fit_options *options) {
    struct fit *fit = NULL;
    assert_ok(try_run(name, content, options, &fit));
    return fit;
}

TEST(mean_by_group) {
    const char *const by[] = {"host"};
    struct fit_options options = {.response = "time", .by = by, .by_count = 1};
    cleanup(fit_cleanup) struct fit *fit =
        run("mean", "host,time\nb,1\na-10,5\nb,2\na-2,7\nb,6\na-10,\na-10,9\n", &options);
    const struct model *model = fit->model;
    assert_int_equal(model->group_count, 2);
    assert_int_equal(model->skipped_count, 1);
    assert_string_equal(model->skipped[0].name, "a-2");
    assert_string_equal(model->skipped[0].reason, "1 row; expected at least 2");
    assert_string_equal(model->groups[0].name, "a-10");
    assert_int_equal(model->groups[0].rows, 2);
    assert_true(model_group_value(&model->groups[0], "rows_left_out") == 1);
    const struct model_part *part = &model->groups[1].parts[0];
    assert_close(part->estimates[0].estimate, 3, 1e-15, "mean");
    assert_close(part->noise.constant, sqrt(7), 1e-15, "sigma");
    assert_close(part->estimates[0].standard_error, sqrt(7. / 3), 1e-15, "standard error");
    assert_close(part->estimates[0].t, 3 / sqrt(7. / 3), 1e-15, "t");
    double t = part->estimates[0].t; /* the distribution function for 2 degrees of freedom is algebraic */
    assert_close(part->estimates[0].p, 1 - t / sqrt(2 + t * t), 1e-12, "p");
    assert_string_equal(model->terms[0].name, "1");
    assert_string_equal(model->kind, "linear");
}

/* Leaving one of four rows out: errors 4/3 x the deviation from the mean. */
TEST(cross_validation_of_rows) {
    struct fit_options options = {.response = "x", .folds = 4, .folds_by = FIT_FOLDS_BY_ROW, .seed = 3};
    cleanup(fit_cleanup) struct fit *fit = run("mean", "x\n1\n2\n4\n9\n", &options);
    const struct model_group *group = &fit->model->groups[0];
    double squares = (9 + 4 + 0 + 25) / 4. * 16 / 9;
    assert_close(model_group_value(group, "cv_rmse"), sqrt(squares), 1e-14, "cv_rmse");
    assert_close(model_group_value(group, "cv_relative"), sqrt(squares) / 4, 1e-14, "cv_relative");
    assert_close(model_group_value(group, "cv_median_relative"), (4. / 3 + 20. / 27) / 2, 1e-14, "median");
    assert_true(model_group_value(group, "folds") == 4);
}

/* Two settings with two rows each: a fold is one of them, and the other's slope predicts it. */
TEST(folds_of_settings_and_lack_of_fit) {
    struct fit_options options = {.response = "time", .folds = 5, .seed = 1};
    cleanup(fit_cleanup) struct fit *fit =
        run("slope", "size,time\n1,1\n1,3\n2,5\n2,7\n3,10\n3,12\n", &options);
    const struct model_group *group = &fit->model->groups[0];
    double slope = (4 + 24 + 66) / 28., rss = 0, mse = 0;
    static const double time[] = {1, 3, 5, 7, 10, 12}, size[] = {1, 1, 2, 2, 3, 3};
    static const double left_out[] = {90. / 26, 70. / 20, 28. / 10}; /* slope without the size */
    for (int i = 0; i < 6; i++) {
        rss += pow(time[i] - slope * size[i], 2);
        mse += pow(time[i] - left_out[i / 2] * size[i], 2) / 6;
    }
    assert_close(group->parts[0].estimates[0].estimate, slope, 1e-14, "slope");
    assert_true(model_group_value(group, "folds") == 3); /* as many as settings */
    assert_close(model_group_value(group, "cv_rmse"), sqrt(mse), 1e-13, "cv_rmse");
    assert_true(model_group_value(group, "settings") == 3);
    assert_close(model_group_value(group, "pure_error"), sqrt(6. / 3), 1e-14, "pure error");
    assert_close(model_group_value(group, "lack_of_fit_f"), (rss - 6) / 2 / (6. / 3), 1e-12, "F");
    assert_close(model_group_value(group, "bandwidth"), 1 / slope, 1e-14, "bandwidth");
    assert_string_equal(fit->model->terms[0].name, "size");
    assert_string_equal(fit->model->columns[0].about.unit, "By");
    assert_string_equal(fit->model->response_unit, "s");
    assert_true(group->parts[0].domain[0].minimum == 1 && group->parts[0].domain[0].maximum == 3);
}

TEST(weights_and_conditions) {
    struct fit_options options = {.response = "time", .weights = "w", .where = "size < 100"};
    cleanup(fit_cleanup) struct fit *fit =
        run("slope", "size,time,w\n1,1,1\n2,3,2\n4,9,0\n200,0,1\n", &options);
    assert_close(fit->model->groups[0].parts[0].estimates[0].estimate, (1 + 12) / 9., 1e-14, "slope");
    assert_true(model_group_value(&fit->model->groups[0], "rows_weightless") == 1);
}

TEST(expressions_as_response) {
    struct fit_options options = {.response = "1 / rate"};
    const char *const set[] = {"size=m", "scale=2"};
    options.settings = set;
    options.setting_count = 2;
    cleanup(fit_cleanup) struct fit *fit = run("slope", "m,rate\n1,1\n2,0.5\n3,0.25\n", &options);
    assert_close(fit->model->groups[0].parts[0].estimates[0].estimate, 2 * 17 / 14., 1e-14, "slope");
    assert_string_equal(fit->model->terms[0].name, "m");
    const char *const squares[] = {"size=m*m"};
    options.settings = squares;
    options.setting_count = 1;
    cleanup(fit_cleanup) struct fit *square = run("slope", "m,rate\n1,1\n2,0.25\n3,0.125\n", &options);
    assert_close(square->model->groups[0].parts[0].estimates[0].estimate, (1 + 16 + 72) / 98., 1e-14,
                 "slope");
    assert_string_equal(square->model->terms[0].name, "`m*m`");
    assert_string_equal(square->model->columns[0].about.name, "m*m");
    assert_true(square->model->groups[0].parts[0].domain[0].maximum == 9);
}

TEST(refusals) {
    static const struct {
        const char *name, *content, *expected;
        struct fit_options options;
    } cases[] = {
        {"slope", "x,time\n1,2\n", "no column is given for size", {.response = "time"}},
        {"slope", "size,time\n1,2\n", "slope has no --terms", {.response = "time", .terms = "1"}},
        {"mean", "x\n1\n", "there is no response column 'y'", {.response = "y"}},
        {"mean", "x\n1\n", "unknown name 'y'", {.response = "1 / y"}},
        {"meen", "x\n1\n", "did you mean", {.response = "x"}},
        {"slope", "size,time,w\n1,2,-1\n1,3,1\n", "the weight is -1", {.response = "time", .weights = "w"}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fit *fit = NULL;
        assert_true(try_run(cases[i].name, cases[i].content, &cases[i].options, &fit) < 0);
        assert_says(test_failure.text, cases[i].expected);
        assert_null(fit);
    }
}

/* A plugin that breaks the rules is named, with what it does; nothing of it gets into a model. */
TEST(plugins_that_misbehave) {
    static const char *const cases[][2] = {
        {"what=twice", "fit-wrong: the plugin gave the same term of a part twice"},
        {"what=early", "fit-wrong: the plugin gave the noise of a part before the terms"},
        {"what=noise", "fit-wrong: the plugin gave a noise of an unknown kind"},
        {"what=code", "fit-wrong: fit() returned a number above 0; expected 0"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fit_options options = {.response = "y", .settings = &cases[i][0], .setting_count = 1};
        struct fit *fit = NULL;
        assert_true(try_run("wrong", "y\n1\n2\n", &options, &fit) < 0);
        assert_says(test_failure.text, cases[i][1]);
        assert_null(fit);
    }
}

/* A group whose numbers are none is skipped: its rows may be to blame, and other groups can be fitted. */
TEST(numbers_that_are_none) {
    static const char *const cases[][2] = {
        {"what=estimate", "an estimate is not a number, or beyond the range of a double"},
        {"what=covariance",
         "the covariance of the estimates is not positive semidefinite, or beyond the range of a double"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct fit_options options = {.response = "y", .settings = &cases[i][0], .setting_count = 1};
        cleanup(fit_cleanup) struct fit *fit = run("wrong", "y\n1\n2\n", &options);
        assert_int_equal(fit->model->group_count, 0);
        assert_string_equal(fit->model->skipped[0].reason, cases[i][1]);
    }
}
