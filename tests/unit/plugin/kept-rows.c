#include "engine/plugin/kept-rows.h"
#include "engine/table/row-places.h"
#include "tests/test.h"

/* Feeds ROWS rows that know their own numbers, in blocks of that size, and looks at what is kept. */
static void feed(size_t rows, size_t block, size_t limit, uint64_t expected_stride) {
    struct kept_rows kept;
    assert_int_equal(kept_rows_init(&kept, 2, 1, limit), 0);
    double *numbers = calloc(2 * block, sizeof *numbers);
    uint32_t *codes = calloc(2 * block, sizeof *codes);
    for (size_t at = 0; at < rows; at += block) {
        size_t count = rows - at < block ? rows - at : block;
        for (size_t i = 0; i < count; i++) {
            numbers[i] = (double)(at + i);
            numbers[block + i] = -(double)(at + i);
            codes[i] = (uint32_t)(at + i) * 3;
            codes[block + i] = (uint32_t)(at + i) * 5;
        }
        const double *columns[] = {numbers, numbers + block};
        const uint32_t *labels[] = {codes};
        kept_rows_add(&kept, count, columns, labels, codes + block);
    }
    assert_int_equal(kept.rows, rows);
    assert_int_equal(kept.stride, expected_stride);
    assert_int_equal(kept.count, (rows + kept.stride - 1) / kept.stride);
    assert_true(kept.count <= limit);
    for (size_t i = 0; i < kept.count; i++) {
        uint64_t row = i * kept.stride;
        assert_true(kept.columns[0][i] == (double)row && kept.columns[1][i] == -(double)row);
        assert_int_equal(kept.labels[0][i], (uint32_t)row * 3);
        assert_int_equal(kept.groups[i], (uint32_t)row * 5);
    }
    kept_rows_clear(&kept);
    free(numbers);
    free(codes);
}

/* Whatever the blocks, every stride-th row from the first on is there, and no other. */
TEST(keeps_and_thins) {
    static const size_t blocks[] = {1, 2, 7, 64, 100, 1000};
    for (size_t b = 0; b < sizeof blocks / sizeof *blocks; b++) {
        feed(1, blocks[b], 64, 1);
        feed(64, blocks[b], 64, 1);
        feed(65, blocks[b], 64, 2);
        feed(128, blocks[b], 64, 2);
        feed(129, blocks[b], 64, 4);
        feed(1000, blocks[b], 64, 16);
        feed(12345, blocks[b], 128, 128);
    }
}

static void place_is(const struct row_places *places, uint64_t row, uint32_t input, uint64_t line) {
    uint32_t found;
    uint64_t at;
    assert_true(row_places_find(places, row, &found, &at));
    assert_int_equal(found, input);
    assert_int_equal(at, line);
}

/* Two inputs; in the first rows 3 and 4 are of two lines each. */
TEST(places) {
    struct row_places places = {0};
    const uint64_t plain[] = {2, 3, 4}, odd[] = {5, 7, 9, 10}, other[] = {2, 3};
    assert_int_equal(row_places_add(&places, 0, 3, plain), 0);
    assert_int_equal(row_places_add(&places, 0, 4, odd), 0);
    assert_int_equal(places.count, 3); /* from row 0, 4 and 5 */
    assert_int_equal(row_places_add(&places, 1, 2, other), 0);
    place_is(&places, 0, 0, 2);
    place_is(&places, 3, 0, 5);
    place_is(&places, 4, 0, 7);
    place_is(&places, 5, 0, 9);
    place_is(&places, 6, 0, 10);
    place_is(&places, 7, 1, 2);
    place_is(&places, 8, 1, 3);
    uint32_t input;
    uint64_t line;
    assert_false(row_places_find(&places, 9, &input, &line));
    row_places_clear(&places);
    assert_false(row_places_find(&places, 0, &input, &line));
}

/* Every row of two lines: there is an end to what is kept, and nothing wrong is said behind it. */
TEST(places_end) {
    struct row_places places = {0};
    enum { BLOCK = 1024 };
    uint64_t lines[BLOCK];
    for (uint64_t at = 0; at < (uint64_t)ROW_PLACES_MAX + 5 * BLOCK; at += BLOCK) {
        for (uint64_t i = 0; i < BLOCK; i++)
            lines[i] = 2 + 2 * (at + i);
        assert_int_equal(row_places_add(&places, 0, BLOCK, lines), 0);
    }
    place_is(&places, 12345, 0, 2 + 2 * 12345);
    place_is(&places, ROW_PLACES_MAX - 1, 0, 2 + 2 * ((uint64_t)ROW_PLACES_MAX - 1));
    uint32_t input;
    uint64_t line;
    assert_false(row_places_find(&places, ROW_PLACES_MAX, &input, &line));
    row_places_clear(&places);
}
