/* The plugin fit-mixture: real samples against the best that the usual tools find (data/README.md, mixture/;
 * skipped, aloud, where that is not), quantised values, segments, weights, and odd samples. The mixtures by
 * themselves are tested in unit/numerics. */
#include "tests/unit/fit/fitted.h"
#include "tests/unit/plugin/gzip-file.h"

enum { ROWS_MAX = 8000 };
static double values[ROWS_MAX], other[ROWS_MAX];

static struct table_of table_of(size_t rows, const char *components) {
    return (struct table_of){.method = "mixture",
                             .names = {"x", "y"},
                             .columns = {values, other},
                             .rows = rows,
                             .settings = {"starts=8", components}, /* enough here; the default takes longer */
                             .seed = 1};
}

static double fitted_likelihood(const struct table_of *table) {
    return value_of(&fitted_group(table)->parts[0], "log_likelihood");
}

/* ROWS values of COUNT normals. */
static void mix(size_t rows, size_t count, const struct model_component *components) {
    for (size_t i = 0; i < rows; i++) {
        double share = test_random();
        size_t k = 0;
        while (k + 1 < count && share > components[k].weight)
            share -= components[k++].weight;
        values[i] = components[k].mean + components[k].sigma * test_normal();
    }
}

/* ---- Trusted answers */

/* Never below the best that is known by more than 1e-3; where it is higher no spike is what makes it so. */
TEST(best_known) {
    char path[8192], text[2048], sample[128], last[128] = "";
    const char *to = test_path("sample.csv");
    double expected;
    size_t n, k, answers = 0;
    if (!test_data())
        skip();
    snprintf(path, sizeof path, "%s/mixture/best_known.csv", test_data());
    FILE *file = fopen(path, "r");
    assert_true(file && fgets(text, sizeof text, file));
    while (fgets(text, sizeof text, file)) {
        char components[32], from[8400];
        assert_int_equal(sscanf(text, "%127[^,],%zu,%zu,%lf", sample, &n, &k, &expected), 4);
        snprintf(from, sizeof from, "%s/mixture/%s.csv.gz", test_data(), sample);
        if (strcmp(sample, last) != 0)
            assert_int_equal(gzip_file_read(from, to), 0);
        memcpy(last, sample, sizeof last);
        snprintf(components, sizeof components, "components=%zu", k);
        struct table_of table = table_of(0, components);
        if (!fitted_file(to, &table))
            fail_msg("%s", refusal.text);
        const struct model_part *part = &fit->model->groups[0].parts[0];
        assert_true(fit->model->groups[0].rows == n && part->noise.component_count == k);
        double found = value_of(part, "log_likelihood");
        if (!(found > expected - 1e-3) || value_of(part, "floored") > 0)
            fail_msg("%s, %zu components: %.10g; the best known is %.10g", sample, k, found, expected);
        answers++;
    }
    fclose(file);
    assert_true(answers >= 10);
}

/* Values as a clock gives them, with seven and eight components: the search ends where one with 200 starts
 * did (the numbers below), or higher. */
TEST(quantised) {
    static const struct model_component modes[] = {{0.2, 10, 0.3}, {0.2, 11, 0.1}, {0.2, 14, 1},
                                                   {0.2, 20, 0.2}, {0.1, 21, 0.5}, {0.1, 30, 4}};
    static const double reached[] = {-8687.7563, -8683.1897};
    test_seed = 3;
    mix(4000, 6, modes);
    for (size_t i = 0; i < 4000; i++)
        values[i] = floor(10 * values[i] + 0.5) / 10;
    for (size_t k = 7; k <= 8; k++) {
        char components[32];
        snprintf(components, sizeof components, "components=%zu", k);
        struct table_of table = table_of(4000, components);
        table.settings[0] = "starts=40"; /* the default */
        double found = fitted_likelihood(&table);
        if (!(found > reached[k - 7] - 1e-3))
            fail_msg("%zu components: %.8g; %.8g was reached", k, found, reached[k - 7]);
    }
}

/* Rounding makes no modes: steps of 0.05 to 0.5 deviations, and three significant digits, whose steps change
 * at 10; it hides none: of two normals 4 deviations apart, two are found. */
TEST(rounded) {
    static const double steps[] = {0.2, 0, 0.05, 0.1, 0.5, 1}; /* 0: three digits */
    bool all = getenv("ASSAY_TEST_ALL") != NULL;
    size_t seeds = all ? 40 : 1;
    for (size_t s = 0; s < (all ? 6 : 2); s++)
        for (size_t modes = 1; modes <= 2; modes++) {
            size_t right = 0;
            for (unsigned seed = 0; seed < seeds; seed++) {
                test_seed = seed + 1;
                for (size_t i = 0; i < 2000; i++) {
                    double value = 10 + test_normal() + (i % 2 && modes == 2 ? (steps[s] < 1 ? 4 : 12) : 0);
                    double step = steps[s] > 0 ? steps[s] : value < 10 ? 0.01 : 0.1;
                    values[i] = step * round(value / step);
                }
                struct table_of table = table_of(2000, NULL);
                right += value_of(&fitted_group(&table)->parts[0], "components") == (double)modes;
            }
            if (20 * right < 19 * seeds)
                fail_msg("%zu modes in steps of %g: right %zu times of %zu", modes, steps[s], right, seeds);
        }
    values[0] = 7.25;
    struct table_of table = table_of(2000, NULL);
    assert_true(is_noted(fitted_group(&table), "the values are rounded"));
}

/* More rows than a search takes are refused at once. */
TEST(too_many_rows) {
    static double many[100001];
    for (size_t i = 0; i < 100001; i++)
        many[i] = test_random();
    struct table_of table = table_of(100001, NULL);
    table.columns[0] = table.columns[1] = many;
    assert_says(fitted_refusal(&table), "100001 rows; expected at most 100000");
}

/* Whole numbers, of which the best mixture is not next to the best of fewer components. */
TEST(whole_numbers) {
    static const int times[] = {2, 4, 9, 8, 7, 7, 6, 4, 1, 3, 5, 6, 8, 7, 1, 2}; /* of 6, 7, ... 21 */
    size_t rows = 0;
    for (int i = 0; i < 16; i++)
        for (int k = 0; k < times[i]; k++)
            values[rows++] = 6 + i;
    struct table_of table = table_of(rows, "components=5");
    table.settings[0] = "starts=40", table.settings[2] = "least=1"; /* one is of two or three values */
    double found = fitted_likelihood(&table);
    if (!(found >= -210.701989))
        fail_msg("%.12g; there is one of -210.701987970", found);
}

/* ---- What is given */

/* The likelihood is that of the components, in any unit, and the criteria follow. */
TEST(components) {
    static const struct model_component three[] = {{0.5, 10, 1}, {0.3, 12, 0.5}, {0.2, 15, 2}};
    static const double factors[] = {1, 1e-12, 1e12};
    test_seed = 5;
    mix(1000, 3, three);
    double first = 0;
    for (size_t f = 0; f < 3; f++) {
        for (size_t i = 0; f > 0 && i < 1000; i++)
            values[i] *= factors[f] / factors[f - 1];
        struct table_of table = table_of(1000, "components=3");
        const struct model_part *part = &fitted_group(&table)->parts[0];
        const struct model_component *c = part->noise.components;
        double likelihood = 0, offset = 0, share = 0, found = value_of(part, "log_likelihood");
        for (size_t i = 0; i < 1000; i++) {
            double sum = 0;
            for (size_t k = 0; k < 3; k++) {
                double u = (values[i] - part->estimates[0].estimate - c[k].mean) / c[k].sigma;
                sum += c[k].weight / c[k].sigma * exp(-0.5 * u * u) / sqrt(2 * M_PI);
            }
            likelihood += log(sum);
        }
        for (size_t k = 0; k < 3; k++)
            offset += c[k].weight * c[k].mean / c[0].sigma, share += c[k].weight;
        first = f == 0 ? found : first;
        assert_int_equal(part->noise.kind, MODEL_NOISE_MIXTURE);
        assert_close(found, likelihood, 1e-10, "log likelihood");
        assert_close(found, first - 1000 * log(factors[f]), 1e-9, "log likelihood in another unit");
        assert_close(value_of(part, "bic"), -2 * likelihood + 8 * log(1000), 1e-10, "BIC");
        assert_true(fabs(offset) < 1e-5 && fabs(share - 1) < 1e-12);
    }
}

TEST(by_bic) {
    static const struct model_component one[] = {{1, 5, 2}};
    static const struct model_component three[] = {{0.4, 0, 0.1}, {0.3, 1, 0.1}, {0.3, 3, 0.5}};
    struct table_of table = table_of(800, NULL);
    test_seed = 21;
    mix(800, 1, one);
    const struct model_part *part = &fitted_group(&table)->parts[0];
    assert_true(value_of(part, "components") == 1);
    assert_close(part->noise.components[0].sigma, value_of(part, "sigma") * sqrt(799.0 / 800), 1e-9, "sigma");
    mix(800, 3, three);
    table.folds = 5;
    const struct model_group *group = fitted_group(&table);
    assert_true(value_of(&group->parts[0], "components") == 3);
    assert_close(group->parts[0].noise.components[0].weight, 0.4, 0.1, "weight");
    double score = model_group_value(group, "cv_log_score"),
           own = value_of(&group->parts[0], "log_likelihood");
    assert_true(score < own / 800 && score > own / 800 - 0.05); /* left-out values are nearly as likely */
    table.folds = 0;
    table.rows = 15; /* they say nothing about two */
    assert_true(value_of(&fitted_group(&table)->parts[0], "components") == 1);
}

/* A weight counts like as many rows, and one of 0 like none. */
TEST(weights) {
    size_t rows = 0;
    double repeated[200];
    for (size_t i = 0; i < 40; i++) {
        values[i] = (i < 25 ? 1 : 5) + sin((double)i);
        other[i] = (double)(i % 4);
        for (size_t j = 0; j < i % 4; j++)
            repeated[rows++] = values[i];
    }
    struct table_of table = table_of(40, "components=2");
    table.weights = "y";
    double likelihood = fitted_likelihood(&table),
           mean = fit->model->groups[0].parts[0].estimates[0].estimate;
    assert_int_equal(fit->model->groups[0].rows, 30);
    memcpy(values, repeated, sizeof repeated);
    table = table_of(rows, "components=2");
    assert_close(fitted_likelihood(&table), likelihood, 1e-7, "log likelihood");
    assert_close(fit->model->groups[0].parts[0].estimates[0].estimate, mean, 1e-13, "mean");
}

/* Segments of a list of breaks; a row on a break belongs to the segment that begins there. */
TEST(segments) {
    test_seed = 4;
    for (size_t i = 0; i < 600; i++) {
        other[i] = (double)(i % 3) * 100;
        values[i] = other[i] + (i % 2 && other[i] < 150 ? 5 : 0) + 0.1 * test_normal();
    }
    struct table_of table = table_of(600, NULL);
    table.settings[1] = "over=y", table.settings[2] = "breaks=100, 200, 300";
    const struct model_group *group = fitted_group(&table);
    assert_string_equal(fit->model->kind, "piecewise");
    assert_string_equal(fit->model->over, "y");
    assert_int_equal(group->part_count, 3);
    for (size_t p = 0; p < 3; p++) {
        assert_true(value_of(&group->parts[p], "rows") == 200);
        assert_true(value_of(&group->parts[p], "components") == (p < 2 ? 2 : 1));
        assert_true(group->parts[p].to == 100 * (double)(p + 1));
    }
    assert_true(is_noted(group, "y from 300 to inf: no rows"));
}

/* A spike is not narrower than the floor: relative to all values, or to what the clock resolves. */
TEST(floors) {
    test_seed = 2;
    for (size_t i = 0; i < 600; i++)
        values[i] = i < 100 ? 1 : 2 * test_random();
    struct table_of table = table_of(600, "components=2");
    const struct model_group *group = fitted_group(&table);
    const struct model_component *c = group->parts[0].noise.components;
    assert_true(is_noted(group, "1 of 2 components are as narrow as 'floor' allows"));
    assert_close(fmin(c[0].sigma, c[1].sigma), 1e-3 * value_of(&group->parts[0], "sigma"), 1e-2, "floor");
    for (size_t i = 0; i < 600; i++)
        values[i] = floor(20 * values[i]) / 20; /* a clock of 1/20 */
    table = table_of(600, "components=4");
    group = fitted_group(&table);
    for (size_t k = 0; k < 4; k++)
        assert_true(group->parts[0].noise.components[k].sigma >= 0.05 / sqrt(12) * (1 - 1e-9));
}

/* ---- Odd samples */

TEST(odd_samples) {
    for (size_t i = 0; i < 20; i++)
        values[i] = 0.1;
    struct table_of table = table_of(20, NULL);
    const struct model_group *group = fitted_group(&table);
    assert_true(group->parts[0].estimates[0].estimate == 0.1 && is_noted(group, "all values are equal"));
    assert_true(value_of(&group->parts[0], "sigma") == 0 && group->parts[0].noise.kind == MODEL_NOISE_NONE);
    table.rows = 1;
    group = fitted_group(&table);
    assert_true(isnan(group->parts[0].estimates[0].standard_error) && is_noted(group, "a single value"));
    table = table_of(20, "components=2");
    assert_says(fitted_refusal(&table),
                "1 different value with a total weight of 20 are too few for 2 components");
    values[0] = 1e308, values[1] = -1e308;
    table = table_of(2, NULL);
    assert_says(fitted_refusal(&table), "exceed the range of a double");
    values[0] = 1e-12, values[1] = 1e12, values[2] = NAN;
    table.rows = 3;
    group = fitted_group(&table);
    assert_close(group->parts[0].estimates[0].estimate, 5e11, 1e-14, "mean");
    assert_int_equal(group->rows, 2);
}

TEST(refusals) {
    struct table_of table = table_of(5, "breaks=3");
    assert_says(fitted_refusal(&table), "breaks are set, but not the column");
    table.settings[0] = "over=y", table.settings[1] = "breaks=3,2";
    assert_says(fitted_refusal(&table), "the break 2 follows the break 3");
    table.settings[1] = "components=9";
    assert_says(fitted_refusal(&table), "out of range; expected 0 to 8");
}

TEST_GROUP(fitted_set_up, fitted_tear_down)
