/*
 * A synthetic cluster: machines drawn from a model of the kind `population`
 * (plugins/fit-population/README.md)
 *
 *     x_cd = mu_k + S_c + T_cd
 *
 * the population k of machine c drawn by the weights, S_c ~ N(0, Sigma_S of k), T_cd ~ N(0, Sigma_T). The
 * same model, settings and seed give the same cluster on every machine; with more nodes, the first are the
 * same.
 *
 * A coefficient whose mean is positive in every population must be positive (a time is): a machine, or a day
 * of it, that has one which is not is drawn again, whole. So what is drawn is the normal given that it is
 * possible.
 */
#ifndef ASSAY_PLUGIN_CLUSTER_H
#define ASSAY_PLUGIN_CLUSTER_H

#include "engine/foundation/failure.h"
#include "plugins/interface/predict.h"

#include <stddef.h>
#include <stdint.h>

enum {
    CLUSTER_ROWS_MAX = 1 << 24,
    CLUSTER_COEFFICIENTS_MAX = 64,
    CLUSTER_POPULATIONS_MAX = 16,
    CLUSTER_REDRAWS_MAX = 1000, /* of one machine or day */
};

struct cluster_settings {
    const char *group; /* of the model; NULL where it has one */
    size_t nodes, cpus;
    size_t days; /* 0: what machines are like in the long run, without T */
    uint64_t seed;
};

struct cluster {
    const struct predict_model *model; /* borrowed */
    const struct predict_group *group;
    struct cluster_settings settings;
    size_t coefficient_count; /* the model's terms */
    size_t row_count;         /* nodes x cpus x days, in this order; days are 1 where they are 0 */
    double *values;           /* of each row the coefficients */
    size_t *populations;      /* of each machine: index of its part in the group */
    size_t redrawn;           /* machines and days that were impossible */
};

/* MODEL and the texts of SETTINGS must outlive the cluster. A model of another kind, a group that is not
 * there, and covariances that are those of no distribution are FAILURE_INPUT. */
int cluster_draw(const struct predict_model *model, const struct cluster_settings *settings,
                 struct cluster **ret, struct failure *failure);
void cluster_free(struct cluster *cluster);     /* NULL is fine */
void cluster_cleanup(struct cluster **cluster); /* for cleanup() */

#endif
