/* The plugin export-cluster: means and covariances of what it draws, the same machines whatever their
 * number, models that read back, and what is refused. */
#include "engine/foundation/file.h"
#include "engine/model/read.h"
#include "engine/model/write.h"
#include "engine/predict/prediction.h"
#include "tests/test.h"

static struct installation installation;

#pragma GCC diagnostic ignored                                                                               \
    "-Wdiscarded-qualifiers" /* the texts of a model are not const, and not changed */

enum { P = 3, NODES = 4000 };

/* A time, one that may be negative, and a sigma; of two populations, the second slower. */
static struct model_factor factors[P] = {{.column = "m*n*k", .power = 1},
                                         {.column = "intercept", .power = 1},
                                         {.column = "mnk_residual", .power = 1}};
static struct model_term terms[P] = {{"`m*n*k`", "s", &factors[0], 1},
                                     {"intercept", "s", &factors[1], 1},
                                     {"mnk_residual", "s", &factors[2], 1}};
static struct model_estimate typical[P] = {{.estimate = 7e-11}, {.estimate = -2e-6}, {.estimate = 2e-12}};
static struct model_estimate slow[P] = {{.estimate = 9e-11}, {.estimate = -2e-6}, {.estimate = 2e-12}};
static struct model_estimate zero[P];
static double between[P * P] = {4e-22, 1e-17, -5e-24, 1e-17, 1e-12, -1e-19, -5e-24, -1e-19, 1e-24};
static double within[P * P] = {1e-22, 0, 0, 0, 1e-14, 1e-20, 0, 1e-20, 1e-25};
static struct model_value weights[2] = {{"weight", 0.9, "1"}, {"weight", 0.1, "1"}};
static struct model_part parts[3] = {{"component", .name = "typical", .estimates = typical,
                                      .covariance = between, .values = &weights[0], .value_count = 1},
                                     {"component", .name = "slow", .estimates = slow, .covariance = between,
                                      .values = &weights[1], .value_count = 1},
                                     {"days", .estimates = zero, .covariance = within}};
static struct model_group group = {.name = "all", .parts = parts, .part_count = 3};
static struct model model = {.size = sizeof model,
                             .kind = "population",
                             .response = "duration",
                             .response_unit = "s",
                             .terms = terms,
                             .term_count = P,
                             .groups = &group,
                             .group_count = 1};

/* ---- The host */

static struct prediction *prediction; /* the last one */
static const char *text;              /* what it wrote */

/* Runs the plugin on the model with SETTINGS, ended by NULL. */
static int generate(uint64_t seed, const char *const *settings) {
    const char *const models[] = {test_path("dahu.json")};
    struct prediction_request request = {
        .models = models, .model_count = 1, .settings = settings, .seed = seed};
    while (settings[request.setting_count])
        request.setting_count++;
    prediction_free(prediction);
    prediction = NULL;
    assert_ok(model_file_write(&model, models[0], &test_failure));
    int r = prediction_make(&installation, "export", "cluster", &request, &prediction, &test_failure);
    text = r == 0 ? prediction->text.bytes : "";
    return r;
}

static int set_up(void **state) {
    for (size_t i = 0; i < 3; i++)
        parts[i].from = -INFINITY, parts[i].to = INFINITY;
    return installation_init(&installation, test_build(), NULL, &test_failure);
}

static int tear_down(void **state) {
    prediction_free(prediction);
    installation_clear(&installation);
    return 0;
}

/* ---- Moments */

struct row {
    char population[32];
    double values[P];
};

/* The lines of a table. */
static size_t read_table(struct row *rows) {
    size_t count = 0;
    for (char *line = strchr(text, '\n') + 1; *line; line = strchr(line, '\n') + 1)
        assert_int_equal(sscanf(line, "%*[^,],%*u,%*u,%31[^,],%lf,%lf,%lf", rows[count].population,
                                &rows[count].values[0], &rows[count].values[1], &rows[count].values[2]),
                         4),
            count++;
    return count;
}

/* Means and covariances within six standard errors. */
static void assert_moments(const struct row *rows, size_t count, size_t step, const double *sigma,
                           const struct model_estimate *mu) {
    double mean[P] = {0}, n = (double)(count / step);
    for (size_t r = 0; r < count; r += step)
        for (size_t i = 0; i < P; i++)
            mean[i] += rows[r].values[i] / n;
    for (size_t i = 0; i < P; i++) {
        assert_true(fabs(mean[i] - mu[i].estimate) <= 6 * sqrt(sigma[i * P + i] / n));
        for (size_t j = 0; j < P; j++) {
            double covariance = 0;
            for (size_t r = 0; r < count; r += step)
                covariance += (rows[r].values[i] - mean[i]) * (rows[r].values[j] - mean[j]) / (n - 1);
            if (!(fabs(covariance - sigma[i * P + j]) <=
                  8 * sqrt(2 / n) * sqrt(sigma[i * P + i] * sigma[j * P + j])))
                fail_msg("covariance %zu %zu: %g; expected %g", i, j, covariance, sigma[i * P + j]);
        }
    }
}

/* The sigma has half its mean as deviation: as a normal, one in 44 would be below 0. */
TEST(moments) {
    static struct row rows[2 * NODES];
    double both[P * P];
    weights[0].value = 1, weights[1].value = 0;
    assert_int_equal(generate(1, (const char *[]){"nodes=4000", "form=table", NULL}), 0);
    assert_int_equal(read_table(rows), NODES);
    assert_moments(rows, NODES, 1, between, typical);
    for (size_t r = 0; r < NODES; r++)
        assert_true(rows[r].values[0] > 0 && rows[r].values[2] > 0);
    assert_int_equal(generate(2, (const char *[]){"nodes=2000", "cpus=2", "days=2", "form=table", NULL}), 0);
    assert_int_equal(read_table(rows), 2 * NODES);
    for (size_t i = 0; i < P * P; i++)
        both[i] = between[i] + within[i];
    assert_moments(rows, 2 * NODES, 2, both, typical);
    for (size_t r = 0; r < 2 * NODES; r += 2) /* how the second day differs from the first */
        for (size_t i = 0; i < P; i++)
            rows[r].values[i] -= rows[r + 1].values[i];
    for (size_t i = 0; i < P * P; i++)
        both[i] = 2 * within[i];
    assert_moments(rows, 2 * NODES, 2, both, zero);
    weights[0].value = 0.9, weights[1].value = 0.1;
    assert_int_equal(generate(3, (const char *[]){"nodes=4000", "form=table", NULL}), 0);
    size_t count = 0;
    double mean = 0;
    read_table(rows);
    for (size_t r = 0; r < NODES; r++)
        if (strcmp(rows[r].population, "slow") == 0)
            mean += rows[r].values[0], count++;
    assert_true(fabs((double)count / NODES - 0.1) < 6 * sqrt(0.09 / NODES));
    assert_true(fabs(mean / (double)count - 9e-11) < 6 * 2e-11 / sqrt((double)count));
}

/* The first machines do not depend on how many there are, and the seed is all that does. */
TEST(the_same_machines) {
    const char *few[] = {"nodes=3", "cpus=2", "days=2", "form=table", NULL};
    const char *many[] = {"nodes=10", "cpus=2", "days=2", "form=table", NULL};
    assert_int_equal(generate(7, few), 0);
    cleanup_free char *first = strdup(text);
    assert_int_equal(generate(7, many), 0);
    assert_true(strncmp(text, first, strlen(first)) == 0 && strlen(text) > strlen(first));
    assert_says(first,
                "node,cpu,day,population,\"m*n*k\",\"intercept\",\"mnk_residual\"\nnode-1,0,1,typical,");
    assert_int_equal(generate(8, few), 0);
    assert_true(strcmp(text, first) != 0);
}

/* Covariances of machines fewer than coefficients. */
TEST(singular) {
    double kept[P * P];
    memcpy(kept, between, sizeof kept);
    for (size_t i = 0; i < P; i++)
        for (size_t j = 0; j < P; j++)
            between[i * P + j] = sqrt(kept[i * P + i] * kept[j * P + j]) * (i == 2 || j == 2 ? i == j : 1);
    assert_int_equal(generate(1, (const char *[]){"nodes=50", "form=table", NULL}), 0);
    for (size_t i = 0; i < P * P; i++)
        between[i] = 0;
    assert_int_equal(generate(1, (const char *[]){"nodes=1", "form=table", NULL}), 0);
    struct row row;
    read_table(&row);
    assert_close(row.values[0], strcmp(row.population, "slow") == 0 ? 9e-11 : 7e-11, 1e-13, "the mean");
    memcpy(between, kept, sizeof kept);
}

/* ---- The model */

TEST(as_a_model) {
    const char *path = test_path("cluster.json");
    const char *settings[] = {"nodes=3", "cpus=2", "days=2", NULL};
    assert_int_equal(generate(7, settings), 0);
    assert_int_equal(file_write_output(path, text, strlen(text), &test_failure), 0);
    struct model *read = NULL;
    if (model_file_read(path, &read, &test_failure) < 0)
        fail_msg("%s", test_failure.text);
    assert_string_equal(read->kind, "linear");
    assert_string_equal(read->response, "duration");
    assert_string_equal(read->response_unit, "s");
    assert_int_equal(read->group_count, 12);
    assert_int_equal(read->by_count, 3);
    assert_string_equal(read->groups[11].labels[0], "node-3");
    assert_string_equal(read->terms[0].name, "m*n*k");
    assert_int_equal(read->terms[0].factor_count, 3);
    const struct model_part *part = &read->groups[0].parts[0];
    assert_int_equal(part->noise.kind, MODEL_NOISE_HETEROSCEDASTIC);
    assert_true(part->noise.constant == 0 && part->noise.coefficients[0] > 0);
    const char *table[] = {"nodes=3", "cpus=2", "days=2", "form=table", NULL};
    struct row rows[12];
    generate(7, table);
    assert_int_equal(read_table(rows), 12);
    assert_true(part->estimates[0].estimate == rows[0].values[0]);
    assert_true(part->noise.coefficients[0] == rows[0].values[2]);
    model_free(read);
}

TEST(targets) {
    static const struct {
        const char *as, *expected; /* what the text or the message has */
    } cases[] = {
        {"as=intercept=none,mnk_residual=none", "\"name\": \"m*n*k\", \"unit\": \"s\""},
        {"as=intercept=m*m^2", "\"name\": \"m*m^2\""},
        {"as=mnk_residual=sigma(1)", "\"kind\": \"N-1\""},
        {"as=mnk_residual=none", "\"covariance\": null, \"values\""},
        {"as=intercept=2", "the term of the coefficient 'intercept' as 2 is not known; set"},
        {"as=intercept=m+n", "not known; set"},
        {"as=intercept=m*n*k", "both 'm*n*k' and 'intercept' are the coefficient of the term m*n*k"},
        {"as=m*n*k=none", "'mnk_residual' is the sigma of the term m*n*k, but no coefficient"},
        {"as=alpha=1", "'alpha=1' names no coefficient of the model"},
        {"as=alpha", "'alpha' names no coefficient of the model"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int r = generate(1, (const char *[]){"nodes=2", cases[i].as, NULL});
        assert_says(r < 0 ? test_failure.text : text, cases[i].expected);
    }
    factors[2].column = "sigma.m*n*k"; /* as in a table of a model */
    assert_int_equal(generate(1, (const char *[]){"nodes=2", "as=intercept=none", NULL}), 0);
    factors[2].column = "mnk_residual";
    assert_says(text, "\"kind\": \"N-2\"");
}

TEST(refusals) {
    const char *settings[] = {"nodes=2", "days=1", NULL};
    weights[0].value = 0.3;
    assert_int_equal(generate(1, settings), -EINVAL);
    assert_says(test_failure.text, "add up to 0.4; expected 1");
    weights[0].value = 0.9;
    between[1] = between[3] = 1e-15;
    assert_int_equal(generate(1, settings), -EINVAL);
    assert_says(test_failure.text, "not positive semidefinite");
    between[1] = between[3] = 1e-17;
    parts[2].covariance = NULL;
    assert_int_equal(generate(1, settings), -EINVAL);
    assert_says(test_failure.text, "set days=0 to draw machines without days");
    parts[2].covariance = within;
    assert_int_equal(generate(1, (const char *[]){"nodes=2", "group=none", NULL}), -EINVAL);
    assert_says(test_failure.text, "'group' is none");
    assert_int_equal(generate(1, (const char *[]){"nodes=16777216", "cpus=2", NULL}), -EINVAL);
    assert_says(test_failure.text, "expected at most 2097152");
    assert_int_equal(generate(1, (const char *[]){"nodes=16777216", "cpus=2", "form=table", NULL}), -EINVAL);
    assert_says(test_failure.text, "expected at most 16777216");
}

TEST_GROUP(set_up, tear_down)
