#include "engine/plugin/hull.h"
#include "tests/test.h"

enum { ROWS = 1000 };

static double draw(double most) {
    return test_random() * most;
}

/* Against the plain definition, over rows that count. */
static void expect_support(const struct hull *hull, double values[][ROWS], const double *response,
                           const double *weights, size_t rows) {
    for (size_t d = 0; d < hull->direction_count; d++) {
        double least = INFINITY, most = -INFINITY;
        for (size_t i = 0; i < rows; i++) {
            double sum = 0;
            bool counts = isfinite(response[i]) && isfinite(weights[i]) && weights[i] > 0;
            for (size_t j = 0; j < hull->column_count; j++) {
                counts = counts && isfinite(values[j][i]);
                sum += hull->directions[d][j] * hull->scale[j] * values[j][i];
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
    static const size_t directions[] = {0, 1, 4, 13, 16, 25, 36, 0};
    static double values[7][ROWS], response[ROWS], weights[ROWS];
    static const double sizes[7] = {1e-9, 1, 8000, 1e12, 3, 1e300, 1};
    const double *columns[7];
    for (size_t count = 0; count <= 7; count++) {
        for (size_t i = 0; i < ROWS; i++) {
            response[i] = i == 7 ? NAN : i == 9 ? INFINITY : 1;
            weights[i] = i == 17 ? 0 : i == 19 ? -1 : i == 23 ? NAN : 2;
            for (size_t j = 0; j < count; j++)
                values[j][i] = draw(sizes[j]) - sizes[j] / 3;
        }
        for (size_t i = 0; i < ROWS && count > 0; i += 2) /* what would be the extremes */
            if (i == 170 || i == 512)
                values[i % count][i] = i == 170 ? NAN : -INFINITY;
        for (size_t j = 0; j < count; j++) {
            columns[j] = values[j];
            values[j][7] = values[j][9] = values[j][17] = values[j][19] = values[j][23] = sizes[j] * 4;
        }
        struct hull hull;
        hull_init(&hull, count);
        assert_int_equal(hull.direction_count, directions[count]);
        assert_false(hull_is_told(&hull));
        /* Blocks of odd lengths, the last shorter than the others. */
        for (size_t first = 0; first < ROWS; first += 331) {
            const double *at[7];
            for (size_t j = 0; j < count; j++)
                at[j] = columns[j] + first;
            hull_add(&hull, ROWS - first < 331 ? ROWS - first : 331, at, response + first, weights + first);
        }
        assert_int_equal(hull_is_told(&hull), directions[count] > 0);
        expect_support(&hull, values, response, weights, ROWS);
        for (size_t j = 0; j < hull.column_count; j++) {
            int exponent;
            assert_true(frexp(hull.scale[j], &exponent) == 0.5);
            assert_true(sizes[j] * hull.scale[j] > 0.2 && sizes[j] * hull.scale[j] < 8);
        }
    }
}

/* No row that counts, no hull; zeros are rows as others are. */
TEST(few_rows) {
    struct hull hull;
    hull_init(&hull, 2);
    const double nothing[] = {NAN, NAN}, zeros[] = {0, 0}, some[] = {3, 5};
    const double *columns[] = {some, nothing};
    hull_add(&hull, 2, columns, NULL, NULL);
    assert_false(hull_is_told(&hull));
    columns[0] = columns[1] = zeros;
    hull_add(&hull, 2, columns, NULL, NULL);
    assert_true(hull_is_told(&hull) && hull.minimum[3] == 0 && hull.maximum[3] == 0);
    columns[0] = some;
    hull_add(&hull, 2, columns, some, NULL);
    assert_true(hull.maximum[0] == 5 * hull.scale[0] && hull.minimum[0] == 0);
}
