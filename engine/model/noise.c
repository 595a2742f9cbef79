#include "engine/model/noise.h"

#include "engine/numerics/distribution.h"

#include <math.h>

static const double two_over_pi = 0.63661977236758134308;

/* The standard deviation of the noise where terms have the values TERMS; NaN: there is no noise, or its
 * formula is below 0. */
double noise_sigma(const struct model_noise *noise, const double *terms, size_t term_count) {
    if (noise->kind == MODEL_NOISE_NONE)
        return NAN;
    double mean = 0, squares = 0, sigma = noise->constant;
    for (size_t i = 0; i < noise->component_count; i++)
        mean += noise->components[i].weight * noise->components[i].mean;
    for (size_t i = 0; i < noise->component_count; i++) {
        const struct model_component *component = &noise->components[i];
        double off = component->mean - mean;
        squares += component->weight * (component->sigma * component->sigma + off * off);
    }
    if (noise->kind == MODEL_NOISE_MIXTURE)
        return sqrt(squares);
    for (size_t t = 0; noise->coefficients && t < term_count; t++)
        if (noise->coefficients[t] != 0)
            sigma += noise->coefficients[t] * terms[t];
    if (noise->floor.sigma > 0)
        sigma = fmax(sigma, noise->floor.sigma);
    return sigma >= 0 ? sigma : NAN;
}

/* The probability that normal noise is below OFFSET; with SIGMA 0, all of it is at the mean. */
static double normal_share(double offset, double sigma) {
    return sigma > 0 ? 0.5 * erfc(-offset / (sigma * M_SQRT2)) : offset >= 0;
}

/* s of a half-normal: mean + s|Z| - s sqrt(2/pi) has the standard deviation SIGMA. */
static double half_normal_scale(double sigma) {
    return sigma / sqrt(1 - two_over_pi);
}

/* Log density of a mixture at OFFSET, by the log-sum-exp rule, which does not overflow. */
static double mixture_density(const struct model_noise *noise, double offset) {
    double largest = -INFINITY, sum = 0;
    for (int pass = 0; pass < 2; pass++)
        for (size_t i = 0; i < noise->component_count; i++) {
            const struct model_component *component = &noise->components[i];
            if (!(component->weight > 0) || !(component->sigma > 0))
                continue;
            double one = log(component->weight) +
                         distribution_normal_log_density(offset, component->mean, component->sigma);
            if (pass == 0)
                largest = fmax(largest, one);
            else
                sum += exp(one - largest);
        }
    return isfinite(largest) ? largest + log(sum) : -INFINITY;
}

/* Log density of the noise at OFFSET from the mean; NaN: there is no noise. */
double noise_density(const struct model_noise *noise, double sigma, double offset) {
    if (noise->kind == MODEL_NOISE_NONE || !isfinite(offset))
        return NAN;
    if (noise->kind == MODEL_NOISE_MIXTURE)
        return mixture_density(noise, offset);
    if (!(sigma > 0))
        return isnan(sigma) ? NAN : offset == 0 ? INFINITY : -INFINITY;
    return noise->half_normal ? distribution_half_normal_log_density(offset, 0, sigma)
                              : distribution_normal_log_density(offset, 0, sigma);
}

/* The probability that the noise is below OFFSET; NaN: there is no noise. */
double noise_share(const struct model_noise *noise, double sigma, double offset) {
    double share = 0;
    if (noise->kind == MODEL_NOISE_NONE || isnan(offset))
        return NAN;
    for (size_t i = 0; i < noise->component_count; i++)
        share += noise->components[i].weight *
                 normal_share(offset - noise->components[i].mean, noise->components[i].sigma);
    if (noise->kind == MODEL_NOISE_MIXTURE)
        return share;
    if (isnan(sigma))
        return NAN;
    if (!noise->half_normal || sigma == 0)
        return normal_share(offset, sigma);
    double scale = half_normal_scale(sigma), distance = offset + scale * sqrt(two_over_pi);
    return distance < 0 ? 0 : erf(distance / (scale * M_SQRT2));
}

/* A draw of the noise from a standard NORMAL and a UNIFORM number; NaN: there is no noise. */
double noise_draw(const struct model_noise *noise, double sigma, double normal, double uniform) {
    size_t i = 0;
    if (noise->kind == MODEL_NOISE_NONE)
        return NAN;
    for (; noise->kind == MODEL_NOISE_MIXTURE && i + 1 < noise->component_count; i++) {
        if (uniform < noise->components[i].weight)
            break;
        uniform -= noise->components[i].weight;
    }
    if (noise->kind == MODEL_NOISE_MIXTURE)
        return noise->components[i].mean + noise->components[i].sigma * normal;
    double scale = half_normal_scale(sigma);
    return noise->half_normal ? scale * (fabs(normal) - sqrt(two_over_pi)) : sigma * normal;
}
