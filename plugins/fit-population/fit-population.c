/* The plugin fit-population: see README.md for what it computes. */
#include "plugins/fit-population/population.h"

#include <string.h>

/* With fewer machines BIC finds several populations in more than 5 % of samples from a single one. */
enum { MACHINES_FEW = 64 };

static const char *const machine_names[] = {"node", "host", "cpu", "core", NULL};
static const char *const shape_words[] = {"best", "shared", "own", NULL};
static const char *const days_words[] = {"pooled", "mean", NULL};

static const struct plugin_parameter parameters[] = {
    [COEFFICIENTS] = {"coefficients", PLUGIN_COLUMNS,
                      .help = "further coefficients; the response is the first coefficient"},
    [MACHINE] = {"machine", PLUGIN_CATEGORIES, .choices = machine_names, .required = true,
                 .help = "columns whose values together identify a machine"},
    [COMPONENTS] = {"components", PLUGIN_NUMBER, "1", .default_text = "1", .maximum = POPULATIONS_MAX,
                    .integer = true, .help = "number of populations; 0: the number with the least BIC"},
    [SHAPE] = {"shape", PLUGIN_WORD, .choices = shape_words, .default_text = "best",
               .help = "whether the populations share one covariance or each has its own; "
                       "best: the choice with the least BIC"},
    [DAYS] = {"days", PLUGIN_WORD, .choices = days_words, .default_text = "pooled",
              .help = "how Sigma_T, the covariance between days, is estimated: pooled over "
                      "all machines, or as the mean of the machines' covariances"},
    [STARTS] = {"starts", PLUGIN_NUMBER, "1", .default_text = "10", .minimum = 1, .maximum = 1000,
                .integer = true,
                .help = "number of random starting points of the search for several populations"},
    {0},
};

/* Records coefficient I, by its name as a formula. */
static void record_term(const struct fit_request *request, size_t i, double estimate, double standard_error,
                        struct fit_result *result) {
    const struct plugin_value *coefficients = &request->values[COEFFICIENTS];
    const char *name = request->response;
    for (size_t k = 0, left = i; i > 0 && k < coefficients->count && left > 0; k++)
        if (strcmp(coefficients->texts[k], request->response) != 0) {
            name = coefficients->texts[k];
            left--;
        }
    char term[520];
    snprintf(term, sizeof term, "`%.512s`", name);
    fit_result_term(result, term, estimate, standard_error);
}

/* Records a population: means, covariance, weight. */
static void record_component(const struct machines *machines, const struct population *population,
                             const struct component *component, const struct fit_request *request,
                             struct fit_result *result) {
    size_t p = machines->p;
    double n = (double)machines->count;
    fit_result_part(result, "component", component->name, -INFINITY, INFINITY);
    for (size_t i = 0; i < p; i++)
        record_term(request, i, component->mu[i] + machines->columns[i][0],
                    sqrt(component->sigma[i * p + i] / n / component->weight), result);
    fit_result_covariance(result, component->sigma);
    fit_result_value(result, "weight", component->weight, "1");
    fit_result_value(result, "heterogeneity",
                     sqrt(component->sigma[0]) / fabs(component->mu[0] + machines->columns[0][0]), "1");
    fit_result_value(result, "degrees_of_freedom", n - (double)population->count, "1");
}

static void record_days(const struct machines *machines, double mean, const struct fit_request *request,
                        struct fit_result *result) {
    fit_result_part(result, "days", NULL, -INFINITY, INFINITY);
    for (size_t i = 0; i < machines->p; i++)
        record_term(request, i, 0, NAN, result);
    if (machines->repeated > 0)
        fit_result_covariance(result, machines->within);
    fit_result_value(result, "variability", sqrt(machines->within[0]) / fabs(mean), "1");
}

/* Records the values of the group: machines, days, populations, likelihood. */
static void record_values(const struct machines *machines, const struct population *population,
                          struct fit_result *result) {
    double n = (double)machines->count, slow = 0;
    for (size_t k = 0; k < population->count; k++)
        slow += population->of[k].name[0] == 's' ? population->of[k].weight : 0;
    fit_result_group_value(result, "machines", n, "1");
    fit_result_group_value(result, "repeated", (double)machines->repeated, "1");
    fit_result_group_value(result, "days", (double)machines->rows / n, "1");
    fit_result_group_value(result, "components", (double)population->count, "1");
    fit_result_group_value(result, "slow_share", slow, "1");
    fit_result_group_value(result, "log_likelihood", population->log_likelihood, "1");
    fit_result_group_value(result, "aic", 2 * population->parameters - 2 * population->log_likelihood, "1");
    fit_result_group_value(result, "bic", population->parameters * log(n) - 2 * population->log_likelihood,
                           "1");
}

/* Notes machines that are too few, or were measured once. */
static void record_notes(const struct machines *machines, const struct population *population,
                         const struct fit_request *request, struct fit_result *result) {
    bool varies = true;
    for (size_t j = 0; j < machines->p; j++)
        varies = varies && population->of[0].sigma[j * machines->p + j] > 0;
    if (machines->repeated == 0)
        fit_result_note(result, "every machine has a single row: the variation between days cannot be "
                                "estimated; measure machines on several days");
    if (machines->count <= machines->p)
        fit_result_note(result,
                        "%zu machines are too few for %zu coefficients: the covariance is "
                        "singular; expected more machines than coefficients",
                        machines->count, machines->p);
    else if (!varies)
        fit_result_note(result, "a coefficient is the same on all machines: the covariance is singular");
    if (request->values[COMPONENTS].number == 0 && population->count > 1 && machines->count < MACHINES_FEW)
        fit_result_note(result,
                        "found %zu populations; with only %zu machines BIC may overestimate "
                        "the number: set components=1, or measure more machines",
                        population->count, machines->count);
}

/* Whether all covariances are finite: squares of large values may overflow. */
static bool is_finite(const struct machines *machines, const struct population *population) {
    bool finite = machines->repeated == 0 || isfinite(machines->within[0]);
    for (size_t k = 0; k < population->count; k++)
        for (size_t i = 0; i < machines->p; i++)
            finite = finite && isfinite(population->of[k].mu[i]) &&
                     isfinite(population->of[k].sigma[i * (machines->p + 1)]) &&
                     (machines->repeated == 0 || isfinite(machines->within[i * (machines->p + 1)]));
    return finite;
}

/* Records populations, variation between days, values, notes and distant machines. -EDOM: squares overflow.
 */
static int record_results(const struct machines *machines, const struct population *population,
                          const struct fit_rows *rows, const struct fit_request *request,
                          struct fit_result *result, struct plugin_message *message) {
    double mean = machines->columns[0][0];
    if (!is_finite(machines, population))
        return plugin_refuse(message, -EDOM, "the squares of the coefficients exceed the range of a double");
    fit_result_kind(result, "population", NULL, NULL);
    for (size_t k = 0; k < population->count; k++) {
        record_component(machines, population, &population->of[k], request, result);
        mean += population->of[k].weight * population->of[k].mu[0];
    }
    record_days(machines, mean, request, result);
    record_values(machines, population, result);
    record_notes(machines, population, request, result);
    return distances_give(machines, population, rows, request, result);
}

/* Fits one group. -EDOM: too few machines for the populations. */
static int fit_population(const struct fit_rows *rows, const struct fit_request *request,
                          struct fit_result *result, struct plugin_message *message) {
    struct machines machines;
    struct population population = {0};
    if (rows->weights)
        return plugin_refuse(message, -EINVAL,
                             "fit population accepts no weights, because every machine and every "
                             "day counts once; remove --weights");
    int r = machines_init(&machines, rows, request);
    if (r == 0 && machines.count < 2)
        r = plugin_refuse(message, -EDOM, "there are rows of a single machine; expected at least 2 machines");
    else if (r == 0)
        r = population_find(&machines, request, &population);
    if (r == -EDOM && machines.count > 1)
        plugin_refuse(message, r,
                      "no mixture of %g populations was found that assigns enough of the %zu "
                      "machines to each population; set fewer components",
                      request->values[COMPONENTS].number, machines.count);
    r = r < 0 ? r : record_results(&machines, &population, rows, request, result, message);
    population_clear(&population);
    machines_clear(&machines);
    return r;
}

/* -EINVAL for too many coefficients, or one given twice. */
static int check_population(const struct fit_request *request, struct plugin_message *message) {
    const struct plugin_value *coefficients = &request->values[COEFFICIENTS];
    if (coefficients->count >= COEFFICIENTS_MAX)
        return plugin_refuse(message, -EINVAL, "%zu coefficients beside the response; expected at most %d",
                             coefficients->count, COEFFICIENTS_MAX - 1);
    for (size_t i = 0; i < coefficients->count; i++)
        for (size_t k = 0; k < i; k++)
            if (strcmp(coefficients->texts[i], coefficients->texts[k]) == 0)
                return plugin_refuse(message, -EINVAL, "the coefficient '%.200s' is given twice",
                                     coefficients->texts[i]);
    return 0;
}

ASSAY_FIT_PLUGIN("population", "0.2.0", "how machines and days differ: means and covariances of coefficients",
                 .fit = fit_population, .check = check_population, .parameters = parameters, .rows_min = 1,
                 .needs_all_rows = true,
                 .main_values = (const char *const[]){"weight", "heterogeneity", "variability", "machines",
                                                      "days", "slow_share", NULL});
