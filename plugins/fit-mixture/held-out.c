#include "plugins/fit-mixture/held-out.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum { CYCLES = 6 }; /* of SQUAREM, before Newton's method */

/* The mixture of the values of TRAINING, in its own deviations. */
static void refit(const struct sample *sample, const struct mixture *mixture, const struct sample *training,
                  double floor, struct mixture *ret) {
    const struct floor least = {fmax(floor, training->resolution / sqrt(12))};
    *ret = *mixture;
    for (size_t k = 0; k < ret->count; k++) {
        double mean = sample->mean - training->mean + sample->deviation * mixture->mean[k];
        ret->mean[k] = mean / training->deviation;
        ret->sigma[k] = fmax(mixture->sigma[k] * sample->deviation / training->deviation, least.sigma);
    }
    bool fine = training->fine.count > 0;
    em_climb(ret, fine ? &training->fine : &training->points, &least, CYCLES, 1e-4);
    if (!fine)
        em_polish(ret, &training->points, &least);
}

static double log_density(const struct sample *training, const struct mixture *mixture, double value) {
    double at = (value - training->mean) / training->deviation, most = -INFINITY, sum = 0;
    double density[COMPONENTS_MAX];
    for (size_t k = 0; k < mixture->count; k++) {
        double u = (at - mixture->mean[k]) / mixture->sigma[k];
        density[k] = log(mixture->weight[k] / mixture->sigma[k]) - 0.5 * u * u - 0.91893853320467274178;
        most = fmax(most, density[k]);
    }
    for (size_t k = 0; k < mixture->count; k++)
        sum += exp(density[k] - most);
    return most + log(sum) - log(training->deviation);
}

struct totals {
    double weight, squares, magnitudes, log_densities;
};

/* The values of FOLD by the mixture of the others; false where those are too few. */
static bool add_fold(const struct sample *training, const struct mixture *refitted, const double *values,
                     const double *weights, const double *fold_of, size_t count, uint32_t fold,
                     struct totals *totals) {
    for (size_t i = 0; i < count; i++) {
        if (fold_of[i] != fold)
            continue;
        double weight = weights ? weights[i] : 1, away = values[i] - training->mean;
        totals->weight += weight;
        totals->squares += weight * away * away;
        totals->magnitudes += weight * fabs(values[i]);
        totals->log_densities += weight * log_density(training, refitted, values[i]);
    }
    return isfinite(totals->log_densities);
}

static uint32_t count_folds(const double *fold_of, size_t count, uint32_t folds) {
    uint32_t found = 0;
    for (uint32_t fold = 0; fold < folds; fold++)
        for (size_t i = 0; i < count; i++)
            if (fold_of[i] == fold) {
                found++;
                break;
            }
    return found;
}

int held_out_score(const double *values, const double *weights, const double *fold_of, size_t count,
                   const struct sample *sample, const struct mixture *mixture, double floor, uint32_t folds,
                   struct held_out *ret) {
    *ret = (struct held_out){NAN, NAN, NAN, count_folds(fold_of, count, folds)};
    double *others = malloc((2 * count + 1) * sizeof *others);
    if (!others)
        return -ENOMEM;
    struct totals totals = {0};
    bool good = folds >= 2 && count >= folds;
    int r = 0;
    for (uint32_t fold = 0; r == 0 && good && fold < folds; fold++) {
        size_t kept = 0;
        for (size_t i = 0; i < count; i++)
            if (fold_of[i] != fold) {
                others[kept] = values[i];
                others[count + kept++] = weights ? weights[i] : 1;
            }
        struct sample training;
        struct mixture refitted;
        good = kept > 0;
        r = good ? sample_init(&training, others, weights ? others + count : NULL, kept) : 0;
        if (r < 0 || !good)
            break;
        good = training.deviation > 0 && training.points.count >= mixture->count;
        if (good) {
            refit(sample, mixture, &training, floor, &refitted);
            good = add_fold(&training, &refitted, values, weights, fold_of, count, fold, &totals);
        }
        sample_clear(&training);
    }
    free(others);
    if (r == 0 && good && totals.weight > 0) {
        ret->rmse = sqrt(totals.squares / totals.weight);
        ret->relative = ret->rmse / (totals.magnitudes / totals.weight);
        ret->log_score = totals.log_densities / totals.weight;
    }
    return r;
}
