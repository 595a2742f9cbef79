/* Student's t, for confidence intervals of means. */
#ifndef ASSAY_MEASURE_STUDENT_T_H
#define ASSAY_MEASURE_STUDENT_T_H

#include <stdint.h>

/*
 * The value that |T| exceeds with probability 1 - CONFIDENCE, T having Student's distribution with FREEDOM
 * degrees of freedom: the half width of a confidence interval of a mean, in standard errors. FREEDOM is 1 or
 * more, CONFIDENCE above 0 and below 1; nan for others. Relative error below 1e-10 for confidences of up to
 * 0.9999; above that, a confidence itself is not told finely enough by a double.
 *
 * Up to 1000 degrees: the probability of |T| <= t is a finite sum of positive terms in cos^2 and sin of
 * atan(t / sqrt(FREEDOM)) (Abramowitz and Stegun, "Handbook of Mathematical Functions", 1964, 26.7.3 and
 * 26.7.4), solved by Newton's method between bounds. Above: the expansion about the normal quantile to the
 * fourth power of 1 / FREEDOM (26.7.5).
 */
double student_t_two_sided(uint64_t freedom, double confidence);

#endif
