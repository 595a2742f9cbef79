#include "plugins/fit-linear/linear.h"

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
};
