#include "engine/plugin/held-out.h"

#include "engine/plugin/noise-density.h"

#include <math.h>

void held_out_add(struct held_out *held_out, const struct row_value *value) {
    double error = value->observed - value->mean, square = error * error;
    held_out->rows++;
    held_out->weights += value->weight;
    held_out->squares += value->weight * square;
    held_out->fourths += value->weight * square * square;
    held_out->magnitudes += value->weight * fabs(value->observed);
    double score = noise_log_density(value->noise, value->mean, value->sigma, value->observed);
    if (isnan(score))
        return;
    held_out->scored++;
    held_out->scores += score;
    held_out->scores_squared += score * score;
}

void held_out_join(struct held_out *held_out, const struct held_out *other) {
    held_out->rows += other->rows;
    held_out->missing += other->missing;
    held_out->scored += other->scored;
    held_out->weights += other->weights;
    held_out->squares += other->squares;
    held_out->magnitudes += other->magnitudes;
    held_out->fourths += other->fourths;
    held_out->scores += other->scores;
    held_out->scores_squared += other->scores_squared;
}

static bool is_whole(const struct held_out *held_out) {
    return held_out->rows > 0 && held_out->missing == 0;
}

/* Squares that are beyond a double, and the likelihood of a row where no scatter is told, are not defined. */
static double if_finite(double value) {
    return isfinite(value) ? value : NAN;
}

double held_out_rmse(const struct held_out *held_out) {
    return is_whole(held_out) ? if_finite(sqrt(held_out->squares / held_out->weights)) : NAN;
}

double held_out_relative(const struct held_out *held_out) {
    double mean = held_out->magnitudes / held_out->weights;
    return mean > 0 ? if_finite(held_out_rmse(held_out) / mean) : NAN;
}

static bool is_scored(const struct held_out *held_out) {
    return is_whole(held_out) && held_out->scored == held_out->rows;
}

double held_out_score(const struct held_out *held_out) {
    return is_scored(held_out) ? if_finite(held_out->scores / (double)held_out->rows) : NAN;
}

/* By the delta method from that of the mean square: d sqrt(x) = dx / (2 sqrt(x)). */
double held_out_rmse_error(const struct held_out *held_out) {
    double rmse = held_out_rmse(held_out), rows = (double)held_out->rows;
    if (!(rmse > 0) || rows < 2)
        return rmse == 0 ? 0 : NAN;
    double mean = held_out->squares / held_out->weights;
    double variance = fmax(0, held_out->fourths / held_out->weights - mean * mean) * rows / (rows - 1);
    return sqrt(variance / rows) / (2 * rmse);
}

double held_out_score_error(const struct held_out *held_out) {
    double mean = held_out_score(held_out), rows = (double)held_out->rows;
    if (!isfinite(mean) || rows < 2)
        return NAN;
    double variance = fmax(0, held_out->scores_squared / rows - mean * mean) * rows / (rows - 1);
    return sqrt(variance / rows);
}
