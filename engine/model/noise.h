/*
 * How single measurements scatter about the mean of their part (struct model_noise). Densities and
 * probabilities are of a measurement that is OFFSET above the mean where the standard deviation is SIGMA,
 * which a mixture does not use; NaN without noise, and where SIGMA is NaN.
 */
#ifndef ASSAY_MODEL_NOISE_H
#define ASSAY_MODEL_NOISE_H

#include <assay/model.h>

/* The standard deviation where the terms have these values; of a mixture that about its own mean. NaN: there
 * is no noise, or the sum of an N-2 without a floor is below 0. With a floor sigma is at least that of the
 * floor. */
double noise_sigma(const struct model_noise *noise, const double *terms, size_t term_count);
/* The natural logarithm of the density, per unit of the response. -INFINITY where the noise rules it out:
 * below the edge of a half-normal, or off the mean where SIGMA is 0. */
double noise_density(const struct model_noise *noise, double sigma, double offset);
/* The share of measurements at or below it. */
double noise_share(const struct model_noise *noise, double sigma, double offset);
/* The offset of a measurement that is drawn: NORMAL is standard normal, UNIFORM in [0, 1). */
double noise_draw(const struct model_noise *noise, double sigma, double normal, double uniform);

#endif
