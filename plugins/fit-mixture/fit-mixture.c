/* The plugin fit-mixture: see README.md for what it computes. */
#include "engine/numerics/mixture.h"

#include <assay/fit.h>

#include <stdlib.h>
#include <string.h>

enum { COMPONENTS_MAX = 8, ROWS_A_COMPONENT = 10, VALUES_A_COMPONENT = 5, STARTS_SHARE_OF_FOLD = 5 };
enum { ROWS_MAX = 100000 };
enum parameter { OVER, BREAKS, COMPONENTS, MOST, STARTS, FLOOR, LEAST };

static const struct plugin_parameter parameters[] = {
    [OVER] = {"over", PLUGIN_COLUMN,
              .help = "column whose values are divided into segments; can also be given by "
                      "--sizes"},
    [BREAKS] = {"breaks", PLUGIN_NUMBERS, "1",
                .help = "ends of the segments, ascending, in the unit of the column 'over'"},
    [COMPONENTS] = {"components", PLUGIN_NUMBER, "1", .default_text = "0", .maximum = COMPONENTS_MAX,
                    .integer = true,
                    .help = "number of normal distributions; 0: the number with the least BIC"},
    [MOST] = {"most", PLUGIN_NUMBER, "1", .default_text = "8", .minimum = 1, .maximum = COMPONENTS_MAX,
              .integer = true, .help = "largest number of normal distributions for which BIC is computed"},
    [STARTS] = {"starts", PLUGIN_NUMBER, "1", .default_text = "40", .minimum = 1, .maximum = 1000,
                .integer = true,
                .help = "number of random starting points of the search; each is followed by "
                        "20 swaps"},
    [FLOOR] = {"floor", PLUGIN_NUMBER, "1", .default_text = "0.001", .minimum = 1e-6, .maximum = 1,
               .help = "least standard deviation of a component, relative to that of all values"},
    [LEAST] = {"least", PLUGIN_NUMBER, "1", .default_text = "3", .minimum = 1, .maximum = 1e9,
               .help = "least sum of weights of the values of a component"},
    {0},
};

static double number(const struct fit_request *request, enum parameter parameter) {
    return request->values[parameter].number;
}

/* The values of one segment. */
struct sample {
    size_t count, distinct;
    double *values, *weights;
    double weight, mean;
    double variance;   /* with the divisor of the likelihood, the weights' sum */
    double resolution; /* the least difference of two values; INFINITY: there are no two */
};

static int ascending(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* The segment that X is in. */
static size_t segment_of(const struct fit_request *request, double x) {
    const struct plugin_value *breaks = &request->values[BREAKS];
    size_t segment = 0;
    while (segment < breaks->count && x >= breaks->numbers[segment])
        segment++;
    return segment;
}

/* Gathers the values of SEGMENT into SAMPLE, with their mean, variance and least difference. SCRATCH has room
 * for all rows. */
static void gather(const struct fit_rows *rows, const struct fit_request *request, size_t segment,
                   double *scratch, struct sample *sample) {
    double sum = 0, squares = 0;
    sample->count = sample->distinct = 0;
    sample->weight = 0;
    sample->resolution = INFINITY;
    for (size_t i = 0; i < rows->count; i++)
        if (request->values[BREAKS].count == 0 || segment_of(request, rows->columns[0][i]) == segment) {
            double w = rows->weights ? rows->weights[i] : 1;
            sample->values[sample->count] = scratch[sample->count] = rows->response[i];
            sample->weights[sample->count++] = w;
            sample->weight += w;
            sum += w * (rows->response[i] - sample->values[0]);
        }
    if (sample->count == 0)
        return;
    sample->mean = sample->values[0] + sum / sample->weight;
    for (size_t i = 0; i < sample->count; i++)
        squares += sample->weights[i] * pow(sample->values[i] - sample->mean, 2);
    qsort(scratch, sample->count, sizeof *scratch, ascending);
    double largest = fmax(fabs(scratch[0]), fabs(scratch[sample->count - 1]));
    for (size_t i = 0; i < sample->count; i++) {
        double step = i > 0 ? scratch[i] - scratch[i - 1] : INFINITY;
        sample->distinct += step > 0;
        if (step > 1e-12 * largest) /* not the rounding of one value */
            sample->resolution = fmin(sample->resolution, step);
    }
    sample->variance = sample->distinct > 1 ? squares / sample->weight : 0;
    sample->mean = sample->distinct > 1 ? sample->mean : sample->values[0];
}

static double bic_of(const struct sample *sample, const struct mixture *mixture) {
    return log(sample->weight) * (3 * (double)mixture->components - 1) - 2 * mixture->log_likelihood;
}

/* Fits a mixture of COMPONENTS normals. -EDOM: the values do not allow it. */
static int find_one(const struct sample *sample, const struct fit_request *request, size_t components,
                    struct mixture *ret) {
    double starts = number(request, STARTS);
    if (request->is_fold)
        starts = ceil(starts / STARTS_SHARE_OF_FOLD);
    const struct mixture_request wanted = {.components = components,
                                           .floor = number(request, FLOOR),
                                           .least = components > 1 ? number(request, LEAST) : 0,
                                           .starts = (size_t)starts,
                                           .seed = request->seed};
    return mixture_fit(sample->count, 1, sample->values, sample->count, sample->weights, &wanted, ret);
}

/* Fits the mixture that is asked for, or the one with the least BIC: more components are tried until two more
 * have not lowered it. */
static int find_mixture(const struct sample *sample, const struct fit_request *request, struct mixture *ret) {
    size_t asked = (size_t)number(request, COMPONENTS);
    size_t most = sample->distinct / VALUES_A_COMPONENT, limit = (size_t)number(request, MOST);
    most = most < sample->count / ROWS_A_COMPONENT ? most : sample->count / ROWS_A_COMPONENT;
    most = most < 1 ? 1 : most > limit ? limit : most;
    int r = find_one(sample, request, asked > 0 ? asked : 1, ret);
    for (size_t k = 2, idle = 0; r == 0 && asked == 0 && k <= most && idle < 2; k++) {
        struct mixture more = {0}, other;
        r = find_one(sample, request, k, &more);
        idle++;
        if (r == 0 && bic_of(sample, &more) < bic_of(sample, ret)) {
            other = *ret, *ret = more, more = other;
            idle = 0;
        }
        mixture_clear(&more);
        r = r == -EDOM ? 0 : r; /* with this many components one would have too little weight */
    }
    return r;
}

/* Fails because the values are too few for the components, or their sums overflow. Returns -EDOM. */
static int refuse(const struct sample *sample, const struct fit_request *request,
                  struct plugin_message *message) {
    if (!isfinite(sample->variance) || !(sample->variance > 0 || sample->distinct < 2))
        return plugin_refuse(message, -EDOM, "sums over the rows exceed the range of a double");
    return plugin_refuse(message, -EDOM,
                         "%zu different value%s with a total weight of %g are too few for %g "
                         "components; expected a weight of at least %g a component: measure "
                         "more, or set fewer components",
                         sample->distinct, sample->distinct == 1 ? "" : "s", sample->weight,
                         number(request, COMPONENTS), number(request, LEAST));
}

/* ---- Results */

/* Records mean, covariance and values of a part. */
static void record_values(const struct sample *sample, const struct mixture *mixture,
                          struct fit_result *result) {
    double n = sample->weight, k = (double)mixture->components;
    double sigma = n > 1 ? sqrt(sample->variance * n / (n - 1)) : NAN;
    fit_result_term(result, "1", sample->mean, sigma / sqrt(n));
    if (sigma > 0)
        fit_result_covariance(result, &(const double){sigma * sigma / n});
    fit_result_value(result, "degrees_of_freedom", fmax(n - 1, 0), "1");
    fit_result_value(result, "sigma", sigma, NULL);
    fit_result_value(result, "rows", (double)sample->count, "1");
    fit_result_value(result, "components", k > 0 ? k : 1, "1");
    if (k == 0)
        return;
    fit_result_value(result, "log_likelihood", mixture->log_likelihood, "1");
    fit_result_value(result, "aic", 2 * (3 * k - 1) - 2 * mixture->log_likelihood, "1");
    fit_result_value(result, "bic", bic_of(sample, mixture), "1");
    fit_result_value(result, "floored", (double)mixture->floored, "1");
}

/* Records the mixture as noise around the mean. */
static void record_noise(const struct sample *sample, const struct mixture *mixture,
                         struct fit_result *result) {
    static char method[] = "maximum-likelihood";
    struct model_component components[COMPONENTS_MAX];
    for (size_t k = 0; k < mixture->components; k++)
        components[k] = (struct model_component){mixture->weight[k], mixture->mean[k] - sample->mean,
                                                 sqrt(mixture->covariance[k])};
    if (mixture->components > 0)
        fit_result_noise_model(result, &(struct model_noise){.kind = MODEL_NOISE_MIXTURE,
                                                             .method = method,
                                                             .components = components,
                                                             .component_count = mixture->components});
}

/* Notes values that are equal, rounded, or a number of components at its limit. */
static void record_notes(const struct sample *sample, const struct fit_request *request,
                         const struct mixture *mixture, const char *place, struct fit_result *result) {
    if (sample->count == 1)
        fit_result_note(result, "%sthere is a single value, which has no standard deviation", place);
    else if (mixture->components == 0)
        fit_result_note(result,
                        "%sall values are equal: the standard deviation is 0 and the "
                        "likelihood is unbounded",
                        place);
    else if (mixture->floored > 0)
        fit_result_note(result,
                        "%s%zu of %zu components are as narrow as 'floor' allows: their "
                        "standard deviations are this floor, not estimates",
                        place, mixture->floored, mixture->components);
    if (mixture->components > 0 && 2 * sample->distinct < sample->count &&
        sample->resolution > 2 * number(request, FLOOR) * sqrt(sample->variance))
        fit_result_note(result,
                        "%sthe values are rounded to steps of %.6g or more: a component is "
                        "therefore at least half a step wide",
                        place, sample->resolution);
    if (number(request, COMPONENTS) == 0 && mixture->components > 1 &&
        (double)mixture->components == number(request, MOST))
        fit_result_note(result,
                        "%sBIC chose %zu components, the largest number that was tried; "
                        "increase 'most'",
                        place, mixture->components);
}

/* Fits a mixture to one part. -EDOM: it is not possible. */
static int fit_part(const struct sample *sample, const struct fit_request *request, const char *place,
                    struct fit_result *result, struct plugin_message *message) {
    struct mixture mixture = {0};
    bool varies = sample->variance > 0 && isfinite(sample->variance);
    int r = 0;
    if (varies)
        r = find_mixture(sample, request, &mixture);
    else if (sample->distinct > 1 || number(request, COMPONENTS) > 1)
        r = -EDOM;
    if (r == 0) {
        record_values(sample, &mixture, result);
        record_noise(sample, &mixture, result);
        record_notes(sample, request, &mixture, place, result);
    }
    mixture_clear(&mixture);
    return r == -EDOM || r == -EINVAL ? refuse(sample, request, message) : r;
}

/* Fits a segment; one without rows is only noted. */
static int fit_segment(const struct sample *sample, const struct fit_request *request, size_t segment,
                       struct fit_result *result, struct plugin_message *message) {
    const struct plugin_value *breaks = &request->values[BREAKS];
    char place[320];
    double from = segment > 0 ? breaks->numbers[segment - 1] : -INFINITY;
    double to = segment < breaks->count ? breaks->numbers[segment] : INFINITY;
    snprintf(place, sizeof place, "%.200s from %g to %g: ", request->values[OVER].text, from, to);
    if (sample->count == 0) {
        fit_result_note(result, "%sno rows", place);
        return 0;
    }
    fit_result_part(result, "segment", NULL, from, to);
    int r = fit_part(sample, request, place, result, message);
    if (r == -EDOM) {
        struct plugin_message reason = *message;
        return plugin_refuse(message, r, "%s%.512s", place, reason.text);
    }
    return r;
}

/* Fits one group, segment by segment. -EDOM: too many or unsuitable rows. */
static int fit_mixture(const struct fit_rows *rows, const struct fit_request *request,
                       struct fit_result *result, struct plugin_message *message) {
    const struct plugin_value *breaks = &request->values[BREAKS];
    if (rows->count > ROWS_MAX)
        return plugin_refuse(message, -EDOM,
                             "a group has %zu rows; expected at most %d: choose rows with --where, "
                             "or make smaller groups with --by",
                             rows->count, ROWS_MAX);
    double *memory = malloc((3 * rows->count + 1) * sizeof *memory);
    struct sample sample = {.values = memory, .weights = memory + rows->count};
    int r = memory ? 0 : -ENOMEM;
    if (breaks->count > 0)
        fit_result_kind(result, "piecewise", request->values[OVER].text, NULL);
    for (size_t s = 0; r == 0 && s <= breaks->count; s++) {
        gather(rows, request, s, memory + 2 * rows->count, &sample);
        r = breaks->count > 0 ? fit_segment(&sample, request, s, result, message)
                              : fit_part(&sample, request, "", result, message);
    }
    free(memory);
    return r;
}

/* -EINVAL unless breaks ascend and have a column. */
static int check_mixture(const struct fit_request *request, struct plugin_message *message) {
    const struct plugin_value *breaks = &request->values[BREAKS];
    if (breaks->count > 0 && request->values[OVER].count == 0)
        return plugin_refuse(message, -EINVAL,
                             "breaks are set, but not the column whose values they divide; set "
                             "over=COLUMN");
    for (size_t i = 1; i < breaks->count; i++)
        if (!(breaks->numbers[i] > breaks->numbers[i - 1]))
            return plugin_refuse(message, -EINVAL,
                                 "the break %g follows the break %g; expected breaks in ascending order",
                                 breaks->numbers[i], breaks->numbers[i - 1]);
    return 0;
}

ASSAY_FIT_PLUGIN("mixture", "0.2.0", "mixtures of 1 to 8 normals, by groups and segments", .fit = fit_mixture,
                 .check = check_mixture, .parameters = parameters, .rows_min = 1);
