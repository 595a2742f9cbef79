/* A line through the origin over a column: what the host does for columns, units, predictions and folds. */
#include <assay/fit.h>

static const char *const usual[] = {"size", "bytes", NULL};
static const struct plugin_parameter parameters[] = {
    {"size", PLUGIN_COLUMN, "By", .choices = usual, .required = true, .help = "of the message"},
    {"scale", PLUGIN_NUMBER, "1", .default_text = "1", .minimum = 0.5, .maximum = 2, .help = "of the slope"},
    {0},
};
static const char *const units[] = {"s", "By/s", NULL};

static int fit_slope(const struct fit_rows *rows, const struct fit_request *request,
                     struct fit_result *result, struct plugin_message *message) {
    const double *size = rows->columns[0];
    double products = 0, squares = 0, rss = 0;
    for (size_t i = 0; i < rows->count; i++) {
        double w = rows->weights ? rows->weights[i] : 1;
        products += w * size[i] * rows->response[i];
        squares += w * size[i] * size[i];
    }
    if (squares == 0)
        return plugin_refuse(message, -EDOM, "all sizes are 0");
    double slope = products / squares * request->values[1].number;
    for (size_t i = 0; i < rows->count; i++)
        rss += pow(rows->response[i] - slope * size[i], 2);
    char term[512];
    snprintf(term, sizeof term, "`%.500s`", request->values[0].text);
    fit_result_term(result, term, slope, sqrt(rss / (double)(rows->count - 1) / squares));
    fit_result_noise(result, sqrt(rss / (double)(rows->count - 1)));
    fit_result_value(result, "bandwidth", 1 / slope, "By/s");
    if (request->response_choice == 1)
        fit_result_note(result, "the response is a bandwidth");
    return 0;
}

ASSAY_FIT_PLUGIN("slope", "1.0", "a line through the origin", .fit = fit_slope, .parameters = parameters,
                 .response_units = units, .rows_min = 2);
