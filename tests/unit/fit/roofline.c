/* The plugin fit-roofline: published kernels, the criteria's minima against a search, units, and what cannot
 * be fitted. */
#include "tests/unit/fit/fitted.h"

enum { ROWS_MAX = 100 };
enum criterion { RELATIVE, TIME, LOG };
static const char *const criteria[] = {"criterion=relative", "criterion=time", "criterion=log"};
static double flops[ROWS_MAX], bytes[ROWS_MAX], durations[ROWS_MAX], weights[ROWS_MAX];

static struct table_of table_of(size_t rows, const char *form, enum criterion criterion) {
    return (struct table_of){.method = "roofline",
                             .names = {"duration", "flops", "bytes", "w"},
                             .columns = {durations, flops, bytes, weights},
                             .rows = rows,
                             .settings = {criteria[criterion], form}};
}

/* Two GPUs of Shimokawabe et al. (1030 Gflop/s and 148 GB/s, 3950 and 250), and what is published of two
 * kernels: diffusion, 13 flop for 32 byte, and LBM, 476 flop at 1.83 flop a byte, in Gflop/s. */
TEST(published) {
    static const struct {
        double peak, bandwidth, diffusion, lbm;
    } gpus[] = {{1030e9, 148e9, 56.8, 214.5}, {3950e9, 250e9, 99.0, NAN}};
    for (size_t g = 0; g < 2; g++) {
        for (size_t i = 0; i < 24; i++) {
            flops[i] = 1e9 * ldexp(1, (int)(i % 6));
            bytes[i] = 1e9 * ldexp(1, (int)(i / 6)) * (double)(1 + i % 3);
            durations[i] = flops[i] / gpus[g].peak + bytes[i] / gpus[g].bandwidth;
        }
        struct table_of table = table_of(24, "overhead=none", RELATIVE);
        const struct model_part *part = &fitted_group(&table)->parts[0];
        double x = part->estimates[0].estimate, y = part->estimates[1].estimate;
        assert_close(value_of(part, "peak_flops"), gpus[g].peak, 1e-12, "peak");
        assert_close(value_of(part, "peak_bandwidth"), gpus[g].bandwidth, 1e-12, "bandwidth");
        assert_close(value_of(part, "ridge_intensity"), gpus[g].peak / gpus[g].bandwidth, 1e-12, "ridge");
        assert_close(13 / (13 * x + 32 * y) / 1e9, gpus[g].diffusion, 1e-3, "diffusion");
        if (g == 0)
            assert_close(476 / (476 * x + 476 / 1.83 * y) / 1e9, gpus[g].lbm, 1e-3, "LBM");
    }
}

/* ---- The improved form */

static void make_rows(size_t rows, double scatter) {
    for (size_t i = 0; i < rows; i++) {
        flops[i] = pow(10, 6 + 5 * test_random());
        bytes[i] = pow(10, 6 + 5 * test_random());
        weights[i] = 1 + (double)(i % 3);
        durations[i] =
            (flops[i] / 1e11 + bytes[i] / 1e10 + 1e-5) * exp(scatter * (test_random() + test_random() - 1));
    }
}

/* Derivatives vanish where an estimate is above 0, and are not below 0 where it is 0. */
TEST(improved_is_least) {
    size_t dropped = 0;
    for (unsigned seed = 0; seed < 12; seed++)
        for (enum criterion criterion = RELATIVE; criterion <= TIME; criterion++) {
            test_seed = seed;
            make_rows(60, 0.5 + 0.15 * seed);
            struct table_of table = table_of(60, NULL, criterion);
            table.weights = "w";
            const struct model_group *group = fitted_group(&table);
            const struct model_estimate *e = group->parts[0].estimates;
            double gradient[3] = {0}, magnitude[3] = {0}, rss = 0;
            for (size_t i = 0; i < 60; i++) {
                const double z[] = {flops[i], bytes[i], 1};
                double w = weights[i] / (criterion == RELATIVE ? durations[i] * durations[i] : 1);
                double away =
                    e[0].estimate * z[0] + e[1].estimate * z[1] + e[2].estimate * z[2] - durations[i];
                rss += w * away * away;
                for (size_t t = 0; t < 3; t++) {
                    gradient[t] += w * away * z[t];
                    magnitude[t] += w * fabs(away) * z[t];
                }
            }
            for (size_t t = 0; t < 3; t++)
                assert_true(e[t].dropped ? gradient[t] > -1e-9 * magnitude[t]
                                         : fabs(gradient[t]) < 1e-9 * magnitude[t]);
            assert_close(value_of(&group->parts[0], "rss"), rss, 1e-11, "rss");
            assert_true(e[2].dropped == is_noted(group, "the fitted model has no overhead"));
            dropped += e[2].dropped;
        }
    assert_true(dropped > 2 && dropped < 22); /* both happen */
}

/* ---- The classical form */

/* Rows with equal intensities, some without flops or without bytes. */
static size_t make_kernels(unsigned seed) {
    test_seed = seed;
    size_t rows = 1 + (size_t)(test_random() * 13);
    make_rows(rows, 0);
    for (size_t i = 0; seed % 3 == 0 && i < rows; i++)
        flops[i] = bytes[i] * ldexp(0.125, 2 * (int)(test_random() * 5));
    if (seed % 7 == 0)
        flops[0] = 0;
    if (seed % 11 == 0 && rows > 1)
        bytes[1] = 0;
    for (size_t i = 0; i < rows; i++)
        durations[i] =
            fmax(flops[i] / 1e11, bytes[i] / 1e10) * exp((seed % 4) * (test_random() + test_random() - 1));
    return rows;
}

/* The criterion where 1/Bpeak is RIDGE / Fpeak, at the best Fpeak; or for RIDGE 0 at the given ones. */
static double criterion_at(size_t rows, enum criterion criterion, double ridge, double x, double y) {
    double a = 0, b = 0, c = 0;
    for (size_t i = 0; i < rows; i++) {
        double m = ridge > 0 ? fmax(flops[i], ridge * bytes[i]) : fmax(x * flops[i], y * bytes[i]);
        double t = durations[i], w = weights[i] / (criterion == RELATIVE ? t * t : 1);
        a += criterion == LOG ? w : w * m * m;
        b += criterion == LOG ? w * log(t / m) : w * m * t;
        c += criterion == LOG ? w * log(t / m) * log(t / m) : w * t * t;
    }
    return ridge > 0 ? c - b * b / a : criterion == LOG ? c : c - 2 * b + a;
}

TEST(classical_is_least) {
    size_t tied = 0, one_sided = 0;
    for (unsigned seed = 0; seed < 60; seed++)
        for (enum criterion criterion = RELATIVE; criterion <= LOG; criterion++) {
            size_t rows = make_kernels(seed);
            double size = 0;
            for (size_t i = 0; i < rows; i++)
                size += 1e-9 * weights[i] * (criterion == TIME ? durations[i] * durations[i] : 1);
            struct table_of table = table_of(rows, "form=classical", criterion);
            table.weights = "w";
            const struct model_group *group = fitted_group(&table);
            const struct model_part *part = &group->parts[0];
            double at =
                criterion_at(rows, criterion, 0, part->estimates[0].estimate, part->estimates[1].estimate);
            for (double ridge = 1e-7; ridge < 1e7; ridge *= 1.02)
                if (criterion_at(rows, criterion, ridge, 0, 0) < at - size)
                    fail_msg("seed %u, criterion %d: %g; with the ridge at %g it is %g", seed, criterion, at,
                             ridge, criterion_at(rows, criterion, ridge, 0, 0));
            double rss = value_of(part, "rss"), freedom = value_of(part, "degrees_of_freedom");
            assert_true(freedom <= 0 || fabs(rss - at) <= size);
            assert_string_equal(fit->model->kind, "maximum");
            tied += is_noted(group, "the ridge point coincides with the intensity of a row");
            one_sided += is_noted(group, " is at least ");
            assert_true(value_of(part, "rows_memory_bound") + value_of(part, "rows_compute_bound") ==
                        (double)rows);
        }
    assert_true(tied > 4 && one_sided > 4);
}

/* Each side is a line through the origin of its own. */
TEST(classical_by_hand) {
    double squares[2] = {0}, products[2] = {0}, rss = 0;
    for (size_t i = 0; i < 20; i++) {
        bytes[i] = 1e9 * (double)(1 + i % 4);
        flops[i] = bytes[i] * ldexp(1, (int)(i / 2) - 5);
        durations[i] = fmax(flops[i] / 6e10, bytes[i] / 2e10) * (1 + 0.01 * (double)(i * 7 % 5));
        bool memory = flops[i] <= 3 * bytes[i];
        double z = memory ? bytes[i] : flops[i];
        squares[memory] += z * z;
        products[memory] += z * durations[i];
    }
    for (size_t i = 0; i < 20; i++) {
        bool memory = flops[i] <= 3 * bytes[i];
        rss += pow(durations[i] - products[memory] / squares[memory] * (memory ? bytes[i] : flops[i]), 2);
    }
    struct table_of table = table_of(20, "form=classical", TIME);
    const struct model_part *part = &fitted_group(&table)->parts[0];
    assert_close(value_of(part, "rss"), rss, 1e-12, "rss");
    for (size_t t = 0; t < 2; t++) {
        assert_close(part->estimates[t].estimate, products[t] / squares[t], 1e-14, "estimate");
        assert_close(part->covariance[3 * t], rss / 18 / squares[t], 1e-12, "variance");
    }
    assert_true(part->covariance[1] == 0 && value_of(part, "rows_memory_bound") == 14);
    assert_close(value_of(part, "log_likelihood"), -10 * (log(2 * M_PI) + 1 + log(rss / 20)), 1e-12, "L");
    for (size_t i = 0; i < 20; i++) /* nothing is bound by flops */
        durations[i] = bytes[i] / 2e10;
    const struct model_group *group = fitted_group(&table);
    assert_true(group->parts[0].estimates[0].dropped);
    assert_true(is_noted(group, "no row is bound by flops: only a lower bound is known, the peak flop rate "
                                "is at least 3.2e+11 flop/s"));
}

/* ---- Units and performance */

TEST(units) {
    static double giga[ROWS_MAX], mega[ROWS_MAX], rates[ROWS_MAX];
    static const char *const words[] = {"peak_flops",      "peak_bandwidth",
                                        "ridge_intensity", "peak_flops_standard_error",
                                        "criterion_sigma", "r2"};
    static const char *const forms[] = {"form=improved", "form=classical"};
    double plain[6];
    test_seed = 9;
    make_rows(80, 0.2);
    for (size_t i = 0; i < 80; i++) {
        giga[i] = flops[i] / 1e9;
        mega[i] = bytes[i] / 1e6;
        rates[i] = flops[i] / durations[i] / 1e9;
    }
    for (size_t form = 0; form < 2; form++) {
        struct table_of table = table_of(80, forms[form], RELATIVE);
        const struct model_part *part = &fitted_group(&table)->parts[0];
        for (size_t i = 0; i < 6; i++)
            plain[i] = value_of(part, words[i]);
        table.columns[0] = rates, table.columns[1] = giga, table.columns[2] = mega;
        table.units[0] = "Gflop/s", table.units[1] = "Gflop", table.units[2] = "MBy";
        part = &fitted_group(&table)->parts[0];
        assert_string_equal(fit->model->kind, form ? "minimum" : "harmonic");
        assert_string_equal(fit->model->terms[1].name, "flops*bytes^-1");
        for (size_t i = 0; i < 6; i++)
            assert_close(value_of(part, words[i]), plain[i], 1e-10, words[i]);
        assert_close(part->estimates[0].estimate, plain[0], 1e-10, "Fpeak is the estimate of 1");
        assert_close(part->estimates[1].estimate, plain[1], 1e-10, "Bpeak that of the intensity");
    }
}

/* ---- What is not as it should be */

TEST(too_little) {
    for (size_t i = 0; i < 6; i++) {
        flops[i] = 10 * (double)(1 + i);
        bytes[i] = 20 * (double)(1 + i);
        durations[i] = 1 + (double)i;
        weights[i] = 1;
    }
    struct table_of table = table_of(2, NULL, RELATIVE);
    assert_says(fitted_refusal(&table), "2 rows for 3 terms");
    table.rows = 6;
    assert_says(fitted_refusal(&table),
                "only 2 of 3 terms can be estimated: bytes is a fixed multiple of flops");
    for (size_t i = 0; i < 6; i++)
        bytes[i] = 5;
    assert_says(fitted_refusal(&table), "overhead=none");
    for (size_t i = 0; i < 6; i++)
        bytes[i] = 0;
    assert_says(fitted_refusal(&table), "only 2 of 3 terms can be estimated: bytes is 0 in all rows");
    table = table_of(1, "form=classical", RELATIVE); /* one row shows one peak */
    bytes[0] = 20;
    const struct model_group *group = fitted_group(&table);
    assert_true(group->parts[0].estimates[0].dropped != group->parts[0].estimates[1].dropped);
    assert_true(!group->parts[0].covariance);
}

TEST(odd_rows) {
    static const char *const forms[] = {"form=improved", "form=classical"};
    for (size_t form = 0; form < 2; form++) {
        test_seed = 2;
        make_rows(40, 0.1);
        flops[1] = NAN, durations[3] = 0, durations[4] = -1, flops[5] = -3, flops[6] = bytes[6] = 0;
        struct table_of table = table_of(40, forms[form], RELATIVE);
        const struct model_group *group = fitted_group(&table);
        assert_int_equal(group->rows, 35);
        assert_true(is_noted(group, "4 rows left out: flops or bytes are below 0"));
        for (size_t i = 0; i < 40; i++) { /* scales of 1e-12 and 1e12 in one table; then beyond squares */
            flops[i] = pow(10, -12 + (double)i / 2);
            bytes[i] = pow(10, 12 - (double)i / 2);
            durations[i] = flops[i] / 3 + bytes[i] / 5;
        }
        group = fitted_group(&table);
        assert_close(value_of(&group->parts[0], "peak_flops"), 3, 0.3, "peak");
        for (size_t i = 0; i < 40; i++)
            flops[i] *= 1e250, durations[i] *= 1e250;
        assert_non_null(fitted_table(&table)); /* fitted or skipped, but no failure */
    }
}

TEST(refusals) {
    make_rows(10, 0.1);
    struct table_of table = table_of(10, NULL, LOG);
    assert_says(fitted_refusal(&table),
                "criterion=log is not possible with form=improved; set criterion=relative");
    table.settings[0] = criteria[RELATIVE];
    table.units[2] = "s";
    assert_says(fitted_refusal(&table), "the column of bytes, 'bytes', has the unit 's'");
    table.units[2] = NULL, table.units[0] = "W";
    assert_says(fitted_refusal(&table), "has the unit 'W'; expected a unit that converts to 's'");
    table.units[0] = NULL, table.names[1] = "operations";
    assert_says(fitted_refusal(&table), "no column is given for flops");
    table.names[1] = "flops", table.names[0] = "performance";
    assert_says(fitted_refusal(&table), "the response 'performance' has no unit");
}

TEST_GROUP(fitted_set_up, fitted_tear_down)
