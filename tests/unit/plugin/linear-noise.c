/* fit-linear's noise: against answers in closed form, against the likelihood itself, against the rule of
 * peanut and cashew on real data (data/README.md; skipped, aloud, where that is not), and where nothing can
 * be found. Linked to the plugin's own sources. */
#include "engine/documents/csv.h"
#include "engine/foundation/text.h"
#include "plugins/fit-linear/noise-rule.h"
#include "plugins/fit-linear/noise.h"
#include "tests/test.h"
#include "tests/unit/plugin/fit-host.h"
#include "tests/unit/plugin/gzip-file.h"

#include <unistd.h>

enum { ROWS_MAX = 40000 };

extern const struct assay_plugin assay_plugin;
static const struct fit_operations *fit;
static struct host_result result;
static double columns[5][ROWS_MAX]; /* x, z, w, y ... */
static uint32_t groups[ROWS_MAX];
static double random_normal(void) {
    return sqrt(-2 * log(test_random())) * cos(2 * M_PI * test_random());
}

static struct host_table table_of(size_t rows, const char *terms, enum noise_kind kind) {
    return (struct host_table){.names = {"x", "z", "w", "y"},
                               .columns = {columns[0], columns[1], columns[2], columns[3]},
                               .column_count = 4,
                               .rows = rows,
                               .response = "y",
                               .terms = terms,
                               .seed = 3,
                               .settings = {"noise"},
                               .values = {kind},
                               .setting_count = 1};
}

static struct host_table set(struct host_table table, const char *name, double value) {
    table.settings[table.setting_count] = name;
    table.values[table.setting_count++] = value;
    return table;
}

static const struct host_part *fit_table(const struct host_table *table) {
    host_fit(fit, table, &result);
    assert_int_equal(result.code, 0);
    assert_true(result.groups[0].fitted);
    return &result.groups[0].parts[0];
}

static void assert_near(double value, double expected, double tolerance) {
    if (!(fabs(value - expected) <= tolerance * fabs(expected)))
        fail_msg("%.17g, expected %.17g", value, expected);
}

static double value_of(const char *name) {
    return host_value(&result.groups[0], name);
}

/* ---- Closed forms */

TEST(constant) {
    const double y[] = {1, 2, 4, 9};
    memcpy(columns[3], y, sizeof y);
    struct host_table table = table_of(4, "1", NOISE_AUTO);
    const struct host_part *part = fit_table(&table);
    assert_string_equal(part->noise.kind, "N-1");
    assert_string_equal(part->noise.distribution, "normal");
    assert_string_equal(part->noise.method, "least-squares");
    assert_near(part->noise.constant, sqrt(38.0 / 3), 1e-15);
    assert_null(part->noise.coefficients);
    table.values[0] = NOISE_0;
    assert_false(fit_table(&table)->noisy);
}

/* Two levels, each with rows of its own: mean and sigma of each are free, so they are those of its rows
 * alone. */
TEST(two_levels) {
    const double low[] = {1, 2, 2.5, 4, 3, 1.5}, high[] = {10, 16, 25, 2, 8};
    double mean[2] = {14.0 / 6, 61.0 / 5}, squares[2] = {0, 0};
    for (size_t i = 0; i < 11; i++) {
        bool is_high = i >= 6;
        columns[0][i] = is_high;
        columns[3][i] = is_high ? high[i - 6] : low[i];
        squares[is_high] += (columns[3][i] - mean[is_high]) * (columns[3][i] - mean[is_high]);
    }
    double sigma[2] = {sqrt(squares[0] / 6), sqrt(squares[1] / 5)};
    struct host_table table = table_of(11, "1 + x", NOISE_2);
    const struct host_part *part = fit_table(&table);
    assert_string_equal(part->noise.kind, "N-2");
    assert_string_equal(part->noise.method, "maximum-likelihood");
    assert_near(part->estimates[0].estimate, mean[0], 1e-9);
    assert_near(part->estimates[1].estimate, mean[1] - mean[0], 1e-9);
    assert_near(part->noise.constant, sigma[0], 1e-6);
    assert_near(part->noise.coefficients[1], sigma[1] - sigma[0], 1e-6);
    assert_true(part->noise.coefficients[0] == 0);
    double likelihood = -5.5 * log(2 * M_PI) - 6 * log(sigma[0]) - 5 * log(sigma[1]) - 5.5;
    assert_near(value_of("log_likelihood"), likelihood, 1e-9);
    assert_near(value_of("aic"), 8 - 2 * likelihood, 1e-9);
    assert_near(value_of("bic"), 4 * log(11) - 2 * likelihood, 1e-9);
    /* Each mean has the standard error of its own rows. */
    assert_near(part->estimates[0].standard_error, sigma[0] / sqrt(6), 1e-5);
    assert_near(part->estimates[1].standard_error, sqrt(sigma[0] * sigma[0] / 6 + sigma[1] * sigma[1] / 5),
                1e-5);
}

/* The level with the larger x scatters less: sigma may not fall, so it is constant, and the mean least
 * squares. */
TEST(bound) {
    const double y[] = {1, 9, -7, 4, 20, 21, 20.5, 20.2};
    for (size_t i = 0; i < 8; i++) {
        columns[0][i] = i >= 4;
        columns[3][i] = y[i];
    }
    struct host_table table = table_of(8, "1 + x", NOISE_2);
    const struct host_part *part = fit_table(&table);
    double rss = value_of("rss");
    assert_true(part->noise.coefficients[1] == 0);
    assert_near(part->noise.constant, sqrt(rss / 8), 1e-7);
    assert_near(part->estimates[0].estimate, 1.75, 1e-9);
    assert_near(value_of("aic"), 6 - 2 * value_of("log_likelihood"),
                1e-12); /* what is at its bound is no coefficient */
}

TEST(half_normal) {
    /* Steep below: residuals -1 -1 0 2; sum 0, squares 6, the least -1. */
    const double y[] = {9, 9, 10, 12};
    memcpy(columns[3], y, sizeof y);
    struct host_table table = set(table_of(4, "1", NOISE_1), "distribution", NOISE_HALF_NORMAL);
    const struct host_part *part = fit_table(&table);
    double k = sqrt(2 / M_PI),
           s = fmax(sqrt(6.0 / 4), 1 / k); /* the support wants 1.2533, more than 1.2247 */
    assert_string_equal(part->noise.distribution, "half-normal");
    assert_near(part->noise.constant, s * sqrt(1 - 2 / M_PI), 1e-12);
    double likelihood = 0;
    for (size_t i = 0; i < 4; i++) {
        double x = (y[i] - 10) / s + k;
        likelihood += 0.5 * log(2 / M_PI) - log(s) - x * x / 2;
    }
    assert_near(value_of("log_likelihood"), likelihood, 1e-12);
    columns[3][1] = 10.5; /* the support does not bind: residuals about 10.375 */
    columns[3][0] = 10;
    columns[3][3] = 13;
    columns[3][2] = 10;
    part = fit_table(&table);
    const double mean = 43.5 / 4;
    double squares = 0, least = 0;
    for (size_t i = 0; i < 4; i++) {
        squares += (columns[3][i] - mean) * (columns[3][i] - mean);
        least = fmin(least, columns[3][i] - mean);
    }
    s = sqrt(squares / 4);
    assert_true(s > -least / k);
    assert_near(part->noise.constant, s * sqrt(1 - 2 / M_PI), 1e-12);
}

/* ---- The likelihood */

static double log_likelihood(size_t rows, const double *b, const double *c) {
    double sum = 0;
    for (size_t r = 0; r < rows; r++) {
        double x = columns[0][r], z = columns[1][r], sigma = c[0] + c[1] * x * z + c[2] * x;
        double t = (columns[3][r] - b[0] - b[1] * x * z - b[2] * x) / sigma;
        sum -= 0.5 * log(2 * M_PI) + log(sigma) + t * t / 2;
    }
    return sum;
}

static void make_rows(size_t rows, double scale, double unit) {
    test_seed = 11;
    for (size_t r = 0; r < rows; r++) {
        double x = floor(1 + 999 * pow(test_random(), 3)), z = floor(1 + 99 * test_random());
        double sigma = 1e-3 + 1e-4 * x * z + 2e-3 * x;
        columns[0][r] = x * scale;
        columns[1][r] = z * scale;
        columns[2][r] = 1 + (double)(r % 3);
        columns[3][r] = unit * (0.5 + 0.01 * x * z + 0.2 * x + sigma * random_normal());
        groups[r] = r % 2;
    }
}

/* No step in any direction makes it more likely, and the truth is near. */
TEST(maximum) {
    enum { ROWS = 4000 };
    make_rows(ROWS, 1, 1);
    struct host_table table = table_of(ROWS, "1 + x*z + x", NOISE_2);
    const struct host_part *part = fit_table(&table);
    double b[3], c[3], steps[3] = {1e-4, 1e-7, 1e-5};
    for (size_t t = 0; t < 3; t++) {
        b[t] = part->estimates[t].estimate;
        c[t] = t == 0 ? part->noise.constant : part->noise.coefficients[t];
    }
    double best = log_likelihood(ROWS, b, c);
    assert_near(value_of("log_likelihood"), best, 1e-10);
    for (size_t t = 0; t < 6; t++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double *moved = t < 3 ? &b[t] : &c[t - 3], before = *moved;
            *moved += sign * steps[t % 3];
            assert_true(log_likelihood(ROWS, b, c) < best);
            *moved = before;
        }
    assert_near(c[1], 1e-4, 0.1);
    assert_near(c[2], 2e-3, 0.5);
    assert_near(b[0], 0.5, 0.01);
    /* Its standard errors are those of the information: far less than least squares gives. */
    double error = part->estimates[0].standard_error, score = value_of("cv_log_score");
    table.values[0] = NOISE_1;
    part = fit_table(&table);
    assert_true(error < 0.05 * part->estimates[0].standard_error);
    assert_true(score > value_of("cv_log_score") + 0.3);
}

/* The same table in other units is the same model. */
TEST(scales) {
    enum { ROWS = 1000 };
    make_rows(ROWS, 1, 1);
    struct host_table table = table_of(ROWS, "1 + x*z + x", NOISE_2);
    const struct host_part *part = fit_table(&table);
    double constant = part->noise.constant, slope = part->noise.coefficients[1],
           score = value_of("cv_log_score");
    make_rows(ROWS, 0x1p40, 0x1p-40);
    part = fit_table(&table);
    assert_near(part->noise.constant, constant * 0x1p-40, 1e-9);
    assert_near(part->noise.coefficients[1], slope * 0x1p-120, 1e-9);
    assert_near(value_of("cv_log_score"), score + 40 * M_LN2, 1e-9);
}

/* Columns that are never positive turn; those that change their sign have no part in sigma. */
TEST(signs) {
    enum { ROWS = 1000 };
    make_rows(ROWS, 1, 1);
    struct host_table table = table_of(ROWS, "1 + x*z + x", NOISE_2);
    const struct host_part *part = fit_table(&table);
    double slope = part->noise.coefficients[2], other = part->noise.coefficients[1];
    for (size_t r = 0; r < ROWS; r++)
        columns[0][r] = -columns[0][r];
    part = fit_table(&table);
    assert_near(part->noise.coefficients[2], -slope, 1e-9);
    assert_near(part->noise.coefficients[1], -other, 1e-9);
    for (size_t r = 0; r < ROWS; r += 2)
        columns[1][r] = -columns[1][r];
    part = fit_table(&table);
    assert_true(part->noise.coefficients[1] == 0);
}

/* A weight of 4 is half the sigma. */
TEST(weights) {
    enum { ROWS = 3000 };
    make_rows(ROWS, 1, 1);
    for (size_t r = 0; r < ROWS; r++) {
        double x = columns[0][r], z = columns[1][r], mean = 0.5 + 0.01 * x * z + 0.2 * x;
        columns[2][r] = r % 2 ? 4 : 1;
        columns[3][r] = mean + (columns[3][r] - mean) / sqrt(columns[2][r]);
    }
    struct host_table table = table_of(ROWS, "1 + x*z + x", NOISE_2);
    table.weights = "w";
    const struct host_part *part = fit_table(&table);
    assert_near(part->noise.coefficients[1], 1e-4, 0.1);
    double likelihood = 0, rss = 0, mean = 0, weights = 0, total = 0;
    for (size_t r = 0; r < ROWS; r++) {
        mean += columns[2][r] * columns[3][r];
        weights += columns[2][r];
    }
    mean /= weights;
    for (size_t r = 0; r < ROWS; r++) {
        double x = columns[0][r], z = columns[1][r];
        double sigma =
            (part->noise.constant + part->noise.coefficients[1] * x * z + part->noise.coefficients[2] * x) /
            sqrt(columns[2][r]);
        double t = (columns[3][r] - part->estimates[0].estimate - part->estimates[1].estimate * x * z -
                    part->estimates[2].estimate * x) /
                   sigma;
        likelihood -= 0.5 * log(2 * M_PI) + log(sigma) + t * t / 2;
        rss += columns[2][r] * sigma * t * sigma * t;
        total += columns[2][r] * (columns[3][r] - mean) * (columns[3][r] - mean);
    }
    assert_near(value_of("log_likelihood"), likelihood, 1e-10);
    assert_near(value_of("rss"), rss, 1e-9);
    assert_near(value_of("sigma"), sqrt(rss / (ROWS - 3)), 1e-9);
    assert_near(1 - value_of("r2"), rss / total, 1e-6);
    assert_near(1 - value_of("adjusted_r2"), rss / (ROWS - 3) * (ROWS - 1) / total, 1e-6);
    double told = value_of("rss"); /* of the estimates that are told: above that of least squares */
    table.values[0] = NOISE_1;
    fit_table(&table);
    assert_true(told > value_of("rss") * (1 + 1e-6));
}

/* ---- Held-out rows */

/* N-1's score, every fold left out by hand. */
TEST(log_score) {
    enum { ROWS = 300, FOLDS = 5 };
    make_rows(ROWS, 1, 1);
    struct host_table table = table_of(ROWS, "1 + x", NOISE_1);
    fit_table(&table);
    double score = value_of("cv_log_score"), expected = 0;
    static double kept[4][ROWS], whole[4][ROWS];
    for (size_t i = 0; i < 4; i++)
        memcpy(whole[i], columns[i], sizeof whole[i]);
    for (uint32_t f = 0; f < FOLDS; f++) {
        size_t count = 0;
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t i = 0; i < 4; i++)
                kept[i][count] = whole[i][r];
            count += host_fold_of(r, 3, FOLDS) != f;
        }
        struct host_table train = table;
        train.rows = count;
        for (size_t i = 0; i < 4; i++)
            train.columns[i] = kept[i];
        const struct host_part *part = fit_table(&train);
        for (size_t r = 0; r < ROWS; r++) {
            double error =
                whole[3][r] - part->estimates[0].estimate - part->estimates[1].estimate * whole[0][r];
            double t = error / part->noise.constant;
            if (host_fold_of(r, 3, FOLDS) == f)
                expected -= 0.5 * log(2 * M_PI) + log(part->noise.constant) + t * t / 2;
        }
    }
    assert_near(score, expected / ROWS, 1e-9);
}

/* N-2's: one Newton step for each fold is near enough to its own maximum. The error is that of these fits,
 * not of least squares. */
TEST(log_score_of_n2) {
    enum { ROWS = 1500, FOLDS = 5 };
    make_rows(ROWS, 1, 1);
    struct host_table table = table_of(ROWS, "1 + x*z + x", NOISE_2);
    fit_table(&table);
    double score = value_of("cv_log_score"), expected = 0, squares = 0, magnitude = 0;
    double rmse = value_of("cv_rmse"), relative = value_of("cv_relative");
    static double whole[4][ROWS];
    for (size_t i = 0; i < 4; i++)
        memcpy(whole[i], columns[i], sizeof whole[i]);
    for (uint32_t f = 0; f < FOLDS; f++) {
        size_t count = 0;
        for (size_t r = 0; r < ROWS; r++) {
            for (size_t i = 0; i < 4; i++)
                columns[i][count] = whole[i][r];
            count += host_fold_of(r, 3, FOLDS) != f;
        }
        table.rows = count;
        const struct host_part *part = fit_table(&table);
        double b[3], c[3];
        for (size_t t = 0; t < 3; t++) {
            b[t] = part->estimates[t].estimate;
            c[t] = t == 0 ? part->noise.constant : part->noise.coefficients[t];
        }
        size_t held_out = 0;
        for (size_t r = 0; r < ROWS; r++) {
            double error = whole[3][r] - b[0] - b[1] * whole[0][r] * whole[1][r] - b[2] * whole[0][r];
            squares += host_fold_of(r, 3, FOLDS) == f ? error * error : 0;
            for (size_t i = 0; i < 4; i++)
                columns[i][held_out] = whole[i][r];
            held_out += host_fold_of(r, 3, FOLDS) == f;
        }
        expected += log_likelihood(held_out, b, c);
    }
    assert_near(score, expected / ROWS, 1e-4);
    for (size_t r = 0; r < ROWS; r++)
        magnitude += fabs(whole[3][r]);
    assert_near(rmse, sqrt(squares / ROWS), 1e-4);
    assert_near(relative, sqrt(squares / ROWS) / (magnitude / ROWS), 1e-4);
    for (size_t i = 0; i < 4; i++)
        memcpy(columns[i], whole[i], sizeof whole[i]);
    table.rows = ROWS;
    table.values[0] = NOISE_1;
    fit_table(&table);
    assert_true(fabs(value_of("cv_rmse") / rmse - 1) > 5e-4);
}

/* The same table gives the same bits, in whatever order its groups come. */
TEST(groups) {
    enum { ROWS = 2000 };
    make_rows(ROWS, 1, 1);
    struct host_table table = table_of(ROWS, "1 + x*z + x", NOISE_2);
    table.groups = groups;
    table.group_count = 2;
    fit_table(&table);
    double constants[2] = {result.groups[0].parts[0].noise.constant,
                           result.groups[1].parts[0].noise.constant};
    double scores[2] = {host_value(&result.groups[0], "cv_log_score"),
                        host_value(&result.groups[1], "cv_log_score")};
    for (size_t r = 0; r < ROWS; r++)
        groups[r] = 1 - groups[r];
    fit_table(&table);
    for (size_t g = 0; g < 2; g++) {
        assert_true(result.groups[1 - g].parts[0].noise.constant == constants[g]);
        assert_true(host_value(&result.groups[1 - g], "cv_log_score") == scores[g]);
    }
}

/* Few rows have several maxima; this is the highest from 80 drawn starts of another search (L-BFGS-B). */
TEST(highest) {
    static const double rows[][3] = {{19, 8, 194},  {49, 34, 585}, {24, 24, 365}, {18, 45, 311},
                                     {48, 11, 517}, {34, 7, 357},  {19, 44, 308}, {28, 27, 360},
                                     {4, 29, 127},  {47, 12, 520}, {5, 22, 112},  {18, 31, 273},
                                     {43, 28, 558}, {38, 6, 398},  {25, 27, 300}};
    for (size_t r = 0; r < 15; r++) {
        columns[0][r] = rows[r][0];
        columns[1][r] = rows[r][1];
        columns[3][r] = rows[r][2];
    }
    struct host_table table = table_of(15, "1 + x + z", NOISE_2);
    fit_table(&table);
    assert_near(value_of("log_likelihood"), -63.113824766369, 1e-9);
}

/* ---- Where nothing can be found */

static void check_fallback(const struct host_table *table, const char *reason) {
    const struct host_part *part = fit_table(table);
    if (part->noisy)
        assert_string_equal(part->noise.kind, "N-1");
    assert_non_null(
        strstr(result.groups[0].notes, "the noise is N-1, normal, instead of what was asked for"));
    assert_non_null(strstr(result.groups[0].notes, reason));
}

TEST(degenerate) {
    const enum noise_kind kinds[] = {NOISE_2, NOISE_RULE};
    for (size_t i = 0; i < 2; i++) {
        make_rows(40, 1, 1);
        struct host_table table = table_of(40, "1 + x", kinds[i]);
        for (size_t r = 0; r < 40; r++)
            columns[3][r] = 7; /* constant */
        check_fallback(&table, "there are no residuals");
        for (size_t r = 0; r < 40; r++)
            columns[3][r] = 7 + 2 * columns[0][r]; /* a perfect fit */
        check_fallback(&table, "there are no residuals");
        make_rows(40, 1, 1);
        table.rows = 2; /* as many rows as terms */
        columns[0][0] = columns[0][1] + 1;
        check_fallback(&table, "there are no residuals");
        table.rows = 1; /* fewer */
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, 0);
        assert_false(result.groups[0].fitted);
    }
    make_rows(40, 1, 1);
    struct host_table table = table_of(4, "1 + x", NOISE_2);
    check_fallback(&table, "there are no more rows than coefficients");
    table = table_of(40, "1", NOISE_RULE);
    check_fallback(&table, "there is no term but the constant");
    for (size_t r = 0; r < 40; r++)
        columns[0][r] = (double)r + 1; /* no size twice */
    table = table_of(40, "1 + x", NOISE_RULE);
    check_fallback(&table, "there are no more sizes than terms that have two rows or more");
}

/* Some rows are met exactly: sigma stays above its floor there, and the likelihood finite. */
TEST(exact_rows) {
    enum { ROWS = 200 };
    make_rows(ROWS, 1, 1);
    for (size_t r = 0; r < ROWS; r++) {
        columns[0][r] = r < 20 ? 0 : columns[0][r];
        columns[3][r] = r < 20 ? 5 : 5 + columns[0][r] * (1 + 0.1 * random_normal());
    }
    struct host_table table = table_of(ROWS, "1 + x", NOISE_2);
    const struct host_part *part = fit_table(&table);
    assert_string_equal(part->noise.kind, "N-2");
    assert_true(part->noise.constant > 0 && isfinite(value_of("log_likelihood")));
    assert_near(part->estimates[0].estimate, 5, 1e-6);
    assert_near(part->noise.coefficients[1], 0.1, 0.2);
}

TEST(refusals) {
    make_rows(40, 1, 1);
    struct host_table table = set(table_of(40, "1 + x", NOISE_2), "outliers", 3);
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_string_equal(
        result.message.text,
        "noise=N-2 with distribution=normal is found from all rows, and 'outliers' leaves some out "
        "or weighs them less; expected one of the two");
}

/* ---- The rule */

static const char *data;

/* m, n, k and the duration of all rows; groups "jobid/cpu" by first appearance, their names in NAMES. */
static size_t read_measurements(char names[HOST_GROUPS][64], uint32_t *ret_groups) {
    char path[8192], folder[] = "/tmp/assay-noise-XXXXXX", copy[64];
    assert_non_null(mkdtemp(folder));
    snprintf(path, sizeof path, "%s/dgemm/dahu5_method_raw.csv.gz", data);
    snprintf(copy, sizeof copy, "%s/rows.csv", folder);
    assert_int_equal(gzip_file_read(path, copy), 0);
    struct csv_reader *reader = NULL;
    const struct csv_field *fields;
    struct failure failure = {0};
    static const char *const wanted[] = {"m", "n", "k", "duration", "jobid", "cpu"};
    size_t places[6], rows = 0;
    *ret_groups = 0;
    assert_int_equal(csv_open(copy, &reader, &failure), 0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(csv_find_column(reader, wanted[i], &places[i], &failure), 0);
    while (csv_next(reader, &fields, &failure) == 1) {
        char name[64];
        snprintf(name, sizeof name, "%.*s/%.*s", (int)fields[places[4]].length, fields[places[4]].bytes,
                 (int)fields[places[5]].length, fields[places[5]].bytes);
        uint32_t group = 0;
        while (group < *ret_groups && strcmp(names[group], name) != 0)
            group++;
        assert_true(group < HOST_GROUPS && rows < ROWS_MAX);
        if (group == *ret_groups)
            memcpy(names[(*ret_groups)++], name, sizeof name);
        groups[rows] = group;
        for (size_t i = 0; i < 4; i++)
            assert_int_equal(csv_number(reader, places[i], &columns[i][rows], &failure), 0);
        rows++;
    }
    csv_close(reader);
    assert_int_equal(unlink(copy), 0);
    assert_int_equal(rmdir(folder), 0);
    return rows;
}

/* Both lines of the rule, for GROUP, in plain units: RET[0] the mean's and RET[1] the deviation's
 * coefficients by expanded term. */
static void run_rule(const struct host_table *table, enum noise_rule rule, uint32_t group,
                     double ret[2][HOST_TERMS]) {
    static struct settled settled;
    static double parameters[PARAMETER_COUNT];
    struct fit_column have[4];
    for (size_t i = 0; i < PARAMETER_COUNT; i++)
        parameters[i] = fit->parameters[i].fallback;
    for (size_t i = 0; i < 4; i++)
        have[i] = (struct fit_column){table->names[i], NULL, "number"};
    const struct plugin_host host = {.size = sizeof host, .note = host_note, .nearest = text_nearest};
    const struct fit_request request = {.size = sizeof request,
                                        .response = "duration",
                                        .terms = table->terms,
                                        .columns = have,
                                        .column_count = 4,
                                        .parameters = parameters};
    struct fit *instance = NULL;
    struct fit_needs needs = {0};
    struct plugin_message message = {0};
    assert_int_equal(fit->open(&host, &request, &instance, &needs, &message), 0);
    const double *needed[4], *inputs[4];
    for (size_t i = 0; i < needs.column_count; i++)
        for (size_t c = 0; c < 4; c++)
            if (strcmp(table->names[c], needs.columns[i]) == 0)
                needed[i] = table->columns[c];
    const struct fit_block block = {.size = sizeof block,
                                    .rows = table->rows,
                                    .columns = needed,
                                    .groups = table->groups,
                                    .group_count = table->group_count};
    assert_int_equal(fit->block(instance, &block, &message), 0);
    assert_int_equal(fit->end_of_pass(instance, &message), FIT_DONE);
    for (size_t i = 0; i < instance->input_count; i++)
        inputs[i] = needed[instance->input_need[i]];
    struct noise_rows *rows = NULL;
    static uint32_t folds[ROWS_MAX];
    assert_int_equal(noise_rows_new(instance->formula.input_count, false, 1, NOISE_ROWS_MEMORY, &rows), 0);
    assert_int_equal(noise_rows_add(rows, table->rows, inputs, table->groups, folds), 0);
    struct settling *settling = settling_new(instance);
    assert_int_equal(settle(settling, group, &settled), 0);
    struct noise_design design;
    struct noise_point point;
    const char *reason;
    noise_design_init(&design, instance, rows, 1);
    assert_int_equal(noise_design_begin(&design, group, &settled, 1 << 30), 0);
    assert_int_equal(noise_rule_run(&design, rule, 1, &point, &reason), 1);
    for (size_t q = 0; q < design.width; q++) {
        ret[0][design.columns[q].term] = point.b[q] * design.unit / design.columns[q].scale;
        ret[1][design.columns[q].term] = point.c[q] * design.unit / design.columns[q].scale;
    }
    noise_design_clear(&design);
    settling_free(settling);
    noise_rows_free(rows);
    fit->close(instance);
}

/* One line of sigma_model.csv: the rule's two lines, and what the plugin tells of its noise. */
static void compare_rule(struct csv_reader *answers, const char *rule, uint32_t group,
                         struct host_table *table) {
    static const char *const heads[] = {"intercept", "mnk", "mk", "nk"}, *const generated[] = {"intercept",
                                                                                               "mnk", "mn",
                                                                                               "mk", "nk"};
    bool head = strcmp(rule, "head_mnk_mk_nk") == 0, trimmed = strcmp(rule, "c0a430e_mnk_mn_mk_nk") == 0;
    table->values[0] = trimmed ? NOISE_TRIMMED_RULE : NOISE_RULE;
    table->terms = head ? "1 + mnk + mk + nk" : "1 + mnk + mn + mk + nk";
    double lines[2][HOST_TERMS];
    run_rule(table, trimmed ? NOISE_RULE_TRIMMED : NOISE_RULE_PLAIN, group, lines);
    host_fit(fit, table, &result);
    assert_int_equal(result.code, 0);
    const struct plugin_noise *noise = &result.groups[group].parts[0].noise;
    assert_string_equal(noise->method, trimmed ? "trimmed-rule" : "rule");
    for (size_t t = 0; t < (head ? 4 : 5); t++)
        for (int spread = 0; spread < 2; spread++) {
            char name[64];
            size_t place;
            double answer;
            struct failure failure = {0};
            snprintf(name, sizeof name, "%s%s", head ? heads[t] : generated[t], spread ? "_residual" : "");
            assert_int_equal(csv_find_column(answers, name, &place, &failure), 0);
            assert_int_equal(csv_number(answers, place, &answer, &failure), 0);
            assert_near(lines[spread][t], answer, 1e-9);
            if (spread)
                assert_near(t == 0 ? noise->constant : noise->coefficients[t], answer, 1e-9);
        }
}

TEST(rule) {
    if (!(data = test_data()))
        skip();
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/sigma_model.csv", data);
    static char names[HOST_GROUPS][64];
    uint32_t group_count;
    struct host_table table = {.names = {"m", "n", "k", "duration"},
                               .columns = {columns[0], columns[1], columns[2], columns[3]},
                               .column_count = 4,
                               .groups = groups,
                               .response = "duration",
                               .settings = {"noise"},
                               .values = {NOISE_RULE},
                               .setting_count = 1};
    table.rows = read_measurements(names, &group_count);
    table.group_count = group_count;
    struct csv_reader *answers = NULL;
    const struct csv_field *fields;
    struct failure failure = {0};
    size_t compared = 0, group_place, rule_place;
    assert_int_equal(csv_open(path, &answers, &failure), 0);
    assert_int_equal(csv_find_column(answers, "group", &group_place, &failure), 0);
    assert_int_equal(csv_find_column(answers, "rule", &rule_place, &failure), 0);
    while (csv_next(answers, &fields, &failure) == 1) {
        char rule[64], name[64];
        snprintf(rule, sizeof rule, "%.*s", (int)fields[rule_place].length, fields[rule_place].bytes);
        snprintf(name, sizeof name, "%.*s", (int)fields[group_place].length, fields[group_place].bytes);
        uint32_t group = 0;
        while (group < group_count && strcmp(names[group], name) != 0)
            group++;
        assert_true(group < group_count);
        compare_rule(answers, rule, group, &table);
        compared++;
    }
    csv_close(answers);
    assert_int_equal(compared, 12);
}

static int set_up(void **state) {
    fit = assay_plugin.operations;
    return 0;
}

TEST_GROUP(set_up, NULL)
