/* What replays say of the machine besides the time: what a change of each cost is worth. */
#ifndef ASSAY_PREDICT_HPL_REPLAY_STUDIES_H
#define ASSAY_PREDICT_HPL_REPLAY_STUDIES_H

#include "plugins/predict-hpl-replay/models.h"
#include "plugins/predict-hpl-replay/sensitivities.h"
#include "plugins/predict-hpl-replay/trace.h"

extern const struct column sensitivity_columns[], tolerance_columns[];

/* Rows of TABLE: the sensitivity of TIME to each cost, by the vector of the process that is done last. */
int report_sensitivities(const struct machine *machine, const struct trace *trace, double time, size_t table,
                         struct predict_output *output);
/* Rows of TABLE: the latency with which the run takes 1, 2 and 5 % longer than TIME, the time of the replay
 * that TRACE is of. Replays HPL again, some times each. */
int report_tolerance(const struct hpl *hpl, const struct machine *machine, const struct trace *trace,
                     double time, size_t table, struct predict_output *output);

#endif
