/* The quantile of the standard normal distribution at P, 0 < P < 1, to about 16 digits: M. J. Wichura,
 * Algorithm AS 241, Applied Statistics 37 (1988) 477-484. */
#ifndef ASSAY_PLUGIN_NORMAL_QUANTILE_H
#define ASSAY_PLUGIN_NORMAL_QUANTILE_H

double normal_quantile(double p);

#endif
