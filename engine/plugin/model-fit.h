/*
 * How a model came about and how sure it is (plugins/interface/MODEL.md): what a predictor need not know and
 * a next design must. Of models of the kind `linear` whose terms are of numbers; any other one is refused by
 * name.
 */
#ifndef ASSAY_PLUGIN_MODEL_FIT_H
#define ASSAY_PLUGIN_MODEL_FIT_H

#include "engine/design/design.h"
#include "engine/foundation/failure.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/model.h"

#include <stdbool.h>
#include <stddef.h>

struct model_fit_group {
    const double *covariance; /* of the estimates, row by row; NULL: the fit left it undefined */
    double sigma; /* standard deviation of a unit of weight 1, in the response's unit; NaN: not defined */
    const char **labels; /* one for each column of by */
};

struct model_fit_factor {
    const char *name;
    bool whole; /* its values are whole numbers; where the file does not say, by the ends of the domain */
};

struct model_fit_input {
    const char *file, *run_id, *experiment; /* base name; the others are NULL where they are not known */
};

struct model_fit {
    const struct model *model; /* borrowed, with all texts */
    const struct predict_model *view;
    const char *weights; /* the column of weights, or NULL */
    const char **by;
    size_t by_count;
    struct model_fit_group *groups; /* as many as the view has */
    struct model_fit_factor *factors;
    size_t factor_count;
    struct evaluation *evaluation; /* owned; over the factors */
    struct model_fit_input *inputs;
    size_t input_count;
};

int model_fit_read(const struct model *model, struct model_fit **ret, struct failure *failure);
void model_fit_free(struct model_fit *fit);     /* NULL is fine */
void model_fit_cleanup(struct model_fit **fit); /* for cleanup() */

/* Where the response was observed in all of the COUNT groups: a column or a term by its NAME. False when some
 * group does not say. *RET_MINIMUM is above *RET_MAXIMUM when they have nothing in common. */
bool model_fit_domain(const struct model_fit *fit, const size_t *groups, size_t count, const char *name,
                      double *ret_minimum, double *ret_maximum);

/* The value of every term where the factors, in the order of fit->factors, have these VALUES. */
void model_fit_row(const struct model_fit *fit, const double *values, double *ret_terms);
/* The terms of every row of DESIGN, row by row, in *RET, which the caller frees. Refused: a factor that is no
 * column, or one of texts, or a term that no double can hold. */
int model_fit_terms(const struct model_fit *fit, const struct design *design, double **ret,
                    struct failure *failure);
/* The standard deviation of a measurement in a group where its TERMS are these: the noise's where that is not
 * the same everywhere, otherwise the group's sigma. *RET_VARIES: which of both. */
double model_fit_sigma(const struct model_fit *fit, size_t group, const double *terms, bool *ret_varies);
/* The response that a group predicts where its TERMS are these. */
double model_fit_response(const struct model_fit *fit, size_t group, const double *terms);

#endif
