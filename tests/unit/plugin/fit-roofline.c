/* The plugin fit-roofline: published peaks come back, and no other peaks explain the rows better. */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

enum { ROWS_MAX = 200 };
enum form { IMPROVED, CLASSICAL };
enum criterion { RELATIVE, TIME, LOG };

static double flops[ROWS_MAX], bytes[ROWS_MAX], durations[ROWS_MAX], weights[ROWS_MAX];

static int set_up(void **state) {
    return fit_library_open("fit-roofline");
}

static struct host_table table_of(size_t rows, enum form form, enum criterion criterion) {
    return (struct host_table){
        .names = {"flops", "bytes", "duration", "w"},
        .columns = {flops, bytes, durations, weights},
        .column_count = 4,
        .rows = rows,
        .response = "duration",
        .settings = {"form", "criterion"},
        .values = {form, criterion},
        .setting_count = 2,
    };
}

/* ---- What is published */

/* Peaks of two GPUs (T. Shimokawabe et al., section 4), and what equation (1) makes of the two kernels: 13
 * flop at 13/32 flop a byte, 476 at 1.83. */
static const struct {
    double flops, bytes, diffusion, lbm; /* the latter two in Gflop/s; 0: not told */
} gpus[] = {{1030e9, 148e9, 56.8, 214.5}, {3950e9, 250e9, 99.0, 0}};

static size_t make_published(size_t gpu, double overhead) {
    static const double kernels[][2] = {{13, 32}, {476, 476 / 1.83}, {2, 24}, {100, 10}, {7, 7}};
    size_t count = 0;
    for (size_t k = 0; k < 5; k++)
        for (size_t points = 1 << 16; points < 1 << 25; points *= 8, count++) {
            flops[count] = kernels[k][0] * (double)points;
            bytes[count] = kernels[k][1] * (double)points;
            durations[count] = flops[count] / gpus[gpu].flops + bytes[count] / gpus[gpu].bytes + overhead;
        }
    return count;
}

TEST(published) {
    for (size_t gpu = 0; gpu < 2; gpu++)
        for (enum criterion criterion = RELATIVE; criterion <= TIME; criterion++)
            for (int overhead = 0; overhead < 2; overhead++) {
                size_t rows = make_published(gpu, overhead * 2e-5);
                struct host_table table = table_of(rows, IMPROVED, criterion);
                table.settings[2] = "overhead";
                table.values[2] = !overhead;
                table.setting_count = 3;
                const struct host_group *group = fit_table(&table);
                double peak = host_value(group, "peak_flops"),
                       bandwidth = host_value(group, "peak_bandwidth");
                assert_string_equal(result.kind, "linear");
                assert_int_equal(result.term_count, 2 + overhead);
                assert_close(peak, gpus[gpu].flops, 1e-11, "peak flop rate");
                assert_close(bandwidth, gpus[gpu].bytes, 1e-12, "peak bandwidth");
                assert_close(host_value(group, "ridge_intensity"), gpus[gpu].flops / gpus[gpu].bytes, 1e-11,
                             "ridge");
                if (overhead)
                    assert_close(host_value(group, "overhead"), 2e-5, 1e-11, "overhead");
                /* As printed: one digit behind the point. */
                double diffusion = 13 / (13 / peak + 32 / bandwidth) / 1e9;
                double lbm = 476 / (476 / peak + 476 / 1.83 / bandwidth) / 1e9;
                assert_true(fabs(diffusion - gpus[gpu].diffusion) < 0.05);
                assert_true(gpus[gpu].lbm == 0 || fabs(lbm - gpus[gpu].lbm) < 0.05);
            }
}

/* ---- The improved form */

static void make_rows(size_t rows, double scatter) {
    for (size_t i = 0; i < rows; i++) {
        flops[i] = pow(10, 6 + 5 * test_random());
        bytes[i] = pow(10, 6 + 5 * test_random());
        double noise = scatter * (test_random() + test_random() + test_random() - 1.5);
        durations[i] = fmax(flops[i] / 1e11, bytes[i] / 1e10) * exp(noise) + 1e-5;
        weights[i] = i % 5 == 2 ? 0 : 1 + (double)(i % 3);
    }
}

/* The conditions of Karush, Kuhn and Tucker: no derivative where an estimate is above 0, and none below 0
 * where it is 0. */
static void assert_least(const struct host_group *group, size_t rows, enum criterion criterion,
                         bool weighted) {
    long double rss = 0, slope[3] = {0}, size[3] = {0};
    for (size_t i = 0; i < rows; i++) {
        const long double z[] = {flops[i], bytes[i], 1};
        long double residual = durations[i], w = weighted ? weights[i] : 1;
        if (criterion == RELATIVE)
            w /= (long double)durations[i] * durations[i];
        for (size_t t = 0; t < result.term_count; t++)
            residual -= group->estimates[t].estimate * z[t];
        rss += w * residual * residual;
        for (size_t t = 0; t < 3; t++) {
            slope[t] -= w * residual * z[t];
            size[t] += fabsl(w * residual * z[t]);
        }
    }
    assert_close(host_value(group, "rss"), (double)rss, 1e-13, "rss");
    for (size_t t = 0; t < result.term_count; t++) {
        assert_true(group->estimates[t].estimate >= 0);
        assert_true(group->estimates[t].dropped == (group->estimates[t].estimate == 0));
        if (slope[t] < -1e-12L * size[t] || (!group->estimates[t].dropped && slope[t] > 1e-12L * size[t]))
            fail_msg("the derivative by term %zu is %Lg of %Lg", t, slope[t], size[t]);
    }
}

TEST(improved_is_least) {
    size_t dropped = 0;
    for (unsigned seed = 0; seed < 40; seed++)
        for (enum criterion criterion = RELATIVE; criterion <= TIME; criterion++)
            for (int weighted = 0; weighted < 2; weighted++) {
                test_seed = seed;
                make_rows(60, 0.5 + 0.05 * seed);
                struct host_table table = table_of(60, IMPROVED, criterion);
                table.weights = weighted ? "w" : NULL;
                const struct host_group *group = fit_table(&table);
                assert_least(group, 60, criterion, weighted);
                dropped += group->estimates[2].dropped;
                assert_true(group->estimates[2].dropped ==
                            (strstr(group->notes, "no overhead was found") != NULL));
            }
    assert_true(dropped > 10 && dropped < 150); /* both happen */
}

/* ---- The classical form */

/* Rows with ties of intensity, some without flops or without bytes. */
static size_t make_kernels(unsigned seed) {
    test_seed = seed;
    size_t rows = 1 + (size_t)(test_random() * 13);
    for (size_t i = 0; i < rows; i++) {
        flops[i] = pow(10, 6 + 5 * test_random());
        bytes[i] = pow(10, 6 + 5 * test_random());
        if (seed % 3 == 0)
            flops[i] = bytes[i] * ldexp(0.125, 2 * (int)(test_random() * 5));
    }
    if (seed % 7 == 0)
        flops[0] = 0;
    if (seed % 11 == 0 && rows > 1)
        bytes[1] = 0;
    double scatter = seed % 4;
    for (size_t i = 0; i < rows; i++) {
        durations[i] =
            fmax(flops[i] / 1e11, bytes[i] / 1e10) * exp(scatter * (test_random() + test_random() - 1));
        weights[i] = 1 + (double)(i % 3);
    }
    return rows;
}

/* The criterion where 1/Bpeak is RIDGE / Fpeak, at the best Fpeak; or for RIDGE 0 at the given ones. */
static double criterion_at(size_t rows, enum criterion criterion, double ridge, double x, double y) {
    double a = 0, b = 0, c = 0;
    for (size_t i = 0; i < rows; i++) {
        double m = ridge > 0 ? fmax(flops[i], ridge * bytes[i]) : fmax(x * flops[i], y * bytes[i]);
        double w = weights[i], t = durations[i];
        if (criterion == RELATIVE)
            w /= t * t;
        if (criterion == LOG) {
            m = log(t / m);
            t = ridge > 0 ? 1 : 0; /* the logarithm of the peak is free, or there */
            a += w * t;
            b += w * m;
            c += w * m * m;
            continue;
        }
        a += w * m * m;
        b += w * m * t;
        c += w * t * t;
    }
    if (criterion == LOG)
        return ridge > 0 ? c - b * b / a : c;
    return ridge > 0 ? c - b * b / a : c - 2 * b + a;
}

static double size_of(size_t rows, enum criterion criterion) {
    double sum = 0;
    for (size_t i = 0; i < rows; i++)
        sum += weights[i] * (criterion == TIME ? durations[i] * durations[i] : 1);
    return sum;
}

TEST(classical_is_least) {
    size_t tied = 0, one_sided = 0;
    for (unsigned seed = 0; seed < 300; seed++)
        for (enum criterion criterion = RELATIVE; criterion <= LOG; criterion++) {
            size_t rows = make_kernels(seed);
            struct host_table table = table_of(rows, CLASSICAL, criterion);
            table.weights = "w";
            const struct host_group *group = fit_table(&table);
            assert_string_equal(result.kind, "maximum");
            double found = host_value(group, "rss"), size = 1e-9 * size_of(rows, criterion);
            double told =
                criterion_at(rows, criterion, 0, group->estimates[0].estimate, group->estimates[1].estimate);
            if (fabs(found - told) > size)
                fail_msg("seed %u, criterion %d: rss is %g; at the estimates it is %g", seed, criterion,
                         found, told);
            for (double ridge = 1e-7; ridge < 1e7; ridge *= 1.01)
                if (criterion_at(rows, criterion, ridge, 0, 0) < found - size)
                    fail_msg("seed %u, criterion %d: rss is %g; with the ridge at %g it is %g", seed,
                             criterion, found, ridge, criterion_at(rows, criterion, ridge, 0, 0));
            tied += strstr(group->notes, "the ridge is at a measured intensity") != NULL;
            one_sided += strstr(group->notes, "it is only known that it is at least") != NULL;
            assert_true(host_value(group, "rows_memory_bound") + host_value(group, "rows_compute_bound") ==
                        (double)rows);
        }
    assert_true(tied > 20 && one_sided > 20);
}

/* Each side is a line through the origin of its own. */
TEST(classical_is_told) {
    for (size_t i = 0; i < 20; i++) {
        bytes[i] = 1e9 * (double)(1 + i % 4);
        flops[i] = bytes[i] * ldexp(1, (int)(i / 2) - 5);
        durations[i] = fmax(flops[i] / 6e10, bytes[i] / 2e10) * (1 + 0.01 * (double)(i * 7 % 5));
    }
    struct host_table table = table_of(20, CLASSICAL, TIME);
    const struct host_group *group = fit_table(&table);
    double squares[2] = {0}, products[2] = {0}, rss = 0;
    for (size_t i = 0; i < 20; i++) {
        bool memory = flops[i] <= 3 * bytes[i];
        double z = memory ? bytes[i] : flops[i];
        squares[memory] += z * z;
        products[memory] += z * durations[i];
    }
    for (size_t i = 0; i < 20; i++) {
        bool memory = flops[i] <= 3 * bytes[i];
        rss += pow(durations[i] - products[memory] / squares[memory] * (memory ? bytes[i] : flops[i]), 2);
    }
    assert_close(host_value(group, "rss"), rss, 1e-13, "rss");
    for (size_t t = 0; t < 2; t++) {
        assert_close(group->estimates[t].estimate, products[t] / squares[t], 1e-15, "estimate");
        assert_close(group->covariance[3 * t], rss / 18 / squares[t], 1e-13, "variance");
    }
    assert_true(group->covariance[1] == 0 && host_value(group, "rows_memory_bound") == 14);
    assert_close(host_value(group, "peak_bandwidth"), squares[1] / products[1], 1e-15, "peak bandwidth");
    assert_close(host_value(group, "sigma"), sqrt(rss / 18), 1e-13, "sigma");
    assert_close(host_value(group, "log_likelihood"), -10 * (log(2 * M_PI) + 1 + log(rss / 20)), 1e-13,
                 "log likelihood");
    /* Nothing is bound by flops: their peak is at least what was reached. */
    for (size_t i = 0; i < 20; i++)
        durations[i] = bytes[i] / 2e10;
    group = fit_table(&table);
    assert_true(group->estimates[0].dropped && isnan(host_value(group, "peak_flops")));
    assert_close(host_value(group, "peak_bandwidth"), 2e10, 1e-14, "peak bandwidth");
    assert_true(strstr(group->notes,
                       "no row is bound by flops: of the peak flop rate it is only known that it "
                       "is at least 3.2e+11 flop/s|") != NULL);
}

/* ---- Units and performance */

TEST(units) {
    static double giga[ROWS_MAX], mega[ROWS_MAX], rates[ROWS_MAX];
    static const char *const words[] = {"peak_flops",
                                        "peak_bandwidth",
                                        "ridge_intensity",
                                        "peak_flops_standard_error",
                                        "ridge_intensity_standard_error",
                                        "criterion_sigma",
                                        "r2"};
    test_seed = 9;
    make_rows(80, 0.2);
    for (size_t i = 0; i < 80; i++) {
        giga[i] = flops[i] / 1e9;
        mega[i] = bytes[i] / 1e6;
        rates[i] = flops[i] / durations[i] / 1e9;
    }
    for (enum form form = IMPROVED; form <= CLASSICAL; form++) {
        struct host_table table = table_of(80, form, RELATIVE);
        struct host_group plain = *fit_table(&table);
        table.columns[0] = giga, table.columns[1] = mega;
        table.units[0] = "Gflop", table.units[1] = "MBy", table.units[2] = "s";
        const struct host_group *group = fit_table(&table);
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            assert_close(host_value(group, words[i]), host_value(&plain, words[i]), 1e-11, words[i]);
        assert_close(group->estimates[0].estimate, plain.estimates[0].estimate * 1e9, 1e-12, "s/Gflop");
        assert_close(group->estimates[1].estimate, plain.estimates[1].estimate * 1e6, 1e-12, "s/MBy");
        table.columns[2] = rates;
        table.units[2] = "Gflop/s";
        group = fit_table(&table);
        assert_string_equal(result.kind, form == IMPROVED ? "harmonic" : "minimum");
        assert_string_equal(result.terms[1], "flops*bytes^-1");
        for (size_t i = 0; i < sizeof words / sizeof *words; i++)
            assert_close(host_value(group, words[i]), host_value(&plain, words[i]), 1e-11, words[i]);
        const double terms[] = {1, giga[7] / mega[7], giga[7]}, times[] = {flops[7], bytes[7], 1};
        double inverse = 0, least = INFINITY, sum = 0, greatest = 0;
        for (size_t t = 0; t < result.term_count; t++) {
            if (!group->estimates[t].dropped)
                inverse += 1 / (group->estimates[t].estimate * terms[t]);
            least = fmin(least, group->estimates[t].estimate * terms[t]);
            sum += plain.estimates[t].estimate * times[t];
            greatest = fmax(greatest, plain.estimates[t].estimate * times[t]);
        }
        assert_close(form == IMPROVED ? 1 / inverse : least,
                     flops[7] / 1e9 / (form == IMPROVED ? sum : greatest), 1e-11, "performance");
    }
}

/* ---- What is not as it should be */

static const char *skipped(const struct host_table *table) {
    host_fit(fit, table, &result);
    if (result.code != 0)
        fail_msg("%s", result.message.text);
    assert_false(result.groups[0].fitted);
    return result.groups[0].reason;
}

TEST(too_little) {
    for (size_t i = 0; i < 6; i++) {
        flops[i] = 10 * (double)(1 + i);
        bytes[i] = 20 * (double)(1 + i);
        durations[i] = 1 + (double)i;
        weights[i] = 0;
    }
    struct host_table table = table_of(2, IMPROVED, RELATIVE);
    assert_string_equal(skipped(&table), "2 rows for 3 terms");
    table.rows = 6;
    assert_string_equal(skipped(&table),
                        "rank 2 of 3: bytes is a multiple of flops: one intensity does not tell two peaks");
    for (size_t i = 0; i < 6; i++)
        bytes[i] = 5;
    assert_string_equal(skipped(&table), "rank 2 of 3: flops and bytes leave no overhead to be told; "
                                         "overhead=none fits without");
    for (size_t i = 0; i < 6; i++)
        bytes[i] = 0;
    assert_string_equal(skipped(&table), "rank 2 of 3: bytes is always 0");
    table.weights = "w";
    assert_string_equal(skipped(&table), "0 rows for 3 terms");
    table.values[0] = CLASSICAL;
    assert_string_equal(skipped(&table), "0 rows for 2 terms");
    weights[3] = -2;
    host_fit(fit, &table, &result);
    assert_true(result.code == -EINVAL &&
                strstr(result.message.text, "data row 4 is -2; expected 0 or more"));
    /* One row tells one peak, and how great the other is at least. */
    table.weights = NULL;
    table.rows = 1;
    bytes[0] = 20;
    const struct host_group *group = fit_table(&table);
    assert_true(group->estimates[0].dropped != group->estimates[1].dropped && !group->has_covariance);
}

TEST(what_is_left_out) {
    test_seed = 2;
    make_rows(40, 0.1);
    flops[1] = NAN, bytes[2] = INFINITY, durations[3] = 0, durations[4] = -1, flops[5] = -3;
    flops[6] = bytes[6] = 0;
    for (enum form form = IMPROVED; form <= CLASSICAL; form++) {
        struct host_table table = table_of(40, form, RELATIVE);
        const struct host_group *group = fit_table(&table);
        assert_int_equal(group->rows, 34);
        assert_true(host_value(group, "rows_left_out") == 6);
        assert_true(strstr(group->notes, "2 rows left out: a value is empty or not finite|") != NULL);
        assert_true(strstr(group->notes, "4 rows left out: flops or bytes are below 0") != NULL);
    }
}

/* Scales of 1e-12 and 1e12 in one table; values beyond what a double can square. */
TEST(extremes) {
    for (enum form form = IMPROVED; form <= CLASSICAL; form++)
        for (enum criterion criterion = RELATIVE; criterion <= (form == CLASSICAL ? LOG : TIME);
             criterion++) {
            for (size_t i = 0; i < 48; i++) {
                flops[i] = pow(10, -12 + (double)i / 2);
                bytes[i] = pow(10, 12 - (double)i / 2);
                durations[i] = flops[i] / 3 + bytes[i] / 5;
            }
            struct host_table table = table_of(48, form, criterion);
            const struct host_group *group = fit_table(&table);
            assert_close(host_value(group, "peak_flops"), 3, 0.3, "peak flop rate");
            assert_close(host_value(group, "peak_bandwidth"), 5, 0.3, "peak bandwidth");
            for (size_t i = 0; i < 48; i++) {
                flops[i] *= 1e250;
                durations[i] *= 1e250;
            }
            host_fit(fit, &table, &result);
            group = &result.groups[0];
            assert_int_equal(result.code, 0);
            if (!group->fitted && !strstr(group->reason, "beyond the range of a double"))
                fail_msg("%s", group->reason);
        }
}

TEST(refusals) {
    make_rows(10, 0.1);
    struct host_table table = table_of(10, IMPROVED, LOG);
    host_fit(fit, &table, &result);
    assert_true(result.code == -EINVAL &&
                strstr(result.message.text, "criterion 'log' of the form 'improved'"));
    table.values[1] = RELATIVE;
    table.terms = "flops";
    host_fit(fit, &table, &result);
    assert_true(result.code == -EINVAL && strstr(result.message.text, "this method has its own"));
    table.terms = NULL;
    table.sizes[0] = "flop", table.sizes[1] = "bytes";
    table.size_count = 1;
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text,
                        "1 size; expected the columns of flops and of bytes, in this order");
    table.size_count = 2;
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text, "there is no flops column 'flop'; did you mean 'flops'?");
    table.sizes[0] = "duration";
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text, "the column 'duration' is two of flops, bytes and response");
    table.size_count = 0;
    table.units[1] = "s";
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text, "the column 'bytes' is in 's'; expected bytes");
    table.units[1] = NULL;
    table.units[2] = "W";
    host_fit(fit, &table, &result);
    assert_string_equal(result.message.text, "the response 'duration' is in 'W'; expected a time or flop/s");
    table.names[0] = "operations";
    host_fit(fit, &table, &result);
    assert_true(strstr(result.message.text, "which column has the flops?") != NULL);
    table.rows = 0;
    table.names[0] = "flops";
    table.units[2] = "s";
    host_fit(fit, &table, &result);
    assert_true(result.code == -EINVAL && strstr(result.message.text, "there are no rows"));
}

TEST_GROUP(set_up, fit_library_close)
