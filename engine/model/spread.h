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

/* Adds a value; one that is not finite is ignored. */
void model_spread_add(struct model_spread *spread, double value);
void model_spread_clear(struct model_spread *spread);
/* The quantile SHARE (0 to 1) of the values; NaN if there are none. Sorts the values. */
double model_spread_quantile(struct model_spread *spread, double share);
/* The range of COLUMN over the domains of COUNT groups; false if no domain has it. */
bool model_spread_range(const struct model_group *groups, size_t count, const char *column, double *ret_low,
                        double *ret_high);
/* The values called NAME of all groups that have one. */
struct model_spread model_spread_collect(const struct model *model, const char *name);

#endif
