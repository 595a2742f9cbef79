/* The F distribution, for the ratio of two mean squares. */
#ifndef ASSAY_PLUGIN_F_PROBABILITY_H
#define ASSAY_PLUGIN_F_PROBABILITY_H

/*
 * The natural logarithm of the probability that a variable with the F distribution, of UPPER and LOWER
 * degrees of freedom, exceeds RATIO: what is below the least double still has one. Degrees of freedom are
 * above 0, RATIO is 0 or more; NaN for others. Relative error of the probability below 1e-8 for up to a
 * million degrees.
 *
 * The incomplete beta function I_x(LOWER / 2, UPPER / 2) at x = LOWER / (LOWER + UPPER RATIO) (Abramowitz and
 * Stegun, "Handbook of Mathematical Functions", 1964, 26.6.2), by its continued fraction (26.5.8), evaluated
 * from its front by the method of Lentz (Applied Optics 15, 1976).
 */
double f_upper_logarithm(double ratio, double upper, double lower);

#endif
