/* The uniform product: what the rows have in common, and what cannot be asked of it. */
#include "engine/design/uniform-product.h"
#include "engine/design/design.h"
#include "engine/foundation/hash.h"
#include "tests/test.h"

static struct uniform_product product; /* of m, n and k, until a test says otherwise */

static int begin(void **state) {
    uniform_product_init(&product);
    assert_ok(uniform_product_add_factor(&product, "m", &test_failure));
    assert_ok(uniform_product_add_factor(&product, "n", &test_failure));
    assert_ok(uniform_product_add_factor(&product, "k", &test_failure));
    return 0;
}

static int end(void **state) {
    uniform_product_clear(&product);
    return 0;
}
TEST_EACH(begin, end)

static struct design *generate(uint64_t seed) {
    struct random_source source;
    random_start(&source, seed, RANDOM_STREAM_TABLE);
    struct design *design = NULL;
    assert_ok(uniform_product_generate(&product, &source, &design, &test_failure));
    return design;
}

static int64_t size(const struct design *design, size_t row, size_t factor) {
    return design->columns[factor].integers[row];
}

static double product_of(const struct design *design, size_t row) {
    return (double)size(design, row, 0) * (double)size(design, row, 1) * (double)size(design, row, 2);
}

/* How often the row (M, N, K) is among COUNT rows from FROM. */
static size_t occurrences(const struct design *design, size_t from, size_t count, int64_t m, int64_t n,
                          int64_t k) {
    size_t found = 0;
    for (size_t i = from; i < from + count; i++)
        found += size(design, i, 0) == m && size(design, i, 1) == n && size(design, i, 2) == k;
    return found;
}

TEST(defaults) {
    for (uint64_t seed = 0; seed < 50; seed++) {
        cleanup(design_cleanup) struct design *design = generate(seed);
        assert_int_equal(design->row_count, 30 * 3 * 6 + 5);
        for (size_t row = 0; row < 540; row++) {
            for (size_t i = 0; i < 3; i++)
                assert_true(size(design, row, i) >= 1 && size(design, row, i) <= 15500);
            assert_true(product_of(design, row) <= 1e10);
            /* Even steps downwards, a jitter of a thousandth, and the rounding of the last size, which is at
             * least the cube root: half a part in it. */
            double target = 1e10 * (double)(30 - row / 18) / 30, rounding = 0.5 / cbrt(target) * target;
            assert_true(fabs(product_of(design, row) - target) <= 1e7 + rounding);
        }
        /* A batch's tuple is there in all its orders. */
        for (size_t first = 0; first < 540; first += 6)
            for (size_t row = first; row < first + 6; row++) {
                int64_t m = size(design, row, 0), n = size(design, row, 1), k = size(design, row, 2);
                size_t orders = m == n && n == k ? 6 : m == n || n == k || m == k ? 2 : 1;
                assert_int_equal(occurrences(design, first, 6, m, n, k), orders);
                assert_int_equal(occurrences(design, first, 6, n, k, m), orders);
                assert_int_equal(occurrences(design, first, 6, k, n, m), orders);
            }
        for (int64_t i = 0; i < 5; i++)
            for (size_t factor = 0; factor < 3; factor++)
                assert_int_equal(size(design, 540 + i, factor), i ? i : 2048);
    }
}

/* Shapes from cube to needle: the first size is uniform from 1 to the cube root of its target. */
TEST(shapes) {
    product.products = 4000;
    product.batch = 1;
    product.max_size = INT64_C(1) << 40;
    product.adds = true;
    cleanup(design_cleanup) struct design *design = generate(9);
    assert_int_equal(design->row_count, 24000);
    double sum = 0;
    size_t below_tenth = 0;
    for (size_t first = 0; first < 24000; first += 6) {
        double root = cbrt(product_of(design, first));
        double s = (double)size(design, first, 0); /* the first order is the one that was drawn */
        assert_true(s <= root * 1.001 + 1);
        sum += (s - 1) / (root - 1);
        below_tenth += s < 0.1 * root;
    }
    assert_true(fabs(sum / 4000 - 0.5) <
                0.018); /* four standard errors of a uniform mean: 0.289 / sqrt(4000) */
    assert_true(below_tenth > 320 && below_tenth < 480);
}

TEST(fixed) {
    assert_ok(uniform_product_fix(&product, "k", "128", &test_failure));
    cleanup(design_cleanup) struct design *design = generate(1);
    assert_int_equal(design->row_count, 30 * 3 * 2 + 5);
    for (size_t row = 0; row < design->row_count; row++)
        assert_int_equal(size(design, row, 2), 128);
    for (size_t row = 0; row < 180; row += 2) {
        assert_int_equal(size(design, row, 0), size(design, row + 1, 1));
        assert_int_equal(size(design, row, 1), size(design, row + 1, 0));
        double target = 1e10 * (double)(30 - row / 6) / 30;
        assert_true(fabs(product_of(design, row) - target) <= 1e7 + 0.5 / sqrt(target / 128) * target);
    }
    assert_int_equal(size(design, 180, 0), 2048);
    assert_int_equal(size(design, 184, 1), 4);
}

/* With one factor free there is no choice left, and the cap is met by rounding down: 100 / 6 is 16.67. */
TEST(one_free) {
    assert_ok(uniform_product_fix(&product, "m", "3", &test_failure));
    assert_ok(uniform_product_fix(&product, "k", "2", &test_failure));
    product.max_product = 100;
    product.products = 1;
    cleanup(design_cleanup) struct design *design = generate(1);
    assert_int_equal(design->row_count, 3 + 4); /* 2048 would be above the cap, and is left out */
    for (size_t row = 0; row < 3; row++)
        assert_int_equal(size(design, row, 1), 16);
}

TEST(small_products) {
    product.max_product = 1;
    struct design *design = generate(3);
    assert_int_equal(design->row_count, 540 + 1);
    for (size_t row = 0; row < design->row_count; row++)
        assert_true(product_of(design, row) == 1);
    design_free(design);
    product.max_product = 12;
    design = generate(3);
    for (size_t row = 0; row < design->row_count; row++)
        assert_true(product_of(design, row) <= 12);
    design_free(design);
}

TEST(tight_cap) {
    product.max_size = 2300; /* the cube root of 1e10 is 2154 */
    cleanup(design_cleanup) struct design *design = generate(4);
    for (size_t row = 0; row < design->row_count; row++)
        for (size_t i = 0; i < 3; i++)
            assert_true(size(design, row, i) <= 2300);
}

TEST(added) {
    const char *sizes[] = {"7", "8", "1e3"};
    assert_ok(uniform_product_add_row(&product, sizes, 3, &test_failure));
    cleanup(design_cleanup) struct design *design = generate(4);
    assert_int_equal(design->row_count, 541);
    assert_int_equal(size(design, 540, 0), 7);
    assert_int_equal(size(design, 540, 2), 1000);
}

TEST(two_and_four_factors) {
    uniform_product_clear(&product);
    uniform_product_init(&product);
    assert_ok(uniform_product_add_factor(&product, "m", &test_failure));
    assert_ok(uniform_product_add_factor(&product, "n", &test_failure));
    product.max_product = 1e8;
    struct design *design = generate(4);
    assert_int_equal(design->row_count, 30 * 3 * 2 + 5);
    design_free(design);
    assert_ok(uniform_product_add_factor(&product, "k", &test_failure));
    assert_ok(uniform_product_add_factor(&product, "l", &test_failure));
    design = generate(4);
    assert_int_equal(design->row_count, 30 * 3 * 24 + 4); /* 2048^4 is above the cap */
    design_free(design);
}

/* The hash comes from a second implementation, in another language. */
TEST(same_bytes) {
    cleanup(design_cleanup) struct design *design = generate(42);
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    char hex[HASH_HEX_SIZE];
    assert_ok(design_append(design, NULL, &text, &test_failure));
    assert_int_equal(hash_bytes(text.bytes, text.length, hex), 0);
    assert_string_equal(hex, "19738562fb9c392ec1c651f9b108dcf1e6ebeac0202358a1b4f7b177af3798d5");
}

/* ---- Refusals */

static void refuse(const char *sentence) {
    struct random_source source;
    random_start(&source, 1, RANDOM_STREAM_TABLE);
    struct design *design = NULL;
    assert_refused(uniform_product_generate(&product, &source, &design, &test_failure), "", sentence);
    assert_null(design);
}

TEST(refusals) {
    const struct uniform_product kept = product;
    uniform_product_init(&product);
    refuse("no factors");
    product = kept;
    product.max_size = 100;
    refuse("sizes of at most 100 cannot have a product of 10000000000, expected a max-size of "
           "about 2154 or more, or a smaller max-product");
    product.max_size = 2154; /* possible for the first products only by an unlikely draw */
    refuse("no sizes of at most 2154 with a product near");
    product.max_size = 15500;
    product.max_product = 0.5;
    refuse("max-product 0.5, expected from 1 to 2^53");
    product.max_product = NAN;
    refuse("max-product");
    product.max_product = 1e10;
    product.batch = 0;
    refuse("max-size, products and batch must be at least 1");
    product.batch = INT64_C(1) << 50;
    refuse("expected at most 134217728");
    product.batch = 3;
    const char *large[] = {"20000", "1", "1"}, *two[] = {"1", "2"}, *junk[] = {"1", "2x", "3"},
               *zero[] = {"1", "0", "1"};
    assert_int_equal(uniform_product_add_row(&product, two, 2, &test_failure), -22);
    assert_string_equal(test_failure.text, "an added row has 2 sizes, expected 3");
    assert_int_equal(uniform_product_add_row(&product, junk, 3, &test_failure), -22);
    assert_string_equal(test_failure.text, "size '2x', expected a whole number of at least 1");
    assert_int_equal(uniform_product_add_row(&product, zero, 3, &test_failure), -22);
    assert_ok(uniform_product_add_row(&product, large, 3, &test_failure));
    refuse("added row 1 has a size above the max-size of 15500 or a product above the max-product of "
           "10000000000");
}

TEST(refused_factors) {
    assert_int_equal(uniform_product_add_factor(&product, "n", &test_failure), -22);
    assert_string_equal(test_failure.text, "factor 'n' is given twice");
    assert_int_equal(uniform_product_add_factor(&product, "", &test_failure), -22);
    assert_int_equal(uniform_product_fix(&product, "size", "3", &test_failure), -22);
    assert_says(test_failure.text, "'size' cannot be fixed; there are: m, n, k");
    assert_int_equal(uniform_product_fix(&product, "kk", "3", &test_failure), -22);
    assert_string_equal(test_failure.text, "'kk' cannot be fixed; did you mean 'k'?");
    assert_int_equal(uniform_product_fix(&product, "k", "1.5", &test_failure), -22);
    assert_ok(uniform_product_fix(&product, "k", "20000", &test_failure));
    assert_int_equal(uniform_product_fix(&product, "k", "1", &test_failure), -22);
    assert_string_equal(test_failure.text, "factor 'k' is fixed twice");
    refuse("'k' is fixed at 20000, above the max-size of 15500");
    product.max_size = INT64_C(1) << 40;
    product.max_product = 19999;
    refuse("the fixed sizes have a product above the max-product of 19999");
    assert_ok(uniform_product_fix(&product, "m", "1", &test_failure));
    assert_ok(uniform_product_fix(&product, "n", "1", &test_failure));
    product.max_product = 1e10;
    refuse("all factors are fixed");
    for (int i = 0; i < 3; i++)
        assert_int_equal(
            uniform_product_add_factor(&product, ((const char *[]){"a", "b", "c"})[i], &test_failure), 0);
    assert_int_equal(uniform_product_add_factor(&product, "d", &test_failure), -22);
    assert_string_equal(test_failure.text, "more than 6 factors");
}
