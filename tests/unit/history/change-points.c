/* Change points against the answers of another program on a nightly benchmark (data/README.md; skipped,
 * aloud, where they are not), and planted ones. */
#include "engine/history/change-points.h"

#include "tests/test.h"

enum { ROWS_MAX = 1000 };

static double values[ROWS_MAX];
static const struct change_points_rule usual = {.window = 30, .p_most = 0.001, .relative_least = 0};

static void assert_rows(const struct change_points_rule *rule, size_t count, const char *expected) {
    char found[2048] = "";
    struct change_point *points = NULL;
    size_t point_count = 0, length = 0;
    assert_int_equal(change_points_find(rule, values, count, &points, &point_count), 0);
    for (size_t i = 0; i < point_count; i++)
        length +=
            (size_t)snprintf(found + length, sizeof found - length, "%s%zu", i > 0 ? " " : "", points[i].row);
    free(points);
    assert_string_equal(found, expected);
}

TEST(another_program) {
    const char *data = test_data();
    char path[4200], line[1024], rows[1000];
    size_t count = 0, answers = 0;
    if (!data)
        skip();
    snprintf(path, sizeof path, "%s/changepoints/otava_tigerbeetle_series.csv", data);
    FILE *file = fopen(path, "r");
    assert_true(file && fgets(line, sizeof line, file));
    while (count < ROWS_MAX && fscanf(file, "%*u,%lf", &values[count]) == 1)
        count++;
    fclose(file);
    assert_int_equal(count, 365);
    snprintf(path, sizeof path, "%s/changepoints/otava_tigerbeetle_expected.csv", data);
    file = fopen(path, "r");
    assert_true(file && fgets(line, sizeof line, file));
    for (; fgets(line, sizeof line, file); answers++) {
        struct change_points_rule rule = {.as_otava = true};
        assert_int_equal(
            sscanf(line, "%zu,%lf,%lf,%999[0-9 ]", &rule.window, &rule.p_most, &rule.relative_least, rows),
            4);
        assert_rows(&rule, count, rows);
    }
    fclose(file);
    assert_int_equal(answers, 10);
}

TEST(planted) {
    for (size_t i = 0; i < 100; i++)
        values[i] = (i < 37 ? 10 : 11) + 0.1 * test_normal();
    assert_rows(&usual, 100, "37");
}

TEST(no_change) {
    for (size_t i = 0; i < 100; i++)
        values[i] = 3;
    assert_rows(&usual, 100, "");
    assert_rows(&usual, 1, "");
    assert_rows(&usual, 0, "");
    values[50] = 4; /* constant on both sides */
    assert_rows(&usual, 51, "50");
}

TEST(limits) {
    struct change_point *points;
    size_t count;
    struct change_points_rule wide = usual, sure = usual;
    wide.window = CHANGE_POINTS_WINDOW_MAX + 1;
    sure.p_most = 0;
    assert_int_equal(change_points_find(&wide, values, 1, &points, &count), -EINVAL);
    assert_int_equal(change_points_find(&sure, values, 1, &points, &count), -EINVAL);
}
