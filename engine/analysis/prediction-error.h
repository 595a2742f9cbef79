/*
 * How far a prediction is from a run: the archive of a prediction and the measurements of runs, joined by the
 * factors that both have. Each setting of the runs has the prediction of the scenario with the same levels.
 *
 *     error    (predicted - measured mean) / measured mean
 *     regret   of the setting that the prediction calls best, within one size of the problem: by how much its
 *              measured mean is worse than that of the best setting of that size
 *     scatter  of the repetitions: root of the mean of (standard deviation / mean)^2 over the settings
 */
#ifndef ASSAY_ANALYSIS_PREDICTION_ERROR_H
#define ASSAY_ANALYSIS_PREDICTION_ERROR_H

#include "engine/analysis/ranking.h"
#include "engine/report/report.h"

struct prediction_error_row {
    const struct ranked *measured;
    size_t scenario;         /* from 0, in the order of the prediction's results */
    double predicted, error; /* in the unit of the response; a share of 1 */
};

struct prediction_error {
    struct prediction_error_row *rows; /* in the order of the ranking */
    size_t count;
    size_t not_predicted, not_measured; /* settings without a scenario; scenarios without a setting */
    double mean, mean_absolute, spearman, scatter; /* shares of 1; NaN: not known */
    const struct prediction_error_row *worst;
    /* Sizes of which two settings were joined or more: their number, the regret of the largest, with the row
     * that is chosen there, and the greatest. */
    size_t sizes;
    double regret, regret_worst;
    const struct prediction_error_row *chosen;
};

/* PATH is the archive of a prediction; RANKING is that of MEASUREMENTS. FAILURE_INPUT: they have no factor or
 * no setting in common, several scenarios are one setting, or the prediction has no result in the unit of the
 * response. RET is to be cleared after failures, too. */
int prediction_error_find(const char *path, const struct measurements *measurements,
                          const struct ranking *ranking, struct prediction_error *ret,
                          struct failure *failure);
void prediction_error_clear(struct prediction_error *error);
/* MOST, a share of 1, is the greatest mean absolute error of a usable prediction; 0: not known. In JSON:
 *
 *     verdict, grade, mean_error, mean_absolute_error, worst_error, spearman, regret, regret_worst, scatter
 *     settings    an object a setting: factors, predicted, measured, error, deviation
 */
void prediction_error_report(struct report_section *in, const struct measurements *measurements,
                             const struct prediction_error *error, double most);

#endif
