/* The plugin fit-population: published moments of real machines to 1e-9 (data/README.md; skipped, aloud,
 * where that is not), a small table worked out by hand, slow machines, and what is refused. */
#include "engine/documents/document.h"
#include "engine/foundation/number.h"
#include "tests/unit/fit/fitted.h"
#include "tests/unit/plugin/gzip-file.h"

/* ---- Trusted answers */

static double number(const struct document_node *node) {
    double result = NAN;
    assert_non_null(node);
    assert_true(number_parse_double(node->text, strlen(node->text), &result));
    return result;
}

static void assert_matrix(const double *found, const struct document_node *rows, const char *what) {
    assert_true(found && rows && rows->count == 3);
    for (size_t i = 0; i < 9; i++)
        assert_close(found[i], number(rows->items[i / 3]->items[i % 3]), 1e-9, what);
}

TEST(published) {
    static const char *const rules[][2] = {{"days=pooled", "Sigma_T_pooled"},
                                           {"days=mean", "Sigma_T_mean_of_covs"}};
    char path[8192];
    const char *rows = test_path("rows.csv");
    struct document *answers = NULL;
    if (!test_data())
        skip();
    snprintf(path, sizeof path, "%s/dgemm/generative_moments.json", test_data());
    assert_ok(document_read_json(path, &answers, &test_failure));
    snprintf(path, sizeof path, "%s/dgemm/generative_coefficients.csv.gz", test_data());
    assert_int_equal(gzip_file_read(path, rows), 0);
    const struct document_node *answer = document_get(answers->root, "dgemm_calibration");
    const struct document_node *names = document_get(answer, "variables");
    for (size_t r = 0; r < 2; r++) {
        const struct table_of table = {.method = "population",
                                       .names = {"mnk"},
                                       .settings = {"coefficients=intercept,mnk_residual", rules[r][0]}};
        if (!fitted_file(rows, &table))
            fail_msg("%s", refusal.text);
        const struct model_group *group = &fit->model->groups[0];
        assert_true((double)group->rows == number(document_get(answer, "rows")));
        for (size_t i = 0; i < 3; i++) { /* the answers may have another order */
            const char *name = fit->model->terms[i].name;
            assert_string_equal(names->items[i]->text, name);
            assert_close(group->parts[0].estimates[i].estimate, number(document_get(answer, "mu")->items[i]),
                         1e-9, name);
        }
        assert_matrix(group->parts[0].covariance, document_get(answer, "Sigma_S"), "Sigma_S");
        assert_matrix(group->parts[1].covariance, document_get(answer, rules[r][1]), rules[r][1]);
    }
    document_free(answers);
}

/* ---- By hand */

/* Three machines on 2, 3 and 1 days:
 *     a: (1, 10) (3, 14)           mean (2, 12)
 *     b: (4, 20) (5, 20) (6, 23)   mean (5, 21)
 *     c: (11, 30)                  mean (11, 30)
 * mu = (6, 21); Sigma_S = [21, 40.5; 40.5, 81]; within: sums of products [4, 7; 7, 14] over 3 degrees. */
static const double alpha[] = {1, 4, 11, 5, 3, 6}, gammas[] = {10, 20, 30, 20, 14, 23};
static const char *const nodes[] = {"a", "b", "c", "b", "a", "b"};

static struct table_of small_table(void) {
    return (struct table_of){.method = "population",
                             .names = {"alpha", "gamma"},
                             .columns = {alpha, gammas},
                             .rows = 6,
                             .text_name = "node",
                             .texts = nodes,
                             .settings = {"coefficients=gamma"}};
}

TEST(by_hand) {
    static const double between[] = {21, 40.5, 40.5, 81}, days[] = {4.0 / 3, 7.0 / 3, 7.0 / 3, 14.0 / 3};
    static const double means[] = {1.5, 2.75, 2.75, 5.5}; /* of a [2, 4; 4, 8], of b [1, 1.5; 1.5, 3] */
    struct table_of table = small_table();
    table.units[0] = "s";
    const struct model_group *group = fitted_group(&table);
    assert_string_equal(fit->model->kind, "population");
    assert_int_equal(group->part_count, 2);
    assert_string_equal(group->parts[0].kind, "component");
    assert_string_equal(group->parts[0].name, "typical");
    assert_string_equal(group->parts[1].kind, "days");
    assert_string_equal(fit->model->terms[1].name, "gamma");
    assert_string_equal(fit->model->terms[0].unit, "s"); /* the coefficient's own */
    assert_null(fit->model->terms[1].unit);
    assert_close(group->parts[0].estimates[0].estimate, 6, 1e-14, "mu");
    assert_close(group->parts[0].estimates[1].estimate, 21, 1e-14, "mu");
    assert_close(group->parts[0].estimates[0].standard_error, sqrt(21.0 / 3), 1e-13, "standard error");
    for (size_t i = 0; i < 4; i++) {
        assert_close(group->parts[0].covariance[i], between[i], 1e-13, "Sigma_S");
        assert_close(group->parts[1].covariance[i], days[i], 1e-13, "Sigma_T");
    }
    assert_true(model_group_value(group, "machines") == 3 && model_group_value(group, "repeated") == 2);
    table.settings[1] = "days=mean";
    group = fitted_group(&table);
    for (size_t i = 0; i < 4; i++)
        assert_close(group->parts[1].covariance[i], means[i], 1e-13, "mean of covariances");
}

/* Machines that differ by little beside what they are: the same covariances to the last digits. */
TEST(far_from_zero) {
    double far_alpha[6], far_gamma[6];
    for (size_t i = 0; i < 6; i++) {
        far_alpha[i] = alpha[i] + 0x1p34;
        far_gamma[i] = gammas[i] - 0x1p40;
    }
    far_alpha[5] += 0.5; /* b: mean 5 + 1/6 */
    struct table_of table = small_table();
    table.columns[0] = far_alpha;
    table.columns[1] = far_gamma;
    const struct model_group *group = fitted_group(&table);
    const double between[] = {2251.0 / 108, 40.5, 40.5, 81}, days[] = {31.0 / 18, 8.0 / 3, 8.0 / 3, 14.0 / 3};
    for (size_t i = 0; i < 4; i++) {
        assert_close(group->parts[0].covariance[i], between[i], 1e-13, "Sigma_S");
        assert_close(group->parts[1].covariance[i], days[i], 1e-13, "Sigma_T");
    }
}

/* Squares of distances by hand: of three machines in two directions all are (P - 1)^2 / P; those of runs are
 * (x - mean)' Sigma_T^-1 (x - mean) n / (n - 1): 12/7 of a, 18/7, 18/7, 9/7 of b. Printed from the tables. */
TEST(distances) {
    static const char *const expected[] = {"node a, typical", "1.1547",  "node b, row 2", "1.60357",
                                           "node a, row 1",   "1.30931", "1.13389"};
    struct table_of table = small_table();
    const struct model_group *group = fitted_group(&table);
    assert_true(model_group_value(group, "machines_distant") == 0);
    assert_close(model_group_value(group, "runs_distant_expected"), 5 * 0.025, 1e-12, "expected");
    cleanup_free char *printed = NULL;
    size_t size = 0;
    FILE *stream = open_memstream(&printed, &size);
    report_print(fit->tables, stream, true);
    fclose(stream);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_says(printed, expected[i]);
}

/* ---- Several populations */

enum { MACHINES = 200, RUNS = 3 };
static double speeds[MACHINES * RUNS], offsets[MACHINES * RUNS];
static const char *machine_names[MACHINES * RUNS];

/* Every tenth machine is slow. */
static struct table_of make_slow_nodes(const char *components) {
    static char texts[MACHINES][16];
    test_seed = 17;
    for (size_t m = 0; m < MACHINES; m++) {
        double speed = (m % 10 ? 7e-11 : 9e-11) + 1e-12 * test_normal();
        double offset = 2e-6 + 3e3 * (speed - 7e-11) + 1e-7 * test_normal();
        snprintf(texts[m], sizeof texts[m], "m%03zu", m);
        for (size_t d = 0; d < RUNS; d++) {
            machine_names[d * MACHINES + m] = texts[m];
            speeds[d * MACHINES + m] = speed + 1e-13 * test_normal();
            offsets[d * MACHINES + m] = offset + 1e-8 * test_normal();
        }
    }
    return (struct table_of){.method = "population",
                             .names = {"speed", "offset"},
                             .columns = {speeds, offsets},
                             .rows = MACHINES * RUNS,
                             .text_name = "host",
                             .texts = machine_names,
                             .settings = {"coefficients=offset", components},
                             .seed = 1};
}

TEST(slow_nodes) {
    struct table_of table = make_slow_nodes("components=0");
    const struct model_group *group = fitted_group(&table);
    assert_int_equal(group->part_count, 3);
    assert_string_equal(group->parts[1].name, "slow");
    assert_close(value_of(&group->parts[1], "weight"), 0.1, 1e-5, "slow share");
    assert_close(model_group_value(group, "slow_share"), 0.1, 1e-5, "slow share");
    assert_close(group->parts[0].estimates[0].estimate, 7e-11, 0.01, "mu");
    assert_close(group->parts[1].estimates[0].estimate, 9e-11, 0.01, "mu");
    assert_close(sqrt(group->parts[0].covariance[0]), 1e-12, 0.2, "deviation");
    assert_true(is_noted(group, "machines of the slow population: host m000; host m010; ") &&
                is_noted(group, "and 8 more (20 of 200"));
    /* One population of the same machines is less likely: log L = -n (log det + p (1 + log 2 pi)) / 2. */
    double bic = model_group_value(group, "bic"), n = MACHINES;
    table.settings[1] = "components=1";
    group = fitted_group(&table);
    const double *sigma = group->parts[0].covariance;
    double determinant = (sigma[0] * sigma[3] - sigma[1] * sigma[2]) * pow((n - 1) / n, 2);
    double expected = -0.5 * n * (log(determinant) + 2 * (1 + log(2 * M_PI)));
    assert_close(model_group_value(group, "log_likelihood"), expected, 1e-10, "likelihood");
    assert_close(model_group_value(group, "bic"), -2 * expected + 5 * log(n), 1e-10, "BIC");
    assert_true(model_group_value(group, "bic") > bic);
    table.settings[1] = "components=4";
    assert_int_equal(fitted_group(&table)->part_count, 5);
}

/* ---- Odd tables */

TEST(odd_tables) {
    static const double gap[] = {1, 4, NAN, 5, 3, NAN}, alone[] = {1, NAN, NAN, NAN, 3, NAN};
    static const double equal[] = {2, 2, 2, 2, 2, 2}, huge[] = {1e300, -1e300, 1e300, 1, 2, 3};
    static const char *const once[] = {"a", "b", "c", "d", "e", "f"};
    struct table_of table = small_table();
    table.columns[0] = gap;
    const struct model_group *group = fitted_group(&table);
    assert_true(group->rows == 4 && is_noted(group, "2 machines are too few for 2 coefficients"));
    table.columns[0] = equal;
    group = fitted_group(&table);
    assert_true(group->parts[0].covariance[0] == 0 && is_noted(group, "is the same on all machines"));
    table.columns[0] = alone;
    assert_says(fitted_refusal(&table), "there are rows of a single machine; expected at least 2");
    table.columns[0] = huge;
    assert_says(fitted_refusal(&table), "exceed the range of a double");
    table = small_table();
    table.texts = once;
    group = fitted_group(&table);
    assert_true(!group->parts[1].covariance && is_noted(group, "every machine has a single row"));
    table.settings[1] = "components=4";
    assert_says(fitted_refusal(&table), "no mixture of 4 populations was found");
}

TEST(refusals) {
    struct table_of table = small_table();
    table.settings[0] = "coefficients=gama";
    assert_says(fitted_refusal(&table), "did you mean 'gamma'");
    table.settings[0] = "coefficients=gamma,gamma";
    assert_says(fitted_refusal(&table), "'gamma' is given twice");
    table.settings[0] = "coefficients=gamma", table.text_name = "rack";
    assert_says(fitted_refusal(&table), "no column is given for machine");
    table.settings[1] = "machine=rack";
    assert_int_equal(fitted_group(&table)->part_count, 2);
    table.weights = "gamma";
    assert_says(fitted_refusal(&table), "accepts no weights");
}

TEST_GROUP(fitted_set_up, fitted_tear_down)
