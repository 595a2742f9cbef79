#include "plugins/fit-mixture/em.h"

#include "plugins/numerics/lanes.h"

#include <math.h>
#include <string.h>

/* Sums over the points, weighted by each component's share of them: of 1, and of the first and second power
 * of the distance from the component's mean. */
struct sums {
    double share[COMPONENTS_MAX], first[COMPONENTS_MAX], second[COMPONENTS_MAX];
    double log_likelihood;
};

static const double log_root_2pi = 0.91893853320467274178;

/* ---- Expectation */

struct lane_sums {
    lanes share[COMPONENTS_MAX], first[COMPONENTS_MAX], second[COMPONENTS_MAX], log_likelihood;
};

/* SPREAD and COUNT are constants where this is inlined. */
LANES_INLINE void expect(const struct mixture *mixture, const struct points *points, bool spread,
                         size_t count, struct lane_sums *sums) {
    lanes height[COMPONENTS_MAX], inverse[COMPONENTS_MAX];
    for (size_t k = 0; k < count; k++) {
        height[k] = lanes_of(log(mixture->weight[k]) - log(mixture->sigma[k]) - log_root_2pi);
        inverse[k] = lanes_of(1 / mixture->sigma[k]);
        sums->share[k] = sums->first[k] = sums->second[k] = lanes_of(0);
    }
    sums->log_likelihood = lanes_of(0);
    for (size_t i = 0; i < points->padded; i += LANES) {
        lanes at = *(const lanes *)(points->at + i), weight = *(const lanes *)(points->weight + i);
        lanes away[COMPONENTS_MAX], density[COMPONENTS_MAX], most = lanes_of(-INFINITY);
        for (size_t k = 0; k < count; k++) {
            away[k] = at - mixture->mean[k];
            lanes scaled = away[k] * inverse[k];
            density[k] = height[k] - 0.5 * (scaled * scaled);
            most = lanes_maximum(most, density[k]);
        }
        lanes sum = lanes_of(0);
        for (size_t k = 0; k < count; k++) {
            density[k] = lanes_exp(density[k] - most);
            sum += density[k];
        }
        sums->log_likelihood += weight * (most + lanes_log(sum));
        lanes factor = weight / sum;
        for (size_t k = 0; k < count; k++) {
            lanes share = density[k] * factor;
            sums->share[k] += share;
            sums->first[k] += share * away[k];
            lanes square = away[k] * away[k];
            if (spread)
                square += *(const lanes *)(points->spread + i);
            sums->second[k] += share * square;
        }
    }
}

/* With the number of components known to the compiler, their loops unroll. */
#define EXPECT(count)                                                                                        \
    case count:                                                                                              \
        if (points->spread)                                                                                  \
            expect(mixture, points, true, count, sums);                                                      \
        else                                                                                                 \
            expect(mixture, points, false, count, sums);                                                     \
        break

LANES_INLINE void expect_any(const struct mixture *mixture, const struct points *points,
                             struct lane_sums *sums) {
    switch (mixture->count) {
        EXPECT(1);
        EXPECT(2);
        EXPECT(3);
        EXPECT(4);
        EXPECT(5);
        EXPECT(6);
        EXPECT(7);
        EXPECT(8);
    default:
        break;
    }
}

static void expect_portable(const struct mixture *mixture, const struct points *points,
                            struct lane_sums *sums) {
    expect_any(mixture, points, sums);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void expect_avx2(const struct mixture *mixture,
                                                        const struct points *points, struct lane_sums *sums) {
    expect_any(mixture, points, sums);
}
#endif

static void expectation(const struct mixture *mixture, const struct points *points, struct sums *ret) {
    struct lane_sums sums;
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx2"))
        expect_avx2(mixture, points, &sums);
    else
#endif
        expect_portable(mixture, points, &sums);
    for (size_t k = 0; k < mixture->count; k++) {
        ret->share[k] = lanes_sum(sums.share[k]);
        ret->first[k] = lanes_sum(sums.first[k]);
        ret->second[k] = lanes_sum(sums.second[k]);
    }
    ret->log_likelihood = lanes_sum(sums.log_likelihood);
}

double em_log_likelihood(const struct mixture *mixture, const struct points *points) {
    struct sums sums;
    expectation(mixture, points, &sums);
    return sums.log_likelihood;
}

/* ---- Maximisation */

static double maximise(struct mixture *mixture, const struct sums *sums, const struct floor *floor) {
    double total = 0;
    for (size_t k = 0; k < mixture->count; k++)
        total += sums->share[k];
    for (size_t k = 0; k < mixture->count; k++) {
        double share = sums->share[k];
        mixture->weight[k] = fmax(share / total, 1e-300);
        if (share <= 1e-9)
            continue; /* nobody's; it stays where it is */
        double moved = sums->first[k] / share;
        double variance = sums->second[k] / share - moved * moved;
        mixture->mean[k] += moved;
        mixture->sigma[k] = sqrt(fmax(variance, floor->sigma * floor->sigma));
    }
    return sums->log_likelihood;
}

double em_step(struct mixture *mixture, const struct points *points, const struct floor *floor) {
    struct sums sums;
    expectation(mixture, points, &sums);
    return maximise(mixture, &sums, floor);
}

/* ---- SQUAREM */

enum { PARAMETERS_MAX = 3 * COMPONENTS_MAX };

/* Log weights, means and log deviations. */
static void to_parameters(const struct mixture *mixture, double *ret) {
    for (size_t k = 0; k < mixture->count; k++) {
        ret[3 * k] = log(mixture->weight[k]);
        ret[3 * k + 1] = mixture->mean[k];
        ret[3 * k + 2] = log(mixture->sigma[k]);
    }
}

static void from_parameters(const double *parameters, const struct floor *floor, struct mixture *ret) {
    double total = 0;
    for (size_t k = 0; k < ret->count; k++) {
        ret->weight[k] = fmax(exp(fmin(parameters[3 * k], 0)), 1e-300);
        total += ret->weight[k];
        ret->mean[k] = parameters[3 * k + 1];
        ret->sigma[k] = fmax(exp(fmin(parameters[3 * k + 2], 10)), floor->sigma);
    }
    for (size_t k = 0; k < ret->count; k++)
        ret->weight[k] /= total;
}

/* One cycle: two steps, a leap along the curve that they show, and back where the leap does not gain. */
static void leap(struct mixture *mixture, const struct points *points, const struct floor *floor) {
    double before[PARAMETERS_MAX], once[PARAMETERS_MAX], twice[PARAMETERS_MAX];
    size_t count = 3 * mixture->count;
    to_parameters(mixture, before);
    em_step(mixture, points, floor);
    to_parameters(mixture, once);
    double reached = em_step(mixture, points, floor); /* of `once` */
    to_parameters(mixture, twice);
    double r2 = 0, v2 = 0;
    for (size_t i = 0; i < count; i++) {
        double r = once[i] - before[i], v = twice[i] - once[i] - r;
        r2 += r * r;
        v2 += v * v;
    }
    mixture->log_likelihood = reached;
    double length = v2 > 0 ? fmin(sqrt(r2 / v2), 1024) : 1;
    if (length <= 1)
        return;
    struct mixture far = *mixture;
    double parameters[PARAMETERS_MAX];
    for (size_t i = 0; i < count; i++) {
        double r = once[i] - before[i], v = twice[i] - once[i] - r;
        parameters[i] = before[i] + 2 * length * r + length * length * v;
    }
    from_parameters(parameters, floor, &far);
    far.log_likelihood = em_step(&far, points, floor);
    if (far.log_likelihood >= reached)
        *mixture = far;
}

void em_climb(struct mixture *mixture, const struct points *points, const struct floor *floor, int steps,
              double tolerance) {
    double last = -INFINITY;
    int idle = 0;
    for (int i = 0; i < steps && idle < 2; i++) {
        leap(mixture, points, floor);
        idle = mixture->log_likelihood - last < tolerance ? idle + 1 : 0;
        last = mixture->log_likelihood;
    }
}
