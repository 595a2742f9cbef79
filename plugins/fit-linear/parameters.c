#include "plugins/fit-linear/linear.h"
#include "plugins/fit-linear/noise.h"

#include <float.h>

static const char *const select_words[] = {"auto", "none", "elimination", "bic", NULL};
static const char *const robust_words[] = {"none", "huber", "bisquare", NULL};

const struct plugin_parameter linear_parameters[PARAMETER_COUNT] = {
    [PARAMETER_SELECT] =
        {.name = "select",
         .words = select_words,
         .fallback = SELECT_AUTO,
         .help = "terms are dropped: elimination (the least significant, while its p is above "
                 "the threshold), bic (the one whose loss lowers the BIC most), or none; auto is "
                 "elimination for suggested terms and none for the user's own"},
    [PARAMETER_THRESHOLD] = {.name = "threshold",
                             .unit = "1",
                             .fallback = 0.05,
                             .minimum = 0,
                             .maximum = 1,
                             .help = "elimination keeps terms whose p is not above it"},
    [PARAMETER_OUTLIERS] = {.name = "outliers",
                            .unit = "1",
                            .fallback = 0,
                            .minimum = 0,
                            .maximum = DBL_MAX,
                            .help =
                                "rows whose externally studentised residual is greater are deleted and the "
                                "fit started again, until none is; 3 is usual; 0: none is deleted"},
    [PARAMETER_ROBUST] = {.name = "robust",
                          .words = robust_words,
                          .fallback = ROBUST_NONE,
                          .help = "rows far from the fit get less weight: huber (1.345), bisquare (4.685)"},
    [PARAMETER_FOLDS] = {.name = "folds",
                         .unit = "1",
                         .fallback = 5,
                         .minimum = 0,
                         .maximum = 20,
                         .whole = true,
                         .help = "parts of the rows for the cross-validated error; 0: none"},
    [PARAMETER_NOISE] =
        {.name = "noise",
         .words = noise_words,
         .fallback = NOISE_AUTO,
         .help =
             "how rows scatter about the mean: N-0 (nothing is told), N-1 (alike everywhere), "
             "N-2 (by the same terms as the mean: maximum likelihood of both together), "
             "rule (N-2 by the rule of peanut and cashew), trimmed-rule (that of cashew's commit c0a430e); "
             "auto is N-1"},
    [PARAMETER_DISTRIBUTION] = {.name = "distribution",
                                .words = distribution_words,
                                .fallback = NOISE_NORMAL,
                                .help = "of the noise: normal, or half-normal, with the steep side below"},
};
