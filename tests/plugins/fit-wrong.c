/* Does what a fit plugin must not do; the parameter says what. The host refuses each of these, or skips the
 * group. */
#include <assay/fit.h>

static const char *const words[] = {"twice", "estimate", "covariance", "early", "noise", "code", NULL};
enum { TWICE, ESTIMATE, COVARIANCE, EARLY, NOISE, CODE };
static const struct plugin_parameter parameters[] = {
    {"what", PLUGIN_WORD, .choices = words, .required = true, .help = "is wrong"},
    {0},
};

static int fit_wrong(const struct fit_rows *rows, const struct fit_request *request,
                     struct fit_result *result, struct plugin_message *message) {
    int what = (int)request->values[0].number;
    const struct model_noise early = {.kind = MODEL_NOISE_HETEROSCEDASTIC, .coefficients = (double[]){1}};
    const struct model_noise unknown = {.kind = MODEL_NOISE_MIXTURE + 1};
    (void)rows, (void)message;
    if (what == EARLY)
        fit_result_noise_model(result, &early);
    fit_result_term(result, "1", what == ESTIMATE ? NAN : 1, 1);
    if (what == TWICE)
        fit_result_term(result, "1", 2, 1);
    if (what == COVARIANCE)
        fit_result_covariance(result, &(const double){-1});
    if (what == NOISE)
        fit_result_noise_model(result, &unknown);
    return what == CODE ? 5 : 0;
}

ASSAY_FIT_PLUGIN("wrong", "1.0", "breaks the rules", .fit = fit_wrong, .parameters = parameters);
