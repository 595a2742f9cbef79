/* Samples that are thinned while they are read: few stay as they are, of many each peak stays, in its order.
 */
#include "engine/analysis/sample-fold.h"
#include "tests/test.h"

enum { SAMPLES = 100000, POINTS = 64 };

TEST(few_samples_stay_as_they_are) {
    cleanup(sample_fold_clear) struct sample_fold fold;
    double x[POINTS], y[POINTS];
    sample_fold_init(&fold, 2, POINTS);
    for (int i = 0; i < POINTS; i++)
        sample_fold_add(&fold, i, (const double[]){i % 7, i == 5 ? NAN : -i});
    assert_int_equal(sample_fold_points(&fold), POINTS);
    sample_fold_read(&fold, 0, x, NULL);
    sample_fold_read(&fold, 1, NULL, y);
    for (int i = 0; i < POINTS; i++) {
        assert_true(x[i] == i);
        assert_true(i == 5 ? isnan(y[i]) : y[i] == -i);
    }
}

TEST(no_peak_is_lost) {
    static const int peaks[] = {0, 1, 12345, 77777, SAMPLES - 1};
    cleanup(sample_fold_clear) struct sample_fold fold;
    double x[POINTS], y[POINTS];
    for (size_t p = 0; p < sizeof peaks / sizeof *peaks; p++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double extreme = 0, at = NAN;
            sample_fold_init(&fold, 1, POINTS);
            for (int i = 0; i < SAMPLES; i++)
                sample_fold_add(&fold, i, (const double[]){i == peaks[p] ? 100 * sign : i % 3});
            size_t count = sample_fold_points(&fold);
            assert_true(count > POINTS / 4 && count <= POINTS);
            sample_fold_read(&fold, 0, x, y);
            for (size_t i = 0; i < count; i++) {
                assert_true(i == 0 || x[i] >= x[i - 1]);
                if (fabs(y[i]) > fabs(extreme))
                    extreme = y[i], at = x[i];
            }
            assert_true(extreme == 100 * sign);
            assert_true(fabs(at - peaks[p]) <= (double)fold.per_bucket); /* within its bucket */
            sample_fold_clear(&fold);
        }
    sample_fold_init(&fold, 1, POINTS);
}

/* A line goes up where values went up. */
TEST(extremes_are_in_their_order) {
    cleanup(sample_fold_clear) struct sample_fold fold;
    double x[POINTS], y[POINTS];
    sample_fold_init(&fold, 2, POINTS);
    for (int i = 0; i < SAMPLES; i++)
        sample_fold_add(&fold, i, (const double[]){i, -i});
    size_t count = sample_fold_points(&fold);
    for (size_t c = 0; c < 2; c++) {
        sample_fold_read(&fold, c, x, y);
        for (size_t i = 1; i < count; i++)
            assert_true(c == 0 ? y[i] > y[i - 1] : y[i] < y[i - 1]);
    }
}

TEST(gaps_stay) {
    cleanup(sample_fold_clear) struct sample_fold fold;
    double y[POINTS];
    size_t missing = 0;
    sample_fold_init(&fold, 1, POINTS);
    for (int i = 0; i < SAMPLES; i++)
        sample_fold_add(&fold, i, (const double[]){i < SAMPLES / 2 ? 1 : NAN});
    sample_fold_read(&fold, 0, NULL, y);
    for (size_t i = 0; i < sample_fold_points(&fold); i++)
        missing += isnan(y[i]);
    assert_in_range(missing, sample_fold_points(&fold) / 2 - 2, sample_fold_points(&fold) / 2 + 2);
}
