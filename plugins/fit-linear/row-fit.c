#include "plugins/fit-linear/row-fit.h"

#include "plugins/fit-linear/reweighting.h"

#include <errno.h>
#include <float.h>
#include <gsl/gsl_cdf.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* What rounding makes of residuals, of the length of what is explained. */
static const double rounding = 1e-15;

struct row_fit {
    const struct fit *fit;
    const struct sums_layout *layout;
    struct sum_fit *sum_fit;
    enum robust robust;
    double outliers;
    struct moments *moments; /* of the rows in hand, always weighted */
    struct sums *sums;
    struct least_squares *result; /* of robust fits, and of validation */
    double *covariance;           /* (X'WX)^-1 of the plain fit, by term */

    /* The group in hand. */
    size_t rows, capacity;
    const double *columns[LINEAR_INPUTS_MAX + 1]; /* inputs, response, weights */
    const double *numbers, *folds;                /* of the rows in the table */
    struct sums_cell *cells;
    size_t cell_count, cell_capacity;
    uint32_t *cell_of; /* place in cells */
    double *given;     /* weights as given; 0: of no use */
    double *base;      /* these, and 0 for rows that are left out of the fit in hand */
    double *weights;   /* of the fit in hand */
    double *residuals; /* of the fit in hand */
    struct reweighting reweighting;
    struct row_outcome outcome;
    char *reason;
};

static void free_rows(struct row_fit *row_fit) {
    free(row_fit->cell_of);
    free(row_fit->given);
    free(row_fit->base);
    free(row_fit->weights);
    free(row_fit->residuals);
}

void row_fit_free(struct row_fit *row_fit) {
    if (!row_fit)
        return;
    moments_free(row_fit->moments);
    sums_free(row_fit->sums);
    free(row_fit->result);
    free(row_fit->covariance);
    free(row_fit->cells);
    reweighting_clear(&row_fit->reweighting);
    free_rows(row_fit);
    free(row_fit);
}

struct row_fit *row_fit_new(const struct fit *fit, const struct sums_layout *layout,
                            struct sum_fit *sum_fit) {
    struct row_fit *row_fit = calloc(1, sizeof *row_fit);
    if (!row_fit)
        return NULL;
    row_fit->fit = fit;
    row_fit->layout = layout;
    row_fit->sum_fit = sum_fit;
    row_fit->robust = (enum robust)linear_parameter(fit, PARAMETER_ROBUST);
    row_fit->outliers = linear_parameter(fit, PARAMETER_OUTLIERS);
    const struct moments_options options = {.weighted = true, .choice = MOMENTS_BEST};
    size_t terms = layout->expansion->count;
    row_fit->sums = sums_new(layout);
    row_fit->result = calloc(1, sizeof *row_fit->result);
    row_fit->covariance = calloc(terms * terms, sizeof *row_fit->covariance);
    if (moments_new(&fit->formula, &options, &row_fit->moments) == 0 && row_fit->sums && row_fit->result &&
        row_fit->covariance)
        return row_fit;
    row_fit_free(row_fit);
    return NULL;
}

/* ---- The rows of a group */

static int make_room(struct row_fit *row_fit, size_t rows, size_t cells) {
    if (cells > row_fit->cell_capacity) {
        struct sums_cell *grown = realloc(row_fit->cells, cells * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        row_fit->cells = grown;
        row_fit->cell_capacity = cells;
    }
    if (rows <= row_fit->capacity)
        return 0;
    free_rows(row_fit);
    row_fit->capacity = 0;
    row_fit->cell_of = calloc(rows, sizeof *row_fit->cell_of);
    row_fit->given = calloc(rows, sizeof(double));
    row_fit->base = calloc(rows, sizeof(double));
    row_fit->weights = calloc(rows, sizeof(double));
    row_fit->residuals = calloc(rows, sizeof(double));
    if (!row_fit->cell_of || !row_fit->given || !row_fit->base || !row_fit->weights || !row_fit->residuals)
        return -ENOMEM;
    row_fit->capacity = rows;
    return 0;
}

static int compare_cells(const void *a, const void *b) {
    uint32_t left = ((const struct sums_cell *)a)->cell, right = ((const struct sums_cell *)b)->cell;
    return left < right ? -1 : left > right;
}

/* Which of the group's cells a row is in; they rise. */
static uint32_t place_of(const struct sums_cell *cells, size_t count, double cell) {
    const struct sums_cell key = {.cell = (uint32_t)cell};
    const struct sums_cell *found = bsearch(&key, cells, count, sizeof key, compare_cells);
    return (uint32_t)(found - cells);
}

static int begin_group(struct row_fit *row_fit, uint32_t group, const struct sums_cell *cells,
                       size_t cell_count) {
    const struct grouped_rows *held = &row_fit->fit->held;
    size_t start = held->starts[group], inputs = row_fit->fit->input_count;
    row_fit->rows = held->starts[group + 1] - start;
    row_fit->cell_count = cell_count;
    int r = make_room(row_fit, row_fit->rows, cell_count);
    if (r < 0)
        return r;
    for (size_t i = 0; i < cell_count; i++)
        row_fit->cells[i] = (struct sums_cell){(uint32_t)i, cells[i].codes};
    for (size_t i = 0; i < inputs; i++)
        row_fit->columns[i] = held->values[i] + start;
    row_fit->columns[row_fit->fit->formula.input_count + 1] = row_fit->weights;
    row_fit->numbers = held->values[inputs] + start;
    row_fit->folds = held->values[inputs + 1] + start;
    bool weighted = row_fit->layout->weighted, categories = row_fit->fit->formula.category_count > 0;
    const double *given = held->values[inputs - 1] + start;
    for (size_t i = 0; i < row_fit->rows; i++) {
        row_fit->cell_of[i] =
            categories ? place_of(cells, cell_count, held->values[inputs + 2][start + i]) : 0;
        row_fit->given[i] = weighted ? given[i] : 1;
        if (!sums_is_complete(row_fit->layout, &row_fit->cells[row_fit->cell_of[i]]))
            row_fit->given[i] = 0;
    }
    moments_reset(row_fit->moments);
    return 0;
}

/* The sums with the weights in hand. */
static int sum_rows(struct row_fit *row_fit) {
    size_t row;
    moments_reset(row_fit->moments);
    int r = moments_add(row_fit->moments, row_fit->rows, row_fit->columns, row_fit->cell_of,
                        (uint32_t)row_fit->cell_count, NULL, &row);
    if (r < 0)
        return r;
    sums_collect(row_fit->sums, row_fit->moments, row_fit->cells, row_fit->cell_count, 0);
    return 0;
}

static double input_power(double value, int power) {
    double result = value;
    for (int i = 1; i < power; i++)
        result *= value;
    return result;
}

/* The columns of a row: products, dummies, and the response. */
static void read_row(const struct row_fit *row_fit, size_t row, double values[static SUMS_COLUMNS_MAX]) {
    const struct sums_layout *layout = row_fit->layout;
    const struct formula *formula = layout->expansion->formula;
    const struct sums_cell *cell = &row_fit->cells[row_fit->cell_of[row]];
    for (size_t a = 1; a + 1 < layout->width; a++) {
        const struct formula_product *product = &formula->products[layout->product_of[a]];
        values[a] = sums_is_active(layout, a, cell) ? 1 : 0;
        for (size_t f = 0; values[a] != 0 && f < product->factor_count; f++)
            values[a] *=
                input_power(row_fit->columns[product->factors[f].input][row], product->factors[f].power);
    }
    values[layout->width - 1] = row_fit->columns[formula->input_count][row];
}

/* What the last fit leaves of a row. */
static void look_at(const struct row_fit *row_fit, size_t row, double *ret_residual, double *ret_leverage) {
    double values[SUMS_COLUMNS_MAX];
    read_row(row_fit, row, values);
    least_squares_row(row_fit->sum_fit->workspace, row_fit->sums, values, ret_residual, ret_leverage);
}

/* ---- Outliers */

/* Takes the outliers out of the base. Returns how many. */
static uint64_t delete_outliers(struct row_fit *row_fit, const struct least_squares *result) {
    uint64_t deleted = 0;
    for (size_t i = 0; i < row_fit->rows; i++) {
        double weight = row_fit->base[i], residual, leverage;
        if (weight == 0)
            continue;
        look_at(row_fit, i, &residual, &leverage);
        double rest = 1 - leverage * weight;
        if (rest < 1e-12) /* the fit goes through it whatever it is */
            continue;
        double square = weight * residual * residual / rest;
        double variance = (result->rss - square) / (result->degrees - 1);
        if (square <= row_fit->outliers * row_fit->outliers * variance)
            continue;
        row_fit->base[i] = 0;
        if (row_fit->outcome.deleted + deleted < ROW_FIT_PLACES_MAX)
            row_fit->outcome.places[row_fit->outcome.deleted + deleted] = (uint64_t)row_fit->numbers[i];
        deleted++;
    }
    row_fit->outcome.deleted += deleted;
    return deleted;
}

static int run_outliers(struct row_fit *row_fit, struct selection_path *path, struct least_squares *ret) {
    bool kept[SUMS_COLUMNS_MAX];
    struct row_outcome *outcome = &row_fit->outcome;
    while (outcome->rounds < ROW_FIT_ROUNDS_MAX && !outcome->settled) {
        memcpy(row_fit->weights, row_fit->base, row_fit->rows * sizeof(double));
        int r = sum_rows(row_fit);
        if (path)
            path->round = outcome->rounds;
        r = r < 0 ? r : sum_fit_run(row_fit->sum_fit, row_fit->sums, kept, path, ret, row_fit->reason);
        if (r <= 0)
            return r;
        outcome->rounds++;
        outcome->settled =
            ret->saturated || ret->perfect || ret->degrees < 2 || delete_outliers(row_fit, ret) == 0;
    }
    return 1;
}

/* ---- Robust */

/* Residuals of the last fit, of rows in the base, times the root of their weight. */
static void find_residuals(struct row_fit *row_fit) {
    double leverage;
    for (size_t i = 0; i < row_fit->rows; i++) {
        row_fit->residuals[i] = 0;
        if (row_fit->base[i] == 0)
            continue;
        look_at(row_fit, i, &row_fit->residuals[i], &leverage);
        row_fit->residuals[i] *= sqrt(row_fit->base[i]);
    }
}

/* The rows of the base, as the plain fit left them. */
static int begin_reweighting(struct row_fit *row_fit, size_t width) {
    size_t count = 0;
    double values[SUMS_COLUMNS_MAX], coordinates[SUMS_COLUMNS_MAX], residual;
    for (size_t i = 0; i < row_fit->rows; i++)
        count += row_fit->base[i] > 0;
    int r = reweighting_begin(&row_fit->reweighting, count, width);
    count = 0;
    for (size_t i = 0; r == 0 && i < row_fit->rows; i++) {
        if (row_fit->base[i] == 0)
            continue;
        read_row(row_fit, i, values);
        least_squares_coordinates(row_fit->sum_fit->workspace, row_fit->sums, values, coordinates, &residual);
        reweighting_set_row(&row_fit->reweighting, count++, coordinates, residual, sqrt(row_fit->base[i]));
    }
    return r;
}

/* Weights until residuals stay, and the fit by them. 1, 0, or a negative errno. */
static int iterate(struct row_fit *row_fit, const bool *kept, double *ret_scale) {
    struct row_outcome *outcome = &row_fit->outcome;
    const struct least_squares *plain = row_fit->sum_fit->result;
    int r = begin_reweighting(row_fit, plain->fitted_terms);
    if (r < 0)
        return r;
    const struct reweighting *reweighting = &row_fit->reweighting;
    struct reweighting_outcome found =
        reweighting_run(&row_fit->reweighting, row_fit->robust, rounding * sqrt(plain->total));
    outcome->settled = found.settled;
    outcome->iterations = found.iterations;
    *ret_scale = found.scale;
    if (found.iterations > 0 || found.scale > 0) {
        for (size_t i = 0, k = 0; i < row_fit->rows; i++)
            row_fit->weights[i] = row_fit->base[i] == 0 ? 0 : row_fit->base[i] * reweighting->factors[k++];
        r = sum_rows(row_fit);
        if (r < 0)
            return r;
        if (least_squares_fit(row_fit->sums, kept, row_fit->sum_fit->workspace, row_fit->result,
                              row_fit->reason) != LEAST_SQUARES_FITTED)
            return 0;
    }
    find_residuals(row_fit);
    outcome->weighted_down = 0;
    for (size_t i = 0; i < row_fit->rows; i++)
        outcome->weighted_down += row_fit->weights[i] < 0.5 * row_fit->base[i];
    return 1;
}

/* What stands before (X'WX)^-1 in the covariance: Huber's correction, as summary.rlm has it. */
static double spread(const struct row_fit *row_fit, double scale, double rows, double terms) {
    double squares = 0, mean = 0, variance = 0;
    for (size_t i = 0; i < row_fit->rows; i++) {
        double u = row_fit->residuals[i] / scale;
        if (row_fit->base[i] == 0)
            continue;
        double pull = row_fit->residuals[i] * row_fit->weights[i] / row_fit->base[i];
        squares += pull * pull;
        mean += robust_slope(row_fit->robust, u) / rows;
    }
    for (size_t i = 0; i < row_fit->rows; i++) {
        double difference = robust_slope(row_fit->robust, row_fit->residuals[i] / scale) - mean;
        variance += row_fit->base[i] == 0 ? 0 : difference * difference / (rows - 1);
    }
    double correction = (1 + terms * variance / (rows * mean * mean)) / mean;
    return squares / (rows - terms) * correction * correction;
}

/* RESULT, of the last weighted fit, becomes that of the robust one; PLAIN is what the plain fit told. */
static void finish_robust(struct row_fit *row_fit, const struct least_squares *plain, double scale) {
    struct least_squares *result = row_fit->result;
    size_t terms = result->term_count;
    double n = (double)plain->rows, p = (double)plain->fitted_terms;
    double factor = scale > 0 ? spread(row_fit, scale, n, p) : 0;
    for (size_t t = 0; t < terms; t++) {
        struct fit_estimate *estimate = &result->estimates[t];
        for (size_t u = 0; u < terms; u++)
            result->covariance[t * terms + u] = factor * row_fit->covariance[t * terms + u];
        if (estimate->dropped)
            continue;
        estimate->standard_error = sqrt(result->covariance[t * terms + t]);
        estimate->t = estimate->p = NAN;
        if (estimate->standard_error > 0) {
            estimate->t = estimate->estimate / estimate->standard_error;
            estimate->p = 2 * gsl_cdf_tdist_Q(fabs(estimate->t), n - p);
        }
    }
    result->has_covariance = true;
    result->rss = 0;
    for (size_t i = 0; i < row_fit->rows; i++)
        result->rss += row_fit->residuals[i] * row_fit->residuals[i];
    result->rows = plain->rows;
    result->degrees = n - p;
    result->sigma = scale;
    result->total = plain->total;
    result->r2 = plain->constant_response ? NAN : 1 - result->rss / plain->total;
    result->adjusted_r2 = 1 - (1 - result->r2) * ((n - row_fit->layout->intercept) / result->degrees);
    result->log_likelihood = result->aic = result->bic = NAN;
    result->saturated = false;
    result->perfect = scale == 0;
    result->constant_response = plain->constant_response;
    result->condition = plain->condition;
    result->variance_inflation = plain->variance_inflation;
    result->inflated_term = plain->inflated_term;
}

static int refit_robust(void *context, const bool *kept, struct judged *ret) {
    struct row_fit *row_fit = context;
    struct least_squares *plain = row_fit->sum_fit->result;
    memcpy(row_fit->weights, row_fit->base, row_fit->rows * sizeof(double));
    int r = sum_rows(row_fit);
    if (r < 0)
        return r;
    if (least_squares_fit(row_fit->sums, kept, row_fit->sum_fit->workspace, plain, row_fit->reason) !=
        LEAST_SQUARES_FITTED)
        return 0;
    row_fit->outcome = (struct row_outcome){.settled = true};
    *row_fit->result = *plain;
    if (!plain->saturated && !plain->perfect) {
        double scale = 0;
        size_t terms = plain->term_count;
        for (size_t i = 0; i < terms * terms; i++)
            row_fit->covariance[i] = plain->covariance[i] / (plain->sigma * plain->sigma);
        r = iterate(row_fit, kept, &scale);
        if (r <= 0)
            return r;
        finish_robust(row_fit, plain, scale);
    }
    judge_result(row_fit->layout, row_fit->result, ret);
    return 1;
}

/* ---- Both */

/* Fits the rows of the base. */
static int run(struct row_fit *row_fit, struct selection_path *path, struct least_squares *ret) {
    bool kept[SUMS_COLUMNS_MAX];
    row_fit->outcome = (struct row_outcome){0};
    if (row_fit->robust == ROBUST_NONE)
        return run_outliers(row_fit, path, ret);
    for (size_t a = 0; a < row_fit->layout->width; a++)
        kept[a] = true;
    int r = selection_run(&row_fit->sum_fit->selection, refit_robust, row_fit, kept,
                          &row_fit->sum_fit->judged, path);
    if (r > 0 && ret != row_fit->result)
        *ret = *row_fit->result;
    return r;
}

int row_fit_run(struct row_fit *row_fit, uint32_t group, const struct sums_cell *cells, size_t cell_count,
                struct selection_path *path, struct least_squares *ret, struct row_outcome *ret_outcome,
                char reason[static LEAST_SQUARES_REASON_SIZE]) {
    int r = begin_group(row_fit, group, cells, cell_count);
    if (r < 0)
        return r;
    memcpy(row_fit->base, row_fit->given, row_fit->rows * sizeof(double));
    row_fit->reason = reason;
    r = run(row_fit, path, ret);
    *ret_outcome = row_fit->outcome;
    return r;
}

/* How many rows that count the fold has. */
static size_t count_fold(const struct row_fit *row_fit, uint32_t fold) {
    size_t count = 0;
    for (size_t i = 0; i < row_fit->rows; i++)
        count += row_fit->folds[i] == fold && row_fit->given[i] > 0;
    return count;
}

int row_fit_validate(struct row_fit *row_fit, const struct sums *all, uint32_t folds,
                     struct validation *ret) {
    *ret = (struct validation){.rmse = NAN, .relative = NAN, .log_score = NAN};
    row_fit->reason = ret->reason;
    for (uint32_t f = 0; f < folds; f++)
        ret->folds += count_fold(row_fit, f) > 0;
    double squares = 0;
    for (uint32_t f = 0; f < folds; f++) {
        if (count_fold(row_fit, f) == 0)
            continue;
        for (size_t i = 0; i < row_fit->rows; i++)
            row_fit->base[i] = row_fit->folds[i] == f ? 0 : row_fit->given[i];
        int r = run(row_fit, NULL, row_fit->result);
        if (r <= 0)
            return r;
        for (size_t i = 0; i < row_fit->rows; i++) {
            if (row_fit->folds[i] != f || row_fit->given[i] == 0)
                continue;
            double residual, leverage;
            look_at(row_fit, i, &residual, &leverage);
            squares += row_fit->given[i] * residual * residual;
        }
    }
    validation_finish(ret, all, squares);
    return 0;
}
