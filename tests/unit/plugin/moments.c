/* The two kernels of fit-linear give the same bits, and these are the right ones. The plugin's sources are
 * included: what is tested is inside it. */
#include "plugins/fit-linear/moments.c"
#include "plugins/fit-linear/formula.c"
#include "plugins/fit-linear/moments-kernel.c"
#include "tests/test.h"

#include <float.h>

enum { ROWS = 1000, GROUPS = 70 }; /* more groups than a slab holds, rows that do not fill a tile */

static const char *nearest(const char *word, const char *const *names, size_t count) {
    return NULL;
}

static void read_formula(const char *terms, struct formula *ret) {
    static const struct fit_column columns[] = {{.name = "a"}, {.name = "b"}, {.name = "c"}, {.name = "y"}};
    const struct plugin_host host = {.size = sizeof host, .nearest = nearest};
    const struct fit_request request = {
        .size = sizeof request, .response = "y", .terms = terms, .columns = columns, .column_count = 4};
    struct plugin_message message;
    assert_int_equal(formula_read(&host, &request, ret, &message), 0);
}

static struct moments *sum(const struct formula *formula, bool weighted, enum moments_kernel_choice choice,
                           size_t rows, double columns[5][ROWS], const uint32_t *groups,
                           uint32_t group_count) {
    struct moments *moments;
    const struct moments_options options = {.weighted = weighted, .choice = choice};
    assert_int_equal(moments_new(formula, &options, &moments), 0);
    /* Two uneven pieces, so that tiles end inside. */
    for (size_t start = 0, count; start < rows; start += count) {
        const double *part[5];
        count = start == 0 && rows > 301 ? 301 : rows - start;
        for (size_t c = 0; c < formula->column_count; c++)
            part[c] = columns[c] + start;
        part[formula->column_count] = columns[3] + start;
        part[formula->column_count + 1] = columns[4] + start;
        size_t row;
        assert_int_equal(moments_add(moments, count, part, groups + start, group_count, NULL, &row), 0);
    }
    return moments;
}

static void assert_same_bits(double a, double b) {
    assert_memory_equal(&a, &b, sizeof a);
}

static void compare_kernels(const char *terms, bool weighted, bool whole) {
    static double columns[5][ROWS];
    static uint32_t groups[ROWS];
    static struct formula formula;
    for (size_t r = 0; r < ROWS; r++) {
        groups[r] = (uint32_t)(test_random() * GROUPS);
        for (size_t c = 0; c < 5; c++)
            columns[c][r] = whole ? floor(test_random() * 9000) + 1 : (test_random() - 0.4) * 123.456;
        columns[4][r] = test_random() < 0.1 ? 0 : test_random();
        if (test_random() < 0.02)
            columns[1][r] = NAN;
    }
    read_formula(terms, &formula);
    struct moments *best = sum(&formula, weighted, MOMENTS_BEST, ROWS, columns, groups, GROUPS);
    struct moments *plain = sum(&formula, weighted, MOMENTS_PORTABLE, ROWS, columns, groups, GROUPS);
    for (uint32_t g = 0; g < GROUPS; g++) {
        assert_int_equal(moments_rows(best, g, 0), moments_rows(plain, g, 0));
        assert_int_equal(moments_incomplete(best, g, 0), moments_incomplete(plain, g, 0));
        for (size_t a = 0; a < moments_width(best); a++) {
            for (size_t b = a; b < moments_width(best); b++) {
                struct dd x = moments_sum(best, g, 0, a, b), y = moments_sum(plain, g, 0, a, b);
                assert_same_bits(x.high, y.high);
                assert_same_bits(x.low, y.low);
            }
            double minimum[2] = {INFINITY, INFINITY}, maximum[2] = {-INFINITY, -INFINITY};
            moments_widen(best, g, a, &minimum[0], &maximum[0]);
            moments_widen(plain, g, a, &minimum[1], &maximum[1]);
            assert_true(minimum[0] == minimum[1] && maximum[0] == maximum[1]);
        }
    }
    moments_free(best);
    moments_free(plain);
    formula_clear(&formula);
}

TEST(kernels_agree) {
    if (moments_kernel_best() == &moments_kernel_portable)
        skip(); /* cmocka says so aloud */
    static const char *const terms[] = {"1+a*b*c+a*b+a*c+b*c", "1", "a", "1+a+b+c", "a^3*b+c^5+a"};
    for (size_t i = 0; i < sizeof terms / sizeof *terms; i++)
        for (int variant = 0; variant < 4; variant++)
            compare_kernels(terms[i], variant & 1, variant & 2);
}

/* Sums whose exact value is known: powers of small whole numbers, in 128-bit integers. */
TEST(sums_are_exact) {
    static double columns[5][ROWS];
    static uint32_t groups[ROWS];
    static struct formula formula;
    __int128 expected = 0; /* sum of (a^2 b^2 c^2)^2: more than a double holds */
    for (size_t r = 0; r < ROWS; r++) {
        columns[0][r] = (double)(1 + r * 7 % 50);
        columns[1][r] = (double)(1 + r * 11 % 60);
        columns[2][r] = (double)(1 + r * 13 % 40);
        columns[3][r] = 1;
        __int128 product = (__int128)columns[0][r] * (__int128)columns[1][r] * (__int128)columns[2][r];
        expected += product * product * product * product;
    }
    read_formula("1+a^2*b^2*c^2", &formula);
    struct moments *moments = sum(&formula, false, MOMENTS_BEST, ROWS, columns, groups, 1);
    struct dd found = dd_scale(moments_sum(moments, 0, 0, 1, 1), 2 * moments_exponent(moments, 1));
    __int128 difference = (__int128)found.high - expected + (__int128)found.low;
    assert_true(difference == 0);
    moments_free(moments);
    formula_clear(&formula);
}

/* 1 + tiny - 1 + ...: a plain sum loses the tiny part. */
TEST(cancellation_is_survived) {
    static double columns[5][ROWS];
    static uint32_t groups[ROWS];
    static struct formula formula;
    for (size_t r = 0; r < ROWS; r++) {
        columns[0][r] = r % 2 ? -1e20 : 1e20;
        columns[3][r] = 1;
    }
    columns[0][ROWS / 2] += 16384; /* the spacing of doubles there */
    read_formula("1+a", &formula);
    struct moments *moments = sum(&formula, false, MOMENTS_BEST, ROWS, columns, groups, 1);
    struct dd found = dd_scale(moments_sum(moments, 0, 0, 0, 1), moments_exponent(moments, 1));
    assert_true(found.high + found.low == 16384);
    moments_free(moments);
    formula_clear(&formula);
}

TEST(double_doubles_divide) {
    struct dd third = dd_divide(dd_from(1), dd_from(3));
    struct dd back = dd_subtract(dd_multiply(third, dd_from(3)), dd_from(1));
    assert_true(fabs(back.high) < 1e-31);
    assert_true(third.low != 0);
    struct dd product = dd_two_product(1 + DBL_EPSILON, 1 - DBL_EPSILON);
    assert_true(product.high == 1 && product.low == -DBL_EPSILON * DBL_EPSILON);
}
