/* fit-linear's cross-validation against fits of the same rows parted by hand: every fold is left out, the
 * rest is fitted alone, with all that was asked for, and predicts it. Linked to the plugin's own sources. */
#include "plugins/fit-linear/linear.h"
#include "tests/test.h"
#include "tests/unit/plugin/fit-host.h"

enum { ROWS = 240, COLUMNS = 6, FOLDS = 5 }; /* a, b, c, big, w, y */

extern const struct assay_plugin assay_plugin;
static const struct fit_operations *fit;
static struct host_result result;
static double columns[COLUMNS][ROWS], kept[COLUMNS][ROWS];
static uint32_t groups[ROWS], kept_groups[ROWS];
static int make_rows(void **state) {
    fit = assay_plugin.operations;
    test_seed = 1;
    for (size_t r = 0; r < ROWS; r++) {
        double a = test_random() * 9, b = test_random() * 5 - 2;
        double noise = test_random() + test_random() + test_random() - 1.5;
        groups[r] = r % 3 == 0;
        columns[0][r] = a;
        columns[1][r] = b;
        columns[2][r] = test_random();                  /* explains nothing */
        columns[3][r] = 1e5 + a + test_random() * 1e-3; /* all but its mean and a */
        columns[4][r] = (double)(r % 4);
        columns[5][r] = 3 + 2 * a - b + noise * (r % 17 == 0 ? 20 : 1);
    }
    columns[1][30] = NAN;
    return 0;
}

static struct host_table table_of(double values[COLUMNS][ROWS], const uint32_t *of_groups, size_t rows) {
    return (struct host_table){.names = {"a", "b", "c", "big", "w", "y"},
                               .columns = {values[0], values[1], values[2], values[3], values[4], values[5]},
                               .column_count = COLUMNS,
                               .rows = rows,
                               .groups = of_groups,
                               .group_count = 2,
                               .response = "y",
                               .seed = 7};
}

/* What the last result's group says of a row: its terms are 1 and columns. */
static double predict(const struct host_group *group, size_t row) {
    static const char *const names[] = {"a", "b", "c", "big"};
    double mean = 0;
    for (size_t t = 0; t < result.term_count; t++) {
        double value = 1;
        for (size_t c = 0; c < sizeof names / sizeof *names; c++)
            if (strcmp(result.terms[t], names[c]) == 0)
                value = columns[c][row];
        mean += group->estimates[t].estimate * value;
    }
    return mean;
}

/* Adds the squared errors of one fold, by group. */
static void leave_out(uint32_t fold, const char *terms, const char *weights, const char *setting,
                      double value, double squares[2], double total[2]) {
    size_t count = 0;
    for (size_t r = 0; r < ROWS; r++) {
        if (host_fold_of(r, 7, FOLDS) == fold)
            continue;
        for (size_t c = 0; c < COLUMNS; c++)
            kept[c][count] = columns[c][r];
        kept_groups[count++] = groups[r];
    }
    struct host_table table = table_of(kept, kept_groups, count);
    table.terms = terms;
    table.weights = weights;
    table.settings[0] = "folds";
    table.settings[1] = setting;
    table.values[1] = value;
    table.settings[2] = "select";
    table.values[2] = SELECT_ELIMINATION;
    table.setting_count = 3;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    for (size_t r = 0; r < ROWS; r++) {
        double weight = weights ? columns[4][r] : 1;
        if (host_fold_of(r, 7, FOLDS) != fold || isnan(columns[1][r]))
            continue;
        double error = columns[5][r] - predict(&result.groups[groups[r]], r);
        squares[groups[r]] += weight * error * error;
        total[groups[r]] += weight;
    }
}

static void compare(const char *terms, const char *weights, const char *setting, double value) {
    double squares[2] = {0}, total[2] = {0}, magnitude[2] = {0};
    for (uint32_t fold = 0; fold < FOLDS; fold++)
        leave_out(fold, terms, weights, setting, value, squares, total);
    for (size_t r = 0; r < ROWS; r++)
        if (!isnan(columns[1][r]))
            magnitude[groups[r]] += fabs(columns[5][r]) * (weights ? columns[4][r] : 1);
    struct host_table table = table_of(columns, groups, ROWS);
    table.terms = terms;
    table.weights = weights;
    table.settings[0] = setting;
    table.values[0] = value;
    table.settings[1] = "select";
    table.values[1] = SELECT_ELIMINATION;
    table.setting_count = 2;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    for (size_t g = 0; g < 2; g++) {
        double expected = sqrt(squares[g] / total[g]), found = host_value(&result.groups[g], "cv_rmse");
        if (!(fabs(found - expected) <= 1e-7 * expected))
            fail_msg("%s, %s %g: cv_rmse is %.17g; expected %.17g", terms, setting, value, found, expected);
        expected /= magnitude[g] / total[g];
        found = host_value(&result.groups[g], "cv_relative");
        if (!(fabs(found - expected) <= 1e-7 * expected))
            fail_msg("%s, %s %g: cv_relative is %.17g; expected %.17g", terms, setting, value, found,
                     expected);
        assert_true(host_value(&result.groups[g], "folds") == FOLDS);
    }
}

TEST(by_sums) {
    compare("1+a+b+c", NULL, "threshold", 1); /* nothing is dropped */
    compare("a+b", NULL, "threshold", 1);
    compare("1+b", NULL, "threshold", 1);
    compare("1+a+b+c", "w", "threshold", 1);
}

TEST(with_selection) {
    compare("1+a+b+c", NULL, "threshold", 0.05);
    compare("1+a+b+c", "w", "threshold", 0.3);
}

/* Where double precision does not do, and the sums are solved in twice that. */
TEST(ill_conditioned) {
    compare("1+a+big+b", NULL, "threshold", 1);
    for (size_t r = 0; r < ROWS; r++)
        columns[3][r] = 1e5 + columns[0][r] + (columns[3][r] - 1e5 - columns[0][r]) * 1e-2;
    compare("1+a+big+b", NULL, "threshold", 1);
}

TEST(by_rows) {
    compare("1+a+b+c", NULL, "outliers", 3);
    compare("1+a+b+c", "w", "outliers", 3);
    compare("1+a+b+c", NULL, "robust", ROBUST_HUBER);
    compare("1+a+b+c", "w", "robust", ROBUST_BISQUARE);
}

/* A fold whose rest cannot be fitted leaves the error undefined, and says so; no folds, no values. */
TEST(undefined) {
    struct host_table table = table_of(columns, NULL, 4);
    table.terms = "1+a+b";
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].fitted && isnan(host_value(&result.groups[0], "cv_rmse")));
    assert_non_null(strstr(result.groups[0].notes, "what one fold leaves cannot be fitted: "));
    table.rows = 100;
    table.column_count = COLUMNS;
    table.columns[4] = columns[0];
    table.settings[0] = "folds";
    table.setting_count = 1;
    for (double none = 0; none < 2; none++) {
        table.values[0] = none;
        host_fit(fit, &table, &result);
        assert_true(host_value(&result.groups[0], "cv_rmse") == -12345);
    }
    /* Another seed, other folds. */
    table.values[0] = 10;
    host_fit(fit, &table, &result);
    double first = host_value(&result.groups[0], "cv_rmse");
    assert_true(host_value(&result.groups[0], "folds") == 10 && first > 0);
    table.seed++;
    host_fit(fit, &table, &result);
    double second = host_value(&result.groups[0], "cv_rmse");
    assert_true(second > 0 && second != first && fabs(second / first - 1) < 0.2);
}

/* Beyond so many groups folds are given up; what was summed stays as exact as it was. */
TEST(given_up) {
    enum { GROUPS = MOMENTS_FOLDS_GROUPS_MAX };
    static struct formula formula;
    static const struct fit_column names[] = {{.name = "a"}, {.name = "y"}};
    const struct plugin_host host = {.size = sizeof host};
    const struct fit_request request = {
        .size = sizeof request, .response = "y", .terms = "1+a+a^2", .columns = names, .column_count = 2};
    struct plugin_message message;
    assert_int_equal(formula_read(&host, &request, &formula, &message), 0);
    struct moments *moments[2];
    uint8_t folds[ROWS];
    for (size_t r = 0; r < ROWS; r++)
        folds[r] = host_fold_of(r, 3, FOLDS);
    for (uint32_t i = 0; i < 2; i++) {
        const struct moments_options options = {.folds = i ? FOLDS : 0};
        assert_int_equal(moments_new(&formula, &options, &moments[i]), 0);
        const double *inputs[] = {columns[0], columns[5]};
        size_t row;
        assert_int_equal(moments_add(moments[i], ROWS, inputs, groups, GROUPS, folds, &row), 0);
        assert_int_equal(moments_folds(moments[i]), i ? FOLDS : 1);
        assert_int_equal(moments_add(moments[i], ROWS, inputs, groups, GROUPS + 1, folds, &row), 0);
        assert_int_equal(moments_folds(moments[i]), 1);
    }
    for (uint32_t g = 0; g < 2; g++) {
        double range[2][2] = {{INFINITY, -INFINITY}, {INFINITY, -INFINITY}};
        assert_int_equal(moments_rows(moments[0], g, 0), moments_rows(moments[1], g, 0));
        for (size_t a = 0; a < moments_width(moments[0]); a++)
            for (size_t b = a; b < moments_width(moments[0]); b++) {
                struct dd x = moments_sum(moments[0], g, 0, a, b), y = moments_sum(moments[1], g, 0, a, b);
                assert_true(fabs(dd_to_double(dd_subtract(x, y))) <= 1e-28 * fabs(x.high));
            }
        for (size_t i = 0; i < 2; i++)
            moments_widen(moments[i], g, 2, &range[i][0], &range[i][1]);
        assert_memory_equal(range[0], range[1], sizeof range[0]);
    }
    moments_free(moments[0]);
    moments_free(moments[1]);
    formula_clear(&formula);
}

TEST_EACH(make_rows, NULL)
TEST_GROUP(make_rows, NULL)
