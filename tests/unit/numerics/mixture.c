/* Mixtures of normals: closed forms, and made-up populations in one and two dimensions; unit/fit/mixture.c
 * has real samples. */
#include "engine/numerics/mixture.h"

#include "tests/test.h"

enum { ROWS_MAX = 20000 };

static double x[2 * ROWS_MAX], weights[ROWS_MAX];

static struct mixture_request request_of(size_t components) {
    return (struct mixture_request){
        .components = components, .floor = 1e-3, .least = 3, .starts = 5, .seed = 1};
}

static double log_likelihood(const struct mixture *mixture, size_t rows, const double *w) {
    double sum = 0, row[2];
    for (size_t i = 0; i < rows; i++) {
        row[0] = x[i];
        row[1] = x[i + ROWS_MAX];
        sum += (w ? w[i] : 1) * mixture_log_density(mixture, row, NULL);
    }
    return sum;
}

TEST(one_component) {
    double mean = 0, squares = 0;
    test_seed = 1;
    for (size_t i = 0; i < 500; i++) {
        x[i] = 1e-6 * (5 + test_normal());
        mean += x[i] / 500;
    }
    for (size_t i = 0; i < 500; i++)
        squares += (x[i] - mean) * (x[i] - mean) / 500;
    const struct mixture_request request = request_of(1);
    cleanup(mixture_clear) struct mixture mixture;
    assert_int_equal(mixture_fit(500, 1, x, 500, NULL, &request, &mixture), 0);
    assert_close(mixture.weight[0], 1, 1e-12, "the weight");
    assert_close(mixture.mean[0], mean, 1e-12, "the mean");
    assert_close(mixture.covariance[0], squares, 1e-12, "the variance");
    assert_close(mixture.log_likelihood, -250 * (log(2 * M_PI * squares) + 1), 1e-12, "log likelihood");
}

/* Machines of which some are slow: found in any units, with an own and with a shared covariance. */
TEST(two_populations) {
    enum { N = 900 };
    for (size_t shared = 0; shared < 2; shared++) {
        test_seed = 9;
        for (size_t i = 0; i < N; i++) {
            double a = test_normal(), b = test_normal(), slow = i % 6 == 0;
            x[i] = 1e-11 * (5 + slow * 2 + 0.1 * a);
            x[i + ROWS_MAX] = 300 + 40 * slow + (shared || slow == 0 ? 4 : 12) * (0.8 * a + 0.6 * b);
        }
        struct mixture_request request = request_of(2);
        request.shared = shared;
        cleanup(mixture_clear) struct mixture mixture;
        assert_int_equal(mixture_fit(N, 2, x, ROWS_MAX, NULL, &request, &mixture), 0);
        assert_close(mixture.weight[1], 1 / 6.0, 1e-6, "the share of slow ones");
        assert_close(mixture.mean[0], 5e-11, 0.002, "the typical mean");
        assert_close(mixture.mean[2], 7e-11, 0.004, "the slow mean");
        assert_close(mixture.covariance[4 + 3], shared ? 16 : 144, 0.25, "the slow variance");
        assert_close(mixture.covariance[1], 0.8 * 4 * 1e-12, 0.25, "the covariance");
        assert_true(mixture.covariance[1] == mixture.covariance[2]);
        assert_true(!shared || fabs(mixture.covariance[0] / mixture.covariance[4] - 1) < 1e-12);
        assert_close(log_likelihood(&mixture, N, NULL), mixture.log_likelihood, 1e-9, "log likelihood");
        double posterior[2], row[2] = {x[0], x[ROWS_MAX]};
        mixture_log_density(&mixture, row, posterior);
        assert_close(posterior[0] + posterior[1], 1, 1e-12, "the sum of probabilities");
        assert_true(posterior[1] > 0.999 && mixture.floored == 0);
    }
}

/* A weight is as many rows; the same seed the same bits. */
TEST(weights_and_seeds) {
    static double all[ROWS_MAX];
    size_t copies = 0;
    test_seed = 4;
    for (size_t i = 0; i < 400; i++) {
        x[i] = floor(100 * (test_normal() + (i % 3 == 0 ? 6 : 0))) / 100;
        weights[i] = (double)(i % 4);
        for (double w = 0; w < weights[i]; w++)
            all[copies++] = x[i];
    }
    const struct mixture_request request = request_of(3);
    struct mixture once, again, repeated;
    assert_int_equal(mixture_fit(400, 1, x, 400, weights, &request, &once), 0);
    assert_int_equal(mixture_fit(400, 1, x, 400, weights, &request, &again), 0);
    assert_int_equal(mixture_fit(copies, 1, all, copies, NULL, &request, &repeated), 0);
    assert_close(repeated.log_likelihood, once.log_likelihood, 1e-7, "log likelihood");
    assert_memory_equal(once.weight, again.weight, 12 * sizeof *once.weight);
    assert_true(once.mean[0] < once.mean[1] && once.mean[1] < once.mean[2]);
    assert_close(log_likelihood(&once, 400, weights), once.log_likelihood, 1e-7, "log likelihood");
    mixture_clear(&once);
    mixture_clear(&again);
    mixture_clear(&repeated);
}

/* Modes in values of three digits, as clocks give them: wherever the search begins it ends at the same
 * maximum. */
TEST(quantised_values) {
    const double modes[] = {1, 1.3, 2, 2.1, 3, 4.5}, widths[] = {0.02, 0.1, 0.02, 0.2, 0.05, 0.5};
    test_seed = 8;
    for (size_t i = 0; i < 3000; i++)
        x[i] = floor(50 * (modes[i % 6] + widths[i % 6] * test_normal()) + 0.5) / 50;
    double best = -INFINITY, worst = INFINITY;
    for (uint64_t seed = 1; seed <= 2; seed++) {
        struct mixture_request request = request_of(6);
        request.floor = 0.02 / sqrt(12) / 1.2; /* what the last digit leaves unknown */
        request.seed = seed;
        cleanup(mixture_clear) struct mixture mixture;
        assert_int_equal(mixture_fit(3000, 1, x, 3000, NULL, &request, &mixture), 0);
        best = fmax(best, mixture.log_likelihood);
        worst = fmin(worst, mixture.log_likelihood);
    }
    assert_true(best - worst < 1e-3);
}

/* Rounding to half a deviation in two dimensions: no component shrinks to a line of equal values. */
TEST(rounded_in_two_dimensions) {
    enum { N = 400 };
    test_seed = 11;
    for (size_t i = 0; i < N; i++) {
        double a = test_normal(), b = test_normal();
        x[i] = round(2 * a) / 2;
        x[i + ROWS_MAX] = 1e3 * round(2 * (0.8 * a + 0.6 * b)) / 2;
    }
    double likelihoods[2];
    for (size_t k = 1; k <= 2; k++) {
        const struct mixture_request request = request_of(k);
        cleanup(mixture_clear) struct mixture mixture;
        assert_int_equal(mixture_fit(N, 2, x, ROWS_MAX, NULL, &request, &mixture), 0);
        likelihoods[k - 1] = mixture.log_likelihood;
        for (size_t c = 0; c < k; c++)
            assert_true(mixture.covariance[4 * c] >= 0.25 * 0.25 * (1 - 1e-9));
    }
    if (2 * (likelihoods[1] - likelihoods[0]) > 6 * log(N))
        fail_msg("BIC prefers two components: %g, %g", likelihoods[0], likelihoods[1]);
}

/* A component cannot shrink to one value. */
TEST(floor_and_refusals) {
    test_seed = 6;
    for (size_t i = 0; i < 300; i++)
        x[i] = i % 3 ? test_normal() : 0.5;
    struct mixture_request request = request_of(2);
    struct mixture mixture;
    assert_int_equal(mixture_fit(300, 1, x, 300, NULL, &request, &mixture), 0);
    assert_int_equal(mixture.floored, 1);
    assert_close(fmin(mixture.covariance[0], mixture.covariance[1]), 1e-6 * 0.75, 0.3, "the floor");
    mixture_clear(&mixture);
    request.least = 200;
    assert_int_equal(mixture_fit(300, 1, x, 300, NULL, &request, &mixture), -EDOM);
    mixture_clear(&mixture);
    request.floor = 0;
    assert_int_equal(mixture_fit(300, 1, x, 300, NULL, &request, &mixture), -EINVAL);
    mixture_clear(&mixture);
    request = request_of(2);
    for (size_t i = 0; i < 300; i++)
        x[i] = 7;
    assert_int_equal(mixture_fit(300, 1, x, 300, NULL, &request, &mixture), -EDOM);
    mixture_clear(&mixture);
    x[3] = NAN;
    assert_int_equal(mixture_fit(300, 1, x, 300, NULL, &request, &mixture), -EINVAL);
    mixture_clear(&mixture);
}
