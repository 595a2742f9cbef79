/* Groups of rows, and folds of whole settings. */
#include "engine/table/groups.h"
#include "engine/table/folds.h"
#include "tests/test.h"

TEST(groups_are_in_natural_order) {
    char hosts[][5] = {"a-2", "a-10"}, cores[][2] = {"0", "1", "2"}, names_of[][5] = {"host", "core"};
    char *host_levels[] = {hosts[0], hosts[1]}, *core_levels[] = {cores[0], cores[1], cores[2]};
    uint32_t host[] = {1, 0, 1, 0, 1}, core[] = {0, 2, 0, 1, 2};
    struct table_category categories[] = {{names_of[0], host, host_levels, 2},
                                          {names_of[1], core, core_levels, 3}};
    struct table table = {.rows = 5, .categories = categories, .category_count = 2};
    const size_t by[] = {0, 1};
    cleanup(groups_clear) struct groups groups;
    groups_make(&groups, &table, by, 2);
    assert_int_equal(groups.count, 4);
    static const char *const names[] = {"a-2/1", "a-2/2", "a-10/0", "a-10/2"};
    static const size_t first[] = {0, 1, 2, 4, 5};
    static const uint32_t rows[] = {3, 1, 0, 2, 4};
    for (size_t g = 0; g < 4; g++) {
        cleanup_free char *name = groups_name(&groups, &table, by, g);
        assert_string_equal(name, names[g]);
        assert_int_equal(groups.first[g], first[g]);
    }
    assert_int_equal(groups.first[4], 5);
    assert_memory_equal(groups.rows, rows, sizeof rows);
}

TEST(without_labels_all_rows_are_one_group) {
    struct table table = {.rows = 3};
    cleanup(groups_clear) struct groups groups;
    groups_make(&groups, &table, NULL, 0);
    assert_int_equal(groups.count, 1);
    assert_int_equal(groups.first[1], 3);
    assert_int_equal(groups.rows[2], 2);
    cleanup_free char *name = groups_name(&groups, &table, NULL, 0);
    assert_string_equal(name, "all");
}

enum { ROWS = 5000, FOLDS = 7 };

/* Every setting whole, and as many settings in each fold as in any other, but for one. */
TEST(folds_are_even_and_settings_whole) {
    static double x[ROWS];
    static uint32_t codes[ROWS], units[ROWS];
    static uint8_t folds[ROWS];
    static const size_t settings[] = {2, 5, 7, 20, 999, ROWS};
    for (size_t s = 0; s < sizeof settings / sizeof *settings; s++) {
        size_t count = settings[s];
        for (size_t i = 0; i < ROWS; i++) {
            size_t setting = i * 7919 % ROWS % count;
            x[i] = (double)(setting / 2);
            codes[i] = setting % 2;
        }
        const double *const numbers[] = {x};
        const uint32_t *const texts[] = {codes};
        struct folds_columns columns = {numbers, texts, 1, 1};
        assert_int_equal(folds_units(&columns, ROWS, units), count);
        size_t made = folds_deal(units, count, ROWS, FOLDS, 42, folds), sizes[FOLDS] = {0};
        assert_int_equal(made, count < FOLDS ? count : FOLDS);
        static int fold_of[ROWS];
        memset(fold_of, -1, sizeof fold_of);
        for (size_t i = 0; i < ROWS; i++) {
            assert_true(folds[i] < made);
            if (fold_of[units[i]] < 0)
                sizes[folds[i]]++;
            assert_true(fold_of[units[i]] < 0 || fold_of[units[i]] == folds[i]);
            fold_of[units[i]] = folds[i];
        }
        for (size_t f = 0; f < made; f++)
            assert_true(sizes[f] == count / made || sizes[f] == count / made + 1);
    }
}

/* Levels that lie in one fold alone are never left out. */
TEST(rare_levels_stay) {
    const uint32_t codes[] = {0, 0, 1, 1, 2, 0, 3, 3};
    uint8_t folds[] = {0, 1, 1, 1, 0, 2, 2, 0};
    static const uint8_t expected[] = {0, 1, 3, 3, 3, 2, 2, 0};
    size_t first = SIZE_MAX;
    assert_int_equal(folds_keep_rare(codes, 5, 8, 3, folds, &first), 3);
    assert_int_equal(first, 2);
    assert_memory_equal(folds, expected, sizeof folds);
    /* Of another category: 0 is in a row that is kept, and so in all fits. */
    const uint32_t others[] = {0, 1, 1, 1, 0, 1, 1, 1};
    assert_int_equal(folds_keep_rare(others, 2, 8, 3, folds, &first), 0);
    assert_memory_equal(folds, expected, sizeof folds);
}

TEST(the_seed_makes_the_folds) {
    static uint32_t units[ROWS];
    static uint8_t a[ROWS], b[ROWS], c[ROWS];
    assert_int_equal(folds_units(&(struct folds_columns){0}, ROWS, units), ROWS);
    folds_deal(units, ROWS, ROWS, 5, 1, a);
    folds_deal(units, ROWS, ROWS, 5, 1, b);
    folds_deal(units, ROWS, ROWS, 5, 2, c);
    assert_memory_equal(a, b, ROWS);
    assert_memory_not_equal(a, c, ROWS);
}
