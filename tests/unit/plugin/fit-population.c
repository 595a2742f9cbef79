/* The plugin fit-population: small tables worked out by hand, mixtures with slow machines, and what is
 * refused.
 */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

static int set_up(void **state) {
    return fit_library_open("fit-population");
}

/* Three machines on 2, 3 and 1 days:
 *     a: (1, 10) (3, 14)           mean (2, 12)
 *     b: (4, 20) (5, 20) (6, 23)   mean (5, 21)
 *     c: (11, 30)                  mean (11, 30)
 * mu = (6, 21); Sigma_S = [21, 40.5; 40.5, 81]; within: sums of products [4, 7; 7, 14] over 3 degrees. */
static double alpha[] = {1, 4, 11, 5, 3, 6}, gamma_[] = {10, 20, 30, 20, 14, 23};
static const uint32_t nodes[] = {0, 1, 2, 1, 0, 1};
static const char *const node_names[] = {"a", "b", "c"};

static struct host_table small_table(void) {
    return (struct host_table){.names = {"alpha", "gamma"},
                               .columns = {alpha, gamma_},
                               .column_count = 2,
                               .rows = 6,
                               .category_names = {"node"},
                               .categories = {nodes},
                               .levels = {node_names},
                               .level_counts = {3},
                               .category_count = 1,
                               .response = "alpha",
                               .terms = "gamma | node"};
}

TEST(by_hand) {
    struct host_table table = small_table();
    const struct host_group *group = fit_library_fit(&table);
    assert_string_equal(result.kind, "population");
    assert_int_equal(group->part_count, 2);
    assert_string_equal(group->parts[0].kind, "component");
    assert_string_equal(group->parts[0].name, "typical");
    assert_string_equal(group->parts[1].kind, "days");
    assert_string_equal(result.terms[1], "gamma");
    static const double between[] = {21, 40.5, 40.5, 81}, days[] = {4.0 / 3, 7.0 / 3, 7.0 / 3, 14.0 / 3};
    assert_close(group->estimates[0].estimate, 6, 1e-14, "mu");
    assert_close(group->estimates[1].estimate, 21, 1e-14, "mu");
    assert_close(group->estimates[0].standard_error, sqrt(21.0 / 3), 1e-14, "standard error");
    for (size_t i = 0; i < 4; i++) {
        assert_close(group->parts[0].covariance[i], between[i], 1e-13, "Sigma_S");
        assert_close(group->parts[1].covariance[i], days[i], 1e-13, "Sigma_T");
    }
    assert_int_equal((int)fit_library_value(&group->parts[0], "machines"), 3);
    assert_int_equal((int)fit_library_value(&group->parts[1], "repeated"), 2);
    assert_true(group->domain[0].minimum == 1 && group->domain[0].maximum == 11);
}

/* Squares of distances by hand: of three machines in two directions all are (P - 1)^2 / P; those of runs are
 * (x - mean)' Sigma_T^-1 (x - mean) n / (n - 1), and there are none of the machine that was seen once. */
TEST(distances) {
    struct host_table table = small_table();
    fit_library_fit(&table);
    const struct host_distances *of = &result.distances[0], *runs = &result.distances[1];
    assert_int_equal(of->told.count, 3);
    assert_int_equal(of->told.left_out, 0);
    assert_int_equal(of->told.freedom, 2);
    for (size_t i = 0; i < 3; i++) {
        assert_close(of->items[i].square, 4.0 / 3, 1e-12, "square");
        assert_close(of->items[i].p, exp(-2.0 / 3), 1e-12, "p");
        assert_string_equal(of->parts[i], "typical");
        assert_close(of->items[i].expected, 6, 1e-14, "mu");
    }
    assert_string_equal(of->names[1], "node b");
    assert_int_equal(of->items[1].row, 1);
    assert_close(of->items[1].value, 5, 1e-14, "mean");
    assert_int_equal(runs->told.count, 5);
    assert_int_equal(runs->told.left_out, 1);
    static const struct {
        uint64_t row;
        double square;
    } expected[] = {{0, 12.0 / 7}, {4, 12.0 / 7}, {1, 18.0 / 7}, {3, 18.0 / 7}, {5, 9.0 / 7}};
    for (size_t i = 0; i < 5; i++) {
        assert_int_equal(runs->items[i].row, expected[i].row);
        assert_close(runs->items[i].square, expected[i].square, 1e-12, "square of a run");
    }
    /* The least square has the quantile of the first of five: 1 - exp(-q / 2) = 0.1. */
    assert_close(runs->items[4].quantile, -2 * log(0.9), 1e-12, "quantile");
    /* What is the same everywhere has no distance. */
    static double same[] = {3, 3, 3, 3, 3, 3};
    table.columns[1] = same;
    fit_library_fit(&table);
    assert_int_equal(result.distances[0].told.count, 0);
    assert_int_equal(result.distances[0].told.left_out, 3);
    assert_int_equal(result.distances[1].told.left_out, 6);
    /* A row that is left out is one all the same when rows are counted. */
    double gap[] = {NAN, 4, 11, 5, 3, 6};
    table = small_table();
    table.columns[0] = gap;
    fit_library_fit(&table);
    assert_int_equal(result.distances[1].items[0].row, 1);
}

/* Machines that differ by little beside what they are: the same covariances to the last digits, also where
 * means are no doubles. */
TEST(far_from_zero) {
    static double far_alpha[6], far_gamma[6];
    for (size_t i = 0; i < 6; i++) {
        far_alpha[i] = alpha[i] + 0x1p34;
        far_gamma[i] = gamma_[i] - 0x1p40;
    }
    far_alpha[5] += 0.5; /* b: mean 5 + 1/6 */
    struct host_table table = small_table();
    table.columns[0] = far_alpha;
    table.columns[1] = far_gamma;
    const struct host_group *group = fit_library_fit(&table);
    const double between[] = {2251.0 / 108, 40.5, 40.5, 81}, days[] = {31.0 / 18, 8.0 / 3, 8.0 / 3, 14.0 / 3};
    for (size_t i = 0; i < 4; i++) {
        assert_close(group->parts[0].covariance[i], between[i], 1e-14, "Sigma_S");
        assert_close(group->parts[1].covariance[i], days[i], 1e-14, "Sigma_T");
    }
}

/* The other estimators: the mean of each machine's covariance; Sigma_S less what the days put into it, whose
 * mean of 1 / days is (1/2 + 1/3 + 1) / 3 = 11/18. */
TEST(other_estimators) {
    struct host_table table = small_table();
    table.settings[0] = "days";
    table.values[0] = 1;
    table.setting_count = 1;
    host_fit(fit, &table, &result);
    /* of a [2, 4; 4, 8], of b [1, 1.5; 1.5, 3] */
    static const double means[] = {1.5, 2.75, 2.75, 5.5};
    for (size_t i = 0; i < 4; i++)
        assert_close(result.groups[0].parts[1].covariance[i], means[i], 1e-13, "mean of covariances");
    table.settings[0] = "between";
    host_fit(fit, &table, &result);
    static const double unbiased[] = {21 - 11.0 / 18 * 4 / 3, 40.5 - 11.0 / 18 * 7 / 3,
                                      40.5 - 11.0 / 18 * 7 / 3, 81 - 11.0 / 18 * 14 / 3};
    for (size_t i = 0; i < 4; i++)
        assert_close(result.groups[0].parts[0].covariance[i], unbiased[i], 1e-13, "unbiased Sigma_S");
    /* Machines that differ by less than days do: Sigma_S is not below 0. */
    static double same[] = {1, 9, 5.1, 1, 9.1, 9};
    table.columns[0] = same;
    table.terms = "alpha | node";
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].parts[0].covariance[0] >= 0 &&
                result.groups[0].parts[0].covariance[0] < 1e-12);
    assert_says(result.groups[0].notes, "the days alone explain more");
}

/* ---- Several populations */

enum { MACHINES = 200, DAYS = 3 };
static double speeds[MACHINES * DAYS], offsets[MACHINES * DAYS];
static uint32_t machines[MACHINES * DAYS];
static char machine_texts[MACHINES][16];
static const char *machine_names[MACHINES];

/* Every tenth machine is slow. */
static struct host_table make_slow_nodes(void) {
    drawn_bits = 17;
    for (uint32_t m = 0; m < MACHINES; m++) {
        double speed = (m % 10 ? 7e-11 : 9e-11) + 1e-12 * draw_normal();
        double offset = 2e-6 + 3e4 * (speed - 7e-11) * 0.1 + 1e-7 * draw_normal();
        snprintf(machine_texts[m], sizeof machine_texts[m], "m%03u", m);
        machine_names[m] = machine_texts[m];
        for (uint32_t d = 0; d < DAYS; d++) {
            machines[d * MACHINES + m] = m;
            speeds[d * MACHINES + m] = speed + 1e-13 * draw_normal();
            offsets[d * MACHINES + m] = offset + 1e-8 * draw_normal();
        }
    }
    return (struct host_table){.names = {"speed", "offset"},
                               .columns = {speeds, offsets},
                               .column_count = 2,
                               .rows = MACHINES * DAYS,
                               .category_names = {"host"},
                               .categories = {machines},
                               .levels = {machine_names},
                               .level_counts = {MACHINES},
                               .category_count = 1,
                               .response = "speed",
                               .terms = "offset",
                               .settings = {"components"},
                               .values = {0},
                               .setting_count = 1,
                               .seed = 1};
}

TEST(slow_nodes) {
    struct host_table table = make_slow_nodes();
    const struct host_group *group = fit_library_fit(&table);
    assert_int_equal(group->part_count, 3);
    assert_string_equal(group->parts[0].name, "typical");
    assert_string_equal(group->parts[1].name, "slow");
    assert_close(fit_library_value(&group->parts[1], "weight"), 0.1, 1e-6, "slow share");
    assert_int_equal(result.distances[0].told.count, MACHINES);
    for (size_t i = 0; i < MACHINES; i++) {
        const char *name = result.distances[0].names[i];
        bool slow = name[strlen(name) - 1] == '0';
        assert_string_equal(result.distances[0].parts[i], slow ? "slow" : "typical");
    }
    assert_close(fit_library_value(&group->parts[0], "slow_share"), 0.1, 1e-6, "slow share");
    assert_close(group->parts[0].estimates[0].estimate, 7e-11, 0.01, "mu");
    assert_close(group->parts[1].estimates[0].estimate, 9e-11, 0.01, "mu");
    assert_close(sqrt(group->parts[0].covariance[0]), 1e-12, 0.2, "deviation");
    struct host_part first = group->parts[1];
    host_fit(fit, &table, &result);
    assert_memory_equal(&first.estimates[0], &group->parts[1].estimates[0], sizeof first.estimates[0]);
    assert_memory_equal(first.covariance, group->parts[1].covariance, 4 * sizeof(double));
    /* One population of the same machines is less likely, and its parts are what moments say. */
    double bic = fit_library_value(&group->parts[0], "bic");
    table.values[0] = 1;
    host_fit(fit, &table, &result);
    assert_true(fit_library_value(&group->parts[0], "bic") > bic);
    assert_close(group->parts[0].estimates[0].estimate, 7.2e-11, 0.01, "mu");
    table.values[0] = 4;
    host_fit(fit, &table, &result);
    assert_int_equal(group->part_count, 5);
}

/* The likelihood of one normal, by its formula: machines (log det + p (1 + log 2 pi)) / -2, with the
 * covariance of maximum likelihood. */
TEST(likelihood) {
    struct host_table table = make_slow_nodes();
    table.values[0] = 1;
    host_fit(fit, &table, &result);
    const double *sigma = result.groups[0].parts[0].covariance;
    double shrink = (MACHINES - 1.0) / MACHINES, n = MACHINES;
    double determinant = (sigma[0] * sigma[3] - sigma[1] * sigma[2]) * shrink * shrink;
    double expected = -0.5 * n * (log(determinant) + 2 * (1 + log(6.283185307179586)));
    assert_close(host_value(&result.groups[0], "log_likelihood"), expected, 1e-10, "likelihood");
    assert_close(host_value(&result.groups[0], "bic"), -2 * expected + 5 * log(n), 1e-10, "BIC");
}

/* ---- Odd tables */

TEST(odd_rows) {
    struct host_table table = small_table();
    double with_gap[] = {1, 4, NAN, 5, 3, INFINITY};
    table.columns[0] = with_gap;
    host_fit(fit, &table, &result);
    assert_int_equal(result.groups[0].rows, 4);
    assert_int_equal((int)fit_library_value(&result.groups[0].parts[0], "machines"), 2);
    assert_says(result.groups[0].notes, "2 rows left out");
    assert_says(result.groups[0].notes, "2 machines for 2 coefficients");
    double alone[] = {1, NAN, NAN, NAN, 3, NAN};
    table.columns[0] = alone;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_says(result.groups[0].reason, "1 machine; expected at least 2");
    double equal[] = {2, 2, 2, 2, 2, 2};
    table.columns[0] = equal;
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].fitted && result.groups[0].parts[0].covariance[0] == 0);
    assert_says(result.groups[0].notes, "alpha is the same on all machines");
    static const uint32_t once[] = {0, 1, 2, 3, 4, 5};
    static const char *const six[] = {"a", "b", "c", "d", "e", "f"};
    table = small_table();
    table.categories[0] = once;
    table.levels[0] = six;
    table.level_counts[0] = 6;
    host_fit(fit, &table, &result);
    assert_says(result.groups[0].notes, "every machine has one row");
    assert_false(result.groups[0].parts[1].has_covariance);
    table.settings[0] = "components";
    table.values[0] = 4;
    table.setting_count = 1;
    host_fit(fit, &table, &result);
    assert_says(result.groups[0].reason, "no mixture of 4 populations was found");
}

/* Machines of one group are not those of another, though they are called the same. */
TEST(groups) {
    struct host_table table = small_table();
    static const uint32_t of[] = {0, 0, 0, 1, 1, 1};
    table.groups = of;
    table.group_count = 2;
    host_fit(fit, &table, &result);
    assert_int_equal((int)fit_library_value(&result.groups[0].parts[0], "machines"), 3);
    assert_close(result.groups[0].estimates[0].estimate, 16.0 / 3, 1e-14, "mu");
    assert_int_equal((int)fit_library_value(&result.groups[1].parts[0], "machines"), 2);
    assert_close(result.groups[1].estimates[0].estimate, (5.5 + 3) / 2, 1e-14, "mu");
}

TEST(refusals) {
    static const char *const wrong[][2] = {
        {"gama | node", "there is no column 'gama' (terms 'gama | node'); did you mean 'gamma'?"},
        {"gamma | nod", "did you mean 'node'?"},
        {"gamma + gamma | node", "the coefficient 'gamma' is given twice"},
        {"gamma | alpha", "'alpha' cannot be a coefficient and tell the machines apart"},
        {"gamma | node, node", "'node' tells the machines apart twice"},
        {"gamma |", "'nothing' where the name of a column was expected"},
        {"gamma, alpha", "',"},
        {"`gamma", "a backquote that is not closed"},
        {"+", "'+' where the name"},
        {"gamma | node | node", "'| node' where ','"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        struct host_table table = small_table();
        table.terms = wrong[i][0];
        host_fit(fit, &table, &result);
        if (result.code != -EINVAL || !strstr(result.message.text, wrong[i][1]))
            fail_msg("terms '%s': %d '%s'; expected '%s'", wrong[i][0], result.code, result.message.text,
                     wrong[i][1]);
    }
    struct host_table table = small_table();
    table.category_names[0] = "rack";
    table.terms = "gamma";
    host_fit(fit, &table, &result);
    assert_says(result.message.text, "which columns tell the machines apart?");
    table = small_table();
    table.weights = "gamma";
    host_fit(fit, &table, &result);
    assert_says(result.message.text, "without weights");
    table = small_table();
    table.rows = 0;
    host_fit(fit, &table, &result);
    assert_says(result.message.text, "there are no rows");
}

TEST_GROUP(set_up, fit_library_close)
