/* Quantiles of Student's t against values worked out to 30 digits, and where they do not exist. */
#include "engine/run/measure/stopping-rule.h"
#include "tests/test.h"

static const double confidences[] = {0.51, 0.9, 0.95, 0.99, 0.9999};

/* By the regularized incomplete beta function in 30 digits; R's qt((1 + c) / 2, n) prints the same. */
static const struct {
    uint64_t freedom;
    double values[5];
} known[] = {
    {1, {1.0319199492805, 6.31375151467504, 12.7062047361747, 63.6567411628715, 6366.19767131664}},
    {2, {0.838491492002007, 2.91998558035373, 4.30265272974946, 9.92484320091829, 99.99249984375}},
    {3, {0.784482894845858, 2.35336343480182, 3.18244630528371, 5.84090930973336, 28.00013001095}},
    {4, {0.759223126125568, 2.13184678632665, 2.77644510519779, 4.60409487134999, 15.5441005815461}},
    {5, {0.744614966478131, 2.01504837333302, 2.57058183563631, 4.03214298355523, 11.1777100702789}},
    {9, {0.719658899975862, 1.83311293265624, 2.2621571627982, 3.24983554159213, 6.59368258394488}},
    {10, {0.716631112800264, 1.81246112281168, 2.22813885198627, 3.16927267261695, 6.21105089129075}},
    {15, {0.707670932243096, 1.75305035569257, 2.13144954555978, 2.94671288347524, 5.23908821175416}},
    {30, {0.698896444660369, 1.69726088659396, 2.04227245630124, 2.74999565356722, 4.48241717540979}},
    {99, {0.692891334128692, 1.66039115601699, 1.98421695158642, 2.62640545728083, 4.05504130911436}},
    {100, {0.692865423696783, 1.66023432608534, 1.98397151852355, 2.62589052143802, 4.05333670120155}},
    {999, {0.690563978508267, 1.64638034542754, 1.96234146113345, 2.58075963726764, 3.90635956110224}},
    {1000, {0.690563723269054, 1.64637881728546, 1.96233908082641, 2.58075469806595, 3.90634373670141}},
    {1001, {0.690563468539978, 1.64637729219947, 1.96233670528088, 2.58074976875052, 3.90632794403129}},
    {5000, {0.690359790271189, 1.64515843759697, 1.96043855170651, 2.57681296655628, 3.89373320892695}},
};

TEST(known_values) {
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        for (size_t k = 0; k < 5; k++) {
            double found = student_t_two_sided(known[i].freedom, confidences[k]), value = known[i].values[k];
            if (!(fabs(found - value) <= (known[i].freedom > 1000 ? 1e-9 : 1e-10) * value))
                fail_msg("%llu degrees at %g: %.15g, expected %.15g", (unsigned long long)known[i].freedom,
                         confidences[k], found, value);
        }
}

/* One and two degrees have closed forms. */
TEST(closed_forms) {
    for (double c = 0.001; c < 0.9999; c += 0.001) {
        double one = tan(c * acos(-1) / 2), two = c * sqrt(2 / (1 - c * c));
        assert_true(fabs(student_t_two_sided(1, c) - one) <= 1e-10 * one);
        assert_true(fabs(student_t_two_sided(2, c) - two) <= 1e-10 * two);
    }
}

/* Of more degrees than are told apart, the interval is a little too wide. */
TEST(many_degrees) {
    static const double normal[] = {0.690308823933034, 1.64485362695147, 1.95996398454005, 2.5758293035489,
                                    3.8905918864131};
    for (size_t k = 0; k < 5; k++) {
        double found = student_t_two_sided(UINT64_C(1) << 60, confidences[k]);
        assert_true(found > normal[k] && found < normal[k] * 1.001);
    }
}

TEST(falls_with_freedom) {
    double last = INFINITY;
    for (uint64_t freedom = 1; freedom < 1200; freedom++) {
        double now = student_t_two_sided(freedom, 0.95);
        assert_true(now < last);
        last = now;
    }
    assert_true(student_t_two_sided(UINT64_C(1) << 60, 0.95) < last);
}

TEST(what_is_none) {
    assert_true(isnan(student_t_two_sided(0, 0.95)));
    assert_true(isnan(student_t_two_sided(3, 0)));
    assert_true(isnan(student_t_two_sided(3, 1)));
    assert_true(isnan(student_t_two_sided(3, -1)));
    assert_true(isnan(student_t_two_sided(3, NAN)));
}
