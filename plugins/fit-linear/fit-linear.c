/* The plugin fit-linear: see README.md for what it computes. */
#include "plugins/fit-linear/linear.h"

#include <stdlib.h>
#include <string.h>

static const char *const select_words[] = {"none", "elimination", NULL};
static const char *const bounds_words[] = {"auto", "none", "nonnegative", NULL};
static const char *const robust_words[] = {"none", "huber", "bisquare", NULL};
static const char *const noise_words[] = {"auto", "none", "homoscedastic", "heteroscedastic", "rule", NULL};
static const char *const distribution_words[] = {"normal", "half-normal", NULL};

static const struct plugin_parameter parameters[] = {
    [SELECT] = {"select", PLUGIN_WORD, .choices = select_words, .default_text = "none",
                .help = "how terms are selected: elimination drops terms one by one"},
    [THRESHOLD] = {"threshold", PLUGIN_NUMBER, "1", .default_text = "0.05", .minimum = 0, .maximum = 1,
                   .help = "elimination drops terms whose p-value is above this threshold"},
    [BOUNDS] = {"bounds", PLUGIN_WORD, .choices = bounds_words, .default_text = "auto",
                .help = "whether coefficients must be at least 0; auto: yes where the response "
                        "is a time and the terms are suggested ones"},
    [OUTLIERS] = {"outliers", PLUGIN_NUMBER, "1", .default_text = "0", .minimum = 0, .maximum = 1e9,
                  .help = "rows whose studentised residual is greater are deleted; 0: no rows"},
    [ROBUST] = {"robust", PLUGIN_WORD, .choices = robust_words, .default_text = "none",
                .help = "weight function by which rows far from the fit count less"},
    [NOISE] = {"noise", PLUGIN_WORD, .choices = noise_words, .default_text = "auto",
               .help = "how rows scatter about the mean; auto: tests whether the scatter "
                       "grows with the mean, or with its terms"},
    [DISTRIBUTION] = {"distribution", PLUGIN_WORD, .choices = distribution_words, .default_text = "normal",
                      .help = "distribution of the noise"},
    [ONE_OF] = {"one-of", PLUGIN_TEXTS,
                .help = "columns of one kind, separated by '|': elimination keeps a single "
                        "term that has one of these columns"},
    {0},
};

enum { OUTLIER_ROUNDS_MAX = 100 };

/* Chooses the bounds of the terms: each is at least 0 if the response is a cost; levels of a category are
 * free, since they are relative to the first level. */
static void choose_roles(const struct fit_request *request, enum least_squares_role *roles) {
    enum bounds bounds = (enum bounds)linear_number(request, BOUNDS);
    bool nonnegative =
        bounds == BOUNDS_NONNEGATIVE || (bounds == BOUNDS_AUTO && request->positive && request->suggested);
    for (size_t t = 0; t < request->term_count; t++) {
        bool has_level = false;
        for (size_t f = 0; f < request->terms[t].factor_count; f++)
            has_level = has_level || request->terms[t].factors[f].level;
        roles[t] = nonnegative && !has_level ? LEAST_SQUARES_NONNEGATIVE : LEAST_SQUARES_FREE;
    }
}

/* Selects terms, in ROLES, and fits; then outliers are deleted, and it begins again, until there are none.
 * PROBLEM becomes that of the remaining rows. */
static int fit_without_outliers(struct problem *problem, enum least_squares_role *roles, struct linear *ret,
                                struct fit_result *result, struct plugin_message *message) {
    const struct fit_request *request = problem->request;
    double limit = linear_number(request, OUTLIERS);
    size_t all = problem->rows;
    for (int round = 0;; round++) {
        size_t deleted = 0;
        struct problem fewer;
        choose_roles(request, roles);
        int r = linear_number(request, SELECT) == SELECT_ELIMINATION
                    ? linear_eliminate(problem, roles, result, message)
                    : 0;
        r = r < 0 ? r : linear_solve(problem, roles, true, ret, message);
        if (r < 0 || limit == 0 || round == OUTLIER_ROUNDS_MAX)
            return r;
        r = outliers_delete(problem, roles, limit, ret, &fewer, &deleted, message);
        linear_clear(ret);
        if (r < 0 || deleted == 0) {
            problem_clear(&fewer);
            fit_result_value(result, "outliers_deleted", (double)(all - problem->rows), "1");
            return r < 0 ? r : linear_solve(problem, roles, true, ret, message);
        }
        problem_clear(problem);
        *problem = fewer;
    }
}

/* Records estimates, covariance and degrees of freedom; covariances are scaled by the variance. */
static void record_terms(const struct problem *problem, const struct linear *linear,
                         struct fit_result *result) {
    const struct fit_request *request = problem->request;
    size_t p = problem->terms;
    for (size_t i = 0; i < p * p; i++)
        linear->fit.covariance[i] *= linear->variance;
    for (size_t t = 0; t < p; t++) {
        const char *name = request->terms[t].name;
        if (linear->fit.state[t] == LEAST_SQUARES_LEFT_OUT) {
            fit_result_dropped(result, name);
            continue;
        }
        bool at_bound = linear->fit.state[t] == LEAST_SQUARES_BOUND;
        struct model_estimate estimate = {.estimate = linear->fit.estimate[t],
                                          .standard_error =
                                              at_bound ? NAN : sqrt(linear->fit.covariance[t * p + t]),
                                          .t = NAN,
                                          .p = NAN,
                                          .at_bound = at_bound};
        result->term(result->context, name, &estimate);
    }
    if (linear->variance >= 0)
        fit_result_covariance(result, linear->fit.covariance);
    if (linear->covariance_freedom > 0)
        fit_result_freedom(result, linear->covariance_freedom);
}

/* Records the quality of the fit, and its noise. */
static void record_values(const struct problem *problem, const struct linear *linear,
                          struct fit_result *result) {
    double count = (double)(linear->fit.rank + linear->scale_parameters), n = (double)problem->sums.rows;
    fit_result_value(result, "rss", linear->rss, NULL);
    fit_result_value(result, "degrees_of_freedom", linear->freedom, "1");
    fit_result_value(result, "sigma", linear->sigma, NULL);
    fit_result_value(result, "r2", linear->r2, "1");
    fit_result_value(result, "adjusted_r2", linear->adjusted_r2, "1");
    fit_result_value(result, "log_likelihood", linear->log_likelihood, "1");
    fit_result_value(result, "aic", 2 * count - 2 * linear->log_likelihood, "1");
    fit_result_value(result, "bic", log(n) * count - 2 * linear->log_likelihood, "1");
    fit_result_value(result, "condition", linear->condition, "1");
    if (linear->noise.kind != MODEL_NOISE_NONE)
        fit_result_noise_model(result, &linear->noise);
}

/* Notes a fit that is exact, constant or ill-conditioned. */
static void record_notes(const struct linear *linear, struct fit_result *result) {
    enum { CONDITION_MAX = 30 };
    if (linear->freedom == 0)
        fit_result_note(result, "there are as many rows as terms: sigma and standard errors cannot be "
                                "estimated; measure more settings");
    else if (linear->rss == 0)
        fit_result_note(result, "the fit passes through all rows except for rounding: noise and "
                                "likelihood cannot be estimated");
    if (isnan(linear->r2))
        fit_result_note(result, "the response does not vary: R2 is not defined");
    if (linear->condition >= CONDITION_MAX)
        fit_result_note(result,
                        "the condition number of the terms is %.3g: some terms are nearly "
                        "linear combinations of others; remove terms, or vary the factors more",
                        linear->condition);
}

/* Records the rows of fit() that PROBLEM no longer has as outliers. -ENOMEM. */
static int record_outliers(const struct problem *problem, size_t rows, struct fit_result *result) {
    if (problem->rows == rows)
        return 0;
    bool *flags = malloc(rows * sizeof *flags);
    if (!flags)
        return -ENOMEM;
    memset(flags, true, rows * sizeof *flags);
    for (size_t i = 0; i < problem->rows; i++)
        flags[problem->places[i]] = false;
    fit_result_outliers(result, flags);
    free(flags);
    return 0;
}

/* Fits one group: selection and outliers, then robust weights or noise. */
static int fit_linear(const struct fit_rows *rows, const struct fit_request *request,
                      struct fit_result *result, struct plugin_message *message) {
    struct problem problem = {.rows = rows->count,
                              .terms = request->term_count,
                              .stride = rows->term_stride,
                              .x = rows->terms[0],
                              .y = rows->response,
                              .w = rows->weights,
                              .settings = rows->settings,
                              .setting_count = rows->setting_count,
                              .request = request};
    struct linear linear = {0};
    enum robust_choice robust = (enum robust_choice)linear_number(request, ROBUST);
    enum least_squares_role roles[LEAST_SQUARES_COLUMNS_MAX];
    int r = problem_sum(&problem);
    r = r < 0 ? r : fit_without_outliers(&problem, roles, &linear, result, message);
    if (r == 0)
        r = robust != ROBUST_NONE ? linear_reweight(&problem, robust, roles, &linear, result, message)
                                  : scatter_find(&problem, roles, &linear, result, message);
    if (r == 0) {
        record_terms(&problem, &linear, result);
        record_values(&problem, &linear, result);
        record_notes(&linear, result);
        fit_result_rows(result, problem.rows);
        r = record_outliers(&problem, rows->count, result);
    }
    linear_clear(&linear);
    problem_clear(&problem);
    return r;
}

/* Checks that the terms and settings can be combined. -EINVAL: they cannot; the message says why. */
static int check_linear(const struct fit_request *request, struct plugin_message *message) {
    double noise = linear_number(request, NOISE);
    bool other = linear_number(request, OUTLIERS) > 0 || linear_number(request, SELECT) != SELECT_NONE ||
                 linear_number(request, DISTRIBUTION) != NORMAL;
    if (request->term_count == 0)
        return plugin_refuse(message, -EINVAL,
                             "no terms are given; set --terms, such as M-2 or 'm*n*k + m*n'");
    if (request->term_count > LEAST_SQUARES_COLUMNS_MAX)
        return plugin_refuse(message, -EINVAL,
                             "the formula has %zu terms, counting a term for each level; expected "
                             "at most %d",
                             request->term_count, (int)LEAST_SQUARES_COLUMNS_MAX);
    if (request->values[ONE_OF].count > 0 && linear_number(request, SELECT) == SELECT_NONE)
        return plugin_refuse(message, -EINVAL, "one-of has an effect only with select=elimination; set both");
    if (linear_number(request, ROBUST) == ROBUST_NONE)
        return 0;
    if (noise == NOISE_HETEROSCEDASTIC || noise == NOISE_RULE)
        return plugin_refuse(message, -EINVAL,
                             "robust=%s cannot be combined with noise=%s (the experiment may "
                             "suggest this noise); set noise=auto, noise=homoscedastic or noise=none",
                             request->values[ROBUST].text, request->values[NOISE].text);
    return other ? plugin_refuse(message, -EINVAL,
                                 "robust=%s cannot be combined with outliers, select=elimination or "
                                 "distribution=half-normal; remove one",
                                 request->values[ROBUST].text)
                 : 0;
}

ASSAY_FIT_PLUGIN("linear", "0.2.0", "least squares on sums of products of columns", .fit = fit_linear,
                 .check = check_linear, .parameters = parameters, .takes_terms = true, .terms = "M-2",
                 .rows_min = 1, .main_values = (const char *const[]){"r2", "outliers_deleted", NULL});
