#include "engine/model/interval.h"

#include "engine/model/model.h"
#include "engine/model/noise.h"
#include "engine/numerics/distribution.h"

#include <math.h>

static const double outside = 0.05; /* the probability outside a 95 % interval */
enum { NODES = 24, BISECTIONS = 40, DOUBLINGS_MAX = 60 };

/* ---- Degrees of freedom */

/* The variance of the mean that comes of the noise's floor: x'Cx. */
static double floor_variance(const struct model_noise_floor *floor, const double *terms, size_t count) {
    double sum = 0;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < count; j++)
            sum += terms[i] * floor->covariance[i * count + j] * terms[j];
    return fmax(sum, 0);
}

/* Degrees of freedom of the sum of two variances A and B (Welch 1947, Satterthwaite 1946). */
static double combined_freedom(double a, double a_freedom, double b, double b_freedom) {
    double below = a * a / a_freedom + b * b / b_freedom;
    return below > 0 ? (a + b) * (a + b) / below : b_freedom;
}

/* The uncertainty of a prediction: standard error of the mean, noise of a row with WEIGHT, and degrees of
 * freedom of both. */
struct uncertainty uncertainty_find(const struct evaluator *evaluator, const struct model_group *group,
                                    const double *inputs, const struct evaluator_value *value,
                                    double weight) {
    double terms[MODEL_TERMS_MAX];
    const struct model_part *part = evaluator_part(evaluator, group, inputs);
    struct uncertainty ret = {.error = value->standard_error, .sigma = value->sigma / sqrt(weight)};
    if (!part)
        return ret;
    const struct model_noise_floor *floor = &part->noise.floor;
    ret.noise = &part->noise;
    ret.freedom = ret.error_freedom = part->freedom;
    if (!floor->covariance || !(part->freedom > 0) || !isfinite(ret.error) || !(ret.sigma > 0))
        return ret;
    evaluator_terms(evaluator, inputs, terms);
    double all = ret.error * ret.error, square = ret.sigma * ret.sigma;
    double low = fmin(floor_variance(floor, terms, evaluator->model->term_count), all),
           share = fmin(floor->sigma / value->sigma, 1);
    ret.error_freedom = combined_freedom(low, floor->freedom, all - low, part->freedom);
    ret.freedom = combined_freedom(low + share * square, floor->freedom, all - low + (1 - share) * square,
                                   part->freedom);
    return ret;
}

/* ---- Distributions */

static bool is_normal(const struct uncertainty *uncertainty) {
    return uncertainty->noise->kind != MODEL_NOISE_MIXTURE && !uncertainty->noise->half_normal;
}

static double error_of(const struct uncertainty *uncertainty) {
    return isnan(uncertainty->error) ? 0 : uncertainty->error;
}

/* NODES errors of the mean of equal probability, above 0; errors below 0 are the same but for the sign. */
static void find_errors(const struct uncertainty *uncertainty, double ret[NODES]) {
    for (int i = 0; i < NODES; i++)
        ret[i] = error_of(uncertainty) *
                 distribution_student_quantile((i + 0.5) / NODES, uncertainty->error_freedom);
}

/* The probability that noise and error of the mean together are below OFFSET, by the midpoint rule over
 * ERRORS. */
static double share_of_sum(const struct uncertainty *uncertainty, const double errors[NODES], double offset) {
    double sum = 0;
    for (int i = 0; i < NODES; i++)
        sum += noise_share(uncertainty->noise, uncertainty->sigma, offset - errors[i]) +
               noise_share(uncertainty->noise, uncertainty->sigma, offset + errors[i]);
    return sum / (2 * NODES);
}

static bool has_noise(const struct uncertainty *uncertainty) {
    return uncertainty->noise && uncertainty->noise->kind != MODEL_NOISE_NONE && !isnan(uncertainty->sigma);
}

double interval_share(const struct uncertainty *uncertainty, double offset) {
    double errors[NODES], scale = hypot(error_of(uncertainty), uncertainty->sigma);
    if (!has_noise(uncertainty) || isnan(offset))
        return NAN;
    if (is_normal(uncertainty))
        return scale > 0 ? distribution_student_lower(offset / scale, uncertainty->freedom) : offset >= 0;
    find_errors(uncertainty, errors);
    return share_of_sum(uncertainty, errors, offset);
}

void interval_of_mean(const struct uncertainty *uncertainty, double ret[2]) {
    ret[1] = uncertainty->error * distribution_student_quantile(outside, uncertainty->error_freedom);
    ret[0] = -ret[1];
}

/* The offset at which share_of_sum() is SHARE, by bisection. */
static double find_offset(const struct uncertainty *uncertainty, const double errors[NODES], double share) {
    double reach = hypot(error_of(uncertainty), uncertainty->sigma), low = -reach, high = reach;
    for (int i = 0; i < DOUBLINGS_MAX && share_of_sum(uncertainty, errors, low) > share; i++)
        low *= 2;
    for (int i = 0; i < DOUBLINGS_MAX && share_of_sum(uncertainty, errors, high) < share; i++)
        high *= 2;
    for (int i = 0; i < BISECTIONS; i++) {
        double middle = low + (high - low) / 2;
        if (share_of_sum(uncertainty, errors, middle) < share)
            low = middle;
        else
            high = middle;
    }
    return low + (high - low) / 2;
}

/* The 95 % interval of one measurement, as offsets from the mean, into RET; NaN if the model has no noise. */
void interval_of_measurement(const struct uncertainty *uncertainty, double ret[2]) {
    double errors[NODES];
    ret[0] = ret[1] = NAN;
    if (!has_noise(uncertainty))
        return;
    if (is_normal(uncertainty)) {
        ret[1] = hypot(error_of(uncertainty), uncertainty->sigma) *
                 distribution_student_quantile(outside, uncertainty->freedom);
        ret[0] = -ret[1];
        return;
    }
    find_errors(uncertainty, errors);
    ret[0] = find_offset(uncertainty, errors, outside / 2);
    ret[1] = find_offset(uncertainty, errors, 1 - outside / 2);
}
