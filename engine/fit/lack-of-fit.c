#include "engine/fit/lack-of-fit.h"

#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"

#include <math.h>
#include <stdlib.h>

void lack_of_fit_test(struct lack_of_fit *lack, size_t count, const double *response, const double *mean,
                      const double *weights, const uint32_t *units, size_t unit_count, size_t parameters) {
    double *means = xcalloc(unit_count + 1, sizeof *means), *sums = xcalloc(unit_count + 1, sizeof *sums);
    double rss = 0, pure = 0;
    for (size_t i = 0; i < count; i++) { /* of each setting, updated row by row: no cancellation */
        double w = weights ? weights[i] : 1;
        sums[units[i]] += w;
        means[units[i]] += w / sums[units[i]] * (response[i] - means[units[i]]);
    }
    for (size_t i = 0; i < count; i++) {
        double w = weights ? weights[i] : 1;
        double scatter = response[i] - means[units[i]], residual = response[i] - mean[i];
        pure += w * scatter * scatter;
        rss += w * residual * residual;
    }
    double of_fit = (double)unit_count - (double)parameters, of_error = (double)count - (double)unit_count;
    *lack = (struct lack_of_fit){
        .settings = unit_count, .pure_error = NAN, .f = NAN, .p = NAN, .freedom = {of_fit, of_error}};
    if (of_error > 0)
        lack->pure_error = sqrt(pure / of_error);
    if (of_error > 0 && of_fit > 0 && pure > 0 && rss >= pure) {
        lack->f = (rss - pure) / of_fit / (pure / of_error);
        lack->p = distribution_f_upper(lack->f, of_fit, of_error);
    }
    free(means), free(sums);
}
