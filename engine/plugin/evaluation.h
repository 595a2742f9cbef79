/*
 * What a model says of a row: the mean, how single measurements scatter about it, and whether the row lies
 * where the model was observed. Works on struct predict_model, which model_view() gives, or which is made of
 * a fit that is not a file yet.
 *
 *     evaluation_new(model, columns) ; evaluation_row(group, values, texts) ... ; evaluation_free
 *
 * Of the kinds that are defined row by row (MODEL.md): linear, piecewise, maximum, minimum, harmonic, smpi.
 */
#ifndef ASSAY_PLUGIN_EVALUATION_H
#define ASSAY_PLUGIN_EVALUATION_H

#include "engine/foundation/failure.h"
#include "plugins/interface/predict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    EVALUATION_TERMS_MAX = 1024,
    EVALUATION_FACTORS_MAX = 1024, /* distinct: a column, its logarithm, each of its levels */
    EVALUATION_SENTENCE_SIZE = 768,
};

struct evaluation; /* the model's factors bound to columns of the caller */

struct evaluation_value {
    double mean;  /* in the response's unit; NaN where a value is missing or the model is not defined */
    double sigma; /* standard deviation of one measurement; NaN: no noise is told */
    /* 1 inside the domain's ranges. Otherwise the greatest factor by which one is left: value/maximum or
     * minimum/value, INFINITY where that has no sense (a sign, a zero, a level that was never seen). A term's
     * range counts only where no column's is left: it says the same with a larger number. */
    double left;
    const char *left_by; /* the column or term whose range it is; the model's; NULL inside */
    bool left_above;     /* above the maximum, not below the minimum */
    /* How far the row is beyond the hull of all rows, in widths of the hull in that direction; 0 inside or
     * where the model tells no hull. */
    double beyond_hull;
};

/* Whether models of this KIND can be evaluated, and whether MODEL tells all that its kind needs for that. */
bool evaluation_knows(const char *kind);
bool evaluation_is_possible(const struct predict_model *model);

/* The columns that MODEL uses, each once, the one that it is over first; the caller frees the list. */
int evaluation_columns(const struct predict_model *model, const char ***ret, size_t *ret_count);
/* Every factor (and `over`) must be one of COLUMNS: FAILURE_INPUT naming the nearest otherwise, as for a kind
 * that is not evaluated row by row, or segments that are not in order. MODEL is borrowed, with all it points
 * to; COLUMNS are looked at only here. */
int evaluation_new(const struct predict_model *model, const char *const *columns, size_t column_count,
                   struct evaluation **ret, struct failure *failure);
void evaluation_free(struct evaluation *evaluation);     /* NULL is fine */
void evaluation_cleanup(struct evaluation **evaluation); /* for cleanup() */

/* Whether the model uses this column as a number, or as a category. */
bool evaluation_uses_number(const struct evaluation *evaluation, size_t column);
bool evaluation_uses_text(const struct evaluation *evaluation, size_t column);

/* VALUES and TEXTS by column; those that the model does not use are not looked at. TEXTS may be NULL when the
 * model has no categories. 0, or -EDOM when the mean is not a number or no part has the row's name. */
int evaluation_row(const struct evaluation *evaluation, size_t group, const double *values,
                   const char *const *texts, struct evaluation_value *ret);
/* The standard error of the mean there, from the covariance of the estimates; NaN where that is not known. */
double evaluation_standard_error(const struct evaluation *evaluation, size_t group, const double *values,
                                 const char *const *texts);
/* The value of each term at the row, into RET_TERMS (one for each term of the formula). */
void evaluation_terms(const struct evaluation *evaluation, const double *values, const char *const *texts,
                      double *ret_terms);
/* Which part of the group holds at the row; NULL: none has the name that its texts give. */
const struct predict_part *evaluation_part(const struct evaluation *evaluation, size_t group,
                                           const double *values, const char *const *texts);
/* Whether a row of a table is a measurement of PART: a cost that is the same for all sizes is that of a call,
 * of which a row may be many. */
bool evaluation_is_of_row(const struct evaluation *evaluation, const struct predict_part *part);
/* The standard deviation of PART's noise where the terms have these values; NaN: none is told. */
double evaluation_sigma(const struct predict_model *model, const struct predict_part *part,
                        const double *terms);

/* Whether the row is outside of what was observed. */
bool evaluation_outside(const struct evaluation_value *value);
/* One clause on that: "'m' is 3.2 times the greatest value that was measured". Returns BUFFER. */
const char *evaluation_describe(const struct evaluation_value *value,
                                char buffer[static EVALUATION_SENTENCE_SIZE]);

/* How many rows are outside, and the one that is furthest out; of how many a time of 0 or less is predicted:
 * for one warning a command. Zeroed at first, but for IS_TIME. */
struct evaluation_tally {
    uint64_t rows, outside, not_positive;
    bool is_time; /* the response: what is not above 0 cannot be */
    struct evaluation_value furthest;
};

void evaluation_tally_add(struct evaluation_tally *tally, const struct evaluation_value *value);
/* "3 of 7 rows are outside of what the model was fitted to; of the one furthest out, ...; a time of 0 or less
 * is predicted for 2 of 7 rows", into BUFFER; NULL where there is neither. */
const char *evaluation_tally_describe(const struct evaluation_tally *tally,
                                      char buffer[static EVALUATION_SENTENCE_SIZE]);

#endif
