/* Ranks, their normal scores, and Spearman's correlation. */
#include "engine/numerics/ranks.h"
#include "tests/test.h"

TEST(equal_values_share_their_ranks) {
    const double values[] = {3, 1, 3, 2, 7};
    static const double expected[] = {3.5, 1, 3.5, 2, 5};
    double ret[5];
    ranks(values, 5, ret);
    for (size_t i = 0; i < 5; i++)
        assert_close(ret[i], expected[i], 0, "rank");
    ranks_normal_scores(values, 5, ret);
    assert_close(ret[1], -0.9674215661, 1e-9, "qnorm(1/6)"); /* of R */
    assert_close(ret[0], 0.2153636496, 1e-9, "(qnorm(3/6) + qnorm(4/6)) / 2");
}

/* C. Spearman's correlation of M. Hollander and D. Wolfe, Nonparametric Statistical Methods, 1973, p. 187:
 * R's help of cor.test() has these data and, for Spearman, rho = 0.6. */
TEST(tuna) {
    const double x[] = {44.4, 45.9, 41.9, 53.3, 44.7, 44.1, 50.7, 45.2, 60.1},
                 y[] = {2.6, 3.1, 2.5, 5.0, 3.6, 4.0, 5.2, 2.8, 3.8};
    assert_close(ranks_correlation(x, y, 9), 0.6, 1e-12, "rho");
    const double equal[] = {1, 1, 1};
    assert_true(isnan(ranks_correlation(equal, x, 3)));
}
