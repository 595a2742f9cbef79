/* How a number differs between the groups of a model. */
#ifndef ASSAY_MODEL_SPREAD_H
#define ASSAY_MODEL_SPREAD_H

#include <assay/model.h>

#include <stdbool.h>
#include <stddef.h>

struct model_spread {
    double *values; /* that are finite */
    size_t count;
};

/* Leaves out what is not finite. */
void model_spread_add(struct model_spread *spread, double value);
void model_spread_clear(struct model_spread *spread);
/* The value that the share SHARE of them lies below; NaN where there are none. Puts them into ascending
 * order. */
double model_spread_quantile(struct model_spread *spread, double share);
/* Where any of COUNT groups was observed, of a column; false where none says so. */
bool model_spread_range(const struct model_group *groups, size_t count, const char *column, double *ret_low,
                        double *ret_high);
/* The values called NAME of all groups that have one. */
struct model_spread model_spread_collect(const struct model *model, const char *name);

#endif
