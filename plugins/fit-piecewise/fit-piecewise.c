/* The plugin fit-piecewise: see README.md for what it computes. */
#include "plugins/fit-piecewise/piecewise.h"

#include <string.h>

static const char *const sizes[] = {"size", "msg_size", "bytes", NULL};
static const char *const criteria[] = {"relative", "bic", "aic", NULL};
static const char *const equals[] = {"averaged", "raw", NULL};
static const char *const noes[] = {"no", "yes", NULL};

static const struct plugin_parameter parameters[] = {
    [SIZE] = {"size", PLUGIN_COLUMN, .choices = sizes, .required = true,
              .help = "column over which the lines are fitted"},
    [BREAKS] = {"breaks", PLUGIN_NUMBERS,
                .help = "starts of the segments, ascending; without breaks the best ones are "
                        "searched"},
    [NAMES] = {"names", PLUGIN_TEXTS, .help = "names of the segments between the given breaks; -: no name"},
    [CRITERION] = {"criterion", PLUGIN_WORD, .choices = criteria, .default_text = "relative",
                   .help = "criterion that is minimised: BIC of relative errors (relative) or of "
                           "absolute errors (bic), or AIC of absolute errors (aic)"},
    [PER_BREAK] = {"per_break", PLUGIN_NUMBER, "1", .default_text = "4", .minimum = 1, .maximum = 100,
                   .help = "number of parameters that each further break counts as: 4 as in "
                           "pycewise, 3 as in strucchange"},
    [SEGMENTS] = {"segments", PLUGIN_NUMBER, "1", .default_text = "0", .minimum = 0, .maximum = 1e6,
                  .integer = true,
                  .help = "exact number of segments; 0: the number with the least criterion"},
    [MINIMUM] = {"minimum", PLUGIN_NUMBER, "1", .default_text = "3", .minimum = 2, .maximum = 1e6,
                 .integer = true, .help = "least number of different sizes in a segment"},
    [EQUAL] = {"equal", PLUGIN_WORD, .choices = equals, .default_text = "averaged",
               .help = "whether rows of one size are averaged first"},
    [BETWEEN] = {"between", PLUGIN_WORD, .choices = noes, .default_text = "no",
                 .help = "whether further breaks are searched between the given ones"},
    [CONFIDENCE] = {"confidence", PLUGIN_NUMBER, "1", .default_text = "0.95", .minimum = 0.5,
                    .maximum = 0.9999, .help = "confidence level of the intervals of the breaks"},
    {0},
};

/* -EINVAL unless breaks ascend, and names and segments fit them. */
static int check_piecewise(const struct fit_request *request, struct plugin_message *message) {
    const struct plugin_value *breaks = &request->values[BREAKS], *names = &request->values[NAMES];
    for (size_t i = 1; i < breaks->count; i++)
        if (breaks->numbers[i] <= breaks->numbers[i - 1])
            return plugin_refuse(message, -EINVAL,
                                 "the break %.15g follows the break %.15g; expected breaks in ascending "
                                 "order",
                                 breaks->numbers[i], breaks->numbers[i - 1]);
    if (names->count > 0 && names->count != breaks->count + 1)
        return plugin_refuse(message, -EINVAL,
                             "%zu names are set for %zu segments; expected a name for each segment, "
                             "one more than breaks",
                             names->count, breaks->count + 1);
    if (breaks->count > 0 && piecewise_number(request, SEGMENTS) > 0)
        return plugin_refuse(message, -EINVAL, "both breaks and segments are set; remove one");
    return 0;
}

/* ---- Results */

/* Notes what limits the fit: rows left out, breaks that may not be optimal or are ignored, overfitting. */
static void note_limits(const struct segmentation *segmentation, const struct fit_request *request,
                        struct fit_result *result) {
    const char *size = request->values[SIZE].text;
    const struct points *points = &segmentation->points;
    size_t below = 0;
    for (size_t i = 0; i < segmentation->count; i++)
        for (size_t k = segmentation->parts[i].begin; k < segmentation->parts[i].end; k++)
            below += part_at(&segmentation->parts[i], points->x[k]) <= 0 && points->mean[k] > 0;
    if (points->not_positive > 0)
        fit_result_note(result,
                        "rows left out because their response is 0 or less, and so has no "
                        "relative error: %zu",
                        points->not_positive);
    if (segmentation->places > 0 && segmentation->count > 1)
        fit_result_note(result,
                        "the breaks may not be optimal: %zu values of %.100s are more than the "
                        "%d of an exact search, so that breaks were searched between %zu runs "
                        "of neighbouring values, and then each was moved to its best place",
                        points->count, size, SEGMENTS_EXACT_MAX, segmentation->places);
    if (segmentation->breaks_outside > 0)
        fit_result_note(result,
                        "%zu of the given breaks are ignored: nothing was measured on one side "
                        "of them",
                        segmentation->breaks_outside);
    if (segmentation->count > 1 && !(piecewise_number(request, SEGMENTS) > 0) &&
        request->values[BREAKS].count == 0 && segmentation->count == segments_most(&points->problem))
        fit_result_note(result, "the number of segments is the largest possible, so that the criterion "
                                "overfits; set criterion=relative, a greater minimum, or segments=N");
    if (!(segmentation->rss > 0))
        fit_result_note(result, "the lines pass through all rows: standard errors are 0 or not defined");
    if (below > 0)
        fit_result_note(result,
                        "the model predicts 0 or less at %zu values of %.100s where the "
                        "measured response is above 0",
                        below, size);
}

/* Records the noise of one row: in proportion to the line if errors are relative. */
static void record_noise(const struct part *part, bool relative, struct fit_result *result) {
    static char method[] = "least-squares";
    double coefficients[] = {0, part->noise * part->estimates[1]};
    struct model_noise noise = {.kind = relative ? MODEL_NOISE_HETEROSCEDASTIC : MODEL_NOISE_HOMOSCEDASTIC,
                                .method = method,
                                .constant = part->noise * (relative ? part->estimates[0] : 1),
                                .coefficients = relative ? coefficients : NULL};
    if (isfinite(noise.constant) && isfinite(coefficients[1])) /* squares may be beyond what a double holds */
        fit_result_noise_model(result, &noise);
}

/* Records a segment: line, covariance, noise, interval of its break. */
static void record_part(const struct fit_request *request, const struct segmentation *segmentation, size_t i,
                        struct fit_result *result) {
    const struct part *part = &segmentation->parts[i];
    const char *size = request->values[SIZE].text;
    const char *size_unit = request->column_units[request->values[SIZE].first];
    const char *unit = is_relative(request) ? "1" : NULL;
    double to = i + 1 < segmentation->count ? part[1].from : INFINITY;
    char term[512];
    snprintf(term, sizeof term, "`%.500s`", size);
    fit_result_part(result, "segment", part->name, i > 0 ? part->from : -INFINITY, to);
    fit_result_term(result, "1", part->estimates[0], sqrt(part->covariance[0]));
    fit_result_term(result, term, part->estimates[1], sqrt(part->covariance[3]));
    if (part->freedom > 0)
        fit_result_covariance(result, part->covariance);
    record_noise(part, is_relative(request), result);
    fit_result_value(result, "sigma", part->sigma, unit);
    fit_result_value(result, "rss", part->rss, unit);
    fit_result_value(result, "degrees_of_freedom", part->freedom, "1");
    fit_result_value(result, "r2", part->r2, "1");
    fit_result_value(result, "points", (double)(part->end - part->begin), "1");
    if (i > 0 && !part->is_given) {
        fit_result_value(result, "break_low", part->low, size_unit);
        fit_result_value(result, "break_high", part->high, size_unit);
    }
}

/* Fits one group. -EDOM: the rows do not suffice. */
static int fit_piecewise(const struct fit_rows *rows, const struct fit_request *request,
                         struct fit_result *result, struct plugin_message *message) {
    struct segmentation segmentation;
    const char *size = request->values[SIZE].text;
    int r = segmentation_fit(rows, request, &segmentation, message);
    if (r == 0 && !isfinite(segmentation.rss))
        r = plugin_refuse(message, -EDOM, "the coefficients of the lines exceed the range of a double");
    if (r == 0) {
        fit_result_kind(result, "piecewise", size, NULL);
        for (size_t i = 0; i < segmentation.count; i++)
            record_part(request, &segmentation, i, result);
        fit_result_rows(result, segmentation.points.used);
        fit_result_group_value(result, "segments", (double)segmentation.count, "1");
        fit_result_group_value(result, "total_rss", segmentation.rss, is_relative(request) ? "1" : NULL);
        fit_result_group_value(result, "log_likelihood", segmentation.log_likelihood, "1");
        fit_result_group_value(result, "aic", 2 * segmentation.parameters - 2 * segmentation.log_likelihood,
                               "1");
        fit_result_group_value(result, "bic",
                               log(segmentation.points.problem.measurements) * segmentation.parameters -
                                   2 * segmentation.log_likelihood,
                               "1");
    }
    if (r == 0 && !request->is_fold)
        note_limits(&segmentation, request, result);
    segmentation_clear(&segmentation);
    return r;
}

ASSAY_FIT_PLUGIN("piecewise", "0.2.0", "segmented lines over one column, the best breaks found or given",
                 .fit = fit_piecewise, .check = check_piecewise, .parameters = parameters, .rows_min = 2,
                 .main_values = (const char *const[]){"r2", NULL});
