/* The plugin fit-transfer: real tables against 40-digit arithmetic (data/README.md; skipped, aloud, where
 * that is not), the criteria by their derivatives, units, and what cannot be fitted. */
#include "engine/documents/csv.h"
#include "engine/numerics/distribution.h"
#include "tests/unit/fit/fitted.h"

enum { ROWS_MAX = 400 };
enum criterion { TIME, BANDWIDTH, LOG };
static const char *const criteria[] = {"criterion=time", "criterion=bandwidth", "criterion=log"};
static double sizes[ROWS_MAX], durations[ROWS_MAX], weights[ROWS_MAX];

static struct table_of table_of(size_t rows, enum criterion criterion) {
    return (struct table_of){.method = "transfer",
                             .names = {"duration", "size", "w"},
                             .columns = {durations, sizes, weights},
                             .rows = rows,
                             .settings = {criteria[criterion]}};
}

/* ---- Trusted answers */

/* Latency, bandwidth and residual sum of squares of every certified table, to 1e-12. */
TEST(certified) {
    char path[8192], text[1024], dataset[128], name[256];
    double n, latency, inverse, bandwidth, rss;
    size_t compared = 0;
    if (!test_data())
        skip();
    snprintf(path, sizeof path, "%s/mpi/transfer_certified.csv", test_data());
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(text, sizeof text, file));
    while (fgets(text, sizeof text, file)) {
        assert_int_equal(sscanf(text, "%127[^,],%*[^,],%lf,%lf,%lf,%lf,%lf", dataset, &n, &latency, &inverse,
                                &bandwidth, &rss),
                         6);
        struct table_of table = table_of(0, strstr(text, "log T") ? LOG : BANDWIDTH);
        char data[8192];
        snprintf(data, sizeof data, "%s/mpi/dahu_gros.csv", test_data());
        const char *const by[] = {"cluster", "experiment"};
        const struct fit_options options = {
            .response = "duration", .by = by, .by_count = 2, .settings = table.settings};
        assert_int_equal(fit_file("transfer", data, options, NULL), 0);
        for (size_t g = 0; g < fit->model->group_count; g++) {
            const struct model_group *group = &fit->model->groups[g];
            snprintf(name, sizeof name, "pycewise_data:%s/%s", group->labels[0], group->labels[1]);
            if (strcmp(name, dataset) != 0)
                continue;
            assert_true((double)group->rows == n);
            assert_close(group->parts[0].estimates[0].estimate, latency, 1e-12, name);
            assert_close(group->parts[0].estimates[1].estimate, inverse, 1e-12, name);
            assert_close(value_of(&group->parts[0], "bandwidth"), bandwidth, 1e-12, name);
            assert_close(value_of(&group->parts[0], "rss"), rss, 1e-12, name);
            compared++;
        }
    }
    fclose(file);
    assert_int_equal(compared, 12);
}

/* Table 2 of Shimokawabe et al.: B0 and t0 of a Cray XK6m; the model's own rows give them back. */
TEST(published) {
    static const double peaks[][2] = {{9.87e9, 3.75e-6}, {6.34e9, 41.5e-6}, {3.67e9, 6.07e-6}};
    for (size_t p = 0; p < 3; p++)
        for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
            for (size_t i = 0; i < 20; i++) {
                sizes[i] = ldexp(64, (int)i);
                durations[i] = sizes[i] / peaks[p][0] + peaks[p][1];
            }
            struct table_of table = table_of(20, criterion);
            const struct model_group *group = fitted_group(&table);
            const struct model_part *part = &group->parts[0];
            assert_close(value_of(part, "bandwidth"), peaks[p][0], 1e-12, "B0");
            assert_close(value_of(part, "latency"), peaks[p][1], 1e-12, "t0");
            assert_true(value_of(part, "rss") == 0 && isnan(value_of(part, "aic")));
            assert_true(is_noted(group, "the curve passes through all rows: the likelihood is not defined"));
            assert_true(part->estimates[0].standard_error == 0 && isnan(part->estimates[0].t));
        }
}

/* ---- What is least */

/* Sizes over nine decades; durations about a latency of 3 us and 4 GB/s. */
static void make_rows(size_t rows, double scatter) {
    for (size_t i = 0; i < rows; i++) {
        sizes[i] = floor(pow(10, 9 * test_random())) + 1;
        double noise = scatter * (test_random() + test_random() + test_random() - 1.5);
        durations[i] = (3e-6 + sizes[i] / 4e9) * exp(noise);
        weights[i] = i % 7 == 3 ? 0 : 1 + (double)(i % 4);
    }
}

/* The criterion's gradient vanishes at the estimates. */
static void assert_least(const struct model_group *group, size_t rows, enum criterion criterion,
                         bool weighted) {
    const struct model_part *part = &group->parts[0];
    long double t0 = part->estimates[0].estimate, b = part->estimates[1].estimate;
    long double rss = 0, gradient[2] = {0}, magnitude[2] = {0};
    for (size_t i = 0; i < rows; i++) {
        long double s = sizes[i], t = durations[i], m = t0 + s * b, w = weighted ? weights[i] : 1;
        long double residual = criterion == TIME ? t - m : criterion == LOG ? logl(t / m) : s / t - s / m;
        long double slope = criterion == TIME ? -1 : criterion == LOG ? -1 / m : s / m / m;
        const long double v[] = {slope, slope * s};
        rss += w * residual * residual;
        for (size_t j = 0; j < 2; j++) {
            gradient[j] += w * residual * v[j];
            magnitude[j] += fabsl(w * residual * v[j]);
        }
    }
    for (size_t j = 0; j < 2; j++)
        if (!(fabsl(gradient[j]) <= 1e-11L * magnitude[j]))
            fail_msg("the derivative by %zu is %Lg of %Lg", j, gradient[j], magnitude[j]);
    long double variance = rss / (long double)(group->rows - 2);
    assert_close(value_of(part, "rss"), (double)rss, 1e-12, "rss");
    assert_close(part->estimates[0].standard_error, sqrt(part->covariance[0]), 1e-12, "standard error");
    assert_close(value_of(part, "criterion_sigma"), sqrt((double)variance), 1e-12, "sigma");
}

TEST(what_is_least) {
    for (unsigned seed = 0; seed < 6; seed++)
        for (enum criterion criterion = TIME; criterion <= LOG; criterion++)
            for (int weighted = 0; weighted < 2; weighted++) {
                test_seed = seed;
                make_rows(200, 0.1 + 0.15 * seed);
                struct table_of table = table_of(200, criterion);
                table.weights = weighted ? "w" : NULL;
                const struct model_group *group = fitted_group(&table);
                assert_int_equal(group->rows, weighted ? 171 : 200);
                assert_least(group, 200, criterion, weighted);
            }
}

/* Five transfers, of which the nearest linear problem leads into the wrong one of two minima. */
TEST(several_minima) {
    static const double rows[][2] = {{1e3, 1e-3}, {2e3, 1e-7}, {3e8, 0.004}, {4e8, 0.006}, {5e8, 0.006}};
    for (size_t i = 0; i < 5; i++) {
        sizes[i] = rows[i][0];
        durations[i] = rows[i][1];
    }
    struct table_of table = table_of(5, BANDWIDTH);
    double found = value_of(&fitted_group(&table)->parts[0], "rss");
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

/* ---- Intervals */

/* 95 % intervals, of the mean and of one duration, over sizes of 1 By to 64 MiB with noise that is constant,
 * in proportion to the mean, or both. */
TEST(intervals) {
    static const double noises[][2] = {{2e-7, 0}, {0, 0.1}, {5e-7, 0.05}}, at[] = {1, 5e4, 0x1p26};
    unsigned rounds =
        getenv("ASSAY_TEST_ALL") ? 300 : 6; /* 18 fits a criterion say little of what is above 95 % */
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        double inside[2] = {0}, all = 0;
        for (unsigned round = 0; round < rounds * 3; round++) {
            const double *noise = noises[round % 3];
            test_seed = round + 1;
            for (size_t i = 0; i < 30; i++) {
                sizes[i] = floor(exp2(26 * (double)i / 29));
                double mean = 5e-6 + 1e-10 * sizes[i];
                durations[i] = mean + (noise[0] + noise[1] * mean) * test_normal();
            }
            struct table_of table = table_of(30, criterion);
            const struct model_part *part = &fitted_group(&table)->parts[0];
            double freedom = value_of(part, "degrees_of_freedom");
            const double *v = part->covariance, *share = part->noise.coefficients;
            for (size_t j = 0; j < 3; j++, all++) {
                double mean = 5e-6 + 1e-10 * at[j];
                double found = part->estimates[0].estimate + part->estimates[1].estimate * at[j];
                double error = sqrt(v[0] + 2 * v[1] * at[j] + v[3] * at[j] * at[j]);
                double deviation = part->noise.constant + (share ? share[1] * at[j] : 0);
                double one = mean + (noise[0] + noise[1] * mean) * test_normal();
                inside[0] += distribution_student_two_sided((found - mean) / error, freedom) > 0.05;
                inside[1] +=
                    distribution_student_two_sided((found - one) / hypot(error, deviation), freedom) > 0.05;
            }
        }
        for (size_t k = 0; k < 2; k++)
            if (!(inside[k] >= 0.92 * all && inside[k] <= (rounds > 6 ? 0.975 : 1) * all))
                fail_msg("%s: %g %% of %g intervals of %s", criteria[criterion], 100 * inside[k] / all, all,
                         k ? "one duration" : "the mean");
    }
}

/* Few rows are said to be. */
TEST(few_rows) {
    test_seed = 2;
    make_rows(10, 0.1);
    struct table_of table = table_of(10, BANDWIDTH);
    const struct model_group *group = fitted_group(&table);
    assert_true(is_noted(group, "10 rows are few") && group->parts[0].covariance[0] > 0);
    assert_true(value_of(&group->parts[0], "degrees_of_freedom") <= 8);
}

/* ---- Derived quantities and units */

TEST(derived_quantities) {
    test_seed = 5;
    make_rows(100, 0.3);
    struct table_of table = table_of(100, LOG);
    const struct model_part *part = &fitted_group(&table)->parts[0];
    double t0 = part->estimates[0].estimate, b = part->estimates[1].estimate, n = 100, likelihood = 0;
    const double *v = part->covariance, g[] = {1 / b, -t0 / b / b};
    assert_close(value_of(part, "bandwidth_standard_error"), sqrt(v[3]) / b / b, 1e-12, "its error");
    assert_close(value_of(part, "half_size"), t0 / b, 1e-13, "half size");
    assert_close(value_of(part, "half_size_standard_error"),
                 sqrt(g[0] * g[0] * v[0] + 2 * g[0] * g[1] * v[1] + g[1] * g[1] * v[3]), 1e-10, "its error");
    double share = value_of(part, "criterion_sigma"), variance = value_of(part, "rss") / n;
    assert_int_equal(part->noise.kind, MODEL_NOISE_HETEROSCEDASTIC);
    assert_close(part->noise.constant, share * t0, 0.2, "noise of the latency"); /* in proportion */
    assert_close(part->noise.coefficients[1], share * b, 0.2, "noise of the bandwidth");
    for (size_t i = 0; i < 100; i++) { /* that of a log-normal duration */
        double u = log(durations[i] / (t0 + sizes[i] * b));
        likelihood += -0.5 * log(2 * M_PI * variance) - u * u / 2 / variance - log(durations[i]);
    }
    assert_close(value_of(part, "log_likelihood"), likelihood, 1e-12, "log likelihood");
    assert_close(value_of(part, "bic"), 3 * log(n) - 2 * likelihood, 1e-12, "BIC");
}

/* The same transfers in other units, and as bandwidths: latency and bandwidth stay. */
TEST(units) {
    static double kibi[ROWS_MAX], milli[ROWS_MAX], rates[ROWS_MAX];
    static const char *const words[] = {"bandwidth", "bandwidth_standard_error", "latency",
                                        "half_size", "criterion_sigma",          "log_likelihood"};
    double plain[6];
    test_seed = 7;
    make_rows(150, 0.3);
    for (size_t i = 0; i < 150; i++) {
        kibi[i] = sizes[i] / 1024;
        milli[i] = durations[i] * 1e3;
        rates[i] = sizes[i] / durations[i] / 1e9;
    }
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        struct table_of table = table_of(150, criterion);
        const struct model_part *part = &fitted_group(&table)->parts[0];
        for (size_t i = 0; i < 6; i++)
            plain[i] = value_of(part, words[i]);
        table.columns[0] = milli, table.columns[1] = kibi;
        table.units[0] = "ms", table.units[1] = "KiBy";
        part = &fitted_group(&table)->parts[0];
        for (size_t i = 0; i < 6; i++)
            assert_close(value_of(part, words[i]), plain[i], 1e-10, words[i]);
        table.columns[0] = rates, table.columns[1] = sizes;
        table.units[0] = "GBy/s", table.units[1] = "By";
        part = &fitted_group(&table)->parts[0];
        assert_string_equal(fit->model->kind, "harmonic");
        for (size_t i = 0; i < 6; i++)
            assert_close(value_of(part, words[i]), plain[i], 1e-10, words[i]);
        assert_close(part->estimates[0].estimate, plain[0], 1e-10, "B0 is the estimate of 1");
        assert_close(part->estimates[0].standard_error, plain[1], 1e-10, "its error");
        assert_close(part->estimates[1].estimate, 1 / plain[2], 1e-10, "1/t0 is the estimate of the size");
        assert_true((part->noise.kind == MODEL_NOISE_HOMOSCEDASTIC) == (criterion == BANDWIDTH));
    }
}

/* ---- What is not as it should be */

TEST(too_little) {
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        for (size_t i = 0; i < 3; i++)
            sizes[i] = 8, durations[i] = 1 + (double)i;
        struct table_of table = table_of(1, criterion);
        assert_says(fitted_refusal(&table), "1 row for 2 terms");
        table.rows = 3;
        assert_says(fitted_refusal(&table), "only 1 of 2 terms can be estimated: size is 8");
        sizes[1] = 16;
        table.rows = 2;
        const struct model_group *group = fitted_group(&table);
        assert_close(group->parts[0].estimates[1].estimate, 0.125, 1e-12, "1/B0");
        assert_true(!group->parts[0].covariance && is_noted(group, "as many rows as terms"));
    }
}

TEST(odd_rows) {
    test_seed = 1;
    make_rows(50, 0.1);
    sizes[3] = -4, durations[4] = 0, durations[5] = -1, durations[6] = NAN;
    struct table_of table = table_of(50, LOG);
    const struct model_group *group = fitted_group(&table);
    assert_int_equal(group->rows, 46);
    assert_true(is_noted(group, "3 rows left out: a size below 0 or a duration that is not above 0"));
    table.settings[0] = criteria[TIME];
    group = fitted_group(&table);
    assert_true(group->rows == 48 && is_noted(group, "1 durations are below 0"));
    for (size_t i = 0; i < 20; i++) { /* durations that fall with the size */
        sizes[i] = (double)(i + 1);
        durations[i] = 2 - 0.01 * (double)i + 0.001 * sin((double)i);
    }
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        table = table_of(20, criterion);
        group = fitted_group(&table);
        assert_true(is_noted(group, "do not grow"));
        assert_true(criterion == TIME ? group->parts[0].estimates[1].estimate < 0
                                      : group->parts[0].estimates[1].estimate == 0);
        assert_true(criterion == TIME || (isnan(value_of(&group->parts[0], "bandwidth")) &&
                                          is_noted(group, "an infinite bandwidth")));
    }
}

TEST(extremes) {
    for (enum criterion criterion = TIME; criterion <= LOG; criterion++) {
        struct table_of table = table_of(40, criterion);
        for (size_t i = 0; i < 40; i++) {
            sizes[i] = 1 + (double)i;
            durations[i] = 1e-300 * (3 + sizes[i] * (1 + 1e-3 * sin((double)i)));
        }
        fitted_table(&table); /* fitted or skipped, but no failure */
        assert_non_null(fit);
        for (size_t i = 0; i < 40; i++)
            durations[i] *= 1e300 * 1e-66;
        assert_true(fitted_group(&table)->parts[0].estimates[1].standard_error > 0);
        for (size_t i = 0; i < 40; i++)
            durations[i] *= 1e66 * 1e-300;
        for (size_t i = 0; i < 40; i++)
            durations[i] *= 1e300 * 1e200;
        assert_non_null(fitted_table(&table));
    }
}

TEST(refusals) {
    make_rows(10, 0.1);
    struct table_of table = table_of(10, LOG);
    table.units[0] = "W";
    assert_says(fitted_refusal(&table), "has the unit 'W'; expected a unit that converts to 's'");
    table.units[0] = NULL;
    table.units[1] = "s";
    assert_says(fitted_refusal(&table), "the column of size, 'size', has the unit 's'");
    table.units[1] = NULL;
    table.names[1] = "length";
    assert_says(fitted_refusal(&table), "no column is given for size");
    table.names[1] = "size";
    table.names[0] = "bandwidth";
    assert_says(fitted_refusal(&table), "the response 'bandwidth' has no unit");
    table.settings[0] = "criterion=loge";
    assert_says(fitted_refusal(&table), "there is no 'loge'");
}

TEST_GROUP(fitted_set_up, fitted_tear_down)
