/* Holm's adjustment, as R's p.adjust() has it. */
#include "engine/numerics/holm.h"
#include "tests/test.h"

TEST(as_r_adjusts) {
    double p[] = {0.03, 0.01, NAN, 0.04, 0.02, 0.9};
    static const double expected[] = {0.09, 0.05, NAN, 0.09, 0.08, 0.9};
    holm_adjust(p, 6);
    for (size_t i = 0; i < 6; i++)
        if (isnan(expected[i]))
            assert_true(isnan(p[i]));
        else
            assert_close(p[i], expected[i], 1e-12, "p");
    holm_adjust(NULL, 0);
}
