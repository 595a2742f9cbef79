/* Bound calls against the evaluator, and their draws. */
#include "engine/model/bound.h"
#include "engine/model/extrapolation.h"
#include "engine/numerics/random.h"
#include "tests/test.h"

#include <pthread.h>

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* models of literals */
#pragma GCC diagnostic ignored "-Wmissing-field-initializers"

#define FACTORS(...)                                                                                         \
    .factors = (struct model_factor[]) {                                                                     \
        __VA_ARGS__                                                                                          \
    }
#define ESTIMATES(...)                                                                                       \
    (struct model_estimate[]) {                                                                              \
        __VA_ARGS__                                                                                          \
    }

static struct model_term terms[] = {
    {.name = "1"},
    {.name = "m*n*k*m", FACTORS({"m", 1}, {"n", 1}, {"k", 1}, {"m", 1}), .factor_count = 4},
    {.name = "m^-1", FACTORS({"m", -1}), .factor_count = 1},
    {.name = "log2(n)^2*k",
     FACTORS({.column = "n", .power = 2, .function = "log2"}, {"k", 1}),
     .factor_count = 2},
    {.name = "kind[b]*m",
     FACTORS({.column = "kind", .power = 1, .level = "b"}, {"m", 1}),
     .factor_count = 2}};
static struct model_range domain[] = {{"m", 1, 10}, {"n", 1, 100}};
static struct model_column columns[] = {
    {.about.name = "kind", .about.type = COLUMN_STRING, .levels = (char *[]){"a", "b"}, .level_count = 2}};
static struct model_part parts[] = {
    {"segment", NULL, -INFINITY, 4, ESTIMATES({2}, {3}, {-4}, {5}, {7}),
     .noise = {MODEL_NOISE_HETEROSCEDASTIC, .constant = 1, .coefficients = (double[]){0, 0.5, 0, 0.25, 0}},
     .domain = domain, .domain_count = 2},
    {"segment", NULL, 4, 8, ESTIMATES({1}, {2}, {NAN, .dropped = true}, {3}, {4}),
     .noise = {MODEL_NOISE_HETEROSCEDASTIC, true, .constant = 1, .coefficients = (double[]){0, 0, 3, -9, 0}}},
    {"segment", NULL, 8, INFINITY, ESTIMATES({1}, {1}, {1}, {1}, {1}),
     .noise = {MODEL_NOISE_MIXTURE, .component_count = 2,
               .components = (struct model_component[]){{0.25, -3, 0.5}, {0.75, 1, 1}}}}};

static const struct predict_call *bind(const struct evaluator *evaluator, const struct model *model,
                                       const char *kind, struct bound **ret) {
    const char *names[] = {"elsewhere", "n", kind, "k", "m"};
    assert_ok(bound_new(evaluator, model->groups, names, 5, NULL, ret, &test_failure));
    return bound_call(*ret);
}

static struct model model_of(struct model_group *group, char *kind, char *over) {
    return (struct model){.file = "x",
                          .kind = kind,
                          .over = over,
                          .terms = terms,
                          .term_count = 5,
                          .columns = columns,
                          .column_count = 1,
                          .groups = group,
                          .group_count = 1};
}

/* Bit for bit the evaluator's mean, of all kinds, with powers, logarithms, dummies, segments, dropped terms.
 */
TEST(is_the_evaluators_mean) {
    static const char *const kinds[] = {"linear", "maximum", "minimum", "harmonic", "piecewise"};
    static const double sizes[] = {-1, 0, 0.5, 3, 4, 7, 9, 1e3, INFINITY, NAN};
    enum { SIZES = sizeof sizes / sizeof *sizes };
    struct model_group group = {.parts = parts, .part_count = 3};
    struct model model = model_of(&group, NULL, NULL);
    for (size_t kind = 0; kind < 5; kind++)
        for (int text = 0; text < 2; text++) {
            model.kind = (char *)kinds[kind];
            model.over = kind == 4 ? "m" : NULL;
            group.part_count = kind == 4 ? 3 : 1;
            cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
            assert_ok(evaluator_new(&model, &evaluator, &test_failure));
            struct bound *bound;
            const struct predict_call *call = bind(evaluator, &model, text ? "kind=b" : "kind=a", &bound);
            double rows[5][SIZES * SIZES], means[SIZES * SIZES];
            for (size_t i = 0; i < SIZES * SIZES; i++) {
                double m = sizes[i % SIZES], n = sizes[i / SIZES], mean, sigma, own, own_sigma;
                double values[] = {NAN, n, NAN, 2, m}, inputs[8];
                for (size_t k = 0; k < evaluator->input_count; k++) {
                    const char *name = evaluator->inputs[k].name;
                    inputs[k] = strcmp(name, "m") == 0   ? m
                                : strcmp(name, "n") == 0 ? n
                                : strcmp(name, "k") == 0 ? 2
                                                         : evaluator_code(evaluator, k, text ? "b" : "a");
                }
                (void)evaluator_row(evaluator, &group, inputs, &mean, &sigma);
                bound_value(bound, values, &own, &own_sigma);
                assert_true(own == mean || (isnan(own) && isnan(mean)));
                assert_true(own_sigma == sigma || (isnan(own_sigma) && isnan(sigma)));
                assert_true(call->mean(call, values) == mean || isnan(mean));
                for (size_t k = 0; k < 5; k++)
                    rows[k][i] = values[k];
            }
            const double *of[] = {rows[0], rows[1], rows[2], rows[3], rows[4]};
            call->means(call, of, SIZES * SIZES, means);
            for (size_t i = 0; i < SIZES * SIZES; i++) {
                double values[] = {NAN, rows[1][i], NAN, 2, rows[4][i]}, mean = call->mean(call, values);
                assert_true(means[i] == mean || (isnan(means[i]) && isnan(mean)));
            }
            bound_free(bound);
        }
}

TEST(a_missing_column_is_named) {
    struct model_group group = {.parts = parts, .part_count = 1};
    struct model model = model_of(&group, "linear", NULL);
    cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
    const char *names[] = {"m", "n", "kind"};
    struct bound *bound;
    assert_ok(evaluator_new(&model, &evaluator, &test_failure));
    assert_int_equal(bound_new(evaluator, &group, names, 3, NULL, &bound, &test_failure), -EINVAL);
    assert_says(test_failure.text, "the model 'x' needs the column 'k'");
    const char *no_text[] = {"m", "n", "k", "kind"};
    assert_int_equal(bound_new(evaluator, &group, no_text, 4, NULL, &bound, &test_failure), -EINVAL);
    assert_says(test_failure.text, "needs the column 'kind', a text");
}

enum { DRAWS = 20000 };
static double drawn[DRAWS];
static const struct predict_call *drawing;
static double row[] = {0, 2, 0, 1, 9};

static void *draw_backwards(void *unused) {
    for (size_t i = DRAWS; i-- > 0;)
        if (drawn[i] != drawing->draw(drawing, row, 7, i))
            return drawing;
    return NULL;
}

/* Mean and deviation of N-2, half-normal and mixture; another thread and another order find the same numbers;
 * another seed or stream others. */
TEST(draws) {
    struct model_group group = {.parts = parts, .part_count = 3};
    struct model model = model_of(&group, "piecewise", "m");
    cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
    assert_ok(evaluator_new(&model, &evaluator, &test_failure));
    struct bound *bound;
    drawing = bind(evaluator, &model, "kind=a", &bound);
    parts[1].noise.coefficients[3] = 0;
    bound_follow(bound, &group, 3);
    for (size_t part = 0; part < 3; part++) {
        double sum = 0, squares = 0, mean, sigma, least = INFINITY;
        row[4] = (double[]){3, 6, 9}[part];
        bound_value(bound, row, &mean, &sigma);
        for (size_t i = 0; i < DRAWS; i++) {
            drawn[i] = drawing->draw(drawing, row, 7, i);
            sum += drawn[i] - mean;
            squares += (drawn[i] - mean) * (drawn[i] - mean);
            least = fmin(least, drawn[i]);
        }
        assert_true(fabs(sum / DRAWS) < 4 * sigma / sqrt(DRAWS));
        assert_true(fabs(sqrt(squares / DRAWS) / sigma - 1) < 0.04);
        assert_true(part != 1 || least > mean - 1.4 * sigma); /* a half-normal ends at -1.324 sigma */
        pthread_t thread;
        void *different;
        assert_int_equal(pthread_create(&thread, NULL, draw_backwards, NULL), 0);
        assert_int_equal(pthread_join(thread, &different), 0);
        assert_null(different);
        assert_true(drawing->draw(drawing, row, 8, 0) != drawn[0]);
    }
    bound_follow(bound, &group, 4);
    assert_true(drawing->draw(drawing, row, 7, 0) != drawn[0]);
    bound_free(bound);
}

/* Quantiles and the tail of the ziggurat; its first numbers are the same on every machine. */
TEST(normals_by_counter) {
    enum { COUNT = 1000000 };
    static const double bounds[] = {-3.6541528853610088, -2, -1, 0, 0.25, 1, 3, 4};
    size_t below[8] = {0};
    uint64_t key = random_counter_key(1);
    for (size_t i = 0; i < COUNT; i++) {
        double z = random_counter_normal(random_counter_bits(key, 5, i));
        for (size_t b = 0; b < 8; b++)
            below[b] += z < bounds[b];
    }
    for (size_t b = 0; b < 8; b++) {
        double share = 0.5 * erfc(-bounds[b] / M_SQRT2), error = sqrt(share * (1 - share) / COUNT);
        assert_true(fabs((double)below[b] / COUNT - share) < 4 * error);
    }
}

/* M-2, a dummy of one column and another order of columns: the evaluator's mean and sigma, and of what it
 * says is outside; rows at once say the same as rows one by one. */
TEST(products_of_three_columns) {
    enum { ROWS = 200, TOGETHER = 37 };
    double together[TOGETHER];
    uint64_t streams[TOGETHER], numbers[TOGETHER];
    for (size_t i = 0; i < TOGETHER; i++)
        streams[i] = 5 + i % 3, numbers[i] = i * 1000003;
    struct model_term products[] = {
        {.name = "1"},
        {.name = "m*n*k", FACTORS({"m", 1}, {"n", 1}, {"k", 1}), .factor_count = 3},
        {.name = "m*n", FACTORS({"m", 1}, {"n", 1}), .factor_count = 2},
        {.name = "m*k", FACTORS({"m", 1}, {"k", 1}), .factor_count = 2},
        {.name = "n*k", FACTORS({"n", 1}, {"k", 1}), .factor_count = 2},
        {.name = "kind[b]*m",
         FACTORS({.column = "kind", .power = 1, .level = "b"}, {"m", 1}),
         .factor_count = 2},
        {.name = "kind[a]*k",
         FACTORS({.column = "kind", .power = 1, .level = "a"}, {"k", 1}),
         .factor_count = 2}};
    static struct model_range ranges[] = {{"m", 2, 30}, {"k", -5, 40}, {"m*n*k", 10, 20000}};
    static double ones[] = {1, 0, 0, 1, 1, -1}, least[] = {0.5, 2, -20}, most[] = {25, 60, 20},
                  scale[] = {1, 0.5};
    struct model_hull hull = {.columns = (char *[]){"m", "n"},
                              .column_count = 2,
                              .direction_count = 3,
                              .directions = ones,
                              .scale = scale,
                              .minimum = least,
                              .maximum = most};
    struct model_part part = {"segment",
                              NULL,
                              -INFINITY,
                              INFINITY,
                              ESTIMATES({0.1}, {3e-3}, {-0.3}, {5.1}, {1.7}, {2.3}, {0.9}),
                              .noise = {MODEL_NOISE_HETEROSCEDASTIC, .constant = 0.3,
                                        .coefficients = (double[]){0, 0.1, 0, 0.7, 0, 0.01, 0}},
                              .domain = ranges,
                              .domain_count = 3};
    struct model_group group = {.parts = &part, .part_count = 1};
    for (int kind = 0; kind < 3; kind++) {
        struct model model = model_of(&group, "linear", NULL);
        model.terms = products;
        model.term_count = kind == 2 ? 5 : 7;
        model.hull = &hull;
        cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
        assert_ok(evaluator_new(&model, &evaluator, &test_failure));
        struct bound *bound;
        const struct predict_call *call = bind(evaluator, &model, kind ? "kind=b" : "kind=a", &bound);
        double of[5][ROWS], means[ROWS], sigmas[ROWS];
        bool outside[ROWS];
        struct random_stream stream;
        bound_follow(bound, &group, 3);
        random_stream_init(&stream, 1, "rows", 0);
        for (size_t i = 0; i < ROWS; i++) {
            for (size_t k = 0; k < 5; k++)
                of[k][i] = k % 2 == 0 && k < 4 ? NAN : (double)random_stream_below(&stream, 35) - 2;
            of[3][i] = i == 3 ? INFINITY : i == 70 ? NAN : i == 199 ? 1e308 : (double)(i % 45) - 1;
        }
        const double *const at[] = {NULL, of[1], NULL, of[3], of[4]};
        bound_rows(bound, at, ROWS, means, sigmas, outside);
        size_t inside = 0;
        for (size_t i = 0; i < ROWS; i++) {
            double values[5], inputs[8], mean, sigma, own, own_sigma;
            struct evaluator_value value;
            bound_values(bound, at, i, values);
            for (size_t k = 0; k < evaluator->input_count; k++) {
                const char *name = evaluator->inputs[k].name;
                inputs[k] = strcmp(name, "m") == 0   ? of[4][i]
                            : strcmp(name, "n") == 0 ? of[1][i]
                            : strcmp(name, "k") == 0 ? of[3][i]
                                                     : evaluator_code(evaluator, k, kind ? "b" : "a");
            }
            (void)evaluator_row(evaluator, &group, inputs, &mean, &sigma);
            extrapolation_find(evaluator, &group, inputs, &value);
            bound_value(bound, values, &own, &own_sigma);
            assert_true(own == mean || (isnan(own) && isnan(mean)));
            assert_true(own_sigma == sigma || (isnan(own_sigma) && isnan(sigma)));
            assert_true(call->mean(call, values) == mean || isnan(mean));
            assert_true(bound_is_outside(bound, values) == extrapolation_is_outside(&value));
            assert_true(means[i] == mean || (isnan(means[i]) && isnan(mean)));
            assert_true(sigmas[i] == sigma || (isnan(sigmas[i]) && isnan(sigma)));
            assert_true(outside[i] == extrapolation_is_outside(&value));
            double normal = random_counter_normal(random_counter_bits(random_counter_key(3), 7, i));
            double measured = isnan(sigma) ? mean : mean + sigma * normal;
            assert_true(call->draw(call, values, 7, i) == measured || isnan(measured));
            call->draws(call, values, TOGETHER, streams, numbers, together);
            for (size_t k = 0; k < TOGETHER; k++)
                assert_true(together[k] == call->draw(call, values, streams[k], numbers[k]) ||
                            isnan(together[k]));
            inside += !outside[i];
        }
        assert_true(inside > 10 && inside < ROWS - 10);
        bound_free(bound);
    }
}
