/* The prediction of a row by a model: the mean, the scatter of single measurements about it, the standard
 * error of the mean, and whether the row is in the domain where the model was observed. For the kinds that
 * are defined row by row (struct model): linear, piecewise, maximum, minimum, harmonic, smpi. */
#ifndef ASSAY_MODEL_EVALUATOR_H
#define ASSAY_MODEL_EVALUATOR_H

#include "engine/foundation/failure.h"

#include <assay/predict.h>

/* An input of the model: a column that a row must have, as a number or as a text. */
struct evaluator_input {
    const char *name; /* the model's */
    bool is_text;
    const char **texts; /* that have codes: levels, or names of parts */
    size_t text_count;
    size_t level_count; /* the number of levels that the fit saw; 0: not known */
};

/* A model's prediction of a row. */
struct evaluator_value {
    double mean;            /* in the response's unit; NaN: not defined */
    double sigma;           /* standard deviation of one measurement; NaN: the model has no noise */
    double standard_error;  /* of the mean, by the covariance of the estimates; NaN: not known */
    double extrapolated_by; /* 1 inside the domain; otherwise the greatest factor by which a range is left */
    const char *extrapolation; /* the column or term whose range it is; NULL inside */
    bool extrapolated_above;   /* above the greatest value, not below the least */
    double outside_hull;       /* how far beyond the hull of all rows, in widths of the hull; 0 inside */
};

/* How the products of estimates and terms make the mean. */
enum evaluator_combine {
    EVALUATOR_SUM,
    EVALUATOR_MAXIMUM,
    EVALUATOR_MINIMUM,
    EVALUATOR_HARMONIC, /* the reciprocal of the sum of their reciprocals */
};

struct evaluator_factor; /* a factor of a term, bound to an input */

struct evaluator {
    const struct model *model; /* borrowed */
    enum evaluator_combine combine;
    struct evaluator_input *inputs;
    size_t input_count;
    struct evaluator_factor *factors; /* of all terms, one term after the other */
    size_t over, named_by;            /* inputs; SIZE_MAX: none */
    size_t *hull;                     /* the input of each column of the hull; NULL: the hull says nothing */
};

/* A column of rows for an input: numbers, or codes of the caller's and the input's code for each. */
struct evaluator_column {
    const double *numbers; /* or NULL */
    const uint32_t *codes;
    const double *values; /* of each code */
};

/* Whether models of this kind can be evaluated. */
bool evaluator_knows(const char *kind);

/* Makes an evaluator of MODEL, which must outlive it. FAILURE_INPUT: the model's kind cannot be evaluated. */
int evaluator_new(const struct model *model, struct evaluator **ret, struct failure *failure);
void evaluator_free(struct evaluator *evaluator); /* NULL is fine */
void evaluator_cleanup(struct evaluator **evaluator);
/* The number that stands for TEXT in an input of texts; NaN for what is missing (NULL or empty). */
double evaluator_code(const struct evaluator *evaluator, size_t input, const char *text);

/* The value of each term of the model at a row. */
void evaluator_terms(const struct evaluator *evaluator, const double *inputs, double *ret_terms);
/* Which part of GROUP holds at the row; NULL: none has the name that the row gives. */
const struct model_part *evaluator_part(const struct evaluator *evaluator, const struct model_group *group,
                                        const double *inputs);
/* Whether a row of measurements can be one of PART: of a kind with names a cost that is the same for all
 * sizes is that of a call, of which a row may be many. */
bool evaluator_is_measured(const struct evaluator *evaluator, const struct model_part *part);

/* The mean and sigma of GROUP at a row. Sigma is NaN without noise, and where an N-2 is below 0. 0; -EDOM:
 * the mean is not a number there, or no part has the row's name; then both are NaN. */
int evaluator_row(const struct evaluator *evaluator, const struct model_group *group, const double *inputs,
                  double *ret_mean, double *ret_sigma);
/* Sets means and sigmas of COUNT rows, as evaluator_row() does. GROUPS: the group of each row (UINT32_MAX:
 * none, which is NaN); NULL: the first for all. COLUMNS has one for each input. RET_SIGMA may be NULL. */
void evaluator_rows(const struct evaluator *evaluator, const struct model_group *of, const uint32_t *groups,
                    size_t count, const struct evaluator_column *columns, double *ret_mean,
                    double *ret_sigma);
/* Copies the inputs of one row. */
void evaluator_gather(const struct evaluator *evaluator, const struct evaluator_column *columns, size_t row,
                      double *ret_inputs);
/* The standard error of the mean, by the covariance of the estimates: of sums sqrt(x'Cx), x the terms; of a
 * greatest or least that of the term that is it; of harmonic to first order. NaN: not known. */
double evaluator_standard_error(const struct evaluator *evaluator, const struct model_group *group,
                                const double *inputs);
/* Sets all members of RET: mean, sigma, standard error, extrapolation. 0, or -EDOM as evaluator_row(). */
int evaluator_predict(const struct evaluator *evaluator, const struct model_group *group,
                      const double *inputs, struct evaluator_value *ret);

/* The range of parts of a group that apply to a row: all, or those with the row's name; false if there are
 * none. */
bool evaluator_parts_named(const struct evaluator *evaluator, const struct model_group *group,
                           const double *inputs, size_t *ret_first, size_t *ret_end);
/* The index of the part, among FIRST to END - 1, whose interval has X, or of the nearest one. */
size_t evaluator_segment(const struct model_group *group, size_t first, size_t end, double x);

#endif
