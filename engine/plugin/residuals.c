#include "engine/plugin/residuals.h"

#include "engine/foundation/cleanup.h"
#include "engine/plugin/row-evaluation.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

static const double wide = 100;    /* from this ratio on a scale is logarithmic */
static const double nearly = 0.75; /* of the values must be positive */

static int make_room(struct residuals *residuals, size_t count) {
    residuals->rows = malloc((count + 1) * sizeof *residuals->rows);
    residuals->predicted = malloc((count + 1) * sizeof *residuals->predicted);
    residuals->residual = malloc((count + 1) * sizeof *residuals->residual);
    residuals->standardised = malloc((count + 1) * sizeof *residuals->standardised);
    residuals->parts = malloc((count + 1) * sizeof *residuals->parts);
    return residuals->rows && residuals->predicted && residuals->residual && residuals->standardised &&
                   residuals->parts
               ? 0
               : -ENOMEM;
}

static void compute(struct residuals *residuals, const struct row_evaluation *evaluation, size_t count,
                    size_t step) {
    double squares = 0;
    residuals->minimum = residuals->least_positive = INFINITY;
    residuals->maximum = -INFINITY;
    residuals->above_zero = true;
    for (size_t i = 0; i < count; i += step) {
        struct row_value value;
        if (!row_evaluation_at(evaluation, i, &value)) {
            residuals->left_out++;
            continue;
        }
        size_t k = residuals->count++;
        double residual = value.observed - value.mean;
        residuals->rows[k] = (uint32_t)i;
        residuals->parts[k] = value.part;
        residuals->predicted[k] = value.mean;
        residuals->residual[k] = residual;
        residuals->standardised[k] = value.sigma > 0 ? residual / value.sigma : NAN;
        residuals->noise |= !isnan(value.sigma);
        residuals->minimum = fmin(residuals->minimum, value.mean);
        residuals->maximum = fmax(residuals->maximum, value.mean);
        if (value.mean > 0)
            residuals->least_positive = fmin(residuals->least_positive, value.mean);
        residuals->positive += value.mean > 0;
        residuals->above_zero &= value.observed > 0;
        squares += residual * residual;
    }
    residuals->rms = residuals->count > 0 ? sqrt(squares / (double)residuals->count) : NAN;
}

/* Without noise: by the root mean square of each group's residuals. */
static int standardise_by_group(struct residuals *residuals, const struct fitting *fitting) {
    struct sum {
        double squares, count;
    };
    const uint32_t *groups = fitting_kept_rows(fitting)->groups;
    cleanup_free struct sum *sums = calloc((size_t)fitting_group_count(fitting) + 1, sizeof *sums);
    if (!sums)
        return -ENOMEM;
    for (size_t k = 0; k < residuals->count; k++) {
        struct sum *sum = &sums[groups[residuals->rows[k]]];
        sum->squares += residuals->residual[k] * residuals->residual[k];
        sum->count++;
    }
    for (size_t k = 0; k < residuals->count; k++) {
        const struct sum *sum = &sums[groups[residuals->rows[k]]];
        double sigma = sqrt(sum->squares / sum->count);
        residuals->standardised[k] = sigma > 0 ? residuals->residual[k] / sigma : NAN;
    }
    return 0;
}

int residuals_init(struct residuals *residuals, const struct fitting *fitting,
                   const struct fitted_model *model, struct failure *failure) {
    *residuals = (struct residuals){0};
    cleanup(row_evaluation_cleanup) struct row_evaluation *evaluation = NULL;
    int r = row_evaluation_new(fitting, model, NULL, &evaluation, failure);
    if (r < 0)
        return r;
    const struct kept_rows *kept = fitting_kept_rows(fitting);
    size_t step = 1;
    while (kept->stride > 1 && kept->count / step > RESIDUALS_MAX)
        step *= 2;
    residuals->stride = kept->stride * step;
    r = make_room(residuals, kept->count / step + 1);
    if (r == 0)
        compute(residuals, evaluation, kept->count, step);
    if (r == 0 && !residuals->noise)
        r = standardise_by_group(residuals, fitting);
    if (r == 0)
        return 0;
    residuals_clear(residuals);
    return failure_memory(failure);
}

void residuals_clear(struct residuals *residuals) {
    free(residuals->rows);
    free(residuals->predicted);
    free(residuals->residual);
    free(residuals->standardised);
    free((void *)residuals->parts);
    *residuals = (struct residuals){0};
}

size_t residuals_first_not_positive(const struct residuals *residuals) {
    size_t k = 0;
    while (k < residuals->count && residuals->predicted[k] > 0)
        k++;
    return k;
}

size_t residuals_worst(const struct residuals *residuals, size_t wanted, size_t *ret_places) {
    size_t count = 0;
    for (size_t k = 0; k < residuals->count && wanted > 0; k++) {
        double size = fabs(residuals->standardised[k]);
        if (isnan(size) ||
            (count == wanted && !(size > fabs(residuals->standardised[ret_places[count - 1]]))))
            continue;
        size_t at = count < wanted ? count++ : count - 1;
        for (; at > 0 && size > fabs(residuals->standardised[ret_places[at - 1]]); at--)
            ret_places[at] = ret_places[at - 1];
        ret_places[at] = k;
    }
    return count;
}

double residuals_beyond(const struct residuals *residuals, double limit) {
    size_t count = 0;
    for (size_t k = 0; k < residuals->count; k++)
        count += fabs(residuals->standardised[k]) > limit;
    return residuals->count > 0 ? (double)count / (double)residuals->count : NAN;
}

bool residuals_are_wide(const struct residuals *residuals) {
    return (double)residuals->positive > nearly * (double)residuals->count &&
           residuals->maximum / residuals->least_positive > wide;
}
