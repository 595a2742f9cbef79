/* The curve of a model over one column. */
#ifndef ASSAY_MODEL_CURVE_H
#define ASSAY_MODEL_CURVE_H

#include "engine/report/report.h"

#include <assay/model.h>

enum { MODEL_CURVE_POINTS = 257 };

struct model_curve {
    const char *column; /* the model's */
    double x[MODEL_CURVE_POINTS], y[MODEL_CURVE_POINTS];
};

/* GROUP's mean over the only column that MODEL needs, where it was observed; false where it needs more. */
bool model_curve(const struct model *model, const struct model_group *group, struct model_curve *ret);
/* Adds GROUP's curve, as text, where MODEL is of segments over one column, which alone it needs; otherwise
 * nothing. */
void model_report_curve(struct report_section *section, const struct model *model,
                        const struct model_group *group);

#endif
