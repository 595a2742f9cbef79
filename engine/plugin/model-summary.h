/* What one asks of a model before its terms: how much it was fitted to, how many numbers it has, how good it
 * is. Of all its groups together. */
#ifndef ASSAY_PLUGIN_MODEL_SUMMARY_H
#define ASSAY_PLUGIN_MODEL_SUMMARY_H

#include "engine/plugin/model.h"

enum { MODEL_SUMMARY_BY_MAX = 64 };

struct model_summary {
    uint64_t rows;
    uint64_t parameters; /* model_summary_parameters */
    uint64_t of_noise;   /* of these; the others are of the mean */
    const char *noise;   /* "N-1", "mixture"; "N-0" where it tells of none; "several" */
    double bic;          /* the sum over groups */
    /* On rows left out of the fit, by cross-validation: pooled over groups. NaN where a group does not say.
     */
    double cv_rmse, cv_relative, cv_log_score;
    double folds;                         /* NaN where they differ */
    const char *plugin, *version;         /* or NULL */
    const char *by[MODEL_SUMMARY_BY_MAX]; /* columns that form the groups; the document's */
    size_t by_count;
};

/* The texts are MODEL's. */
int model_summary_read(const struct model *model, struct model_summary *ret, struct failure *failure);

/* Coefficients that were not dropped, breaks, and those of the noise, of all groups. */
uint64_t model_summary_parameters(const struct predict_model *view);
/* Why the errors of two files on rows left out are not of the same rows, as a clause ("they are of different
 * data"); NULL: they are. */
const char *model_summary_difference(const struct model *a, const struct model *b);
/* The standard error of a part's estimate; NaN where it is not known. */
double model_summary_standard_error(const struct predict_model *view, const struct predict_part *part,
                                    size_t term);
/* Where a column was observed in all groups together; false where no group says. */
bool model_summary_domain(const struct predict_model *view, const char *name, double *ret_minimum,
                          double *ret_maximum);

#endif
