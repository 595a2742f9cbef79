/* The mean of each group, with its standard error. */
#include <assay/fit.h>

static int fit_mean(const struct fit_rows *rows, const struct fit_request *request, struct fit_result *result,
                    struct plugin_message *message) {
    (void)request, (void)message;
    double sum = 0, squares = 0;
    for (size_t i = 0; i < rows->count; i++)
        sum += rows->response[i];
    double mean = sum / (double)rows->count;
    for (size_t i = 0; i < rows->count; i++)
        squares += pow(rows->response[i] - mean, 2);
    double sigma = sqrt(squares / (double)(rows->count - 1));
    fit_result_term(result, "1", mean, sigma / sqrt((double)rows->count));
    fit_result_noise(result, sigma);
    return 0;
}

ASSAY_FIT_PLUGIN("mean", "1.0", "the mean of each group", .fit = fit_mean, .rows_min = 2);
