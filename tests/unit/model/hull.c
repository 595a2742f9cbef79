#include "engine/model/hull.h"
#include "engine/model/model.h"
#include "tests/test.h"

enum { ROWS = 1000 };

static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g"};

/* Against the plain definition, over rows that count. */
static void expect_support(const struct model_hull *hull, double values[][ROWS]) {
    for (size_t d = 0; d < hull->direction_count; d++) {
        double least = INFINITY, most = -INFINITY;
        for (size_t i = 0; i < ROWS; i++) {
            double sum = 0;
            bool counts = true;
            for (size_t j = 0; j < hull->column_count; j++) {
                counts = counts && isfinite(values[j][i]);
                sum += hull->directions[d * hull->column_count + j] * hull->scale[j] * values[j][i];
            }
            if (counts) {
                least = fmin(least, sum);
                most = fmax(most, sum);
            }
        }
        if (hull->minimum[d] != least || hull->maximum[d] != most)
            fail_msg("direction %zu: %g to %g, expected %g to %g", d, hull->minimum[d], hull->maximum[d],
                     least, most);
    }
}

TEST(all_counts) {
    static const size_t directions[] = {0, 0, 4, 13, 16, 25, 36, 0};
    static double values[7][ROWS];
    static const double sizes[7] = {1e-9, 1, 8000, 1e12, 3, 1e300, 1};
    for (size_t count = 0; count <= 7; count++) {
        struct model_hull *hull = model_hull_new(names, count);
        assert_true(!hull == (directions[count] == 0));
        if (!hull)
            continue;
        assert_int_equal(hull->direction_count, directions[count]);
        assert_string_equal(hull->columns[1], "b");
        assert_false(model_hull_is_known(hull));
        for (size_t i = 0; i < ROWS; i++)
            for (size_t j = 0; j < count; j++)
                values[j][i] = test_random() * sizes[j] - sizes[j] / 3;
        for (size_t j = 0; j < count; j++) /* what would be the extremes */
            values[j][170] = values[j][512] = j == 1 ? (double)NAN : sizes[j] * 4;
        values[0][512] = -INFINITY;
        for (size_t first = 0; first < ROWS; first += 331) {
            const double *at[7];
            for (size_t j = 0; j < count; j++)
                at[j] = values[j] + first;
            model_hull_add(hull, ROWS - first < 331 ? ROWS - first : 331, at);
        }
        assert_true(model_hull_is_known(hull));
        expect_support(hull, values);
        /* All directions differ, also by sign. */
        for (size_t d = 0; d < hull->direction_count; d++)
            for (size_t e = 0; e < d; e++) {
                bool same = true, opposite = true;
                for (size_t j = 0; j < count; j++) {
                    double one = hull->directions[d * count + j], other = hull->directions[e * count + j];
                    same = same && one == other;
                    opposite = opposite && one == -other;
                }
                assert_false(same || opposite);
            }
        for (size_t j = 0; j < count; j++) {
            int exponent;
            assert_true(frexp(hull->scale[j], &exponent) == 0.5);
            assert_true(sizes[j] * hull->scale[j] > 0.2 && sizes[j] * hull->scale[j] < 8);
        }
        model_hull_free(hull);
    }
}

/* No row that counts, no hull; zeros are rows as others are. */
TEST(few_rows) {
    struct model_hull *hull = model_hull_new(names, 2);
    const double nothing[] = {NAN, NAN}, zeros[] = {0, 0}, some[] = {3, 5};
    model_hull_add(hull, 2, (const double *const[]){some, nothing});
    assert_false(model_hull_is_known(hull));
    model_hull_add(hull, 2, (const double *const[]){zeros, zeros});
    assert_true(model_hull_is_known(hull) && hull->minimum[3] == 0 && hull->maximum[3] == 0);
    model_hull_add(hull, 2, (const double *const[]){some, zeros});
    assert_true(hull->maximum[0] == 5 * hull->scale[0] && hull->minimum[0] == 0);
    model_hull_free(hull);
    model_hull_free(NULL);
}
