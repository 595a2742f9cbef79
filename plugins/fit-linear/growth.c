/* noise=auto: noise that is constant, in proportion to the mean, or the sum of both. README.md has the rule.
 */
#include "plugins/fit-linear/linear.h"

#include "engine/numerics/logarithm.h"

#include <stdlib.h>
#include <string.h>

/* Candidates of lambda = constant / ratio: FIRST times the greatest mean, then halves of it, or quarters
 * where rows are many and the likelihood is narrow; then more about the best. */
enum { FIRST = 4, STEPS_DOWN_MAX = 24, REFINEMENTS = 3, ITERATIONS = 2, MANY_ROWS = 16 };
enum { CANDIDATES_MAX = 2 + STEPS_DOWN_MAX + 2 * REFINEMENTS };

struct candidate {
    double lambda, likelihood, scale; /* lambda INFINITY: constant noise; 0: in proportion to the mean */
};

struct profile {
    const struct problem *problem;
    enum least_squares_role roles[LEAST_SQUARES_COLUMNS_MAX]; /* without bounds */
    struct least_squares sums;
    struct least_squares_fit fit;
    double *mean, *best_mean, *weights; /* of each row */
    struct candidate found[CANDIDATES_MAX];
    size_t count;
    double best; /* likelihood */
};

/* Allocates the profile; bounds of ROLES are ignored. -ENOMEM. To be cleared in any case. */
static int profile_init(struct profile *ret, const struct problem *problem,
                        const enum least_squares_role *roles) {
    size_t n = problem->rows;
    *ret = (struct profile){.problem = problem, .best = -INFINITY};
    for (size_t t = 0; t < problem->terms; t++)
        ret->roles[t] = roles[t] == LEAST_SQUARES_LEFT_OUT ? LEAST_SQUARES_LEFT_OUT : LEAST_SQUARES_FREE;
    ret->mean = calloc(3 * n + 1, sizeof *ret->mean);
    ret->best_mean = ret->mean + n;
    ret->weights = ret->best_mean + n;
    int r = least_squares_init(&ret->sums, problem->terms);
    return ret->mean ? r : -ENOMEM;
}

static void profile_clear(struct profile *profile) {
    least_squares_clear(&profile->sums);
    least_squares_fit_clear(&profile->fit);
    free(profile->mean);
}

/* The deviation of a row of weight 1, up to a factor. */
static double shape(double lambda, double mean) {
    return isinf(lambda) ? 1 : lambda + (mean > 0 ? mean : 0);
}

static void find_means(struct profile *profile) {
    const struct problem *problem = profile->problem;
    memset(profile->mean, 0, problem->rows * sizeof *profile->mean);
    for (size_t t = 0; t < problem->terms; t++)
        for (size_t i = 0; profile->fit.estimate[t] != 0 && i < problem->rows; i++)
            profile->mean[i] += profile->fit.estimate[t] * problem->x[t * problem->stride + i];
}

static double least_mean(const struct profile *profile) {
    double least = INFINITY;
    for (size_t i = 0; i < profile->problem->rows; i++)
        least = profile->mean[i] < least ? profile->mean[i] : least;
    return least;
}

/* Weighted least squares with the deviations that LAMBDA gives at the present means; then the means are those
 * of this fit. RET: the restricted likelihood (H. Patterson, R. Thompson, Biometrika 58 (1971), 545) up to a
 * constant, and `scale`, the factor of the deviations that maximises it. -EDOM: not defined. */
static int fit_with_lambda(struct profile *profile, double lambda, bool is_last, struct candidate *ret) {
    const struct problem *problem = profile->problem;
    for (size_t i = 0; i < problem->rows; i++)
        profile->weights[i] = shape(lambda, profile->mean[i]);
    double logarithms = logarithm_sum(profile->weights, problem->rows);
    for (size_t i = 0; i < problem->rows; i++)
        profile->weights[i] = (problem->w ? problem->w[i] : 1) / (profile->weights[i] * profile->weights[i]);
    least_squares_reset(&profile->sums);
    least_squares_fit_clear(&profile->fit);
    int r = (is_last ? least_squares_append : least_squares_append_products)(
        &profile->sums, problem->rows, problem->x, problem->stride, problem->y, profile->weights);
    r = r < 0 ? r : least_squares_solve(&profile->sums, profile->roles, &profile->fit);
    if (r < 0)
        return r;
    double freedom = (double)(problem->rows - profile->fit.rank), determinant = 0;
    for (size_t t = 0; t < problem->terms; t++)
        if (profile->fit.state[t] == LEAST_SQUARES_FREE)
            determinant -= 2 * log(fabs(profile->fit.inverse[t * (problem->terms + 1)]));
    *ret = (struct candidate){.lambda = lambda, .scale = sqrt(profile->fit.rss / freedom)};
    ret->likelihood = -freedom * log(ret->scale) - logarithms - determinant / 2;
    find_means(profile);
    return profile->fit.dependent == problem->terms && isfinite(ret->likelihood) ? 0 : -EDOM;
}

/* Adds a candidate, ordered by lambda. -EDOM: its likelihood is not defined. */
static int try_lambda(struct profile *profile, double lambda) {
    struct candidate found;
    int r = fit_with_lambda(profile, lambda, false, &found);
    r = r == 0 && lambda > 0 && least_mean(profile) < -lambda / 2 ? -EDOM : r;
    if (r < 0)
        return r;
    size_t at = profile->count++;
    for (; at > 0 && profile->found[at - 1].lambda < lambda; at--)
        profile->found[at] = profile->found[at - 1];
    profile->found[at] = found;
    if (found.likelihood > profile->best) {
        profile->best = found.likelihood;
        memcpy(profile->best_mean, profile->mean, profile->problem->rows * sizeof *profile->mean);
    }
    return 0;
}

/* Tries candidates from constant noise on, each from the means of the one before, so that small means become
 * more accurate; at last noise in proportion to the mean, if all means are above 0. */
static int descend(struct profile *profile) {
    double greatest = 0, lambda;
    int r = try_lambda(profile, INFINITY);
    for (size_t i = 0; r == 0 && i < profile->problem->rows; i++)
        greatest = fmax(greatest, profile->mean[i]);
    if (r < 0 || greatest == 0)
        return r;
    double ratio = profile->problem->rows < MANY_ROWS * profile->fit.rank ? 2 : 4;
    lambda = FIRST * greatest;
    for (size_t k = 0; r == 0 && k < STEPS_DOWN_MAX && lambda > least_mean(profile) / 8; k++, lambda /= ratio)
        r = try_lambda(profile, lambda);
    for (size_t step = 0; r == 0 && step < ITERATIONS; step++) {
        struct candidate ignored;
        r = least_mean(profile) > 0 ? fit_with_lambda(profile, 0, false, &ignored) : -EDOM;
    }
    r = r == 0 && least_mean(profile) > 0 ? try_lambda(profile, 0) : r;
    return r == -ENOMEM ? r : 0;
}

/* Tries more candidates around the best, where the likelihood may be narrow. -ENOMEM. */
static int refine(struct profile *profile) {
    for (size_t k = 0; k < REFINEMENTS; k++) {
        size_t best = 0;
        for (size_t i = 1; i < profile->count; i++)
            best = profile->found[i].likelihood > profile->found[best].likelihood ? i : best;
        if (best < 2 || best + 1 >= profile->count || profile->found[best + 1].lambda == 0)
            return 0;
        double lambda = profile->found[best].lambda, before = profile->found[best - 1].lambda,
               after = profile->found[best + 1].lambda;
        for (int side = 0; side < 2; side++) {
            memcpy(profile->mean, profile->best_mean, profile->problem->rows * sizeof *profile->mean);
            if (try_lambda(profile, sqrt(lambda * (side ? after : before))) == -ENOMEM)
                return -ENOMEM;
        }
    }
    return 0;
}

/* Prior weights of the two simple kinds of noise, relative to a factor e of lambda, and the shares of all
 * weight above which a simple kind is chosen. README.md has the simulations behind these. */
static const double constant_weight = 3, ratio_weight = 2, constant_share = 0.5, ratio_share = 0.4;
/* A lambda of 0 becomes this share of the least lambda tried, so that sigma stays above 0 with the mean. */
static const double next_to_nothing = 1.0 / 16;

/* The lambda of the posterior means of constant and ratio over the candidates; the prior is flat in log
 * lambda. INFINITY: constant noise. */
static double choose_lambda(const struct profile *profile) {
    double all = 0, constant = 0, ratio = 0, of_constant = 0, of_ratio = 0, least = 0;
    for (size_t i = 0; i < profile->count; i++) {
        const struct candidate *one = &profile->found[i];
        double weight = exp(one->likelihood - profile->best);
        if (isinf(one->lambda)) {
            of_constant = weight *= constant_weight;
            constant += weight * one->scale;
        } else if (one->lambda == 0) {
            of_ratio = weight *= ratio_weight;
            ratio += weight * one->scale;
        } else {
            double above = i > 1 ? profile->found[i - 1].lambda : 2 * one->lambda;
            bool is_last = i + 1 == profile->count || profile->found[i + 1].lambda == 0;
            double below = is_last ? one->lambda / 2 : profile->found[i + 1].lambda;
            weight *= log(above / below) / 2;
            constant += weight * one->scale * one->lambda;
            ratio += weight * one->scale;
            least = one->lambda;
        }
        all += weight;
    }
    if (of_ratio > ratio_share * all && least > 0)
        return next_to_nothing * least;
    return of_constant > constant_share * all || ratio == 0 ? INFINITY : constant / ratio;
}

/* Divides the degrees of freedom between ratio and constant of the noise, 1 / (2 variance of log sigma) (F.
 * Satterthwaite, Biometrics Bull. 2 (1946), 110), by the information of rows less their leverages; and finds
 * the constant's share of the estimates' covariance, C X'W S_c W X C. -ENOMEM. */
static int split_freedom(const struct profile *profile, double lambda, double scale, struct linear *linear) {
    const struct problem *problem = profile->problem;
    size_t p = problem->terms;
    double most = (double)(problem->rows - profile->fit.rank), information[3] = {0};
    double *leverages = malloc((problem->rows + 3 * p * p + 1) * sizeof *leverages);
    double *middle = leverages + problem->rows, *product = middle + p * p;
    const double *inverse = profile->fit.covariance;
    double *share = linear->floor_covariance = calloc(p * p + 1, sizeof *share);
    if (!leverages || !share) {
        free(leverages);
        return -ENOMEM;
    }
    least_squares_leverages(&profile->fit, problem->rows, problem->x, problem->stride, profile->weights,
                            leverages);
    memset(middle, 0, 2 * p * p * sizeof *middle);
    for (size_t i = 0; i < problem->rows; i++) {
        double a = lambda / shape(lambda, profile->best_mean[i]), spare = 2 * fmax(1 - leverages[i], 0);
        information[0] += spare * a * a;
        information[1] += spare * a * (1 - a);
        information[2] += spare * (1 - a) * (1 - a);
        leverages[i] = a * profile->weights[i];
    }
    for (size_t s = 0; s < p; s++)
        for (size_t t = 0; t <= s; t++) {
            double sum = 0;
            for (size_t i = 0; i < problem->rows; i++)
                sum +=
                    leverages[i] * problem->x[s * problem->stride + i] * problem->x[t * problem->stride + i];
            middle[s * p + t] = middle[t * p + s] = sum;
        }
    for (size_t s = 0; s < p; s++)
        for (size_t t = 0; t < p; t++)
            for (size_t u = 0; u < p; u++)
                product[s * p + t] += inverse[s * p + u] * middle[u * p + t];
    for (size_t s = 0; s < p; s++)
        for (size_t t = 0; t < p; t++)
            for (size_t u = 0; u < p; u++)
                share[s * p + t] += scale * scale * product[s * p + u] * inverse[u * p + t];
    double determinant = information[0] * information[2] - information[1] * information[1];
    linear->noise.floor.sigma = scale * lambda;
    linear->noise.floor.covariance = share;
    linear->noise.floor.freedom = fmin(fmax(determinant / information[2] / 2, 1), most);
    linear->covariance_freedom = fmin(fmax(determinant / information[0] / 2, 1), most);
    free(leverages);
    return 0;
}

/* Replaces LINEAR by the fit with the deviations that LAMBDA gives; bounds are those of ROLES. On failure
 * LINEAR may be half changed. */
static int apply_lambda(struct profile *profile, double lambda, const enum least_squares_role *roles,
                        struct linear *linear, struct plugin_message *message) {
    static char method[] = "restricted-maximum-likelihood";
    const struct problem *problem = profile->problem;
    struct candidate last = {0};
    struct least_squares_fit fit = {0};
    double condition = linear->condition;
    int r = 0;
    memcpy(profile->mean, profile->best_mean, problem->rows * sizeof *profile->mean);
    for (size_t step = 0; r == 0 && step < ITERATIONS; step++) {
        memcpy(profile->best_mean, profile->mean, problem->rows * sizeof *profile->mean);
        r = fit_with_lambda(profile, lambda, step + 1 == ITERATIONS, &last);
    }
    r = r < 0 ? r : least_squares_solve(&profile->sums, roles, &fit);
    if (r < 0) {
        least_squares_fit_clear(&fit);
        return r;
    }
    least_squares_fit_clear(&linear->fit);
    linear->fit = fit;
    memcpy(fit.covariance, profile->fit.covariance,
           problem->terms * problem->terms * sizeof *fit.covariance); /* without bounds */
    r = linear_describe(problem, linear, message);
    linear->condition = condition;
    linear->variance = last.scale * last.scale;
    double *coefficients = calloc(problem->terms + 1, sizeof *coefficients);
    if (r < 0 || !coefficients) {
        free(coefficients);
        return r < 0 ? r : -ENOMEM;
    }
    linear->noise = (struct model_noise){.kind = MODEL_NOISE_HETEROSCEDASTIC,
                                         .constant = last.scale * lambda,
                                         .coefficients = coefficients,
                                         .method = method};
    for (size_t t = 0; t < problem->terms; t++)
        if (problem->request->terms[t].factor_count == 0)
            linear->noise.constant += last.scale * fit.estimate[t];
        else
            coefficients[t] = last.scale * fit.estimate[t];
    linear->has_free_covariance = true;
    linear->scale_parameters = lambda > 0 ? 2 : 1;
    linear->covariance_freedom = (double)(problem->rows - profile->fit.rank);
    return lambda > 0 ? split_freedom(profile, lambda, last.scale, linear) : 0;
}

/* Whether a term can have a part in the scatter; otherwise noise is constant. */
static bool has_scale(const struct problem *problem, const enum least_squares_role *roles) {
    bool has = false;
    for (size_t t = 0; t < problem->terms; t++)
        has |= roles[t] != LEAST_SQUARES_LEFT_OUT && problem->request->terms[t].factor_count > 0;
    return has;
}

/* Finds noise that grows with the mean, for noise=auto; LINEAR is unchanged if constant noise suffices.
 * -ENOMEM. */
int growth_find(const struct problem *problem, const enum least_squares_role *roles, struct linear *linear,
                struct plugin_message *message) {
    struct profile profile;
    if (!(linear->sigma > 0) || !has_scale(problem, roles))
        return 0;
    int r = profile_init(&profile, problem, roles);
    r = r < 0 ? r : descend(&profile);
    r = r < 0 || problem->request->is_fold ? r : refine(&profile); /* a fold's scores need fewer digits */
    double lambda = r == 0 ? choose_lambda(&profile) : INFINITY;
    if (!isinf(lambda))
        r = apply_lambda(&profile, lambda, roles, linear, message);
    profile_clear(&profile);
    return r == -ENOMEM ? r : 0;
}
