/* Which fold a row is in: settings whole, few of them evenly, many of them nearly so, the same in every pass.
 */
#include "engine/plugin/folds.h"
#include "engine/foundation/cleanup.h"
#include "tests/test.h"

enum { ROWS = 40000, SETTINGS_MANY = 20000, FOLDS = 5 };

static double a[ROWS], b[ROWS];
static uint32_t texts[ROWS];
static uint8_t first[ROWS], again[ROWS];

static void assign(struct folds *folds, size_t rows, size_t numbers, size_t codes, uint8_t *ret) {
    for (size_t start = 0, count; start < rows; start += count) { /* blocks of an odd size */
        const double *const values[] = {a + start, b + start};
        const uint32_t *const labels[] = {texts + start};
        const struct folds_columns columns = {values, numbers, labels, codes};
        count = rows - start < 777 ? rows - start : 777;
        folds_assign(folds, start, 1, count, &columns, ret + start);
    }
}

/* COUNT settings in a shuffled order of which each has several rows: (m, n) of a grid, or of its first row.
 */
static void make_settings(size_t count) {
    for (size_t r = 0; r < ROWS; r++) {
        size_t setting = r * 7919 % count;
        a[r] = (double)(setting % 13);
        b[r] = (double)(setting / 13);
        texts[r] = (uint32_t)(setting % 3);
    }
}

/* Every setting is whole, in one fold. Returns how many there are; COUNTS of them are in each fold. */
static size_t count_settings(size_t count, const uint8_t *folds, size_t counts[static FOLDS]) {
    static int fold_of[SETTINGS_MANY];
    size_t settings = 0;
    memset(fold_of, -1, sizeof fold_of);
    memset(counts, 0, FOLDS * sizeof *counts);
    for (size_t r = 0; r < ROWS; r++) {
        size_t setting = (size_t)(a[r] + 13 * b[r]);
        assert_true(setting < count && folds[r] < FOLDS);
        if (fold_of[setting] == -1) {
            fold_of[setting] = folds[r];
            counts[folds[r]]++;
            settings++;
        }
        assert_int_equal(fold_of[setting], folds[r]);
    }
    return settings;
}

TEST(settings_whole) {
    static const size_t many[] = {3, 5, 23, 540, FOLDS_DEALT_MAX, SETTINGS_MANY};
    for (size_t i = 0; i < sizeof many / sizeof *many; i++) {
        cleanup(folds_cleanup) struct folds *folds = folds_new(FOLDS, 1);
        size_t counts[FOLDS], least = SIZE_MAX, most = 0;
        make_settings(many[i]);
        assign(folds, ROWS, 2, 0, first);
        assert_int_equal(count_settings(many[i], first, counts), many[i]);
        for (size_t f = 0; f < FOLDS; f++) {
            least = counts[f] < least ? counts[f] : least;
            most = counts[f] > most ? counts[f] : most;
        }
        if (many[i] <= FOLDS_DEALT_MAX)
            assert_true(most - least <= 1);
        else
            assert_true(most - least < SETTINGS_MANY / FOLDS / 10);
        assign(folds, ROWS, 2, 0, again);
        assert_memory_equal(first, again, ROWS);
    }
}

/* Another seed deals otherwise, and no factor decides alone which fold a setting is in. */
TEST(shuffled) {
    make_settings(13 * 13);
    size_t same = 0, of_a[13][FOLDS] = {{0}};
    for (uint64_t seed = 1; seed <= 2; seed++) {
        cleanup(folds_cleanup) struct folds *folds = folds_new(FOLDS, seed);
        assign(folds, ROWS, 2, 0, seed == 1 ? first : again);
    }
    for (size_t r = 0; r < 13 * 13; r++) {
        same += first[r] == again[r];
        of_a[(size_t)a[r]][first[r]]++;
    }
    assert_in_range(same, 10, 70);
    for (size_t level = 0; level < 13; level++)
        for (size_t f = 0; f < FOLDS; f++)
            assert_true(of_a[level][f] < 10);
}

/* A zero is a zero, texts tell units apart, and without columns each row is by itself, whatever the pieces.
 */
TEST(units) {
    cleanup(folds_cleanup) struct folds *folds = folds_new(FOLDS, 9);
    make_settings(540);
    for (size_t r = 0; r < ROWS; r++)
        a[r] = r % 2 ? 0.0 : -0.0;
    assign(folds, ROWS, 1, 0, first);
    for (size_t r = 1; r < ROWS; r++)
        assert_int_equal(first[r], first[0]);
    cleanup(folds_cleanup) struct folds *by_text = folds_new(FOLDS, 9);
    assign(by_text, ROWS, 1, 1, first);
    uint8_t of_text[3];
    for (size_t r = 0; r < ROWS; r++)
        of_text[texts[r]] = first[r];
    assert_true(of_text[0] != of_text[1] && of_text[1] != of_text[2] && of_text[0] != of_text[2]);
    for (size_t r = 0; r < ROWS; r++)
        assert_int_equal(first[r], of_text[texts[r]]);
    cleanup(folds_cleanup) struct folds *by_row = folds_new(FOLDS, 9);
    assign(by_row, ROWS, 0, 0, first);
    for (size_t r = 0; r < ROWS; r++)
        assert_int_equal(first[r], folds_of_key(r, 9, FOLDS));
    folds_assign(by_row, 0, 4, ROWS / 4, &(struct folds_columns){0}, again);
    for (size_t r = 0; r < ROWS / 4; r++)
        assert_int_equal(again[r], first[4 * r]);
}
