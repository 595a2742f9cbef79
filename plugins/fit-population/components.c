#include "plugins/fit-population/population.h"

#include "engine/numerics/cholesky.h"

#include <stdlib.h>
#include <string.h>

/* Least standard deviation of a population in any direction, relative to that of all machines. */
static const double narrowest = 1e-3;

/* The population of all machines as one: mean and covariance of the machines' means. */
static void describe_single(const struct machines *machines, struct population *ret) {
    size_t p = machines->p, count = machines->count;
    double n = (double)count, factor[COEFFICIENTS_MAX * COEFFICIENTS_MAX];
    struct component *one = &ret->of[0];
    *ret = (struct population){.count = 1, .of = {{.weight = 1}}};
    ret->parameters = (double)(p + p * (p + 1) / 2);
    for (size_t m = 0; m < count * p; m++)
        one->mu[m / count] += machines->means[m] / n;
    for (size_t i = 0; i < p * p; i++) {
        const double *left = machines->means + i / p * count, *right = machines->means + i % p * count;
        for (size_t m = 0; m < count; m++)
            one->sigma[i] += (left[m] - one->mu[i / p]) * (right[m] - one->mu[i % p]) / (n - 1);
    }
    ret->log_likelihood = NAN;
    if (cholesky_factor(p, one->sigma, factor) == 0)
        ret->log_likelihood =
            -n / 2 * (cholesky_log_determinant(p, factor) + (double)p * (log((n - 1) / n * 2 * M_PI) + 1));
}

/* Finds COMPONENTS populations as a mixture of normals, with one covariance for all if SHARED. Covariances
 * have the divisor that makes them unbiased for one population, the weight of the machines less 1. -EDOM: no
 * such mixture; -ENOMEM. */
static int find_mixture(const struct machines *machines, const struct fit_request *request, size_t components,
                        bool shared, struct population *ret) {
    size_t p = machines->p, own = p * (p + 1) / 2;
    double n = (double)machines->count, k = (double)components;
    const struct mixture_request wanted = {.components = components,
                                           .shared = shared,
                                           .floor = narrowest,
                                           .least = shared ? 2 : (double)(p + 2),
                                           .starts = (size_t)request->values[STARTS].number,
                                           .seed = request->seed};
    struct mixture mixture = {0};
    int r = mixture_fit(machines->count, p, machines->means, machines->count, NULL, &wanted, &mixture);
    *ret = (struct population){.count = components,
                               .shared = shared,
                               .log_likelihood = mixture.log_likelihood,
                               .parameters = k - 1 + k * (double)p + (shared ? 1 : k) * (double)own};
    for (size_t c = 0; r == 0 && c < components; c++) {
        struct component *to = &ret->of[c];
        to->weight = mixture.weight[c];
        memcpy(to->mu, mixture.mean + c * p, p * sizeof *to->mu);
        double members = to->weight * n, factor = shared ? n / (n - k) : members / (members - 1);
        for (size_t i = 0; i < p * p; i++)
            to->sigma[i] = mixture.covariance[c * p * p + i] * factor;
    }
    mixture_clear(&mixture);
    return r == -EINVAL ? -EDOM : r;
}

/* Names the populations: the one with most machines is typical; coefficients are costs, so those with greater
 * ones are slow, others fast. */
static void name_components(struct population *population) {
    size_t typical = 0;
    for (size_t k = 1; k < population->count; k++)
        if (population->of[k].weight > population->of[typical].weight)
            typical = k;
    for (size_t k = 0; k < population->count; k++) {
        size_t away = k > typical ? k - typical : typical - k;
        char *name = population->of[k].name;
        snprintf(name, sizeof population->of[k].name, "%s",
                 !away         ? "typical"
                 : k > typical ? "slow"
                               : "fast");
        if (away > 1)
            snprintf(name + 4, sizeof population->of[k].name - 4, "-%zu", away);
    }
}

/* Assigns each machine to the population with the greatest weight times density. -ENOMEM, -EDOM. */
static int assign_machines(const struct machines *machines, struct population *population) {
    size_t p = machines->p;
    double factors[POPULATIONS_MAX][COEFFICIENTS_MAX * COEFFICIENTS_MAX], away[COEFFICIENTS_MAX];
    population->component = calloc(machines->count + 1, sizeof *population->component);
    if (!population->component)
        return -ENOMEM;
    for (size_t k = 0; population->count > 1 && k < population->count; k++)
        if (cholesky_factor(p, population->of[k].sigma, factors[k]) < 0)
            return -EDOM;
    for (size_t m = 0; population->count > 1 && m < machines->count; m++) {
        double best = -INFINITY, scratch[COEFFICIENTS_MAX];
        for (size_t k = 0; k < population->count; k++) {
            for (size_t j = 0; j < p; j++)
                away[j] = machines->means[m + j * machines->count] - population->of[k].mu[j];
            double height = log(population->of[k].weight) - cholesky_log_determinant(p, factors[k]) / 2 -
                            cholesky_mahalanobis(p, factors[k], away, scratch) / 2;
            if (height > best) {
                best = height;
                population->component[m] = k;
            }
        }
    }
    return 0;
}

/* Finds the populations: as many as are asked for, or the number with the least BIC. -EDOM: none can be
 * found. To be cleared after failures too. */
int population_find(const struct machines *machines, const struct fit_request *request,
                    struct population *ret) {
    size_t asked = (size_t)request->values[COMPONENTS].number;
    enum shape shape = (enum shape)request->values[SHAPE].number;
    double n = (double)machines->count;
    int r = 0;
    describe_single(machines, ret);
    ret->bic = asked > 1 ? INFINITY : ret->parameters * log(n) - 2 * ret->log_likelihood;
    for (size_t k = asked ? asked : 2; asked != 1 && k <= (asked ? asked : POPULATIONS_MAX); k++)
        for (int shared = 0; shared < 2; shared++) {
            struct population tried;
            if (shape == (shared ? SHAPE_OWN : SHAPE_SHARED))
                continue;
            r = find_mixture(machines, request, k, shared, &tried);
            if (r < 0 && r != -EDOM)
                return r;
            tried.bic = tried.parameters * log(n) - 2 * tried.log_likelihood;
            if (r == 0 && tried.bic < ret->bic)
                *ret = tried;
        }
    if (isinf(ret->bic))
        return -EDOM;
    name_components(ret);
    return assign_machines(machines, ret);
}

void population_clear(struct population *population) {
    free(population->component);
}
