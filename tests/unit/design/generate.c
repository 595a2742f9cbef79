/* Generators over levels: completeness, bounds, distributions, and the bytes that a seed gives. */
#include "engine/design/generate.h"
#include "engine/design/design.h"
#include "engine/foundation/hash.h"
#include "tests/test.h"

static const struct levels_place nowhere = {0};

static struct levels range(const char *name, const char *low, const char *high, const char *step) {
    struct levels levels = {0};
    assert_ok(levels_from_range(name, low, high, step, nowhere, &levels, &test_failure));
    return levels;
}

static struct levels list(const char *name, const char *a, const char *b, const char *c) {
    struct levels levels = {0};
    const char *texts[] = {a, b, c};
    assert_ok(levels_from_list(name, texts, c ? 3 : 2, nowhere, &levels, &test_failure));
    return levels;
}

static void clear(struct levels *levels, size_t count) {
    for (size_t i = 0; i < count; i++)
        levels_clear(&levels[i]);
}

static int by_value(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* ---- Levels */

TEST(level_types) {
    static const struct {
        const char *low, *high, *step;
        enum column_type type;
        uint64_t count;
    } cases[] = {
        {"0", "1", NULL, COLUMN_INTEGER, 2},
        {"0.0", "1.0", NULL, COLUMN_NUMBER, 0},
        {"1", "1e9", NULL, COLUMN_INTEGER, 1000000000},
        {"1", "64MiB", NULL, COLUMN_INTEGER, 67108864},
        {"0.0", "1.0", "0.1", COLUMN_NUMBER, 11},
        {"100", "1000", "100", COLUMN_INTEGER, 10},
        {"1", "10", "4", COLUMN_INTEGER, 3},
        {"-3", "3", NULL, COLUMN_INTEGER, 7},
        {"1e-3", "1", NULL, COLUMN_NUMBER, 0},
        {"5", "5", NULL, COLUMN_INTEGER, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(levels_clear) struct levels levels = range("x", cases[i].low, cases[i].high, cases[i].step);
        assert_int_equal(levels.type, cases[i].type);
        assert_int_equal(levels_count(&levels), cases[i].count);
    }
    struct levels tenths = range("x", "0.0", "1.0", "0.1");
    assert_true(levels_number(&tenths, 10) == 1 && levels_number(&tenths, 5) == 0.5);
    levels_clear(&tenths);
    struct levels texts = list("bcast", "1ring", "2", NULL), numbers = list("x", "1", "2.5", NULL),
                  integers = list("n", "1e3", "64KiB", "7");
    assert_int_equal(texts.type, COLUMN_STRING);
    assert_int_equal(numbers.type, COLUMN_NUMBER);
    assert_int_equal(integers.type, COLUMN_INTEGER);
    assert_true(levels_number(&integers, 1) == 65536);
    levels_clear(&texts);
    levels_clear(&numbers);
    levels_clear(&integers);
}

static void refuse_range(const char *low, const char *high, const char *step, const char *sentence) {
    struct levels levels = {0};
    struct levels_place place = {.file = "d.yaml", .line = 4, .column = 9};
    assert_int_equal(levels_from_range("n", low, high, step, place, &levels, &test_failure), -22);
    assert_string_equal(test_failure.place, "d.yaml:4:9");
    if (!strstr(test_failure.text, sentence))
        fail_msg("%s", test_failure.text);
    assert_null(levels.name);
}

TEST(level_refusals) {
    refuse_range("5", "1", NULL, "the range of 'n' goes from 5 down to 1, expected low before high");
    refuse_range("a", "1", NULL, "'a' in the range of 'n' is not a number");
    refuse_range("1", "", NULL, "'' in the range of 'n' is not a number");
    refuse_range("1", "5s", NULL, "'5s' in the range of 'n' is not a number");
    refuse_range("1", "5", "0", "the step of 'n' is 0, expected a number above 0");
    refuse_range("1", "5", "-1", "the step of 'n' is -1");
    refuse_range("-1.7e308", "1.7e308", NULL, "too wide");
    struct levels levels = {0};
    const char *twice[] = {"64", "128", "64"}, *empty[] = {"64", ""};
    assert_int_equal(levels_from_list("nb", twice, 3, nowhere, &levels, &test_failure), -22);
    assert_string_equal(test_failure.text, "'64' is given twice among the values of 'nb'");
    assert_int_equal(levels_from_list("nb", empty, 2, nowhere, &levels, &test_failure), -22);
    assert_string_equal(test_failure.text, "an empty value of 'nb'");
    assert_error(levels_from_list("nb", NULL, 0, nowhere, &levels, &test_failure), -22,
                 "0 values of 'nb', expected from 1");
}

/* ---- Factorial */

TEST(factorial) {
    struct levels levels[] = {range("n", "1000", "3000", "1000"), list("nb", "64", "128", NULL),
                              list("bcast", "ring", "long", "blong")};
    struct design *design = NULL;
    assert_ok(design_generate_factorial(levels, 3, &design, &test_failure));
    assert_int_equal(design->row_count, 18);
    /* Every combination, the last fastest: row = (i * 2 + j) * 3 + l. */
    for (size_t row = 0; row < 18; row++) {
        assert_int_equal(design->columns[0].integers[row], 1000 + 1000 * (int64_t)(row / 6));
        assert_int_equal(design->columns[1].integers[row], row / 3 % 2 ? 128 : 64);
        char buffer[NUMBER_TEXT_SIZE];
        assert_string_equal(design_value(design, row, 2, buffer),
                            ((const char *[]){"ring", "long", "blong"})[row % 3]);
    }
    design_free(design);
    clear(levels, 3);
}

TEST(factorial_refusals) {
    struct levels uncountable[] = {range("x", "0.0", "1.0", NULL)};
    struct levels many[] = {range("m", "1", "1000", NULL), range("n", "1", "1000", NULL),
                            range("k", "1", "1000", NULL)};
    struct design *design = NULL;
    assert_int_equal(design_generate_factorial(uncountable, 1, &design, &test_failure), -22);
    assert_string_equal(
        test_failure.text,
        "the range of 'x' has no step, so that its values are not countable; expected a step or a list");
    assert_int_equal(design_generate_factorial(many, 3, &design, &test_failure), -22);
    assert_string_equal(test_failure.text, "with the factor 'k' the full factorial has more than 134217728 "
                                           "rows, the most accepted; give fewer values");
    assert_null(design);
    clear(uncountable, 1);
    clear(many, 3);
}

/* ---- Uniform and log-uniform */

/* Kolmogorov and Smirnov's distance of COUNT sorted values, mapped to [0, 1] by the law that they should
 * have. */
static double distance(const double *sorted, size_t count) {
    double worst = 0;
    for (size_t i = 0; i < count; i++) {
        double above = (double)(i + 1) / (double)count - sorted[i],
               below = sorted[i] - (double)i / (double)count;
        worst = fmax(worst, fmax(above, below));
    }
    return worst;
}

enum { DRAWS = 20000 };

TEST(uniform) {
    struct levels levels[] = {range("n", "1", "6", NULL), range("x", "-2.0", "2.0", NULL),
                              list("nb", "64", "128", "256"), range("s", "10", "50", "20")};
    struct random_source source;
    random_start(&source, 5, RANDOM_STREAM_TABLE);
    struct design *design = NULL;
    assert_ok(design_generate_uniform(levels, 4, DRAWS, &source, &design, &test_failure));
    double counts[7] = {0}, thirds[3] = {0}, steps[3] = {0}, chi_square = 0, of_thirds = 0, of_steps = 0;
    cleanup_free double *mapped = calloc(DRAWS, sizeof *mapped);
    for (size_t row = 0; row < DRAWS; row++) {
        int64_t n = design->columns[0].integers[row], nb = design->columns[2].integers[row],
                s = design->columns[3].integers[row];
        assert_true(n >= 1 && n <= 6 && (nb == 64 || nb == 128 || nb == 256) &&
                    (s == 10 || s == 30 || s == 50));
        counts[n]++;
        thirds[nb / 100]++; /* 64, 128, 256 fall into 0, 1, 2 */
        steps[s / 20]++;
        mapped[row] = (design->columns[1].numbers[row] + 2) / 4;
        assert_true(mapped[row] >= 0 && mapped[row] <= 1);
    }
    for (int i = 1; i <= 6; i++)
        chi_square += pow(counts[i] - DRAWS / 6.0, 2) / (DRAWS / 6.0);
    for (int i = 0; i < 3; i++) {
        of_thirds += pow(thirds[i] - DRAWS / 3.0, 2) / (DRAWS / 3.0);
        of_steps += pow(steps[i] - DRAWS / 3.0, 2) / (DRAWS / 3.0);
    }
    /* Once in 10,000 by chance: 25.7 with 5 degrees of freedom, 18.4 with 2. */
    assert_true(chi_square < 25.7 && of_thirds < 18.4 && of_steps < 18.4);
    qsort(mapped, DRAWS, sizeof *mapped, by_value);
    assert_true(distance(mapped, DRAWS) < 2.23 / sqrt(DRAWS)); /* once in 10,000 */
    design_free(design);
    clear(levels, 4);
}

TEST(log_uniform) {
    struct levels levels[] = {range("size", "1", "1e9", NULL), range("x", "0.001", "10.0", NULL),
                              range("few", "1", "4", NULL)};
    struct random_source source;
    random_start(&source, 6, RANDOM_STREAM_TABLE);
    struct design *design = NULL;
    assert_ok(design_generate_log_uniform(levels, 3, DRAWS, &source, &design, &test_failure));
    cleanup_free double *mapped = calloc(DRAWS, sizeof *mapped);
    size_t decades[9] = {0}, few[5] = {0};
    for (size_t row = 0; row < DRAWS; row++) {
        double x = design->columns[1].numbers[row];
        int64_t size = design->columns[0].integers[row], one = design->columns[2].integers[row];
        assert_true(x >= 0.001 && x <= 10 && size >= 1 && size <= 1000000000 && one >= 1 && one <= 4);
        mapped[row] = log(x / 0.001) / log(10 / 0.001);
        decades[(int)fmin(8, log10((double)size + 0.5))]++;
        few[one]++;
    }
    qsort(mapped, DRAWS, sizeof *mapped, by_value);
    assert_true(distance(mapped, DRAWS) < 2.23 / sqrt(DRAWS));
    /* A ninth of the sizes in each decade (8 degrees of freedom: above 31.8 once in 10,000). */
    double chi_square = 0;
    for (int i = 0; i < 9; i++)
        chi_square += pow((double)decades[i] - DRAWS / 9.0, 2) / (DRAWS / 9.0);
    assert_true(chi_square < 31.8);
    /* n with the probability log((n + 1) / n) / log 5; 3 degrees of freedom: 21.1. */
    chi_square = 0;
    for (int n = 1; n <= 4; n++) {
        double expected = DRAWS * log((n + 1.0) / n) / log(5);
        chi_square += pow((double)few[n] - expected, 2) / expected;
    }
    assert_true(chi_square < 21.1);
    design_free(design);
    clear(levels, 3);
}

TEST(log_uniform_refusals) {
    struct levels zero[] = {range("size", "0", "10", NULL)}, step[] = {range("size", "1", "10", "1")};
    struct random_source source;
    random_start(&source, 6, RANDOM_STREAM_TABLE);
    struct design *design = NULL;
    assert_int_equal(design_generate_log_uniform(zero, 1, 5, &source, &design, &test_failure), -22);
    assert_string_equal(test_failure.text,
                        "the range of 'size' does not begin above 0; log-uniform needs a range above 0");
    assert_int_equal(design_generate_log_uniform(step, 1, 5, &source, &design, &test_failure), -22);
    assert_string_equal(test_failure.text,
                        "the range of 'size' has a step, but log-uniform accepts none; remove it");
    clear(zero, 1);
    clear(step, 1);
}

/* More rows of the same seed begin with the same rows. */
TEST(uniform_continues) {
    struct levels levels[] = {range("m", "1", "5000", NULL), range("x", "0.0", "1.0", NULL)};
    struct design *few = NULL, *many = NULL;
    struct random_source source;
    random_start(&source, 77, RANDOM_STREAM_TABLE);
    assert_ok(design_generate_uniform(levels, 2, 10, &source, &few, &test_failure));
    random_start(&source, 77, RANDOM_STREAM_TABLE);
    assert_ok(design_generate_uniform(levels, 2, 1000, &source, &many, &test_failure));
    for (size_t row = 0; row < 10; row++)
        for (size_t i = 0; i < 2; i++)
            assert_true(design_number(few, row, i) == design_number(many, row, i));
    design_free(few);
    design_free(many);
    clear(levels, 2);
}

/* ---- Latin hypercube */

TEST(latin_hypercube) {
    enum { ROWS = 500 };
    struct levels levels[] = {range("x", "-1.0", "3.0", NULL), range("y", "0.0", "1.0", NULL),
                              range("n", "1", "5000", NULL), range("few", "1", "5", NULL),
                              list("bcast", "ring", "long", NULL)};
    struct random_source source;
    random_start(&source, 8, RANDOM_STREAM_TABLE);
    struct design *design = NULL;
    assert_ok(design_generate_latin_hypercube(levels, 5, ROWS, &source, &design, &test_failure));
    int x[ROWS] = {0}, y[ROWS] = {0}, n[ROWS] = {0}, few[6] = {0}, texts[2] = {0};
    double correlation = 0;
    for (size_t row = 0; row < ROWS; row++) {
        double u = (design->columns[0].numbers[row] + 1) / 4, v = design->columns[1].numbers[row];
        x[(int)(u * ROWS)]++;
        y[(int)(v * ROWS)]++;
        n[(design->columns[2].integers[row] - 1) / 10]++; /* 5000 integers: ten a stratum */
        few[design->columns[3].integers[row]]++;
        texts[design->columns[4].codes[row]]++;
        correlation += (u - 0.5) * (v - 0.5) * 12 / ROWS;
    }
    for (int i = 0; i < ROWS; i++)
        assert_true(x[i] == 1 && y[i] == 1 && n[i] == 1);
    for (int i = 1; i <= 5; i++)
        assert_int_equal(few[i], ROWS / 5);
    assert_true(texts[0] == ROWS / 2 && texts[1] == ROWS / 2);
    assert_true(fabs(correlation) <
                3.9 / sqrt(ROWS)); /* the strata of two factors have nothing to do with each other */
    design_free(design);
    clear(levels, 5);
}

/* ---- The bytes */

static void check_hash(const struct design *design, const struct design_order *order, const char *expected) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    char hex[HASH_HEX_SIZE];
    assert_ok(design_append(design, order, &text, &test_failure));
    assert_int_equal(hash_bytes(text.bytes, text.length, hex), 0);
    if (strcmp(hex, expected) != 0)
        print_message("%s\n%.200s\n", hex, text.bytes);
    assert_string_equal(hex, expected);
}

/* The hashes come from a second implementation, in another language. They may change only together with the
 * generator, and then a seed of before means another design. */
TEST(bytes) {
    struct levels levels[] = {range("size", "1", "1e9", NULL), range("x", "0.001", "10.0", NULL)};
    struct random_source source;
    random_start(&source, 42, RANDOM_STREAM_TABLE);
    struct design *design = NULL;
    struct design_order *order = NULL;
    assert_ok(design_generate_log_uniform(levels, 2, 1000, &source, &design, &test_failure));
    assert_ok(design_order_new(DESIGN_ORDER_RANDOM, 42, 1000, 2, NULL, 1, &order, &test_failure));
    check_hash(design, NULL, "cf67108456540549603f0d5b6258fab4aa5402e5759711441fb4195a56925209");
    check_hash(design, order, "231a62c420b95c48df6edba1b6398302cb2eaa317af0bdc9ac5bfb309c6e5551");
    design_order_free(order);
    design_free(design);
    clear(levels, 2);
}
