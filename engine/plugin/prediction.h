/*
 * A prediction under way: a model, a predict plugin, and scenarios. Parameters have one value for all
 * scenarios (prediction_set) or a column of the scenario table; a column called "name" names the scenarios.
 *
 *     prediction_open(method, model) ; prediction_set("N=20000") ... ; prediction_run(scenario table or NULL)
 */
#ifndef ASSAY_PLUGIN_PREDICTION_H
#define ASSAY_PLUGIN_PREDICTION_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model.h"
#include "plugins/interface/predict.h"

#include <stddef.h>

enum {
    PREDICTION_SCENARIOS_MAX = 1 << 20,
    PREDICTION_REMARKS_MAX = 32, /* a scenario */
    PREDICTION_VALUE_MAX = 256,  /* bytes of a value's text */
};

struct prediction_remark {
    enum predict_remark kind;
    char *sentence; /* owned */
};

struct prediction_scenario {
    char *name;         /* owned; NULL when the table has no such column */
    double *parameters; /* one for each parameter of the plugin */
    double *values;     /* one for each column of the plugin */
    struct prediction_remark remarks[PREDICTION_REMARKS_MAX];
    size_t remark_count;
};

typedef void (*prediction_note)(void *context, const char *sentence);

struct prediction;

/* MODEL stays the caller's and must live longer. NOTE may be NULL. */
int prediction_open(const struct installation *installation, const char *method, const struct model *model,
                    prediction_note note, void *note_context, struct prediction **ret,
                    struct failure *failure);
void prediction_free(struct prediction *prediction);
void prediction_cleanup(struct prediction **prediction); /* for cleanup() */

const struct assay_plugin *prediction_plugin(const struct prediction *prediction);
const struct predict_operations *prediction_operations(const struct prediction *prediction);

/* "NAME=VALUE", the value with its unit. Twice the same name is refused. */
int prediction_set(struct prediction *prediction, const char *assignment, struct failure *failure);

/* Hears each scenario when it is predicted; it is the prediction's, until the next. Returns 0, or negative
 * with FAILURE filled, which ends the run. */
typedef int (*prediction_listener)(void *context, const struct prediction_scenario *scenario,
                                   struct failure *failure);

/* Predicts every row of the CSV table SCENARIOS, or with NULL the one scenario that was set. */
int prediction_run(struct prediction *prediction, const char *scenarios, prediction_listener listener,
                   void *context, struct failure *failure);

/* The prediction as CSV: parameters, results, remarks. Each appends a line to TEXT. */
int prediction_append_csv_header(const struct prediction *prediction, struct text *text);
int prediction_append_csv(const struct prediction *prediction, const struct prediction_scenario *scenario,
                          struct text *text);
/* One scenario as a JSON object on one line, without a newline. */
int prediction_append_json(const struct prediction *prediction, const struct prediction_scenario *scenario,
                           struct text *text);

#endif
