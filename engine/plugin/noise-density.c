#include "engine/plugin/noise-density.h"

#include <math.h>
#include <string.h>

static const double half_log_two_pi = 0.91893853320467274178;

static double normal(double offset, double sigma) {
    double z = offset / sigma;
    return -0.5 * z * z - log(sigma) - half_log_two_pi;
}

/* s|Z| about its mean, s such that the standard deviation is SIGMA (plugin.h, struct plugin_noise). */
static double half_normal(double offset, double sigma) {
    const double two_over_pi = 0.63661977236758134308;
    double scale = sigma / sqrt(1 - two_over_pi), distance = offset + scale * sqrt(two_over_pi);
    return distance < 0 ? -INFINITY : M_LN2 + normal(distance, scale);
}

/* The logarithm of a sum of exponentials, without leaving their range. */
static double mixture(const struct plugin_noise *noise, double offset) {
    double largest = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < noise->component_count; i++) {
            const struct plugin_component *component = &noise->components[i];
            if (!(component->weight > 0) || !(component->sigma > 0))
                continue;
            double one = log(component->weight) + normal(offset - component->mean, component->sigma);
            if (pass == 0)
                largest = fmax(largest, one);
            else
                sum += exp(one - largest);
        }
    return isfinite(largest) ? largest + log(sum) : -INFINITY;
}

double noise_log_density(const struct plugin_noise *noise, double mean, double sigma, double observed) {
    double offset = observed - mean;
    if (!noise || !isfinite(offset))
        return NAN;
    if (noise->components)
        return mixture(noise, offset);
    if (!(sigma > 0))
        return isnan(sigma) ? NAN : offset == 0 ? INFINITY : -INFINITY;
    return noise->distribution && strcmp(noise->distribution, "half-normal") == 0 ? half_normal(offset, sigma)
                                                                                  : normal(offset, sigma);
}
