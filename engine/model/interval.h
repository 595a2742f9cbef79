/*
 * How sure a prediction is: the distribution of the mean, and that of one measurement, about what a model
 * says of a row (struct model_part: covariance, freedom, noise).
 *
 * The mean of many measurements, less the prediction, over its standard error is Student's t; of one
 * measurement with normal noise the same, with sqrt(error^2 + sigma^2) (N. Draper, H. Smith, Applied
 * Regression Analysis, 3rd ed. 1998, 3.2). Where the noise has a floor, error^2 and sigma^2 are sums of two
 * parts, each with its degrees of freedom, and those of the sum are F. Satterthwaite's (Biometrics Bull. 2
 * (1946), 110). Noise of another shape (half-normal, a mixture) is added to the t of the mean by quadrature.
 * Degrees of freedom that are not known are infinite: the normal.
 */
#ifndef ASSAY_MODEL_INTERVAL_H
#define ASSAY_MODEL_INTERVAL_H

#include "engine/model/evaluator.h"

struct uncertainty {
    const struct model_noise *noise; /* of the part, borrowed; NULL: the row is of no part */
    double error;                    /* standard error of the mean; NaN: not known */
    double sigma;                    /* of one measurement; NaN: there is no noise */
    double error_freedom;            /* degrees of freedom; 0: not known */
    double freedom;                  /* of error and sigma together */
};

/* At a row for which GROUP predicts VALUE. A measurement of weight w: WEIGHT is w, otherwise 1. */
struct uncertainty uncertainty_find(const struct evaluator *evaluator, const struct model_group *group,
                                    const double *inputs, const struct evaluator_value *value, double weight);

/* The ends of the 95 % interval, as distances from the predicted mean, the lower one first: of the mean (NaN
 * where its error is not known) and of one measurement (NaN without noise; an error that is not known counts
 * as 0). What is above and below has a probability of 2.5 % each. */
void interval_of_mean(const struct uncertainty *uncertainty, double ret[2]);
void interval_of_measurement(const struct uncertainty *uncertainty, double ret[2]);

/* The probability that a measurement is at or below OFFSET from the predicted mean; NaN without noise. */
double interval_share(const struct uncertainty *uncertainty, double offset);

#endif
