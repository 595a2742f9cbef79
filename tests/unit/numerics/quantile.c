/* Quantiles against R's quantile(c(10, 1, 2.5, 4), share). */
#include "engine/numerics/quantile.h"

#include "tests/test.h"

TEST(type_7) {
    double values[] = {10, 1, 2.5, 4};
    const double expected[][2] = {{0, 1}, {0.1, 1.45}, {0.5, 3.25}, {0.975, 9.55}, {1, 10}};
    quantile_sort(values, 4);
    for (size_t i = 0; i < sizeof expected / sizeof *expected; i++)
        assert_close(quantile(values, 4, expected[i][0]), expected[i][1], 1e-14, "quantile");
    assert_true(quantile(values, 1, 0.3) == 1 && isnan(quantile(values, 0, 0.5)));
    double odd[] = {3, 1, 2};
    assert_true(quantile_median(odd, 3) == 2 && quantile_median((double[]){4, 1, 3, 9}, 4) == 3.5);
    assert_true(isnan(quantile_median(odd, 0)));
}
