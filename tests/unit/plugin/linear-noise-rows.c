/* What fit-linear's noise is made from: rows kept by cell and fold, narrow and wide, in memory and in a file;
 * and the sums over them, against sums made one by one. Linked to the plugin's own sources. */
#include "plugins/fit-linear/noise-kernel.h"
#include "plugins/fit-linear/noise-rows.h"
#include "tests/test.h"

enum { ROWS = 60000, CELLS = 7, FOLDS = 3, INPUTS = 3, COLUMNS = INPUTS + 2 };

static double columns[COLUMNS][ROWS];
static uint32_t cells[ROWS], folds[ROWS];
static int make_rows(void **state) {
    for (size_t r = 0; r < ROWS; r++) {
        cells[r] = (uint32_t)(test_random() * CELLS);
        folds[r] = r % 50 == 49 ? NOISE_ROWS_NONE : (uint32_t)(test_random() * FOLDS);
        for (size_t i = 0; i < COLUMNS; i++)
            columns[i][r] = floor(test_random() * 1e6);
        if (r % 10 == 3) /* no float holds it */
            columns[r % INPUTS][r] = r % 20 == 3 ? 1e300 * test_random() : test_random();
        columns[INPUTS][r] = test_random();
    }
    return 0;
}

static bool is_wide(size_t row) {
    for (size_t i = 0; i < INPUTS; i++)
        if ((double)(float)columns[i][row] != columns[i][row])
            return true;
    return false;
}

/* The rows of a cell and fold, the narrow ones first, each in their order. */
static size_t expect(uint32_t cell, uint32_t fold, size_t *ret) {
    size_t count = 0;
    for (int wide = 0; wide < 2; wide++)
        for (size_t r = 0; r < ROWS; r++)
            if (cells[r] == cell && folds[r] == fold && is_wide(r) == wide)
                ret[count++] = r;
    return count;
}

static void check_rows(uint64_t memory) {
    static size_t expected[ROWS];
    struct noise_rows *rows = NULL;
    assert_int_equal(noise_rows_new(INPUTS, true, FOLDS, memory, &rows), 0);
    for (size_t start = 0, step = 1; start < ROWS; start += step, step = step % 700 + 13) {
        const double *piece[COLUMNS];
        size_t count = ROWS - start < step ? ROWS - start : step;
        for (size_t i = 0; i < COLUMNS; i++)
            piece[i] = columns[i] + start;
        assert_int_equal(noise_rows_add(rows, count, piece, cells + start, folds + start), 0);
    }
    for (uint32_t cell = 0; cell < CELLS + 2; cell++)
        for (uint32_t fold = 0; fold < FOLDS; fold++) {
            size_t count = expect(cell, fold, expected), seen = 0;
            for (const struct noise_chunk *chunk = noise_rows_first(rows, cell, fold); chunk;
                 chunk = noise_rows_next(chunk)) {
                double values[NOISE_ROWS_CHUNK];
                assert_in_range(noise_chunk_rows(chunk), 1, NOISE_ROWS_CHUNK);
                for (size_t i = 0; i < COLUMNS; i++) {
                    noise_chunk_column(rows, chunk, i, values);
                    for (size_t r = 0; r < noise_chunk_rows(chunk); r++)
                        assert_true(values[r] == columns[i][expected[seen + r]]);
                }
                seen += noise_chunk_rows(chunk);
                assert_true(seen <= count);
            }
            assert_int_equal(seen, count);
        }
    noise_rows_free(rows);
}

TEST(rows_in_memory) {
    check_rows(NOISE_ROWS_MEMORY);
}

TEST(rows_in_a_file) {
    check_rows(0);
    check_rows(1); /* the first slab in memory, the others not */
}

TEST(no_room_for_a_file) {
    const double values[COLUMNS] = {1, 2, 3, 4, 5};
    const double *piece[COLUMNS] = {&values[0], &values[1], &values[2], &values[3], &values[4]};
    struct noise_rows *rows = NULL;
    assert_int_equal(setenv("TMPDIR", "/proc/no/such/folder", 1), 0);
    assert_int_equal(noise_rows_new(INPUTS, true, 1, 0, &rows), 0);
    assert_int_equal(noise_rows_add(rows, 1, piece, (uint32_t[]){0}, (uint32_t[]){0}), -ENOENT);
    noise_rows_free(rows);
    assert_int_equal(unsetenv("TMPDIR"), 0);
}

/* Cells beyond those that have folds keep their rows all the same. */
TEST(many_cells) {
    struct noise_rows *rows = NULL;
    assert_int_equal(noise_rows_new(1, false, 5, NOISE_ROWS_MEMORY, &rows), 0);
    for (uint32_t i = 0; i < 40; i++) {
        double value = i, response = -value;
        const double *piece[] = {&value, &response};
        uint32_t cell = NOISE_ROWS_FOLDED_CELLS - 4 + i % 8, fold = i % 5;
        assert_int_equal(noise_rows_add(rows, 1, piece, &cell, &fold), 0);
    }
    for (uint32_t cell = 0; cell < 8; cell++) {
        size_t seen = 0;
        for (uint32_t fold = 0; fold < 5; fold++)
            for (const struct noise_chunk *chunk =
                     noise_rows_first(rows, NOISE_ROWS_FOLDED_CELLS - 4 + cell, fold);
                 chunk; chunk = noise_rows_next(chunk)) {
                double values[NOISE_ROWS_CHUNK];
                noise_chunk_column(rows, chunk, 0, values);
                for (size_t r = 0; r < noise_chunk_rows(chunk); r++, seen++) {
                    assert_int_equal((uint32_t)values[r] % 8, cell);
                    assert_true(cell >= 4 ? fold == 0 : (uint32_t)values[r] % 5 == fold);
                }
            }
        assert_int_equal(seen, 5);
    }
    noise_rows_free(rows);
}

/* ---- The kernel */

static void assert_near(double value, double expected, double size) {
    if (!(fabs(value - expected) <= 1e-12 * size))
        fail_msg("%.17g, expected %.17g", value, expected);
}

/* Every sum, row by row, in the order of the rows. */
static void check_kernel(size_t width, size_t count, bool weighted) {
    enum { WIDTH = 6, COUNT = 704 };
    static double z[WIDTH * COUNT], y[COUNT], v[COUNT];
    static double scratch[(WIDTH + 2 + NOISE_GRAMS_MAX) * NOISE_KERNEL_TILE] __attribute__((aligned(64)));
    double b[WIDTH], c[WIDTH];
    for (size_t q = 0; q < width; q++) {
        b[q] = test_random() - 0.5;
        c[q] = test_random() * 0.1 + 0.01;
    }
    for (size_t r = 0; r < COUNT; r++) {
        bool real = r < count;
        for (size_t q = 0; q < width; q++)
            z[q * COUNT + r] = real ? (q == 0 ? 1 : test_random()) : z[q * COUNT + count - 1];
        y[r] = real ? test_random() : 0;
        v[r] = real ? 0.5 + test_random() : 0;
    }
    const struct noise_columns piece = {width, (count + 7) / 8 * 8, COUNT, count, z, y, weighted ? v : NULL};
    struct noise_sums *sums = NULL;
    assert_int_equal(noise_sums_new(width, &sums), 0);
    noise_kernel_add(&piece, b, c, true, 15, scratch, sums);
    double objective = 0, size = 0;
    for (size_t r = 0; r < count; r++) {
        double s, t;
        noise_kernel_rows(&piece, r, 1, b, c, &t, &s);
        objective += log(s) + 0.5 * t * t;
        size += fabs(log(s)) + 0.5 * t * t;
    }
    assert_near(sums->objective, objective, size);
    for (size_t a = 0; a < width; a++)
        for (size_t q = 0; q <= a; q++) {
            double expected[3 + NOISE_GRAMS_MAX] = {0}, sizes[3 + NOISE_GRAMS_MAX] = {0};
            for (size_t r = 0; r < count; r++) {
                double s, t, w = weighted ? v[r] : 1;
                noise_kernel_rows(&piece, r, 1, b, c, &t, &s);
                double u = z[a * COUNT + r] / s, other = z[q * COUNT + r] / s;
                const double parts[] = {-u * t * w,
                                        u * (1 - t * t),
                                        u * fabs(t),
                                        u * other,
                                        u * other * (3 * t * t - 1),
                                        u * other * 2 * t * w,
                                        u * other * w * w};
                for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
                    expected[i] += parts[i];
                    sizes[i] += fabs(parts[i]);
                }
            }
            assert_near(sums->mean[a], expected[0], sizes[0]);
            assert_near(sums->spread[a], expected[1], sizes[1]);
            assert_near(sums->absolute[a], expected[2], sizes[2]);
            for (size_t g = 0; g < NOISE_GRAMS_MAX; g++)
                assert_near(sums->grams[g][a * width + q], expected[3 + g], sizes[3 + g]);
        }
    /* The likelihood alone, and one gram alone, are the same numbers. */
    double whole = sums->objective, corner = sums->grams[NOISE_GRAM_ONE][width * width - 1];
    noise_sums_clear(sums);
    noise_kernel_add(&piece, b, c, true, 1u << NOISE_GRAM_ONE, scratch, sums);
    assert_true(sums->objective == whole);
    assert_near(sums->grams[NOISE_GRAM_ONE][width * width - 1], corner, corner);
    c[0] = -100;
    noise_sums_clear(sums);
    noise_kernel_add(&piece, b, c, false, 0, scratch, sums);
    assert_true(isinf(sums->objective));
    noise_sums_free(sums);
}

TEST(kernel) {
    for (size_t width = 1; width <= 6; width++)
        for (size_t count = 1; count < 700; count = count * 2 + 1 + count % 3) {
            check_kernel(width, count, false);
            check_kernel(width, count, true);
        }
}

TEST_GROUP(make_rows, NULL)
