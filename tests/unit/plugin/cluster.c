/* Synthetic clusters: the same for a seed, with the moments of the population, and only possible machines. */
#include "engine/plugin/cluster.h"
#include "engine/plugin/cluster-model.h"
#include "tests/test.h"

enum { P = 3, NODES = 100000 };

static const struct plugin_term terms[P] = {{"mnk", NULL, 0}, {"intercept", NULL, 0}, {"noise", NULL, 0}};
static const double means[P] = {7e-11, 2e-6, 3e-12}, slow_means[P] = {9e-11, 2e-6, 3e-12},
                    zeros[P] = {0, 0, 0};
/* Deviations 2e-12, 1e-7 and 3e-13; correlations 0.5, -0.3 and 0.2. */
static double between[P * P] = {4e-24, 1e-19, -1.8e-25, 1e-19, 1e-14, 6e-21, -1.8e-25, 6e-21, 9e-26};
static double within[P * P] = {1e-26, 0, 0, 0, 4e-16, 0, 0, 0, 1e-28};
static struct predict_value whole = {"weight", 1}, most = {"weight", 0.9}, rest = {"weight", 0.1};
static struct predict_part parts[3];
static struct predict_group group = {.name = "all", .rows = 1000, .parts = parts};
static struct predict_model model = {.name = "population.json",
                                     .kind = "population",
                                     .terms = terms,
                                     .term_count = P,
                                     .groups = &group,
                                     .group_count = 1};

static int set_up(void **state) {
    parts[0] = (struct predict_part){.kind = "component",
                                     .name = "typical",
                                     .estimates = means,
                                     .values = &whole,
                                     .value_count = 1,
                                     .covariance = between};
    parts[1] = (struct predict_part){.kind = "days", .estimates = zeros, .covariance = within};
    group.part_count = 2;
    return 0;
}

static struct cluster *draw(size_t nodes, size_t cpus, size_t days, uint64_t seed) {
    struct cluster *cluster = NULL;
    struct failure failure = {0};
    const struct cluster_settings settings = {.nodes = nodes, .cpus = cpus, .days = days, .seed = seed};
    if (cluster_draw(&model, &settings, &cluster, &failure) < 0)
        fail_msg("%s", failure.text);
    return cluster;
}

static void refused(const char *expected) {
    struct cluster *cluster = NULL;
    struct failure failure = {0};
    const struct cluster_settings settings = {.nodes = 2, .cpus = 1, .days = 1, .seed = 1};
    assert_int_equal(cluster_draw(&model, &settings, &cluster, &failure), -EINVAL);
    if (!strstr(failure.text, expected))
        fail_msg("'%s'; expected '%s'", failure.text, expected);
}

/* Of the first coefficients of every DAYS-th row. */
static void measure(const struct cluster *cluster, size_t first, size_t step, double mean[P],
                    double covariance[P * P]) {
    double count = 0;
    memset(mean, 0, P * sizeof *mean);
    memset(covariance, 0, P * P * sizeof *covariance);
    for (size_t row = first; row < cluster->row_count; row += step, count++)
        for (size_t i = 0; i < P; i++)
            mean[i] += cluster->values[row * P + i];
    for (size_t i = 0; i < P; i++)
        mean[i] /= count;
    for (size_t row = first; row < cluster->row_count; row += step)
        for (size_t i = 0; i < P; i++)
            for (size_t j = 0; j < P; j++)
                covariance[i * P + j] += (cluster->values[row * P + i] - mean[i]) *
                                         (cluster->values[row * P + j] - mean[j]) / (count - 1);
}

/* Within six standard errors of a sample of NODES. */
static void assert_moments(const double *mean, const double *covariance, const double *mu,
                           const double *sigma) {
    for (size_t i = 0; i < P; i++) {
        double deviation = sqrt(sigma[i * P + i]);
        assert_true(fabs(mean[i] - mu[i]) <= 6 * deviation / sqrt(NODES));
        for (size_t j = 0; j < P; j++)
            assert_true(fabs(covariance[i * P + j] - sigma[i * P + j]) <=
                        6 * sqrt(2.0 / NODES) * deviation * sqrt(sigma[j * P + j]));
    }
}

TEST(moments) {
    double mean[P], covariance[P * P], both[P * P];
    struct cluster *cluster = draw(NODES, 1, 0, 1);
    assert_int_equal(cluster->row_count, NODES);
    measure(cluster, 0, 1, mean, covariance);
    assert_moments(mean, covariance, means, between);
    cluster_free(cluster);
    cluster = draw(NODES / 2, 2, 2, 2);
    assert_int_equal(cluster->row_count, 2 * NODES);
    measure(cluster, 0, 2, mean, covariance); /* the first day of each */
    for (size_t i = 0; i < P * P; i++)
        both[i] = between[i] + within[i];
    assert_moments(mean, covariance, means, both);
    for (size_t row = 0; row < cluster->row_count; row += 2) /* how the second differs from the first */
        for (size_t i = 0; i < P; i++)
            cluster->values[row * P + i] -= cluster->values[(row + 1) * P + i];
    measure(cluster, 0, 2, mean, covariance);
    for (size_t i = 0; i < P * P; i++)
        both[i] = 2 * within[i];
    assert_moments(mean, covariance, zeros, both);
    cluster_free(cluster);
}

TEST(slow_nodes) {
    parts[0].values = &most;
    parts[2] = parts[1];
    parts[1] = (struct predict_part){.kind = "component",
                                     .name = "slow",
                                     .estimates = slow_means,
                                     .values = &rest,
                                     .value_count = 1,
                                     .covariance = between};
    group.part_count = 3;
    struct cluster *cluster = draw(NODES, 1, 1, 3);
    double count = 0, mean = 0;
    for (size_t c = 0; c < NODES; c++)
        if (cluster->populations[c] == 1) {
            mean += cluster->values[c * P];
            count++;
        }
    assert_true(fabs(count / NODES - 0.1) < 6 * sqrt(0.09 / NODES));
    assert_true(fabs(mean / count - 9e-11) < 6 * 2e-12 / sqrt(count));
    cluster_free(cluster);
    rest.value = 0.3;
    refused("add up to 1.2; expected 1");
    rest.value = 0.1;
    parts[1].value_count = 0;
    refused("has the weight nan");
}

/* The same numbers on every machine, and the first nodes do not depend on how many there are. */
TEST(deterministic) {
    struct cluster *few = draw(3, 2, 2, 7), *many = draw(10, 2, 2, 7), *other = draw(3, 2, 2, 8);
    assert_memory_equal(few->values, many->values, few->row_count * P * sizeof(double));
    assert_true(few->values[0] != other->values[0]);
    static const char *const expected[] = {"0x1.30a32fa76a9b3p-34", "0x1.0ae4f27822a85p-19",
                                           "0x1.b19e7f9818bfdp-39"};
    for (size_t i = 0; i < P; i++) {
        char text[64];
        snprintf(text, sizeof text, "%a", few->values[11 * P + i]);
        assert_string_equal(text, expected[i]);
    }
    struct cluster_place place = cluster_place(few, 11);
    assert_string_equal(place.node, "node-3");
    assert_true(place.cpu == 1 && place.day == 2);
    cluster_free(few);
    cluster_free(many);
    cluster_free(other);
}

/* What has a positive mean is positive; the rest follows the normal. */
TEST(possible) {
    static const double near_zero[P] = {2e-12, -1e-7, 3e-12};
    parts[0].estimates = near_zero;
    struct cluster *cluster = draw(NODES, 1, 1, 5);
    size_t negative = 0;
    for (size_t row = 0; row < NODES; row++) {
        assert_true(cluster->values[row * P] > 0 && cluster->values[row * P + 2] > 0);
        negative += cluster->values[row * P + 1] < 0;
    }
    assert_true(negative > NODES / 2 && negative < NODES);
    /* P(Z < -1) = 15.9 % are drawn again, on 84.1 % of machines each */
    assert_true(fabs((double)cluster->redrawn / NODES - 0.1587 / 0.8413) < 0.01);
    cluster_free(cluster);
    static const double hopeless[P] = {1e-20, 1e-20, 1e-20};
    static double tied[P * P] = {1, -1, 0, -1, 1, 0, 0, 0, 1};
    parts[0].estimates = hopeless;
    parts[0].covariance = tied;
    refused("1000 draws in a row");
}

TEST(covariances) {
    /* Singular ones are fine: the second is twice the first, the third does not change. */
    static double singular[P * P] = {4e-24, 8e-19, 0, 8e-19, 1.6e-13, 0, 0, 0, 0};
    parts[0].covariance = singular;
    struct cluster *cluster = draw(1000, 1, 0, 1);
    for (size_t row = 0; row < 1000; row++) {
        const double *values = cluster->values + row * P;
        assert_true(values[2] == means[2]);
        assert_true(fabs((values[1] - means[1]) - 2e5 * (values[0] - means[0])) < 1e-12);
    }
    cluster_free(cluster);
    static double wrong[][P * P] = {
        {-1e-24, 0, 0, 0, 1, 0, 0, 0, 1},                /* a negative variance */
        {4e-24, 1e-18, 0, 1e-18, 1e-14, 0, 0, 0, 9e-26}, /* a correlation of 5 */
        {1, 0.9, -0.9, 0.9, 1, 0.9, -0.9, 0.9, 1},       /* three that cannot be at once */
        {0, 1e-20, 0, 1e-20, 1e-14, 0, 0, 0, 9e-26},     /* what does not vary, with what does */
        {NAN, 0, 0, 0, 1, 0, 0, 0, 1},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        parts[0].covariance = wrong[i];
        refused("is not positive semidefinite");
    }
    parts[0].covariance = NULL;
    refused("has no covariance of its machines");
}

TEST(refusals) {
    group.part_count = 1;
    refused("does not tell how days differ");
    set_up(NULL);
    model.kind = "linear";
    refused("is of the kind 'linear'; expected 'population'");
    model.kind = "population";
    struct cluster *cluster = NULL;
    struct failure failure = {0};
    struct cluster_settings settings = {.nodes = 1 << 20, .cpus = 64, .days = 1};
    assert_int_equal(cluster_draw(&model, &settings, &cluster, &failure), -EINVAL);
    assert_non_null(strstr(failure.text, "are 67108864 rows; expected at most 16777216"));
    settings = (struct cluster_settings){.nodes = 1, .cpus = 1, .group = "al"};
    assert_int_equal(cluster_draw(&model, &settings, &cluster, &failure), -EINVAL);
    assert_non_null(strstr(failure.text, "there is no group 'al'; did you mean 'all'?"));
}

/* ---- What coefficients are */

TEST(targets) {
    static const struct {
        const char *name, *as, *term;
        int kind;
    } good[] = {
        {"1", NULL, "1", CLUSTER_MEAN},
        {"intercept", NULL, "1", CLUSTER_MEAN},
        {"mnk", NULL, "m*n*k", CLUSTER_MEAN},
        {"m*n^2", NULL, "m*n^2", CLUSTER_MEAN},
        {"mnk_residual", NULL, "m*n*k", CLUSTER_SIGMA},
        {"sigma(m*n)", NULL, "m*n", CLUSTER_SIGMA},
        {"sigma(1)", NULL, "1", CLUSTER_SIGMA},
        {"sigma", NULL, "1", CLUSTER_SIGMA},
        {"intercept_residual", NULL, "1", CLUSTER_SIGMA},
        {"alpha", "m*n*k", "m*n*k", CLUSTER_MEAN},
        {"alpha", "size", "size", CLUSTER_MEAN},
        {"alpha", "1", "1", CLUSTER_MEAN},
        {"alpha", "m*m", "m^2", CLUSTER_MEAN},
        {"alpha", "sigma(size^2)", "size^2", CLUSTER_SIGMA},
        {"mnk", "none", "", CLUSTER_NONE},
    };
    struct cluster_target target;
    struct failure failure = {0};
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        assert_int_equal(cluster_target_read(good[i].name, good[i].as, &target, &failure), 0);
        assert_int_equal(target.kind, good[i].kind);
        assert_string_equal(target.term, good[i].term);
    }
    static const char *const wrong[][2] = {{"alpha", NULL},  {"mm", NULL},        {"", NULL},
                                           {"alpha", ""},    {"alpha", "2"},      {"alpha", "m*"},
                                           {"alpha", "m^0"}, {"alpha", "m+n"},    {"alpha", "sigma()"},
                                           {"alpha", "*m"},  {"_residual", NULL}, {"sigma()", NULL}};
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++)
        assert_int_equal(cluster_target_read(wrong[i][0], wrong[i][1], &target, &failure), -EINVAL);
    assert_int_equal(cluster_target_read("gamma", NULL, &target, &failure), -EINVAL);
    assert_non_null(strstr(failure.text, "say it with --as 'gamma=TERM'"));
}

TEST_EACH(set_up, NULL)
