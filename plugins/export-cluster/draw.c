#include "plugins/export-cluster/cluster.h"

#include "engine/numerics/cholesky.h"
#include "engine/numerics/random.h"

#include <string.h>

static const double rounding = 1e-9;

/* The factor F of covariance C = F F'. Eigenvalues of the correlations that rounding or the logarithm made
 * negative are raised to almost 0. Returns whether that changed C by more than rounding. */
static bool factorise(size_t p, double *c, double *factor) {
    double scale[COEFFICIENTS_MAX], values[COEFFICIENTS_MAX];
    static _Thread_local double vectors[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    bool changed = false;
    for (size_t i = 0; i < p; i++)
        scale[i] = sqrt(c[i * p + i]);
    for (size_t i = 0; i < p * p; i++)
        c[i] = i / p == i % p ? 1 : scale[i / p] * scale[i % p] > 0 ? c[i] / scale[i / p] / scale[i % p] : 0;
    if (cholesky_factor(p, c, factor) < 0 && cholesky_eigen(p, c, values, vectors) == 0) {
        changed = values[0] < -rounding;
        for (size_t e = 0; e < p; e++)
            for (size_t i = 0; values[e] < 1e-13 && i < p * p; i++)
                c[i] +=
                    (1e-13 * (double)(e + 2) - values[e]) * vectors[i % p + e * p] * vectors[i / p + e * p];
        changed |= cholesky_factor(p, c, factor) < 0;
    }
    for (size_t i = 0; i < p * p; i++)
        factor[i] *= scale[i % p];
    return changed;
}

/* A draw with MEAN and covariance SIGMA. Coefficient i that must be positive is e^y_i, otherwise y_i, where y
 * is normal with covariance log(1 + s_ij / (m_i m_j)), s_ij / m_i, or s_ij if both, one, or none of i and j
 * are positive. -EDOM: such a covariance does not exist. */
static int draw_values(struct cluster *cluster, const double *mean, const double *sigma, const char *stream,
                       uint64_t index, double *ret, struct plugin_message *message) {
    size_t p = cluster->count;
    static _Thread_local double c[COEFFICIENTS_MAX * COEFFICIENTS_MAX],
        f[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    double z[COEFFICIENTS_MAX];
    const bool *positive = cluster->positive;
    for (size_t i = 0; i < p; i++)
        for (size_t j = 0; j < p; j++) {
            double s = sigma[i * p + j] / (positive[i] ? mean[i] : 1) / (positive[j] ? mean[j] : 1);
            if (positive[i] && positive[j] && s <= -1)
                return plugin_refuse(message, -EDOM,
                                     "the covariance of '%.200s' and '%.200s' is too negative for values "
                                     "that are above 0; no machine can be drawn",
                                     cluster->model->terms[i].name, cluster->model->terms[j].name);
            c[i * p + j] = positive[i] && positive[j] ? random_log(1 + s) : s;
        }
    for (size_t i = 0; i < p; i++) {
        z[i] = cluster->inputs->normal(cluster->inputs->context, stream, index * COEFFICIENTS_MAX + i);
        ret[i] = positive[i] ? random_log(mean[i]) - c[i * p + i] / 2 : mean[i];
    }
    cluster->changed += factorise(p, c, f);
    for (size_t i = 0; i < p; i++) {
        for (size_t j = 0; j <= i; j++)
            ret[i] += f[i + j * p] * z[j];
        ret[i] = positive[i] ? random_exp(ret[i]) : ret[i];
    }
    return 0;
}

static bool is_component(const struct model_part *part) {
    return strcmp(part->kind, "component") == 0;
}

static const struct model_part *find_days(const struct model_group *group) {
    for (size_t i = 0; i < group->part_count; i++)
        if (strcmp(group->parts[i].kind, "days") == 0 && group->parts[i].covariance)
            return &group->parts[i];
    return NULL;
}

/* -EINVAL unless a part has means and a valid covariance. Marks coefficients whose means are all above 0. */
static int check_part(struct cluster *cluster, const struct model_part *part,
                      struct plugin_message *message) {
    static _Thread_local double factor[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    for (size_t i = 0; is_component(part) && i < cluster->count; i++) {
        if (!isfinite(part->estimates[i].estimate))
            return plugin_refuse(message, -EINVAL, "the group '%.200s' of the model has no mean of '%.200s'",
                                 cluster->group->name, cluster->model->terms[i].name);
        cluster->positive[i] = cluster->positive[i] && part->estimates[i].estimate > 0;
    }
    if (!part->covariance || cholesky_factor_semidefinite(cluster->count, part->covariance, factor) < 0)
        return plugin_refuse(message, -EINVAL,
                             "the covariance of the part '%.64s' of the group '%.200s' is missing, "
                             "or is not positive semidefinite; fit the model again",
                             part->kind, cluster->group->name);
    return 0;
}

/* Checks the population. -EINVAL: it cannot be drawn from. */
int cluster_open(struct cluster *cluster, struct plugin_message *message) {
    const struct model_group *group = cluster->group;
    double weight = 0;
    int r = 0;
    cluster->count = cluster->model->term_count;
    if (cluster->count > COEFFICIENTS_MAX)
        return plugin_refuse(message, -EINVAL, "the model has %zu coefficients; expected at most %d",
                             cluster->count, COEFFICIENTS_MAX);
    for (size_t i = 0; i < cluster->count; i++)
        cluster->positive[i] = true;
    for (size_t i = 0; r == 0 && i < group->part_count; i++)
        if (is_component(&group->parts[i])) {
            weight += predict_part_value(&group->parts[i], "weight");
            r = check_part(cluster, &group->parts[i], message);
        }
    if (r == 0 && !(fabs(weight - 1) < 1e-6))
        return plugin_refuse(message, -EINVAL,
                             "the weights of the components of the group '%.200s' add up to %g; expected 1",
                             group->name, weight);
    if (r == 0 && cluster->days > 0 && !find_days(group))
        return plugin_refuse(message, -EINVAL,
                             "the group '%.200s' has no covariance between days; set days=0 to draw "
                             "machines without days",
                             group->name);
    return r < 0 || cluster->days == 0 ? r : check_part(cluster, find_days(group), message);
}

/* Draws machine C: first its population, then its coefficients into VALUES. */
int cluster_machine(struct cluster *cluster, size_t c, double *values, const char **ret_name,
                    struct plugin_message *message) {
    const struct predict_inputs *inputs = cluster->inputs;
    const struct model_part *chosen = NULL;
    double share = inputs->uniform(inputs->context, "population", c), mean[COEFFICIENTS_MAX];
    for (size_t i = 0; i < cluster->group->part_count && (!chosen || share >= 0); i++)
        if (is_component(&cluster->group->parts[i])) {
            chosen = &cluster->group->parts[i];
            share -= predict_part_value(chosen, "weight");
        }
    for (size_t i = 0; i < cluster->count; i++)
        mean[i] = chosen->estimates[i].estimate;
    *ret_name = chosen->name ? chosen->name : "";
    return draw_values(cluster, mean, chosen->covariance, "machine", c, values, message);
}

int cluster_day(struct cluster *cluster, size_t c, size_t day, const double *machine, double *values,
                struct plugin_message *message) {
    return draw_values(cluster, machine, find_days(cluster->group)->covariance, "day",
                       (uint64_t)c << 24 | (uint64_t)day, values, message);
}
