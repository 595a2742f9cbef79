#include "plugins/fit-linear/sum-fit.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int sum_fit_init(struct sum_fit *fit, const struct selection *selection) {
    size_t width = selection->layout->width;
    *fit = (struct sum_fit){.selection = *selection};
    fit->workspace = least_squares_workspace_new(selection->layout->expansion->count);
    fit->result = calloc(1, sizeof *fit->result);
    fit->judged.covariance = calloc(width * width, sizeof(double));
    fit->train = sums_new(selection->layout);
    fit->shifted_all = calloc(width * width, sizeof(double));
    fit->shifted_part = calloc(width * width, sizeof(double));
    fit->shifted_train = calloc(width * width, sizeof(double));
    if (solution_init(&fit->solution, width) == 0 && fit->workspace && fit->result &&
        fit->judged.covariance && fit->train && fit->shifted_all && fit->shifted_part && fit->shifted_train)
        return 0;
    sum_fit_clear(fit);
    return -ENOMEM;
}

void sum_fit_clear(struct sum_fit *fit) {
    least_squares_workspace_free(fit->workspace);
    free(fit->result);
    free(fit->judged.covariance);
    solution_clear(&fit->solution);
    sums_free(fit->train);
    free(fit->shifted_all);
    free(fit->shifted_part);
    free(fit->shifted_train);
    *fit = (struct sum_fit){0};
}

/* ---- Fits on the way */

/* A set of rows that is fitted on the way to the final fit: WHOLE, or without PART. */
struct attempt {
    struct sum_fit *fit;
    const struct sums *whole, *part; /* NULL: nothing is left out */
    const double *shifted;           /* NULL: double precision does not do */
    bool solved;                     /* by the solution; otherwise by the result */
    char *reason;
};

static uint64_t attempt_rows(const struct attempt *attempt) {
    return attempt->whole->rows - (attempt->part ? attempt->part->rows : 0);
}

static size_t count_terms(const struct sums_layout *layout, const bool *kept) {
    size_t count = layout->intercept;
    for (size_t a = 1; a + 1 < layout->width; a++)
        count += kept[a];
    return count;
}

static void judge_solution(const struct attempt *attempt, struct judged *ret) {
    const struct solution *solution = &attempt->fit->solution;
    size_t width = solution->width;
    double unit = ldexp(1, attempt->whole->exponents[width - 1]) / attempt->fit->shift.scale[width - 1];
    ret->rss = solution->rss * unit * unit;
    memcpy(ret->estimates, solution->estimates, width * sizeof *ret->estimates);
    for (size_t i = 0; i < width * width; i++)
        ret->covariance[i] = solution->inverse[i] * solution->rss / ret->degrees;
}

void judge_result(const struct sums_layout *layout, const struct least_squares *result, struct judged *ret) {
    size_t width = layout->width, terms = result->term_count;
    ret->rss = result->rss;
    ret->rows = result->rows;
    ret->degrees = result->degrees;
    ret->blank = result->saturated || result->perfect || !result->has_covariance;
    for (size_t a = 1; a + 1 < width; a++) {
        ret->estimates[a] = result->estimates[layout->term_of[a]].estimate;
        for (size_t b = 1; b + 1 < width; b++)
            ret->covariance[a * width + b] =
                result->covariance[layout->term_of[a] * terms + layout->term_of[b]];
    }
}

/* In double-double: where it must be, or where nothing but its outcome tells whether it can be. */
static int refit_exactly(struct attempt *attempt, const bool *kept, struct judged *ret) {
    struct sum_fit *fit = attempt->fit;
    const struct sums *sums = attempt->whole;
    attempt->solved = false;
    if (attempt->part) {
        sums_subtract(attempt->whole, attempt->part, fit->train);
        sums = fit->train;
    }
    if (least_squares_fit(sums, kept, fit->workspace, fit->result, attempt->reason) != LEAST_SQUARES_FITTED)
        return 0;
    judge_result(fit->selection.layout, fit->result, ret);
    return 1;
}

static int refit(void *context, const bool *kept, struct judged *ret) {
    struct attempt *attempt = context;
    struct sum_fit *fit = attempt->fit;
    size_t terms = count_terms(fit->selection.layout, kept);
    bool inverted = fit->selection.rule != SELECT_NONE;
    if (!attempt->shifted || attempt_rows(attempt) <= terms ||
        !shifted_solve(fit->selection.layout, attempt->shifted, kept, inverted, &fit->solution))
        return refit_exactly(attempt, kept, ret);
    attempt->solved = true;
    ret->rows = attempt_rows(attempt);
    ret->degrees = (double)(attempt_rows(attempt) - terms);
    ret->blank = false;
    if (inverted)
        judge_solution(attempt, ret);
    return 1;
}

static void keep_all(const struct sums_layout *layout, bool *kept) {
    for (size_t a = 0; a < layout->width; a++)
        kept[a] = true;
}

/* Sums of ALL about their means, for attempts; NULL where they do not do. */
static const double *shift_all(struct sum_fit *fit, const struct sums *all) {
    shift_init(&fit->shift, all);
    if (!fit->shift.usable)
        return NULL;
    shift_sums(&fit->shift, all, fit->shifted_all);
    return fit->shifted_all;
}

int sum_fit_run(struct sum_fit *fit, const struct sums *sums, bool *kept, struct selection_path *path,
                struct least_squares *ret, char reason[static LEAST_SQUARES_REASON_SIZE]) {
    keep_all(fit->selection.layout, kept);
    if (fit->selection.rule != SELECT_NONE) {
        struct attempt attempt = {.fit = fit, .whole = sums, .reason = reason};
        attempt.shifted = shift_all(fit, sums);
        int r = selection_run(&fit->selection, refit, &attempt, kept, &fit->judged, path);
        if (r <= 0)
            return r;
    }
    return least_squares_fit(sums, kept, fit->workspace, ret, reason) == LEAST_SQUARES_FITTED;
}

/* ---- Cross-validation */

/* Squared error of the result on the rows of SUMS, of the scaled response. */
static double exact_error(const struct sums_layout *layout, const struct least_squares *result,
                          const struct sums *sums) {
    size_t y = layout->width - 1;
    double b[SUMS_COLUMNS_MAX];
    for (size_t a = layout->intercept ? 0 : 1; a < y; a++)
        b[a] = ldexp(result->estimates[layout->term_of[a]].estimate, sums->exponents[a] - sums->exponents[y]);
    struct dd error = sums_at(sums, y, y);
    for (size_t a = layout->intercept ? 0 : 1; a < y; a++) {
        struct dd gradient = dd_multiply(dd_from(-2), sums_at(sums, a, y));
        for (size_t c = layout->intercept ? 0 : 1; c < y; c++)
            gradient = dd_add(gradient, dd_multiply(sums_at(sums, a, c), dd_from(b[c])));
        error = dd_add(error, dd_multiply(gradient, dd_from(b[a])));
    }
    return error.high > 0 ? error.high : 0;
}

/* What held-out rows say of a fit to the others, in the response's unit. */
struct fold_error {
    double squares;  /* weighted, of the held-out rows */
    double variance; /* of the others: rss / degrees of freedom; NaN: not defined */
};

/* The error on FOLD of what the other rows give. 1, 0, or a negative errno. */
static int validate_fold(struct sum_fit *fit, const struct sums *all, const struct sums *fold,
                         const double *shifted, struct fold_error *ret, char *reason) {
    const struct sums_layout *layout = fit->selection.layout;
    size_t width = layout->width;
    double *train = fit->shifted_train;
    bool kept[SUMS_COLUMNS_MAX];
    struct attempt attempt = {.fit = fit, .whole = all, .part = fold, .reason = reason};
    if (shifted) {
        shift_sums(&fit->shift, fold, fit->shifted_part);
        for (size_t i = 0; i < width * width; i++)
            train[i] = shifted[i] - fit->shifted_part[i];
        attempt.shifted = train;
    }
    keep_all(layout, kept);
    int r = selection_run(&fit->selection, refit, &attempt, kept, &fit->judged, NULL);
    if (r <= 0)
        return r;
    double error = attempt.solved ? shifted_error(&fit->solution, fit->shifted_part) : -1;
    double rest = error >= 0 ? shifted_error(&fit->solution, train) : -1;
    double unit = ldexp(1, all->exponents[width - 1]);
    if (error >= 0) {
        unit /= fit->shift.scale[width - 1];
    } else {
        if (attempt.solved && (r = refit_exactly(&attempt, kept, &fit->judged)) <= 0)
            return r;
        error = exact_error(layout, fit->result, fold);
        rest = fit->result->rss / (unit * unit);
    }
    ret->squares = error * unit * unit;
    ret->variance = rest > 0 && fit->judged.degrees > 0 ? rest / fit->judged.degrees * unit * unit : NAN;
    return 1;
}

void validation_finish(struct validation *validation, const struct sums *all, double squares) {
    size_t y = all->layout->width - 1;
    double weight = sums_at(all, 0, 0).high;
    double magnitude = ldexp(sums_at(all, 0, y).high, all->exponents[y]) - 2 * all->negative;
    validation->rmse = sqrt(squares / weight);
    validation->relative = magnitude > 0 ? validation->rmse / (magnitude / weight) : NAN;
}

int sum_fit_validate(struct sum_fit *fit, const struct sums *all, struct sums *const *folds, uint32_t count,
                     struct validation *ret) {
    *ret = (struct validation){.rmse = NAN, .relative = NAN, .log_score = NAN};
    for (uint32_t f = 0; f < count; f++)
        ret->folds += folds[f]->rows > 0;
    const double *shifted = shift_all(fit, all);
    double squares = 0, score = 0;
    for (uint32_t f = 0; f < count; f++) {
        struct fold_error error;
        if (folds[f]->rows == 0)
            continue;
        int r = validate_fold(fit, all, folds[f], shifted, &error, ret->reason);
        if (r <= 0)
            return r;
        squares += error.squares;
        score += 0.5 * (folds[f]->log_weights - (double)folds[f]->rows * log(2 * M_PI * error.variance) -
                        error.squares / error.variance);
    }
    ret->log_score = score / (double)all->rows;
    validation_finish(ret, all, squares);
    return 0;
}
