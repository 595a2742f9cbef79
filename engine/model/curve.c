#include "engine/model/curve.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/evaluator.h"
#include "engine/model/model.h"
#include "engine/model/spread.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Whether the mean depends on one column of numbers alone, so that it can be drawn as a curve. */
static bool is_over_one_column(const struct model *model) {
    if (model->named_by || !evaluator_knows(model->kind))
        return false;
    const char *column = model->over;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const struct model_factor *factor = &model->terms[t].factors[f];
            if (factor->level || (column && strcmp(factor->column, column) != 0))
                return false;
            column = factor->column;
        }
    return column != NULL;
}

/* Computes the curve of GROUP over its measured range, with equal or, over two decades, logarithmic steps.
 * false: the model does not depend on one column alone, or was measured at one value. */
bool model_curve(const struct model *model, const struct model_group *group, struct model_curve *ret) {
    cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
    double low, high, sigma;
    *ret = (struct model_curve){0};
    if (!is_over_one_column(model) || evaluator_new(model, &evaluator, NULL) < 0 ||
        evaluator->input_count != 1 ||
        !model_spread_range(group, 1, evaluator->inputs[0].name, &low, &high) || low == high)
        return false;
    ret->column = evaluator->inputs[0].name;
    bool is_logarithmic = low > 0 && high / low >= 100;
    for (size_t i = 0; i < MODEL_CURVE_POINTS; i++) {
        double share = (double)i / (MODEL_CURVE_POINTS - 1);
        ret->x[i] = is_logarithmic ? low * pow(high / low, share) : low + (high - low) * share;
        evaluator_row(evaluator, group, &ret->x[i], &ret->y[i], &sigma); /* NaN where it is not defined */
    }
    return true;
}

/* Adds a chart of the curve of GROUP, with marks where segments begin; nothing for a model without
 * segments. */
void model_report_curve(struct report_section *section, const struct model *model,
                        const struct model_group *group) {
    struct model_curve curve;
    if (!model->over || !model_curve(model, group, &curve))
        return;
    cleanup_free double *marks = xcalloc(group->part_count + 1, sizeof *marks);
    for (size_t p = 1; p < group->part_count; p++)
        marks[p - 1] = group->parts[p].from;
    const struct chart_series line = {curve.x, curve.y, MODEL_CURVE_POINTS, true, NULL};
    const struct chart chart = {.title = group->name,
                                .x_name = curve.column,
                                .y_name = model->response,
                                .series = &line,
                                .series_count = 1,
                                .x_marks = marks,
                                .x_mark_count = group->part_count - 1};
    report_chart(section, "curve", &chart);
}
