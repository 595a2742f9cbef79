#include "engine/plugin/noise-probability.h"

#include <math.h>
#include <string.h>

/* Where sigma is 0, all of it is at the mean. */
static double normal(double offset, double sigma) {
    if (!(sigma > 0))
        return offset >= 0;
    return 0.5 * erfc(-offset / (sigma * M_SQRT2));
}

/* s|Z| about its mean, s such that the standard deviation is SIGMA (plugin.h, struct plugin_noise). */
static double half_normal(double offset, double sigma) {
    const double two_over_pi = 0.63661977236758134308;
    double scale = sigma / sqrt(1 - two_over_pi), distance = offset + scale * sqrt(two_over_pi);
    if (!(sigma > 0))
        return offset >= 0;
    return distance < 0 ? 0 : erf(distance / (scale * M_SQRT2));
}

double noise_probability(const struct plugin_noise *noise, double mean, double sigma, double observed) {
    double offset = observed - mean, sum = 0;
    if (!noise || isnan(offset))
        return NAN;
    for (size_t i = 0; noise->components && i < noise->component_count; i++)
        sum += noise->components[i].weight *
               normal(offset - noise->components[i].mean, noise->components[i].sigma);
    if (noise->components)
        return sum;
    if (isnan(sigma))
        return NAN;
    return noise->distribution && strcmp(noise->distribution, "half-normal") == 0 ? half_normal(offset, sigma)
                                                                                  : normal(offset, sigma);
}
