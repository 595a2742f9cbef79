/*
 * Machines drawn from a model of the kind `population` (../fit-population/README.md)
 *
 *     x_cd = mu_k + S_c + T_cd
 *
 * the population k of machine c by the weights, S_c with the covariance of population k, T_cd with that of
 * the days. A coefficient that is positive in the mean of every population is log-normal about its mean, the
 * others are normal; README.md has the formulas, which keep means and covariances. Machine c is the same
 * however many there are.
 */
#ifndef ASSAY_EXPORT_CLUSTER_CLUSTER_H
#define ASSAY_EXPORT_CLUSTER_CLUSTER_H

#include <assay/predict.h>

enum { COEFFICIENTS_MAX = 64, TERM_MAX = 512 };

/* ---- What coefficients are */

/* TERM is a product of columns, SIGMA whether it is the coefficient of the noise and not of the mean. */
struct target {
    enum { TARGET_NONE, TARGET_MEAN, TARGET_SIGMA } kind;
    char term[TERM_MAX]; /* "1", "m*n^2"; "": none */
};

/* The column and power of the factor at AT of a term; where it ends, or NULL: it is none. */
const char *target_factor(const char *at, char column[static TERM_MAX], int *power);

/* From the NAME of a coefficient, or from AS, what the user says that it is; NULL: nothing. */
int target_read(const char *name, const char *as, struct target *ret, struct plugin_message *message);

/* ---- Drawing */

struct cluster {
    const struct model *model;
    const struct model_group *group;
    const struct predict_inputs *inputs;
    size_t nodes, cpus, days; /* days 0: what machines are like in the long run, without T */
    size_t count;             /* of the coefficients, the model's terms */
    bool positive[COEFFICIENTS_MAX];
    size_t changed; /* draws whose covariance no positive values can have: the nearest one was taken */
};

/* Checks the group: weights that add up to 1, means, covariances that are some. */
int cluster_open(struct cluster *cluster, struct plugin_message *message);
/* The coefficients of machine C to VALUES (count); its population's name, or "". */
int cluster_machine(struct cluster *cluster, size_t c, double *values, const char **ret_name,
                    struct plugin_message *message);
/* Those on DAY, from 0, of machine C, which is MACHINE in the mean. */
int cluster_day(struct cluster *cluster, size_t c, size_t day, const double *machine, double *values,
                struct plugin_message *message);

/* ---- Writing */

/* A line for each machine and day; or a model of the kind `linear` with a group for each. */
int cluster_write_table(struct cluster *cluster, struct predict_output *output,
                        struct plugin_message *message);
int cluster_write_model(struct cluster *cluster, struct target *targets, const char *response,
                        struct predict_output *output, struct plugin_message *message);
/* The name of coefficient I. */
const char *cluster_coefficient(const struct model *model, size_t i);

#endif
