/* The plugin fit-transfer: what is least is checked by its derivatives in long double, not by the plugin's
 * own way to it. */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

enum { ROWS_MAX = 400 };

static struct plugin_library *linear_library;
static const struct fit_operations *linear;
static struct host_result other; /* large */
static double sizes[ROWS_MAX], durations[ROWS_MAX], weights[ROWS_MAX];

static int set_up(void **state) {
    if (fit_library_open("fit-linear") < 0)
        return -1;
    linear = fit;
    linear_library = library;
    return fit_library_open("fit-transfer");
}

static int tear_down(void **state) {
    plugin_library_close(linear_library);
    return fit_library_close(state);
}

enum criterion { TIME, BANDWIDTH, LOG };

static struct host_table table_of(size_t rows, enum criterion criterion) {
    return (struct host_table){
        .names = {"size", "duration", "w"},
        .columns = {sizes, durations, weights},
        .column_count = 3,
        .rows = rows,
        .response = "duration",
        .settings = {"criterion"},
        .values = {criterion},
        .setting_count = 1,
    };
}

/* Sizes over nine decades; durations about a latency of 3 us and 4 GB/s. */
static void make_rows(size_t rows, double scatter) {
    for (size_t i = 0; i < rows; i++) {
        sizes[i] = floor(pow(10, 9 * test_random())) + 1;
        double noise = scatter * (test_random() + test_random() + test_random() - 1.5);
        durations[i] = (3e-6 + sizes[i] / 4e9) * exp(noise);
        weights[i] = i % 7 == 3 ? 0 : 1 + (double)(i % 4);
    }
}

/* Criterion, gradient and J'J at estimates, each in long double; gradients in parts of the sum of their
 * magnitudes. */
struct check {
    long double rss, gradient[2], magnitude[2], jacobian[3];
};

static struct check check_at(size_t rows, enum criterion criterion, long double t0, long double b,
                             bool weighted) {
    struct check ret = {0};
    for (size_t i = 0; i < rows; i++) {
        long double s = sizes[i], t = durations[i], m = t0 + s * b, w = weighted ? weights[i] : 1;
        long double residual = criterion == TIME ? t - m : criterion == LOG ? logl(t / m) : s / t - s / m;
        long double slope = criterion == TIME ? -1 : criterion == LOG ? -1 / m : s / m / m;
        const long double v[] = {slope, slope * s};
        ret.rss += w * residual * residual;
        for (size_t j = 0; j < 2; j++) {
            ret.gradient[j] += w * residual * v[j];
            ret.magnitude[j] += fabsl(w * residual * v[j]);
        }
        ret.jacobian[0] += w * v[0] * v[0];
        ret.jacobian[1] += w * v[0] * v[1];
        ret.jacobian[2] += w * v[1] * v[1];
    }
    return ret;
}

static void assert_least(const struct host_group *group, size_t rows, enum criterion criterion,
                         bool weighted) {
    double t0 = group->estimates[0].estimate, b = group->estimates[1].estimate;
    struct check check = check_at(rows, criterion, t0, b, weighted);
    for (size_t j = 0; j < 2; j++)
        if (!(fabsl(check.gradient[j]) <= 1e-12L * check.magnitude[j]))
            fail_msg("the derivative by %zu is %Lg of %Lg", j, check.gradient[j], check.magnitude[j]);
    assert_close(host_value(group, "rss"), (double)check.rss, 1e-14, "rss");
    long double variance = check.rss / (long double)(group->rows - 2);
    long double determinant = check.jacobian[0] * check.jacobian[2] - check.jacobian[1] * check.jacobian[1];
    assert_close(group->covariance[0], (double)(variance * check.jacobian[2] / determinant), 1e-12,
                 "variance of the latency");
    assert_close(group->covariance[1], (double)(-variance * check.jacobian[1] / determinant), 1e-12,
                 "covariance");
    assert_close(group->covariance[3], (double)(variance * check.jacobian[0] / determinant), 1e-12,
                 "variance of 1/B0");
    assert_close(group->estimates[0].standard_error, sqrt(group->covariance[0]), 1e-15, "standard error");
    assert_close(host_value(group, "criterion_sigma"), sqrt((double)variance), 1e-14, "sigma");
}

TEST(what_is_least) {
    for (unsigned seed = 0; seed < 20; seed++)
        for (enum criterion criterion = TIME; criterion <= LOG; criterion++)
            for (int weighted = 0; weighted < 2; weighted++) {
                test_seed = seed;
                make_rows(200, 0.1 + 0.05 * seed);
                struct host_table table = table_of(200, criterion);
                table.weights = weighted ? "w" : NULL;
                const struct host_group *group = fit_table(&table);
                assert_string_equal(result.kind, "linear");
                assert_int_equal(group->rows, weighted ? 171 : 200);
                assert_least(group, 200, criterion, weighted);
            }
}

/* The criterion `time` is what fit-linear does. */
TEST(time_is_linear) {
    test_seed = 3;
    make_rows(300, 0.4);
    struct host_table table = table_of(300, TIME);
    table.weights = "w";
    const struct host_group *group = fit_table(&table);
    table.terms = "1+size";
    table.setting_count = 0;
    host_fit(linear, &table, &other);
    assert_int_equal(other.code, 0);
    for (size_t t = 0; t < 2; t++) {
        assert_close(group->estimates[t].estimate, other.groups[0].estimates[t].estimate, 1e-15, "estimate");
        assert_close(group->estimates[t].standard_error, other.groups[0].estimates[t].standard_error, 1e-15,
                     "standard error");
        assert_close(group->estimates[t].p, other.groups[0].estimates[t].p, 1e-13, "p");
    }
    static const char *const words[] = {"sigma", "rss", "r2", "log_likelihood", "aic", "bic"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_close(host_value(group, words[i]), host_value(&other.groups[0], words[i]), 1e-13, words[i]);
    assert_string_equal(group->domain[0].name, "size");
}

/* What is told for people, by its definition. */
TEST(what_is_told) {
    test_seed = 5;
    make_rows(100, 0.3);
    struct host_table table = table_of(100, LOG);
    const struct host_group *group = fit_table(&table);
    double t0 = group->estimates[0].estimate, b = group->estimates[1].estimate;
    const double *v = group->covariance;
    assert_close(host_value(group, "bandwidth"), 1 / b, 1e-15, "bandwidth");
    assert_close(host_value(group, "bandwidth_standard_error"), sqrt(v[3]) / b / b, 1e-15, "its error");
    assert_close(host_value(group, "latency"), t0, 0, "latency");
    assert_close(host_value(group, "latency_standard_error"), sqrt(v[0]), 1e-15, "its error");
    double half = host_value(group, "half_size"), peak = host_value(group, "bandwidth");
    assert_close(half / (half / peak + t0), peak / 2, 1e-15, "bandwidth at the half size");
    double g[] = {1 / b, -t0 / b / b};
    assert_close(host_value(group, "half_size_standard_error"),
                 sqrt(g[0] * g[0] * v[0] + 2 * g[0] * g[1] * v[1] + g[1] * g[1] * v[3]), 1e-12, "its error");
    /* Noise is a share of the mean. */
    const struct host_part *part = &group->parts[0];
    double share = host_value(group, "criterion_sigma");
    assert_true(part->noisy && isnan(host_value(group, "sigma")));
    assert_string_equal(part->noise.kind, "N-2");
    assert_close(part->noise.constant, share * t0, 1e-15, "noise of the latency");
    assert_close(part->coefficients[1], share * b, 1e-15, "noise of the bandwidth");
    /* The likelihood is that of the durations: a log-normal's. */
    double likelihood = 0, n = 100, variance = host_value(group, "rss") / n;
    for (size_t i = 0; i < 100; i++) {
        double u = log(durations[i] / (t0 + sizes[i] * b));
        likelihood += -0.5 * log(2 * M_PI * variance) - u * u / 2 / variance - log(durations[i]);
    }
    assert_close(host_value(group, "log_likelihood"), likelihood, 1e-12, "log likelihood");
    assert_close(host_value(group, "bic"), 3 * log(n) - 2 * likelihood, 1e-12, "BIC");
}

/* The same transfers in other units, and as bandwidths: what is told is in SI units and does not change. */
TEST(units) {
    static double small[ROWS_MAX], milli[ROWS_MAX], rates[ROWS_MAX], bytes[ROWS_MAX];
    test_seed = 7;
    make_rows(150, 0.3);
    for (size_t i = 0; i < 150; i++) {
        small[i] = sizes[i] / 1024;
        milli[i] = durations[i] * 1e3;
        rates[i] = sizes[i] / durations[i] / 1e9;
        bytes[i] = sizes[i] / durations[i];
    }
    static const char *const words[] = {
        "bandwidth", "bandwidth_standard_error", "latency", "latency_standard_error",
        "half_size", "criterion_sigma",          "r2",      "log_likelihood"};
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        struct host_table table = table_of(150, criterion);
        struct host_group plain = *fit_table(&table);
        table.columns[0] = small;
        table.columns[1] = milli;
        table.units[0] = "KiBy";
        table.units[1] = "ms";
        const struct host_group *group = fit_table(&table);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            assert_close(host_value(group, words[i]), host_value(&plain, words[i]), 1e-12, words[i]);
        assert_close(group->estimates[0].estimate, plain.estimates[0].estimate * 1e3, 1e-13, "latency in ms");
        assert_close(group->estimates[1].estimate, plain.estimates[1].estimate * 1024e3, 1e-13, "ms/KiBy");
        assert_close(group->covariance[1], plain.covariance[1] * 1024e6, 1e-11, "covariance");
        assert_close(group->domain[0].maximum * 1024, plain.domain[0].maximum, 0, "domain");
        if (criterion == TIME)
            assert_close(host_value(group, "sigma"), host_value(&plain, "sigma") * 1e3, 1e-13, "sigma");
        table.columns[0] = sizes;
        table.columns[1] = rates;
        table.units[0] = "By";
        table.units[1] = "GBy/s";
        group = fit_table(&table);
        assert_string_equal(result.kind, "harmonic");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            assert_close(host_value(group, words[i]), host_value(&plain, words[i]), 1e-12, words[i]);
        double x = 12345; /* the reciprocal of the sum of the terms' reciprocals */
        double rate = 1 / (1 / group->estimates[0].estimate + 1 / (group->estimates[1].estimate * x));
        double time = plain.estimates[0].estimate + plain.estimates[1].estimate * x;
        assert_close(rate, x / time / 1e9, 1e-13, "bandwidth by the harmonic form");
        assert_close(group->estimates[0].standard_error * 1e9, host_value(group, "bandwidth_standard_error"),
                     1e-13, "standard error of B0");
        assert_close(group->covariance[0] * group->covariance[3] / group->covariance[1] /
                         group->covariance[1],
                     plain.covariance[0] * plain.covariance[3] / plain.covariance[1] / plain.covariance[1],
                     1e-11, "correlation");
        assert_true(group->parts[0].noisy == (criterion == BANDWIDTH));
        /* A CSV tells no unit: the parameter or the name does. */
        table.columns[1] = bytes;
        table.units[0] = table.units[1] = NULL;
        table.settings[1] = "response";
        table.values[1] = 2;
        table.setting_count = 2;
        assert_close(host_value(fit_table(&table), "latency"), host_value(&plain, "latency"), 1e-12,
                     "latency");
        table.setting_count = 1;
        table.names[1] = table.response = "bandwidth";
        assert_close(host_value(fit_table(&table), "latency"), host_value(&plain, "latency"), 1e-12,
                     "latency");
    }
}

/* Table 2 of the source: B0 and t0 of a Cray XK6m; the model's own rows give them back. */
TEST(published) {
    static const double peaks[][2] = {{9.87e9, 3.75e-6}, {6.34e9, 41.5e-6}, {3.67e9, 6.07e-6}};
    for (size_t p = 0; p < 3; p++)
        for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
            for (size_t i = 0; i < 20; i++) {
                sizes[i] = ldexp(64, (int)i);
                durations[i] = sizes[i] / peaks[p][0] + peaks[p][1];
            }
            struct host_table table = table_of(20, criterion);
            const struct host_group *group = fit_table(&table);
            assert_close(host_value(group, "bandwidth"), peaks[p][0], 1e-13, "B0");
            assert_close(host_value(group, "latency"), peaks[p][1], 1e-13, "t0");
            assert_close(host_value(group, "r2"), 1, 0, "R2");
            assert_true(host_value(group, "rss") == 0 && isnan(host_value(group, "aic")));
            assert_true(strstr(group->notes, "to its last digit") != NULL);
            assert_true(group->estimates[0].standard_error == 0 && isnan(group->estimates[0].t));
        }
}

/* Three transfers, of which the linear start leads into the wrong one of two lows. */
TEST(several_lows) {
    static const double rows[][2] = {{1e3, 1e-3}, {2e3, 1e-7}, {3e8, 0.004}, {4e8, 0.006}, {5e8, 0.006}};
    for (size_t i = 0; i < 5; i++) {
        sizes[i] = rows[i][0];
        durations[i] = rows[i][1];
    }
    struct host_table table = table_of(5, BANDWIDTH);
    double found = host_value(fit_table(&table), "rss");
    for (double half = 1e-3; half < 1e12; half *= 1.01) {
        double products = 0, squares = 0, total = 0;
        for (size_t i = 0; i < 5; i++) {
            double g = sizes[i] / (sizes[i] + half), bandwidth = sizes[i] / durations[i];
            products += g * bandwidth;
            squares += g * g;
            total += bandwidth * bandwidth;
        }
        if (total - products * products / squares < found * (1 - 1e-9))
            fail_msg("%g at %g is below %g", total - products * products / squares, half, found);
    }
}

/* ---- What is not as it should be */

static const char *skipped(const struct host_table *table) {
    host_fit(fit, table, &result);
    assert_int_equal(result.code, 0);
    assert_false(result.groups[0].fitted);
    return result.groups[0].reason;
}

TEST(too_little) {
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        sizes[0] = 8, sizes[1] = 8, sizes[2] = 8;
        durations[0] = 1, durations[1] = 2, durations[2] = 3;
        struct host_table table = table_of(1, criterion);
        assert_string_equal(skipped(&table), "1 row for 2 terms");
        table.rows = 3;
        assert_string_equal(skipped(&table), "rank 1 of 2: size is always 8");
        sizes[1] = 16;
        table.rows = 2;
        const struct host_group *group = fit_table(&table);
        assert_close(group->estimates[0].estimate, 0, 1e-15, "latency");
        assert_close(group->estimates[1].estimate, 0.125, 1e-14, "1/B0");
        assert_false(group->has_covariance);
        assert_true(strstr(group->notes, "as many rows as terms") && isnan(host_value(group, "aic")));
        /* All weights 0: as if there were no rows. */
        weights[0] = weights[1] = 0;
        table.weights = "w";
        assert_string_equal(skipped(&table), "0 rows for 2 terms");
        weights[1] = -1;
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, -EINVAL);
        assert_string_equal(result.message.text,
                            "the weight 'w' of table data row 2 is -1; expected 0 or more");
    }
}

TEST(what_is_left_out) {
    test_seed = 11;
    make_rows(50, 0.2);
    sizes[1] = NAN, durations[2] = INFINITY, sizes[3] = -5, durations[4] = 0, durations[5] = -1e-3;
    sizes[6] = 0;
    static const double left_out[] = {3, 6, 5};
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        struct host_table table = table_of(50, criterion);
        const struct host_group *group = fit_table(&table);
        assert_true(host_value(group, "rows_left_out") == left_out[criterion]);
        assert_int_equal(group->rows, 50 - (int)left_out[criterion]);
        assert_true(strstr(group->notes, "2 rows left out: a value is empty or not finite|") != NULL);
        assert_true((strstr(group->notes, "1 duration is below 0|") != NULL) == (criterion == TIME));
    }
}

/* Nothing is left of which to make errors: none is told, and none is 0. */
TEST(two_rows) {
    sizes[0] = 100, sizes[1] = 10000;
    durations[0] = 1e-5, durations[1] = 2e-5;
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        struct host_table table = table_of(2, criterion);
        const struct host_group *group = fit_table(&table);
        assert_close(host_value(group, "bandwidth"), 9900 / 1e-5, 1e-12, "bandwidth");
        assert_true(isnan(host_value(group, "bandwidth_standard_error")));
        assert_true(isnan(host_value(group, "latency_standard_error")));
        assert_true(isnan(host_value(group, "half_size_standard_error")));
    }
}

TEST(what_makes_no_sense) {
    /* Durations that fall. */
    for (size_t i = 0; i < 20; i++) {
        sizes[i] = 100 + 10 * (double)i;
        durations[i] = 1 - 0.003 * (double)i + 0.001 * (double)(i % 3);
    }
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        struct host_table table = table_of(20, criterion);
        const struct host_group *group = fit_table(&table);
        assert_true(host_value(group, "bandwidth") < 0);
        assert_true(strstr(group->notes, "durations do not grow with the size|") != NULL);
        assert_least(group, 20, criterion, false);
    }
    /* A latency below 0. */
    for (size_t i = 0; i < 20; i++)
        durations[i] = 0.01 * (sizes[i] - 90) + 0.001 * (double)(i % 3);
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        struct host_table table = table_of(20, criterion);
        const struct host_group *group = fit_table(&table);
        assert_true(host_value(group, "latency") < 0);
        assert_true(strstr(group->notes, "the latency is below 0") != NULL);
        assert_least(group, 20, criterion, false);
    }
    /* One that never changes: its bandwidth has no end. */
    for (size_t i = 0; i < 20; i++)
        durations[i] = 0.5;
    struct host_table table = table_of(20, TIME);
    const struct host_group *group = fit_table(&table);
    assert_true(isnan(host_value(group, "r2")) && isnan(host_value(group, "bandwidth")));
    assert_true(strstr(group->notes, "the duration is constant: R2 is not defined") != NULL);
}

/* Sizes that differ in their last digits only, and scales from 1e-12 to 1e12. */
TEST(extremes) {
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        for (size_t i = 0; i < 40; i++) {
            sizes[i] = 1e9 + (double)i;
            durations[i] = 1 + 1e-3 * (double)i + 1e-4 * (double)(i % 5);
        }
        struct host_table table = table_of(40, criterion);
        const struct host_group *group = fit_table(&table);
        assert_close(group->estimates[1].estimate, 1e-3, 0.01, "slope");
        for (size_t i = 0; i < 40; i++) {
            sizes[i] = pow(10, -12 + 24 * (double)i / 39);
            durations[i] = (1e-12 + sizes[i]) * (1 + 0.01 * (double)(i % 3));
        }
        group = fit_table(&table);
        assert_close(group->estimates[1].estimate, 1, 0.05, "slope");
        for (size_t i = 0; i < 40; i++)
            durations[i] *= 1e200;
        host_fit(fit, &table, &result);
        assert_true(result.groups[0].fitted ||
                    strstr(result.groups[0].reason, "beyond the range of a double"));
    }
}

TEST(refusals) {
    make_rows(10, 0.1);
    struct host_table table = table_of(10, LOG);
    table.terms = "1+size";
    host_fit(fit, &table, &result);
    assert_true(result.code == -EINVAL && strstr(result.message.text, "this method has its own"));
    table.suggested = true;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    table.terms = NULL;
    table.sizes[0] = "sizes";
    table.size_count = 1;
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text, "there is no size column 'sizes'; did you mean 'size'?");
    table.sizes[1] = "w";
    table.size_count = 2;
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text, "2 sizes ('sizes', 'w'); expected one column");
    table.sizes[0] = "duration";
    table.size_count = 1;
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text, "'duration' is both the size and the response");
    table.size_count = 0;
    table.names[0] = "x";
    host_fit(fit, &table, &result);
    assert_true(result.code == -EINVAL && strstr(result.message.text, "which column is the size?"));
    table.units[0] = "By";
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    table.units[1] = "J";
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text,
                        "the response 'duration' is in 'J'; expected a time or a bandwidth");
    table.units[1] = "s";
    table.settings[1] = "response";
    table.values[1] = 2;
    table.setting_count = 2;
    host_fit(fit, &table, &result);
    assert_true(strstr(result.message.text, "is in 's', which is no bandwidth") != NULL);
    table.rows = 0;
    table.setting_count = 0;
    host_fit(fit, &table, &result);
    assert_true(result.code == -EINVAL && strstr(result.message.text, "there are no rows"));
}

TEST_GROUP(set_up, tear_down)
