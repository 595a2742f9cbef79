/* How well a group's fit predicts: rows that were left out of it, and whether its own rows show lack of fit.
 * Used by this room alone. */
#ifndef ASSAY_FIT_SCORES_H
#define ASSAY_FIT_SCORES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Of rows that were left out, each predicted by a fit without its fold. Not defined: NaN. */
struct scores {
    double rmse;            /* root of the weighted mean squared error */
    double relative;        /* that, over the weighted mean of |response| */
    double median_relative; /* median of |error / response| */
    double log_score;       /* mean log density of the rows: the greater the better */
    /* Standard errors of the mean squared error and of the log score, over units (settings): rows of one
     * setting are not independent. */
    double mse_error, log_score_error;
    size_t folds, units;
};

/* COUNT rows: the response, what was predicted, with its SIGMA and LOG_DENSITY (NULL: no noise), WEIGHTS
 * (NULL: all 1), and the unit of each row, below UNIT_COUNT. A prediction that is NaN makes the scores NaN.
 */
void scores_compute(struct scores *scores, size_t count, const double *response, const double *mean,
                    const double *log_density, const double *weights, const uint32_t *units,
                    size_t unit_count);

/* N. Draper, H. Smith, Applied Regression Analysis, 3rd ed. 1998, 2.1: the residuals' sum of squares against
 * that of rows about the mean of their setting. */
struct lack_of_fit {
    size_t settings;   /* different ones */
    double pure_error; /* standard deviation of rows about the mean of their setting */
    double f, p;       /* NaN where there is no setting with two rows, or no more settings than parameters */
    double freedom[2]; /* of F */
};

/* IS_SKIPPED: rows that do not count; NULL: all do. */
void lack_of_fit_test(struct lack_of_fit *lack, size_t count, const double *response, const double *mean,
                      const double *weights, const uint32_t *units, size_t unit_count, const bool *is_skipped,
                      size_t parameters);

#endif
