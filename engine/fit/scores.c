#include "engine/fit/scores.h"

#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/quantile.h"

#include <math.h>
#include <stdlib.h>

/* The standard error of the weighted mean of VALUES over all rows, when whole units are drawn: that of a
 * ratio of unit totals (W. Cochran, Sampling Techniques, 3rd ed. 1977, 6.4). */
static double clustered_error(size_t count, const double *values, double mean, const double *weights,
                              const uint32_t *units, size_t unit_count) {
    if (unit_count < 2)
        return NAN;
    double *totals = xcalloc(unit_count, sizeof *totals), weight = 0, squares = 0;
    for (size_t i = 0; i < count; i++) {
        double w = weights ? weights[i] : 1;
        totals[units[i]] += w * (values[i] - mean);
        weight += w;
    }
    for (size_t u = 0; u < unit_count; u++)
        squares += totals[u] * totals[u];
    free(totals);
    return sqrt(squares * (double)unit_count / (double)(unit_count - 1)) / weight;
}

static double weighted_mean(size_t count, const double *values, const double *weights) {
    double sum = 0, weight = 0;
    for (size_t i = 0; i < count; i++) {
        double w = weights ? weights[i] : 1;
        sum += w * values[i];
        weight += w;
    }
    return sum / weight;
}

/* Computes the scores of predictions: root mean squared error, relative error, log score, and their standard
 * errors over whole units (scores.h). */
void scores_compute(struct scores *scores, size_t count, const double *response, const double *mean,
                    const double *log_density, const double *weights, const uint32_t *units,
                    size_t unit_count) {
    double *squares = xmalloc((count + 1) * sizeof *squares), *shares = xmalloc((count + 1) * sizeof *shares);
    double *sizes = xmalloc((count + 1) * sizeof *sizes);
    size_t share_count = 0;
    for (size_t i = 0; i < count; i++) {
        double error = response[i] - mean[i];
        squares[i] = error * error;
        sizes[i] = fabs(response[i]);
        if (response[i] != 0)
            shares[share_count++] = fabs(error / response[i]);
    }
    double mse = weighted_mean(count, squares, weights);
    scores->units = unit_count;
    scores->rmse = sqrt(mse);
    scores->relative = scores->rmse / weighted_mean(count, sizes, weights);
    scores->median_relative = isnan(mse) ? NAN : quantile_median(shares, share_count);
    scores->mse_error = clustered_error(count, squares, mse, weights, units, unit_count);
    scores->log_score = log_density ? weighted_mean(count, log_density, NULL) : NAN;
    scores->log_score_error =
        log_density ? clustered_error(count, log_density, scores->log_score, NULL, units, unit_count) : NAN;
    free(squares), free(shares), free(sizes);
}

/* F test of lack of fit: the scatter of settings about the model, against the scatter of repetitions within
 * settings (N. Draper, H. Smith, Applied Regression Analysis). f and p are NaN without repetitions. */
void lack_of_fit_test(struct lack_of_fit *lack, size_t count, const double *response, const double *mean,
                      const double *weights, const uint32_t *units, size_t unit_count, const bool *is_skipped,
                      size_t parameters) {
    double *means = xcalloc(unit_count + 1, sizeof *means), *sums = xcalloc(unit_count + 1, sizeof *sums);
    double rss = 0, pure = 0;
    size_t present = 0, rows = 0;
    for (size_t i = 0; i < count; i++) { /* of each setting, updated row by row: no cancellation */
        double w = is_skipped && is_skipped[i] ? 0 : weights ? weights[i] : 1;
        if (w == 0)
            continue;
        sums[units[i]] += w;
        means[units[i]] += w / sums[units[i]] * (response[i] - means[units[i]]);
    }
    for (size_t i = 0; i < count; i++) {
        double w = is_skipped && is_skipped[i] ? 0 : weights ? weights[i] : 1;
        if (w == 0)
            continue;
        double scatter = response[i] - means[units[i]], residual = response[i] - mean[i];
        pure += w * scatter * scatter;
        rss += w * residual * residual;
        rows++;
    }
    for (size_t u = 0; u < unit_count; u++)
        present += sums[u] > 0;
    double of_fit = (double)present - (double)parameters, of_error = (double)rows - (double)present;
    *lack = (struct lack_of_fit){
        .settings = present, .pure_error = NAN, .f = NAN, .p = NAN, .freedom = {of_fit, of_error}};
    if (of_error > 0)
        lack->pure_error = sqrt(pure / of_error);
    if (of_error > 0 && of_fit > 0 && pure > 0 && rss >= pure) {
        lack->f = (rss - pure) / of_fit / (pure / of_error);
        lack->p = distribution_f_upper(lack->f, of_fit, of_error);
    }
    free(means), free(sums);
}
