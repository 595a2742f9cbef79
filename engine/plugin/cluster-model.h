/*
 * A drawn cluster as a model file of the kind `linear` (plugins/interface/MODEL.md), one group a machine:
 * what predictors take. For that each coefficient must be known to be the one of a term, or of the noise:
 *
 *     target := term | "sigma(" term ")" | "none"
 *     term   := "1" | factor { "*" factor }        factor := column [ "^" whole number ]
 *
 * Names tell much themselves: "1" and "intercept" are 1; m, n and k, each at most once, in one word (mnk) are
 * their product; what has a "*" or "^" is read as a term; "X_residual" and "sigma(X)" are the sigma of what X
 * is, and "sigma" that of 1.
 */
#ifndef ASSAY_PLUGIN_CLUSTER_MODEL_H
#define ASSAY_PLUGIN_CLUSTER_MODEL_H

#include "engine/foundation/text.h"
#include "engine/plugin/cluster.h"
#include "engine/plugin/model.h"

enum { CLUSTER_FACTORS_MAX = 8, CLUSTER_NAME_SIZE = 64 };

/* What one coefficient is. */
struct cluster_target {
    enum { CLUSTER_NONE, CLUSTER_MEAN, CLUSTER_SIGMA } kind;
    char term[CLUSTER_FACTORS_MAX * (CLUSTER_NAME_SIZE + 8)]; /* its name, spelled one way: "1", "m*n^2" */
    struct {
        char column[CLUSTER_NAME_SIZE];
        int power;
    } factors[CLUSTER_FACTORS_MAX];
    size_t factor_count;
};

/* NAME is that of a coefficient; AS what the user says it is, or NULL. FAILURE_INPUT when it cannot be known.
 */
int cluster_target_read(const char *name, const char *as, struct cluster_target *ret,
                        struct failure *failure);

struct cluster_model_settings {
    const struct cluster_target *targets; /* one for each coefficient */
    const char *response;                 /* the column that the terms explain */
    const char *path;                     /* of the population model, for its hash */
};

/* Appends the model file. FAILURE_INPUT where a sigma is of a term that no coefficient is, or two are of the
 * same one; -EFBIG where the cluster is larger than what models may be (see TEXT's limit). */
int cluster_model_append(const struct model *model, const struct cluster *cluster,
                         const struct cluster_model_settings *settings, struct text *text,
                         struct failure *failure);

/* The labels of row ROW: "node-3", 0, 1 (from 0 and from 1). */
struct cluster_place {
    char node[32];
    size_t cpu, day;
};
struct cluster_place cluster_place(const struct cluster *cluster, size_t row);

/* The unit of coefficient I as the model file tells it, or NULL. */
const char *cluster_unit(const struct model *model, size_t i);

#endif
