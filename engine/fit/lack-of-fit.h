/* Whether the rows of a group show lack of fit. Used by this room alone. */
#ifndef ASSAY_FIT_LACK_OF_FIT_H
#define ASSAY_FIT_LACK_OF_FIT_H

#include <stddef.h>
#include <stdint.h>

/* N. Draper, H. Smith, Applied Regression Analysis, 3rd ed. 1998, 2.1: the residuals' sum of squares against
 * that of rows about the mean of their setting. */
struct lack_of_fit {
    size_t settings;   /* different ones */
    double pure_error; /* standard deviation of rows about the mean of their setting */
    double f, p;       /* NaN where there is no setting with two rows, or no more settings than parameters */
    double freedom[2]; /* of F */
};

void lack_of_fit_test(struct lack_of_fit *lack, size_t count, const double *response, const double *mean,
                      const double *weights, const uint32_t *units, size_t unit_count, size_t parameters);

#endif
