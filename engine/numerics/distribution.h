/*
 * Distributions, by GSL. Probabilities are between 0 and 1, quantiles in the unit of the variable; "upper" is
 * the probability to be above. NaN where an argument is NaN, a probability is outside 0 to 1, or degrees of
 * freedom or a deviation are not above 0.
 */
#ifndef ASSAY_NUMERICS_DISTRIBUTION_H
#define ASSAY_NUMERICS_DISTRIBUTION_H

#include <stddef.h>

double distribution_normal_upper(double z);

/* Probability of |t| or more, as p of a coefficient. */
double distribution_student_two_sided(double t, double freedom);
/* The t that |t| exceeds with that probability: half the width of an interval, in standard errors. */
double distribution_student_two_sided_quantile(double probability, double freedom);

/* The t, above 0, that |t| exceeds with that probability; FREEDOM 0: not known, so that of the normal. */
double distribution_student_quantile(double two_sided, double freedom);
/* Probability to be at or below T; FREEDOM 0: of the normal. */
double distribution_student_lower(double t, double freedom);

double distribution_f_upper(double f, double above, double below);

double distribution_chi_squared_upper(double x, double freedom);
/* What a chi-squared variable exceeds with the probability UPPER. */
double distribution_chi_squared_quantile(double upper, double freedom);

/* Logarithms of densities, in 1 / unit of x. */
double distribution_normal_log_density(double x, double mean, double sigma);
/* mean + s |Z| - s sqrt(2/pi) with s = sigma / sqrt(1 - 2/pi), so that MEAN and SIGMA are those of x;
 * -INFINITY below its least value. (T. Cornebize, thesis, Grenoble 2021, chapter 4.) */
double distribution_half_normal_log_density(double x, double mean, double sigma);

/* How much greater than 1 sigma is under the half-normal of greatest likelihood, from COUNT residuals divided
 * by their sigma: their sum, their sum of squares and the least of them. With k = sqrt(2/pi) and s = 1/a the
 * likelihood has its maximum at a = (sqrt(k^2 sum^2 + 4 count squares) - k sum) / (2 squares); no residual
 * may lie below -k s, so a <= -k / least. NaN without residuals. */
double distribution_half_normal_factor(double count, double sum, double squares, double least);

#endif
