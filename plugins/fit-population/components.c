#include "plugins/fit-population/components.h"

#include "plugins/numerics/random.h"

#include <errno.h>
#include <gsl/gsl_linalg.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FIRST_STEPS = 30,
    LAST_STEPS = 3000,
    GO_ON = 3, /* starts that go on to the end */
    SHARES = 5,
};

/* The least variance in any direction, relative to that of all machines: a component must not become flat. */
static const double flattest = 1e-6;
static const double log_2pi = 1.83787706640934548356;

struct work {
    size_t p, machines;
    const double *at; /* the means, scaled to mean 0 and deviation 1 */
    double *shares;   /* of each machine in each component */
    double *ranks;    /* of the machines by the first coefficient, from 0 to below 1 */
    struct random_numbers numbers;
};

/* ---- EM */

/* log of (weight x normal density) of each machine into the shares of component K; false where the covariance
 * cannot be factorised. */
static bool weigh(const struct work *work, const struct components *components, size_t k) {
    size_t p = work->p;
    double factor[COEFFICIENTS_MAX * COEFFICIENTS_MAX], log_determinant = 0;
    memcpy(factor, components->of[k].sigma, p * p * sizeof *factor);
    gsl_matrix_view a = gsl_matrix_view_array(factor, p, p);
    if (gsl_linalg_cholesky_decomp1(&a.matrix) != 0)
        return false;
    for (size_t i = 0; i < p; i++)
        log_determinant += 2 * log(factor[i * p + i]);
    double constant = log(components->of[k].weight) - 0.5 * (log_determinant + (double)p * log_2pi);
    for (size_t c = 0; c < work->machines; c++) {
        double z[COEFFICIENTS_MAX], square = 0;
        for (size_t i = 0; i < p; i++) {
            z[i] = work->at[c * p + i] - components->of[k].mu[i];
            for (size_t j = 0; j < i; j++)
                z[i] -= factor[i * p + j] * z[j];
            z[i] /= factor[i * p + i];
            square += z[i] * z[i];
        }
        work->shares[c * POPULATIONS_MAX + k] = constant - 0.5 * square;
    }
    return true;
}

static bool expect(const struct work *work, struct components *components) {
    for (size_t k = 0; k < components->count; k++)
        if (!weigh(work, components, k))
            return false;
    components->log_likelihood = 0;
    for (size_t c = 0; c < work->machines; c++) {
        double *shares = work->shares + c * POPULATIONS_MAX, most = -INFINITY, sum = 0;
        for (size_t k = 0; k < components->count; k++)
            most = fmax(most, shares[k]);
        for (size_t k = 0; k < components->count; k++)
            sum += shares[k] = exp(shares[k] - most);
        for (size_t k = 0; k < components->count; k++)
            shares[k] /= sum;
        components->log_likelihood += most + log(sum);
    }
    return isfinite(components->log_likelihood);
}

/* Sum of the shares of component K, and the means they give. */
static double centre(const struct work *work, size_t k, double *mu) {
    double weight = 0;
    memset(mu, 0, work->p * sizeof *mu);
    for (size_t c = 0; c < work->machines; c++) {
        double share = work->shares[c * POPULATIONS_MAX + k];
        weight += share;
        for (size_t i = 0; i < work->p; i++)
            mu[i] += share * work->at[c * work->p + i];
    }
    for (size_t i = 0; i < work->p; i++)
        mu[i] /= weight > 0 ? weight : 1;
    return weight;
}

static void add_spread(const struct work *work, size_t k, const double *mu, double divisor, double *sigma) {
    size_t p = work->p;
    for (size_t c = 0; c < work->machines; c++) {
        double share = work->shares[c * POPULATIONS_MAX + k] / divisor;
        const double *at = work->at + c * p;
        for (size_t i = 0; i < p; i++)
            for (size_t j = 0; j < p; j++)
                sigma[i * p + j] += share * (at[i] - mu[i]) * (at[j] - mu[j]);
    }
}

/* Means, weights and covariances by the shares; what is taken off the weights as divisors is LESS. Whether
 * each component has machines enough. */
static bool maximise(const struct work *work, struct components *components, double less) {
    size_t p = work->p, count = components->count;
    double weights[POPULATIONS_MAX], all = (double)work->machines;
    bool carried = true;
    double least = components->shared ? 2 : (double)p + 2;
    for (size_t k = 0; k < count; k++) {
        struct component *component = &components->of[k];
        weights[k] = centre(work, k, component->mu);
        component->weight = weights[k] / all;
        carried = carried && (count == 1 || weights[k] >= least * (1 - 1e-6));
        memset(component->sigma, 0, sizeof component->sigma);
    }
    static const double ones[COEFFICIENTS_MAX] = {1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1};
    for (size_t k = 0; k < count; k++) {
        struct component *component = &components->of[k], *first = &components->of[0];
        double divisor = components->shared ? all - less * (double)count : weights[k] - less;
        add_spread(work, k, component->mu, fmax(divisor, 1e-3),
                   components->shared ? first->sigma : component->sigma);
    }
    for (size_t k = 0; k < count; k++) {
        if (components->shared && k > 0)
            memcpy(components->of[k].sigma, components->of[0].sigma, p * p * sizeof(double));
        else if (less == 0)
            moments_make_definite(p, components->of[k].sigma, ones, flattest);
    }
    return carried;
}

/* At most STEPS steps; whether it is still a mixture of what was asked for. */
static bool climb(const struct work *work, struct components *components, int steps) {
    double last = -INFINITY;
    for (int i = 0; i < steps; i++) {
        if (!expect(work, components) || !maximise(work, components, 0))
            return false;
        if (components->log_likelihood - last < 1e-11 * fabs(last))
            break;
        last = components->log_likelihood;
    }
    return expect(work, components);
}

/* ---- Places to begin at */

static void begin_at_shares(const struct work *work, size_t count, bool shared, struct components *ret) {
    *ret = (struct components){.count = count, .shared = shared};
    maximise(work, ret, 0);
    for (size_t k = 0; k < count; k++)
        ret->of[k].weight = fmax(ret->of[k].weight, 1e-6);
}

/* The slowest (or fastest, from the other end) SHARE of the machines by the first coefficient are one, the
 * others are cut into equal parts. */
static void cut(const struct work *work, size_t count, double share, bool slowest) {
    for (size_t c = 0; c < work->machines; c++) {
        double rank = slowest ? 1 - work->ranks[c] : work->ranks[c];
        size_t k = 0;
        if (rank >= share)
            k = 1 + (size_t)((rank - share) / (1 - share) * (double)(count - 1));
        for (size_t i = 0; i < count; i++)
            work->shares[c * POPULATIONS_MAX + i] = i == (k < count ? k : count - 1);
    }
}

static double distance(const struct work *work, size_t a, size_t b) {
    double sum = 0;
    for (size_t i = 0; i < work->p; i++) {
        double apart = work->at[a * work->p + i] - work->at[b * work->p + i];
        sum += apart * apart;
    }
    return sum;
}

static double nearest_centre(const struct work *work, size_t machine, const size_t *centres, size_t count,
                             size_t *ret) {
    double least = INFINITY;
    *ret = 0;
    for (size_t k = 0; k < count; k++) {
        double d = distance(work, machine, centres[k]);
        if (d < least) {
            least = d;
            *ret = k;
        }
    }
    return least;
}

/* k-means++: machines as centres, each drawn in proportion to its squared distance from those before. */
static void draw(struct work *work, size_t count) {
    size_t centres[POPULATIONS_MAX], k;
    centres[0] = (size_t)(random_numbers_fraction(&work->numbers) * (double)work->machines);
    for (size_t i = 1; i < count; i++) {
        double total = 0, passed = 0;
        for (size_t c = 0; c < work->machines; c++)
            total += nearest_centre(work, c, centres, i, &k);
        double share = random_numbers_fraction(&work->numbers) * total;
        centres[i] = work->machines - 1;
        for (size_t c = 0; c < work->machines && passed <= share; c++) {
            passed += nearest_centre(work, c, centres, i, &k);
            centres[i] = c;
        }
    }
    for (size_t c = 0; c < work->machines; c++) {
        nearest_centre(work, c, centres, count, &k);
        for (size_t i = 0; i < count; i++)
            work->shares[c * POPULATIONS_MAX + i] = i == k;
    }
}

/* ---- Search */

static void keep(struct components *kept, size_t *count, const struct components *found) {
    size_t at = *count;
    while (at > 0 && kept[at - 1].log_likelihood < found->log_likelihood)
        at--;
    if (at == GO_ON)
        return;
    if (*count < GO_ON)
        ++*count;
    for (size_t i = *count - 1; i > at; i--)
        kept[i] = kept[i - 1];
    kept[at] = *found;
}

static bool search(struct work *work, const struct components_settings *settings, size_t count, bool shared,
                   struct components *ret) {
    static const double shares[SHARES] = {0.03, 0.06, 0.12, 0.25, 0.5};
    struct components kept[GO_ON], found;
    size_t kept_count = 0, places = count == 1 ? 1 : 2 * SHARES + settings->starts;
    for (size_t i = 0; i < places; i++) {
        if (i < 2 * SHARES)
            cut(work, count, count == 1 ? 1 : shares[i / 2], i % 2);
        else
            draw(work, count);
        if (count == 1)
            for (size_t c = 0; c < work->machines; c++)
                work->shares[c * POPULATIONS_MAX] = 1;
        begin_at_shares(work, count, shared, &found);
        if (climb(work, &found, FIRST_STEPS))
            keep(kept, &kept_count, &found);
    }
    bool any = false;
    for (size_t i = 0; i < kept_count; i++)
        if (climb(work, &kept[i], LAST_STEPS) && (!any || kept[i].log_likelihood > ret->log_likelihood)) {
            *ret = kept[i];
            any = true;
        }
    double p = (double)work->p, k = (double)count;
    ret->parameters = k - 1 + k * p + (shared ? 1 : k) * p * (p + 1) / 2;
    return any;
}

double components_bic(const struct components *components, size_t machines) {
    return -2 * components->log_likelihood + components->parameters * log((double)machines);
}

static bool search_all(struct work *work, const struct components_settings *settings,
                       struct components *ret) {
    size_t least = settings->count ? settings->count : 1;
    size_t most = settings->count ? settings->count : POPULATIONS_MAX;
    bool any = false;
    for (size_t count = least; count <= most; count++)
        for (int shape = SHAPE_SHARED; shape <= SHAPE_OWN; shape++) {
            bool wanted = settings->shape == SHAPE_BEST || (int)settings->shape == shape;
            struct components found;
            if ((count == 1 ? shape == SHAPE_OWN : !wanted) || work->machines < count ||
                !search(work, settings, count, shape == SHAPE_SHARED, &found))
                continue;
            if (!any || components_bic(&found, work->machines) < components_bic(ret, work->machines))
                *ret = found;
            any = true;
        }
    return any;
}

/* ---- Scales */

struct ranked {
    double value;
    size_t machine;
};

static int compare(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return (a->machine > b->machine) - (a->machine < b->machine);
}

static int rank(const struct moments *moments, double *ret) {
    struct ranked *sorted = malloc(moments->machines * sizeof *sorted);
    if (!sorted)
        return -ENOMEM;
    for (size_t c = 0; c < moments->machines; c++)
        sorted[c] = (struct ranked){moments->means[c * moments->p], c};
    qsort(sorted, moments->machines, sizeof *sorted, compare);
    for (size_t i = 0; i < moments->machines; i++)
        ret[sorted[i].machine] = (double)i / (double)moments->machines;
    free(sorted);
    return 0;
}

/* Deviations of the machines' means; 1 where there is none. */
static void measure(const struct moments *moments, double *ret) {
    for (size_t i = 0; i < moments->p; i++) {
        double most = 0, sum = 0;
        for (size_t c = 0; c < moments->machines; c++)
            most = fmax(most, fabs(moments->means[c * moments->p + i]));
        for (size_t c = 0; most > 0 && c < moments->machines; c++) {
            double away = moments->means[c * moments->p + i] / most;
            sum += away * away;
        }
        ret[i] = most > 0 ? most * sqrt(sum / (double)moments->machines) : 1;
    }
}

static void unscale(const struct moments *moments, const double *scale, struct components *components) {
    size_t p = moments->p;
    for (size_t i = 0; i < p; i++)
        components->log_likelihood -= (double)moments->machines * log(scale[i]);
    for (size_t k = 0; k < components->count; k++)
        for (size_t i = 0; i < p; i++) {
            components->of[k].mu[i] = moments->mu[i] + scale[i] * components->of[k].mu[i];
            for (size_t j = 0; j < p; j++)
                components->of[k].sigma[i * p + j] *= scale[i] * scale[j];
        }
    for (size_t i = 1; i < components->count; i++)
        for (size_t j = i; j > 0 && components->of[j].mu[0] < components->of[j - 1].mu[0]; j--) {
            struct component moved = components->of[j];
            components->of[j] = components->of[j - 1];
            components->of[j - 1] = moved;
        }
}

int components_find(const struct moments *moments, const struct components_settings *settings,
                    struct components *ret) {
    size_t p = moments->p, machines = moments->machines;
    double *memory = malloc(machines * (p + 1 + POPULATIONS_MAX) * sizeof *memory);
    if (!memory)
        return -ENOMEM;
    double scale[COEFFICIENTS_MAX], *at = memory + machines * (POPULATIONS_MAX + 1);
    struct work work = {p, machines, at, memory, memory + machines * POPULATIONS_MAX, {settings->seed}};
    measure(moments, scale);
    for (size_t c = 0; c < machines; c++)
        for (size_t i = 0; i < p; i++)
            at[c * p + i] = moments->means[c * p + i] / scale[i];
    int r = rank(moments, work.ranks);
    if (r == 0 && !search_all(&work, settings, ret))
        r = -EDOM;
    if (r == 0) { /* once more, now with the divisors that are told */
        double parameters = ret->parameters, log_likelihood = ret->log_likelihood;
        expect(&work, ret);
        maximise(&work, ret, 1);
        ret->parameters = parameters;
        ret->log_likelihood = log_likelihood;
        unscale(moments, scale, ret);
    }
    free(memory);
    return r;
}
