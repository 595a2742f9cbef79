/* How much of a model's noise lies below a measurement: what intervals are made of. */
#ifndef ASSAY_PLUGIN_NOISE_PROBABILITY_H
#define ASSAY_PLUGIN_NOISE_PROBABILITY_H

#include "plugins/interface/plugin.h"

/* The share of measurements at or below OBSERVED, 0 to 1, where the part's mean is MEAN and the standard
 * deviation SIGMA, which a mixture does not use. NaN without noise. */
double noise_probability(const struct plugin_noise *noise, double mean, double sigma, double observed);

#endif
