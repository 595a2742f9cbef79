/* What it costs that nodes differ and calls scatter, and what it gains to leave slow nodes out: replays on
 * other sets of the model's nodes. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_VARIABILITY_H
#define ASSAY_PREDICT_HPL_REPLAY_VARIABILITY_H

#include "plugins/predict-hpl-replay/models.h"

struct variability {
    const void *state; /* of models_open() */
    const struct predict_inputs *inputs;
    struct models_request request; /* of the scenario */
    struct predict_output *output;
    struct plugin_message *message;
};

extern const struct column loss_columns[], node_set_columns[];

/*
 * Rows of TABLE: the share of the speed that is lost because nodes differ (spatial), because calls scatter
 * (temporal), both, and because calls scatter where nodes differ. Over SETS sets of the model's nodes, of
 * which the first is that of the scenario and the others are drawn: the mean, and the least and greatest of
 * 95 % of them. HPL is replayed four times for each: on the set as it is, with and without noise, and on as
 * many nodes that all are as its mean.
 */
int report_losses(const struct variability *of, int sets, size_t table);
/*
 * Rows of TABLE: HPL without the slowest K nodes of the scenario, for K from 0 to MOST, on the fastest grid P
 * x Q of the processes that are left with P <= Q <= RATIO P.
 */
int report_node_sets(const struct variability *of, int most, double ratio, size_t table);

#endif
