#include "plugins/fit-linear/noise.h"

#include "plugins/fit-linear/noise-rule.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *const noise_words[] = {"auto", "N-0", "N-1", "N-2", "rule", "trimmed-rule", NULL};
const char *const distribution_words[] = {"normal", "half-normal", NULL};

/* A group's columns are kept whole up to this size: what stays near the processor. */
enum { WHOLE_MAX = 8 << 20 };

enum { PIECE = 512 /* rows */ };
_Static_assert((int)LINEAR_INPUTS_MAX <= (int)NOISE_ROWS_COLUMNS_MAX, "columns of kept rows");

struct noise {
    const struct fit *fit;
    enum noise_kind kind;
    enum noise_distribution distribution;
    uint32_t folds;
    struct noise_rows *rows;
    struct noise_design design;
    struct noise_search *search;
    double *covariance; /* SUMS_COLUMNS_MAX squared */
};

static enum noise_kind kind_of(const struct fit *fit) {
    enum noise_kind kind = (enum noise_kind)linear_parameter(fit, PARAMETER_NOISE);
    return kind == NOISE_AUTO ? NOISE_1 : kind;
}

static bool is_rule(const struct noise *noise) {
    return noise->kind == NOISE_RULE || noise->kind == NOISE_TRIMMED_RULE;
}

static enum noise_distribution distribution_of(const struct fit *fit) {
    return (enum noise_distribution)linear_parameter(fit, PARAMETER_DISTRIBUTION);
}

/* ---- Beginning */

static int refuse(const struct fit *fit, struct plugin_message *message) {
    const char *other = linear_parameter(fit, PARAMETER_OUTLIERS) > 0            ? "outliers"
                        : linear_parameter(fit, PARAMETER_ROBUST) != ROBUST_NONE ? "robust"
                                                                                 : NULL;
    if (!other)
        return 0;
    snprintf(
        message->text, sizeof message->text,
        "noise=%s with distribution=%s is found from all rows, and '%s' leaves some out or weighs them less; "
        "expected one of the two",
        noise_words[kind_of(fit)], distribution_words[distribution_of(fit)], other);
    return -EINVAL;
}

int noise_new(const struct fit *fit, struct noise **ret, struct plugin_message *message) {
    *ret = NULL;
    enum noise_kind kind = kind_of(fit);
    if (kind == NOISE_0 || (kind == NOISE_1 && distribution_of(fit) == NOISE_NORMAL))
        return 0;
    int r = refuse(fit, message);
    if (r < 0)
        return r;
    struct noise *noise = calloc(1, sizeof *noise);
    if (!noise)
        return -ENOMEM;
    noise->fit = fit;
    noise->kind = kind;
    noise->distribution = distribution_of(fit);
    uint32_t folds = (uint32_t)linear_parameter(fit, PARAMETER_FOLDS);
    noise->folds = folds > 1 ? folds : 1;
    r = noise_rows_new(fit->formula.input_count, fit->request->weights != NULL, noise->folds,
                       NOISE_ROWS_MEMORY, &noise->rows);
    r = r < 0 ? r : noise_search_new(&noise->search);
    noise->covariance = calloc((size_t)SUMS_COLUMNS_MAX * SUMS_COLUMNS_MAX, sizeof *noise->covariance);
    if (r < 0 || !noise->covariance) {
        noise_free(noise);
        return -ENOMEM;
    }
    noise_design_init(&noise->design, fit, noise->rows, noise->folds);
    *ret = noise;
    return 0;
}

void noise_free(struct noise *noise) {
    if (!noise)
        return;
    noise_design_clear(&noise->design);
    noise_search_free(noise->search);
    noise_rows_free(noise->rows);
    free(noise->covariance);
    free(noise);
}

/* The fold of each row, or that it is left out. */
static void choose_folds(const struct noise *noise, size_t rows, const double *const *columns,
                         const uint8_t *folds, uint32_t *ret) {
    const struct fit *fit = noise->fit;
    const double *weights = fit->request->weights ? columns[fit->input_count - 1] : NULL;
    double odd[PIECE];
    for (size_t r = 0; r < rows; r++) {
        odd[r] = 0;
        ret[r] = folds && noise->folds > 1 ? folds[r] : 0;
    }
    for (size_t i = 0; i < fit->input_count; i++)
        for (size_t r = 0; r < rows; r++)
            odd[r] += columns[i][r] - columns[i][r]; /* 0, or NaN where it is not finite */
    for (size_t r = 0; r < rows; r++)
        if (odd[r] != 0 || (weights && weights[r] == 0))
            ret[r] = NOISE_ROWS_NONE;
}

int noise_add(struct noise *noise, size_t rows, const double *const *columns, const uint32_t *cells,
              const uint8_t *folds, struct plugin_message *message) {
    int e = 0;
    for (size_t start = 0; noise && e == 0 && start < rows; start += PIECE) {
        const double *piece[LINEAR_INPUTS_MAX];
        uint32_t chosen[PIECE];
        size_t count = rows - start < PIECE ? rows - start : PIECE;
        for (size_t i = 0; i < noise->fit->input_count; i++)
            piece[i] = columns[i] + start;
        choose_folds(noise, count, piece, folds ? folds + start : NULL, chosen);
        e = noise_rows_add(noise->rows, count, piece, cells + start, chosen);
    }
    if (e < 0)
        snprintf(
            message->text, sizeof message->text,
            "the rows, kept for their noise, need more than %llu MiB, and a temporary file for more cannot "
            "be had: %s",
            (unsigned long long)(NOISE_ROWS_MEMORY >> 20), strerror(-e));
    return e;
}

/* ---- Half-normals */

/* In units of sigma: s = kappa sigma, and the mean is s times this above the least value that there can be.
 */
static const double kappa = 1.65889673997030589;  /* 1 / sqrt(1 - 2/pi) */
static const double above = 0.797884560802865356; /* sqrt(2/pi) */

/* Sums over t, and over all rows what the half-normal's -log L is, in noise-kernel.h's constants. */
struct halves {
    const struct noise_point *point;
    double count, sum, squares, least, objective;
};

static void add_halves(void *context, const struct noise_columns *columns) {
    struct halves *halves = context;
    double t[NOISE_KERNEL_TILE], s[NOISE_KERNEL_TILE];
    for (size_t first = 0; first < columns->count; first += NOISE_KERNEL_TILE) {
        size_t rows = columns->count - first < NOISE_KERNEL_TILE ? columns->count - first : NOISE_KERNEL_TILE;
        noise_kernel_rows(columns, first, rows, halves->point->b, halves->point->c, t, s);
        for (size_t r = 0; r < rows; r++) {
            double x = t[r] / kappa + above;
            /* The row that is the least there can be may be so by a rounding error. */
            bool outside = !(s[r] > 0) || x < -1e-9;
            halves->count++;
            halves->sum += t[r];
            halves->squares += t[r] * t[r];
            halves->least = fmin(halves->least, t[r]);
            halves->objective += outside ? INFINITY : log(s[r] * kappa) + 0.5 * x * x - M_LN2;
        }
    }
}

static struct halves sum_halves(struct noise_design *design, uint32_t folds,
                                const struct noise_point *point) {
    struct halves halves = {.point = point, .least = INFINITY};
    noise_design_each(design, folds, add_halves, &halves);
    return halves;
}

/* Scales the point's c to the half-normal's greatest likelihood for its b and the proportions of its c: at
 * least so wide that no row of FOLDS lies below what there can be. */
static void scale_to_halves(struct noise_design *design, uint32_t folds, struct noise_point *point) {
    struct halves halves = sum_halves(design, folds, point);
    if (!(halves.squares > 0) || !isfinite(halves.squares))
        return;
    /* a = 1 / (kappa scale) makes sum of (a t + above)^2/2 - log a least: a quadratic equation. */
    double linear = above * halves.sum;
    double a = (sqrt(linear * linear + 4 * halves.count * halves.squares) - linear) / (2 * halves.squares);
    if (halves.least < 0)
        a = fmin(a, above / -halves.least);
    for (size_t q = 0; q < design->width; q++)
        point->c[q] /= kappa * a;
}

/* ---- Likelihoods */

static double objective(struct noise *noise, uint32_t folds, const struct noise_point *point,
                        struct noise_sums *sums) {
    if (noise->distribution == NOISE_HALF_NORMAL)
        return sum_halves(&noise->design, folds, point).objective;
    noise_design_sum(&noise->design, folds, point->b, point->c, false, 0, sums);
    return sums->objective;
}

static void add_log_weights(void *context, const struct noise_columns *columns) {
    double *sum = context;
    for (size_t r = 0; columns->v && r < columns->count; r++)
        *sum += log(columns->v[r]);
}

/* log L of COUNT rows from their objective, in the response's unit. */
static double log_likelihood(const struct noise *noise, double value, double count, double log_weights) {
    return log_weights - value - count * (0.5 * log(2 * M_PI) + log(noise->design.unit));
}

/* ---- Errors of the mean */

struct errors {
    const struct noise_point *point;
    double squares, weights; /* over all rows so far, in the design's unit */
};

static void add_errors(void *context, const struct noise_columns *columns) {
    struct errors *errors = context;
    double error[NOISE_KERNEL_TILE], squares[NOISE_KERNEL_LANES] = {0}, weights[NOISE_KERNEL_LANES] = {0};
    for (size_t first = 0; first < columns->rows; first += NOISE_KERNEL_TILE) {
        size_t rows = columns->rows - first < NOISE_KERNEL_TILE ? columns->rows - first : NOISE_KERNEL_TILE;
        size_t real = columns->count - first < rows ? columns->count - first : rows;
        memcpy(error, columns->y + first, rows * sizeof *error);
        for (size_t q = 0; q < columns->width; q++) {
            const double *z = columns->z + q * columns->stride + first;
            double b = errors->point->b[q];
            for (size_t r = 0; r < rows; r++)
                error[r] -= b * z[r];
        }
        for (size_t r = 0; columns->v && r < rows; r++)
            error[r] *= columns->v[first + r];
        for (size_t r = real; r < rows; r++)
            error[r] = 0;
        for (size_t r = 0; r < rows; r += NOISE_KERNEL_LANES)
            for (size_t i = 0; i < NOISE_KERNEL_LANES; i++)
                squares[i] += error[r + i] * error[r + i];
        for (size_t r = 0; columns->v && r < rows; r += NOISE_KERNEL_LANES)
            for (size_t i = 0; i < NOISE_KERNEL_LANES; i++)
                weights[i] += columns->v[first + r + i] * columns->v[first + r + i];
    }
    for (size_t i = 0; i < NOISE_KERNEL_LANES; i++) {
        errors->squares += squares[i];
        errors->weights += weights[i];
    }
    errors->weights += columns->v ? 0 : (double)columns->count;
}

/* ---- One group */

static uint32_t every_fold(const struct noise *noise) {
    return (uint32_t)((UINT64_C(1) << noise->folds) - 1);
}

/* Whether the half-normal's own likelihood decides how wide it is; the rule is what it is. */
static bool is_scaled(const struct noise *noise) {
    return noise->distribution == NOISE_HALF_NORMAL && !is_rule(noise);
}

/* Held-out rows of the folds, one after the other. */
struct validating {
    struct noise *noise;
    struct noise_sums *sums;
    double objective;
    struct errors errors;
};

static void score_fold(void *context, uint32_t fold, const struct noise_point *point) {
    struct validating *validating = context;
    struct noise *noise = validating->noise;
    uint32_t held_out = UINT32_C(1) << fold;
    struct noise_point scaled = *point;
    if (is_scaled(noise))
        scale_to_halves(&noise->design, every_fold(noise) & ~held_out, &scaled);
    validating->objective += objective(noise, held_out, &scaled, validating->sums);
    validating->errors.point = point;
    noise_design_each(&noise->design, held_out, add_errors, &validating->errors);
}

/* The error on rows left out becomes that of the mean that is told. */
static void replace_error(const struct noise *noise, const struct errors *errors,
                          struct validation *validation) {
    double rmse = noise->design.unit * sqrt(errors->squares / errors->weights);
    validation->relative *= rmse / validation->rmse;
    validation->rmse = rmse;
}

/* The rule's standard deviation for the mean of RET. As noise_rule_run. */
static int follow_rule(struct noise *noise, uint32_t folds, struct noise_point *ret,
                       const char **ret_reason) {
    struct noise_point point;
    enum noise_rule rule = noise->kind == NOISE_RULE ? NOISE_RULE_PLAIN : NOISE_RULE_TRIMMED;
    int r = noise_rule_run(&noise->design, rule, folds, &point, ret_reason);
    memcpy(ret->c, point.c, sizeof ret->c);
    return r;
}

/* What all rows but the fold's give, for the kinds that are not searched for. 1, 0 or -ENOMEM. */
static int fit_without(struct noise *noise, uint32_t fold, struct noise_point *ret) {
    uint32_t train = every_fold(noise) & ~(UINT32_C(1) << fold);
    int r = noise_search_least_squares(noise->search, &noise->design, train, ret);
    if (r < 0 || !is_rule(noise))
        return r < 0 ? r : ret->converged;
    const char *reason;
    return follow_rule(noise, train, ret, &reason);
}

static int validate(struct noise *noise, const struct noise_point *maximum, struct validation *validation,
                    double *ret) {
    struct noise_design *design = &noise->design;
    struct validating validating = {.noise = noise};
    int r = noise_sums_new(design->width, &validating.sums);
    if (r == 0 && noise->kind == NOISE_2)
        r = noise_search_leave_out(noise->search, maximum, score_fold, &validating);
    for (uint32_t f = 0; r >= 0 && noise->kind != NOISE_2 && f < noise->folds; f++) {
        struct noise_point point;
        if (design->fold_counts[f] == 0)
            continue;
        r = fit_without(noise, f, &point);
        if (r == 0)
            validating.objective = NAN;
        if (r > 0)
            score_fold(&validating, f, &point);
    }
    noise_sums_free(validating.sums);
    if (noise->kind == NOISE_2 && validation->rmse > 0)
        replace_error(noise, &validating.errors, validation);
    double log_weights = 0, count = (double)design->count;
    noise_design_each(design, every_fold(noise), add_log_weights, &log_weights);
    *ret = log_likelihood(noise, validating.objective, count, log_weights) / count;
    return r < 0 ? r : 0;
}

/* What the mean that was found together with the noise leaves unexplained. */
static void replace_residuals(struct noise *noise, const struct noise_point *point,
                              struct least_squares *result) {
    struct errors errors = {.point = point};
    noise_design_each(&noise->design, every_fold(noise), add_errors, &errors);
    double rss = errors.squares * noise->design.unit * noise->design.unit, ratio = rss / result->rss;
    result->rss = rss;
    result->sigma *= sqrt(ratio);
    result->r2 = 1 - (1 - result->r2) * ratio;
    result->adjusted_r2 = 1 - (1 - result->adjusted_r2) * ratio;
}

/* The estimates of the mean that was found together with the noise. */
static void replace_mean(struct noise *noise, const struct noise_point *point, struct least_squares *result) {
    const struct noise_design *design = &noise->design;
    size_t width = design->width, first = design->intercept ? 0 : 1, terms = result->term_count;
    result->has_covariance =
        result->has_covariance && noise_search_covariance(noise->search, point, noise->covariance);
    for (size_t q = first; q < width; q++) {
        const struct noise_column *column = &design->columns[q];
        struct fit_estimate *estimate = &result->estimates[column->term];
        double unit = design->unit / column->scale;
        estimate->estimate = point->b[q] * unit;
        if (!result->has_covariance)
            continue;
        for (size_t p = first; p < width; p++)
            result->covariance[column->term * terms + design->columns[p].term] =
                noise->covariance[q * width + p] * unit * (design->unit / design->columns[p].scale);
        estimate->standard_error = fabs(unit) * sqrt(noise->covariance[q * width + q]);
        estimate->t = estimate->estimate / estimate->standard_error;
        estimate->p = 2 * gsl_cdf_tdist_Q(fabs(estimate->t), result->degrees);
    }
}

static void tell_coefficients(const struct noise *noise, const struct noise_point *point,
                              struct noise_told *told) {
    const struct noise_design *design = &noise->design;
    memset(told->coefficients, 0, sizeof told->coefficients);
    for (size_t q = 1; q < design->width; q++)
        told->coefficients[design->columns[q].term] = point->c[q] * design->unit / design->columns[q].scale;
    told->noise = (struct plugin_noise){
        .size = sizeof told->noise,
        .kind = noise->kind == NOISE_1 ? "N-1" : "N-2",
        .distribution = distribution_words[noise->distribution],
        .method = is_rule(noise) ? noise_words[noise->kind] : "maximum-likelihood",
        .constant = point->c[0] * design->unit,
        .coefficients = noise->kind == NOISE_1 ? NULL : told->coefficients,
    };
    told->present = true;
}

/* Likelihood, AIC and BIC become those of the noise. */
static int judge(struct noise *noise, const struct noise_point *point, size_t coefficients,
                 struct least_squares *result, struct noise_told *told) {
    struct noise_sums *sums = NULL;
    int r = noise_sums_new(noise->design.width, &sums);
    if (r < 0)
        return r;
    double count = (double)noise->design.count, log_weights = 0;
    noise_design_each(&noise->design, every_fold(noise), add_log_weights, &log_weights);
    double value = objective(noise, every_fold(noise), point, sums);
    noise_sums_free(sums);
    size_t parameters = result->fitted_terms + coefficients;
    result->log_likelihood = log_likelihood(noise, value, count, log_weights);
    if (!isfinite(result->log_likelihood)) {
        result->log_likelihood = NAN;
        snprintf(told->note, sizeof told->note, "the noise gives some rows no likelihood: %s",
                 noise->distribution == NOISE_HALF_NORMAL ? "they lie below the least value of a half-normal"
                                                          : "its standard deviation is not positive there");
    }
    result->aic = -2 * result->log_likelihood + 2 * (double)parameters;
    result->bic = -2 * result->log_likelihood + log(count) * (double)parameters;
    return 0;
}

/* The constant noise of least squares, which needs no rows. */
static void tell_constant(const struct fit *fit, const struct settled *settled, struct noise_told *ret) {
    ret->present = isfinite(settled->result.sigma);
    ret->noise = (struct plugin_noise){
        .size = sizeof ret->noise,
        .kind = "N-1",
        .distribution = "normal",
        .method = linear_parameter(fit, PARAMETER_ROBUST) != ROBUST_NONE ? "robust" : "least-squares",
        .constant = settled->result.sigma,
    };
    ret->log_score = settled->validation.folds > 0 ? settled->validation.log_score : NAN;
}

/* Why nothing but a constant can be found; NULL: nothing stands against it. */
static const char *obstacle(const struct noise *noise, const struct least_squares *result) {
    if (result->saturated || result->perfect || !(result->rss > 0))
        return "there are no residuals";
    if (noise->kind == NOISE_2 && noise->design.count <= 2 * noise->design.width)
        return "there are no more rows than coefficients";
    return NULL;
}

/* The point that the noise's kind gives. 1, 0 with a reason, or a negative errno. */
static int find_point(struct noise *noise, const struct least_squares *result, struct noise_point *ret,
                      const char **ret_reason) {
    *ret_reason = obstacle(noise, result);
    if (*ret_reason)
        return 0;
    if (noise->kind == NOISE_2) {
        int r = noise_search_run(noise->search, &noise->design, ret);
        return r < 0 ? r : 1;
    }
    int r = noise_search_least_squares(noise->search, &noise->design, every_fold(noise), ret);
    *ret_reason = "there are no residuals";
    if (r < 0 || !is_rule(noise))
        return r < 0 ? r : ret->converged;
    return follow_rule(noise, every_fold(noise), ret, ret_reason);
}

int noise_settle(struct noise *noise, const struct fit *fit, uint32_t group, struct settled *settled,
                 struct noise_told *ret) {
    ret->present = false;
    ret->note[0] = '\0';
    ret->log_score = NAN;
    if (!settled->fitted || kind_of(fit) == NOISE_0)
        return 0;
    tell_constant(fit, settled, ret);
    if (!noise)
        return 0;
    struct noise_point point;
    const char *reason;
    int r = noise_design_begin(&noise->design, group, settled, WHOLE_MAX);
    r = r < 0 ? r : find_point(noise, &settled->result, &point, &reason);
    if (r == 0)
        snprintf(ret->note, sizeof ret->note, "the noise is N-1, normal, instead of what was asked for: %s",
                 reason);
    if (r <= 0)
        return r;
    if (noise->kind == NOISE_2) {
        replace_mean(noise, &point, &settled->result);
        replace_residuals(noise, &point, &settled->result);
    }
    if (noise->kind == NOISE_2 && !point.converged)
        snprintf(ret->note, sizeof ret->note, "the noise's likelihood could not be raised to its maximum");
    ret->log_score = NAN;
    struct noise_point told = point;
    if (is_scaled(noise))
        scale_to_halves(&noise->design, every_fold(noise), &told);
    tell_coefficients(noise, &told, ret);
    size_t coefficients = noise->kind == NOISE_2   ? noise_search_free_count(noise->search, &point)
                          : noise->kind == NOISE_1 ? 1
                                                   : noise->design.width;
    r = judge(noise, &told, coefficients, &settled->result, ret);
    if (r == 0 && settled->validation.folds > 0 && settled->validation.reason[0] == '\0')
        r = validate(noise, &point, &settled->validation, &ret->log_score);
    return r;
}
