/* The plugin fit-mixture: small samples against a plain EM from very many places, and what is said of odd
 * ones. */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

static int set_up(void **state) {
    return fit_library_open("fit-mixture");
}

/* ---- Made-up samples */

/* ROWS values of COUNT normals. */
static void mix(double *values, size_t rows, size_t count, const struct plugin_component *components) {
    for (size_t i = 0; i < rows; i++) {
        double share = draw_uniform();
        size_t k = 0;
        while (k + 1 < count && share > components[k].weight)
            share -= components[k++].weight;
        values[i] = components[k].mean + components[k].sigma * draw_normal();
    }
}

static const struct host_group *fit_values(const double *values, size_t rows, double components,
                                           uint64_t seed) {
    const struct host_table table = {
        .names = {"x"},
        .columns = {values},
        .column_count = 1,
        .rows = rows,
        .response = "x",
        .seed = seed,
        .settings = {"components", "most"},
        .values = {components, 4},
        .setting_count = 2,
    };
    return fit_library_fit(&table);
}

/* ---- Against plain EM */

/* The highest likelihood that plain EM finds from STARTS drawn places, sigma at least FLOOR. */
static double plain_em(const double *values, size_t rows, size_t count, double floor, double least,
                       int starts) {
    double best = -INFINITY;
    for (int start = 0; start < starts; start++) {
        double weight[8], mean[8], sigma[8], likelihood = -INFINITY;
        for (size_t k = 0; k < count; k++) {
            weight[k] = 1.0 / (double)count;
            mean[k] = values[(size_t)(draw_uniform() * (double)rows)];
            sigma[k] = fmax(floor, exp(-3 * draw_uniform()));
        }
        bool carried = true;
        for (int step = 0; step < 500; step++) {
            double sums[8][3] = {{0}}, before = likelihood;
            likelihood = 0;
            for (size_t i = 0; i < rows; i++) {
                double density[8], sum = 0;
                for (size_t k = 0; k < count; k++) {
                    double u = (values[i] - mean[k]) / sigma[k];
                    sum += density[k] = weight[k] / sigma[k] * exp(-0.5 * u * u) / 2.5066282746310002;
                }
                likelihood += log(sum);
                for (size_t k = 0; k < count; k++) {
                    sums[k][0] += density[k] / sum;
                    sums[k][1] += density[k] / sum * values[i];
                    sums[k][2] += density[k] / sum * values[i] * values[i];
                }
            }
            if (!isfinite(likelihood) || likelihood - before < 1e-12)
                break;
            carried = true;
            for (size_t k = 0; k < count; k++) {
                carried = carried && sums[k][0] >= least;
                weight[k] = sums[k][0] / (double)rows;
                mean[k] = sums[k][1] / sums[k][0];
                sigma[k] = sqrt(fmax(floor * floor, sums[k][2] / sums[k][0] - mean[k] * mean[k]));
            }
        }
        if (carried && likelihood > best)
            best = likelihood;
    }
    return best;
}

TEST(brute_force) {
    static const struct plugin_component two[] = {{0.7, -1, 0.3}, {0.3, 1, 0.8}};
    static const struct plugin_component three[] = {{0.5, 0, 1}, {0.3, 0.2, 0.05}, {0.2, 4, 0.5}};
    double values[60];
    drawn_bits = 11;
    for (int sample = 0; sample < 4; sample++) {
        size_t rows = sample % 2 ? 60 : 25;
        mix(values, rows, sample < 2 ? 2 : 3, sample < 2 ? two : three);
        double mean = 0, square = 0;
        for (size_t i = 0; i < rows; i++)
            mean += values[i] / (double)rows;
        for (size_t i = 0; i < rows; i++)
            square += (values[i] - mean) * (values[i] - mean) / (double)rows;
        for (size_t count = 2; count <= 3; count++) {
            double expected = plain_em(values, rows, count, 1e-3 * sqrt(square), 3, 40);
            double found = host_value(fit_values(values, rows, (double)count, 1), "log_likelihood");
            if (!(found >= expected - 1e-8))
                fail_msg("sample %d, %zu components: %.12g; plain EM finds %.12g", sample, count, found,
                         expected);
        }
    }
}

/* Whole numbers: few places, many ways to share them out, and the best is not next to the best of fewer. */
TEST(whole_numbers) {
    static const int times[] = {2, 4, 9, 8, 7, 7, 6, 4, 1, 3, 5, 6, 8, 7, 1, 2}; /* of 6, 7, ... 21 */
    double values[80];
    size_t rows = 0;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < times[i]; k++)
            values[rows++] = 6 + i;
    assert_int_equal(rows, 80);
    struct host_table table = {.names = {"x"},
                               .columns = {values},
                               .column_count = 1,
                               .rows = rows,
                               .response = "x",
                               .seed = 1,
                               .settings = {"components"},
                               .values = {5},
                               .setting_count = 1};
    double found = host_value(fit_library_fit(&table), "log_likelihood");
    if (!(found >= -207.4606052641))
        fail_msg("%.12g; there is one of -207.460605264", found);
}

/* What is told is a maximum: the likelihood is that of the components, and gradients vanish. */
TEST(stationary) {
    static const struct plugin_component three[] = {{0.5, 10, 1}, {0.3, 12, 0.5}, {0.2, 15, 2}};
    static double values[1000];
    drawn_bits = 5;
    mix(values, 1000, 3, three);
    const struct host_group *group = fit_values(values, 1000, 3, 1);
    const struct plugin_component *c = group->parts[0].components;
    double gradient[9] = {0}, likelihood = 0, offset = 0, share = 0, mean = group->estimates[0].estimate;
    for (size_t i = 0; i < 1000; i++) {
        double density[3], sum = 0;
        for (size_t k = 0; k < 3; k++) {
            double u = (values[i] - mean - c[k].mean) / c[k].sigma;
            sum += density[k] = c[k].weight / c[k].sigma * exp(-0.5 * u * u) / 2.5066282746310002;
        }
        likelihood += log(sum);
        for (size_t k = 0; k < 3; k++) {
            double r = density[k] / sum, u = (values[i] - mean - c[k].mean) / c[k].sigma;
            gradient[3 * k] += r - c[k].weight;
            gradient[3 * k + 1] += r * u / c[k].sigma;
            gradient[3 * k + 2] += r * (u * u - 1);
        }
    }
    assert_close(host_value(group, "log_likelihood"), likelihood, 1e-12, "log-likelihood");
    assert_close(host_value(group, "bic"), -2 * likelihood + 8 * log(1000), 1e-12, "BIC");
    assert_close(host_value(group, "aic"), -2 * likelihood + 16, 1e-12, "AIC");
    for (size_t k = 0; k < 3; k++) {
        offset += c[k].weight * c[k].mean;
        share += c[k].weight;
        for (size_t i = 0; i < 3; i++)
            assert_true(fabs(gradient[3 * k + i]) < 1e-5);
    }
    assert_true(fabs(offset) < 1e-8); /* the components' mean is the mean */
    assert_close(share, 1, 1e-14, "sum of weights");
}

/* ---- What does not matter */

/* Nothing but the unit changes with it, and the order of the rows says nothing. */
TEST(scales) {
    static const struct plugin_component two[] = {{0.6, 0, 1}, {0.4, 3, 0.5}};
    static double values[500], scaled[500];
    drawn_bits = 3;
    mix(values, 500, 2, two);
    struct host_part first = fit_values(values, 500, 2, 1)->parts[0];
    double likelihood = host_value(&result.groups[0], "log_likelihood");
    static const double factors[] = {1e-12, 1e12, 3e-160, 1e200};
    for (size_t f = 0; f < sizeof factors / sizeof *factors; f++) {
        for (size_t i = 0; i < 500; i++)
            scaled[499 - i] = values[i] * factors[f];
        const struct host_group *group = fit_values(scaled, 500, 2, 1);
        assert_close(host_value(group, "log_likelihood"), likelihood - 500 * log(factors[f]), 1e-10, "L");
        for (size_t k = 0; k < 2; k++) {
            assert_close(group->parts[0].components[k].weight, first.components[k].weight, 1e-9, "weight");
            assert_close(group->parts[0].components[k].mean, first.components[k].mean * factors[f], 1e-9,
                         "mean");
            assert_close(group->parts[0].components[k].sigma, first.components[k].sigma * factors[f], 1e-9,
                         "sigma");
        }
    }
}

/* The same seed gives the same bits; another one the same maximum. */
TEST(seeds) {
    static const struct plugin_component three[] = {{0.5, 0, 1}, {0.3, 0.2, 0.05}, {0.2, 4, 0.5}};
    static double values[300];
    drawn_bits = 9;
    mix(values, 300, 3, three);
    struct host_part first = fit_values(values, 300, 4, 1)->parts[0];
    struct host_part again = fit_values(values, 300, 4, 1)->parts[0];
    assert_memory_equal(first.components, again.components, 4 * sizeof *first.components);
    assert_memory_equal(first.values, again.values, first.value_count * sizeof *first.values);
    double likelihood = host_value(&result.groups[0], "log_likelihood");
    for (uint64_t seed = 2; seed < 4; seed++)
        assert_close(host_value(fit_values(values, 300, 4, seed), "log_likelihood"), likelihood, 1e-12, "L");
}

/* A weight counts like as many rows, and one of 0 like none. */
TEST(weights) {
    double values[40], counts[40], spread[200];
    size_t rows = 0;
    for (size_t i = 0; i < 40; i++) {
        values[i] = (i < 25 ? 1 : 5) + sin((double)i);
        counts[i] = (double)(i % 4);
        for (size_t j = 0; j < i % 4; j++)
            spread[rows++] = values[i];
    }
    const struct host_table table = {.names = {"x", "w"},
                                     .columns = {values, counts},
                                     .column_count = 2,
                                     .rows = 40,
                                     .response = "x",
                                     .weights = "w",
                                     .settings = {"components"},
                                     .values = {2},
                                     .setting_count = 1};
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_int_equal(result.groups[0].rows, 30);
    struct host_part weighted = result.groups[0].parts[0];
    double likelihood = host_value(&result.groups[0], "log_likelihood");
    const struct host_group *group = fit_values(spread, rows, 2, 0);
    assert_close(host_value(group, "log_likelihood"), likelihood, 1e-13, "L");
    assert_close(group->estimates[0].estimate, weighted.estimates[0].estimate, 1e-14, "mean");
    assert_close(group->parts[0].components[0].sigma, weighted.components[0].sigma, 1e-10, "sigma");
    counts[7] = -1;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_says(result.message.text, "the weight 'w' of table data row 8 is -1");
    memset(counts, 0, sizeof counts);
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_says(result.groups[0].reason, "no rows with a value and a weight above 0");
}

/* ---- How many */

TEST(by_bic) {
    static const struct plugin_component one[] = {{1, 5, 2}};
    static const struct plugin_component three[] = {{0.4, 0, 0.1}, {0.3, 1, 0.1}, {0.3, 3, 0.5}};
    static double values[800];
    drawn_bits = 21;
    mix(values, 800, 1, one);
    assert_int_equal((int)host_value(fit_values(values, 800, 0, 1), "components"), 1);
    assert_close(result.groups[0].parts[0].components[0].sigma,
                 host_value(&result.groups[0], "sigma") * sqrt(799.0 / 800), 1e-12, "sigma");
    mix(values, 800, 3, three);
    assert_int_equal((int)host_value(fit_values(values, 800, 0, 1), "components"), 3);
    assert_close(result.groups[0].parts[0].components[0].weight, 0.4, 0.1, "weight");
    /* 15 values say nothing about two */
    assert_int_equal((int)host_value(fit_values(values, 15, 0, 1), "components"), 1);
}

/* A spike is not narrower than the floor: relative to all values, or to what the clock resolves. */
TEST(floors) {
    static double values[600];
    drawn_bits = 2;
    for (size_t i = 0; i < 600; i++)
        values[i] = i < 100 ? 1 : 2 * draw_uniform();
    const struct host_group *group = fit_values(values, 600, 2, 1);
    assert_int_equal((int)host_value(group, "floored"), 1);
    assert_says(group->notes, "1 of 2 components are as narrow as the floor lets them");
    double narrowest = fmin(group->parts[0].components[0].sigma, group->parts[0].components[1].sigma);
    assert_close(narrowest, 1e-3 * host_value(group, "sigma"), 1e-2, "floor");
    for (size_t i = 0; i < 600; i++)
        values[i] = floor(20 * values[i]) / 20; /* a clock of 1/20 */
    group = fit_values(values, 600, 4, 1);
    for (size_t k = 0; k < 4; k++)
        assert_true(group->parts[0].components[k].sigma >= 0.05 / sqrt(12) * (1 - 1e-9));
}

/* ---- Odd samples */

TEST(constant) {
    double values[20];
    for (size_t i = 0; i < 20; i++)
        values[i] = 0.1;
    const struct host_group *group = fit_values(values, 20, 0, 1);
    assert_true(group->fitted && group->estimates[0].estimate == 0.1);
    assert_says(group->notes, "all values are equal");
    assert_true(isnan(host_value(group, "log_likelihood")) && host_value(group, "sigma") == 0);
    assert_false(group->parts[0].noisy);
    assert_says(fit_values(values, 20, 2, 1)->reason, "1 different value, with weights of 20 in all, for 2");
    group = fit_values(values, 1, 0, 1);
    assert_true(group->fitted && isnan(group->estimates[0].standard_error));
    assert_says(group->notes, "one value: it has no deviation");
}

TEST(odd_rows) {
    double values[] = {1, NAN, 2, 3, INFINITY, 4, -INFINITY, 5, 1e-12, 1e12};
    uint32_t groups[] = {0, 0, 0, 0, 0, 0, 0, 0, 1, 1};
    const struct host_table table = {.names = {"x"},
                                     .columns = {values},
                                     .column_count = 1,
                                     .rows = 10,
                                     .groups = groups,
                                     .group_count = 3, /* the third has no rows at all */
                                     .response = "x"};
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_int_equal(result.groups[0].rows, 5);
    assert_true(result.groups[0].estimates[0].estimate == 3);
    assert_says(result.groups[0].notes, "3 rows left out");
    assert_int_equal(result.groups[1].rows, 2);
    assert_close(result.groups[1].estimates[0].estimate, 5e11, 1e-15, "mean");
    assert_false(result.groups[2].fitted);
    assert_says(result.groups[2].reason, "no rows with a value");
    values[8] = 1e308;
    values[9] = -1e308;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_true(result.groups[1].fitted || strstr(result.groups[1].reason, "double"));
}

/* ---- Segments */

static struct host_table segmented(const double *x, const double *size, size_t rows) {
    return (struct host_table){.names = {"x", "size", "other"},
                               .columns = {x, size, size},
                               .column_count = 3,
                               .rows = rows,
                               .response = "x",
                               .sizes = {"size"},
                               .size_count = 1,
                               .settings = {"break1", "break2", "components", "most"},
                               .values = {10, 100, 0, 3},
                               .setting_count = 4};
}

TEST(segments) {
    static const struct plugin_component two[] = {{0.5, 1, 0.1}, {0.5, 2, 0.1}};
    static double x[900], size[900];
    drawn_bits = 4;
    mix(x, 900, 2, two);
    for (size_t i = 0; i < 900; i++) {
        size[i] = (double)((i * 7) % 900) / 5; /* 0 to 180, in random order */
        if (size[i] >= 10 && size[i] < 100)
            x[i] = 7 + 0.01 * draw_normal();
    }
    struct host_table table = segmented(x, size, 900);
    host_fit(fit, &table, &result);
    const struct host_group *group = &result.groups[0];
    assert_int_equal(result.code, 0);
    assert_string_equal(result.kind, "piecewise");
    assert_string_equal(result.over, "size");
    assert_int_equal(group->part_count, 3);
    assert_true(isinf(group->parts[0].from) && group->parts[0].to == 10 && group->parts[1].from == 10 &&
                group->parts[1].to == 100 && isinf(group->parts[2].to));
    assert_int_equal(group->parts[0].noise.component_count, 2);
    assert_int_equal(group->parts[1].noise.component_count, 1);
    assert_int_equal(group->parts[2].noise.component_count, 2);
    assert_close(group->parts[1].estimates[0].estimate, 7, 1e-3, "mean");
    assert_true(group->domain_count == 1 && group->domain[0].minimum == 0 && group->domain[0].maximum < 10);
    for (size_t i = 0; i < 900; i++)
        size[i] = fmod(size[i], 100);
    host_fit(fit, &table, &result);
    assert_int_equal(group->part_count, 2);
    assert_says(group->notes, "there are no rows in size >= 100");
}

TEST(refusals) {
    double x[] = {1, 2, 3, 4, 5, 6}, size[] = {1, 2, 3, 40, 50, 60};
    struct host_table table = segmented(x, size, 6);
    table.values[1] = 10;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_says(result.message.text, "break2=10 comes after a break at 10; expected breaks that ascend");
    table = segmented(x, size, 6);
    table.size_count = 0;
    host_fit(fit, &table, &result);
    assert_says(result.message.text, "breaks are given, and 0 columns that they might be of");
    table = segmented(x, size, 6);
    table.sizes[0] = "sise";
    host_fit(fit, &table, &result);
    assert_says(result.message.text, "there is no column 'sise'; did you mean 'size'?");
    table = segmented(x, size, 6);
    table.terms = "1 + size";
    host_fit(fit, &table, &result);
    assert_says(result.message.text, "a mixture is of the response itself");
    table = segmented(x, size, 0);
    host_fit(fit, &table, &result);
    assert_says(result.message.text, "there are no rows");
    table = segmented(x, size, 6);
    table.values[2] = 2;
    host_fit(fit, &table, &result);
    assert_says(result.groups[0].reason, "size < 10: 3 different values, with weights of 3 in all, for 2");
}

TEST_GROUP(set_up, fit_library_close)
