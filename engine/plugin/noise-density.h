/* How likely a measurement is under a model's noise: what log scores are made of. */
#ifndef ASSAY_PLUGIN_NOISE_DENSITY_H
#define ASSAY_PLUGIN_NOISE_DENSITY_H

#include "plugins/interface/plugin.h"

/* The natural logarithm of the density at OBSERVED (per unit of the response) where the part's mean is MEAN
 * and the standard deviation there is SIGMA, which a mixture does not use. -INFINITY where the noise rules it
 * out: below the edge of a half-normal, or off the mean where SIGMA is 0; NaN without noise. */
double noise_log_density(const struct plugin_noise *noise, double mean, double sigma, double observed);

#endif
