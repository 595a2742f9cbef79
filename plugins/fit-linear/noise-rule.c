#include "plugins/fit-linear/noise-rule.h"

#include <errno.h>
#include <gsl/gsl_multifit.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* How many times the least volume is small. */
static const double small_volumes[] = {[NOISE_RULE_PLAIN] = 100, [NOISE_RULE_TRIMMED] = 3};

/* The trimmed rule's values are below this quantile of theirs. */
static const double trimmed_from = 0.95;

/* The slopes of some rows, row by row, and their responses. */
struct table {
    size_t width; /* slopes */
    size_t rows;
    double *slopes, *y;
    size_t *order; /* rows that are equal in all slopes lie together */
};

struct sizes {
    size_t width, count;
    double *slopes, *values;
};

static void clear_table(struct table *table) {
    free(table->slopes);
    free(table->y);
    free(table->order);
}

static void clear_sizes(struct sizes *sizes) {
    free(sizes->slopes);
    free(sizes->values);
}

/* ---- Rows and sizes */

static void append_rows(void *context, const struct noise_columns *columns) {
    struct table *table = context;
    for (size_t r = 0; r < columns->count; r++, table->rows++) {
        for (size_t q = 1; q < columns->width; q++)
            table->slopes[table->rows * table->width + q - 1] = columns->z[q * columns->stride + r];
        table->y[table->rows] = columns->y[r];
    }
}

static int compare_slopes(const struct table *table, size_t a, size_t b) {
    const double *left = table->slopes + a * table->width, *right = table->slopes + b * table->width;
    for (size_t i = 0; i < table->width; i++)
        if (left[i] != right[i])
            return left[i] < right[i] ? -1 : 1;
    return 0;
}

static int compare_rows(const void *a, const void *b, void *context) {
    size_t left = *(const size_t *)a, right = *(const size_t *)b;
    int order = compare_slopes(context, left, right);
    return order ? order : left < right ? -1 : left > right;
}

static int read_table(struct noise_design *design, uint32_t folds, struct table *ret) {
    *ret = (struct table){.width = design->width - 1};
    ret->slopes = calloc(design->count * ret->width + 1, sizeof *ret->slopes);
    ret->y = calloc(design->count + 1, sizeof *ret->y);
    ret->order = calloc(design->count + 1, sizeof *ret->order);
    if (!ret->slopes || !ret->y || !ret->order)
        return -ENOMEM;
    noise_design_each(design, folds, append_rows, ret);
    for (size_t i = 0; i < ret->rows; i++)
        ret->order[i] = i;
    qsort_r(ret->order, ret->rows, sizeof *ret->order, compare_rows, ret);
    return 0;
}

/* The rows from FIRST on that are one size: their mean, or their standard deviation. */
static double judge_size(const struct table *table, size_t first, size_t count, bool spread) {
    double sum = 0, squares = 0;
    for (size_t i = first; i < first + count; i++)
        sum += table->y[table->order[i]];
    double mean = sum / (double)count;
    for (size_t i = first; i < first + count; i++) {
        double difference = table->y[table->order[i]] - mean;
        squares += difference * difference;
    }
    return spread ? sqrt(squares / (double)(count - 1)) : mean;
}

static int make_sizes(const struct table *table, bool spread, struct sizes *ret) {
    *ret = (struct sizes){.width = table->width};
    ret->slopes = calloc(table->rows * table->width + 1, sizeof *ret->slopes);
    ret->values = calloc(table->rows + 1, sizeof *ret->values);
    if (!ret->slopes || !ret->values)
        return -ENOMEM;
    size_t count;
    for (size_t first = 0; first < table->rows; first += count) {
        count = 1;
        while (first + count < table->rows &&
               compare_slopes(table, table->order[first], table->order[first + count]) == 0)
            count++;
        if (spread && count < 2)
            continue;
        memcpy(ret->slopes + ret->count * table->width, table->slopes + table->order[first] * table->width,
               table->width * sizeof *ret->slopes);
        ret->values[ret->count++] = judge_size(table, first, count, spread);
    }
    return 0;
}

/* ---- The line */

/* The slope of the most factors, the first of them. */
static size_t find_volume(const struct noise_design *design) {
    const struct formula *formula = &design->fit->formula;
    const struct expansion *expansion = design->fit->expansion;
    size_t best = 1;
    int most = -1;
    for (size_t q = 1; q < design->width; q++) {
        int degree = formula->products[expansion->terms[design->columns[q].term].product].degree;
        if (degree > most) {
            most = degree;
            best = q;
        }
    }
    return best - 1;
}

static int compare_values(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* How many of VALUES, which are in order, lie below their quantile. */
static size_t count_below(const double *values, size_t count, double quantile) {
    double place = quantile * (double)(count - 1);
    size_t low = (size_t)place;
    double bound = values[low];
    if (low + 1 < count)
        bound += (place - (double)low) * (values[low + 1] - values[low]);
    size_t below = 0;
    while (below < count && values[below] < bound)
        below++;
    return below;
}

/* 0, or -ENOMEM. */
static int find_intercept(const struct sizes *sizes, enum noise_rule rule, size_t volume, double *ret) {
    double least = INFINITY, sum = 0;
    size_t count = 0;
    double *values = calloc(sizes->count, sizeof *values);
    if (!values)
        return -ENOMEM;
    for (size_t i = 0; i < sizes->count; i++)
        least = fmin(least, sizes->slopes[i * sizes->width + volume]);
    for (size_t i = 0; i < sizes->count; i++)
        if (sizes->slopes[i * sizes->width + volume] <= small_volumes[rule] * least)
            values[count++] = sizes->values[i];
    if (rule == NOISE_RULE_TRIMMED && count > 0) {
        qsort(values, count, sizeof *values, compare_values);
        count = count_below(values, count, trimmed_from);
    }
    for (size_t i = 0; i < count; i++)
        sum += values[i];
    *ret = sum > 0 ? sum / (double)count : 0;
    free(values);
    return 0;
}

/* RET[0] the intercept, then the slopes. 1, 0 when there are too few sizes, or -ENOMEM. */
static int fit_line(const struct sizes *sizes, enum noise_rule rule, size_t volume, double *ret) {
    if (sizes->count <= sizes->width)
        return 0;
    if (find_intercept(sizes, rule, volume, ret) < 0)
        return -ENOMEM;
    for (size_t i = 0; i < sizes->count; i++)
        sizes->values[i] -= ret[0];
    gsl_multifit_linear_workspace *work = gsl_multifit_linear_alloc(sizes->count, sizes->width);
    gsl_matrix *covariance = gsl_matrix_alloc(sizes->width, sizes->width);
    int r = work && covariance ? 1 : -ENOMEM;
    if (r > 0) {
        gsl_matrix_const_view x = gsl_matrix_const_view_array(sizes->slopes, sizes->count, sizes->width);
        gsl_vector_const_view y = gsl_vector_const_view_array(sizes->values, sizes->count);
        gsl_vector_view slopes = gsl_vector_view_array(ret + 1, sizes->width);
        double squares;
        r = gsl_multifit_linear(&x.matrix, &y.vector, &slopes.vector, covariance, &squares, work) == 0;
    }
    if (work)
        gsl_multifit_linear_free(work);
    if (covariance)
        gsl_matrix_free(covariance);
    return r;
}

static int fit_sizes(const struct noise_design *design, enum noise_rule rule, const struct table *table,
                     bool spread, double *ret) {
    struct sizes sizes;
    int r = make_sizes(table, spread, &sizes);
    r = r < 0 ? r : fit_line(&sizes, rule, find_volume(design), ret);
    clear_sizes(&sizes);
    return r;
}

int noise_rule_run(struct noise_design *design, enum noise_rule rule, uint32_t folds, struct noise_point *ret,
                   const char **ret_reason) {
    *ret = (struct noise_point){.steps = 0};
    *ret_reason = "there is no term but the constant";
    if (design->width < 2)
        return 0;
    struct table table;
    *ret_reason = "there are no more sizes than terms that have two rows or more";
    int r = read_table(design, folds, &table);
    r = r < 0 ? r : fit_sizes(design, rule, &table, false, ret->b);
    r = r <= 0 ? r : fit_sizes(design, rule, &table, true, ret->c);
    clear_table(&table);
    ret->converged = r > 0;
    return r;
}
