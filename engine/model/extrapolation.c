#include "engine/model/extrapolation.h"

#include "engine/model/model.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* By which factor VALUE is away from a BOUND that it is beyond. */
static double factor_beyond(double value, double bound) {
    double factor = value > bound ? value / bound : bound / value;
    if (value < 0 && bound < 0)
        factor = 1 / factor;
    return factor >= 1 ? factor : INFINITY;
}

/* Records in RET that the value NAME lies outside MINIMUM to MAXIMUM, if it does so by a larger factor than
 * any value before. */
static void compare_range(struct evaluator_value *ret, const char *name, double value, double minimum,
                          double maximum) {
    if (!(value > maximum) && !(value < minimum))
        return;
    bool above = value > maximum;
    double factor = factor_beyond(value, above ? maximum : minimum);
    if (ret->extrapolation && factor <= ret->extrapolated_by)
        return;
    ret->extrapolated_by = factor;
    ret->extrapolation = name;
    ret->extrapolated_above = above;
}

/* Compares the column of segments with the range of the whole group. Between two segments, in a gap, the
 * bound of the nearer one counts. */
static void compare_segments(const struct evaluator *evaluator, const struct model_group *group,
                             const double *inputs, struct evaluator_value *ret) {
    const char *over = evaluator->model->over;
    double x = inputs[evaluator->over];
    size_t first, end;
    if (!evaluator_parts_named(evaluator, group, inputs, &first, &end))
        return;
    const struct model_part *parts = group->parts;
    const struct model_range *low = model_range_find(&parts[first], over),
                             *high = model_range_find(&parts[end - 1], over);
    size_t p = evaluator_segment(group, first, end, x);
    compare_range(ret, over, x, low ? low->minimum : parts[first].from,
                  high ? high->maximum : parts[end - 1].to);
    if (p > first && x < parts[p].from)
        compare_range(ret, over, x, parts[p].from, INFINITY);
    if (p + 1 < end && x > parts[p].to)
        compare_range(ret, over, x, -INFINITY, parts[p].to);
}

/* Compares each number among the inputs with its range; the column of segments is left to
 * compare_segments(). */
static void compare_columns(const struct evaluator *evaluator, const struct model_part *part,
                            const double *inputs, struct evaluator_value *ret) {
    for (size_t i = 0; i < evaluator->input_count; i++) {
        const struct evaluator_input *input = &evaluator->inputs[i];
        const struct model_range *range =
            input->is_text || i == evaluator->over ? NULL : model_range_find(part, input->name);
        if (range)
            compare_range(ret, range->name, inputs[i], range->minimum, range->maximum);
    }
}

bool extrapolation_has_range(const struct model *model, const struct model_term *term) {
    bool alone = model->over != NULL;
    for (size_t f = 0; f < term->factor_count; f++) {
        if (term->factors[f].level)
            return false;
        alone = alone && strcmp(term->factors[f].column, model->over) == 0;
    }
    return term->factor_count > 0 && !alone;
}

/* Compares each product of columns with its range. */
static void compare_terms(const struct evaluator *evaluator, const struct model_part *part,
                          const double *inputs, struct evaluator_value *ret) {
    const struct model *model = evaluator->model;
    double terms[MODEL_TERMS_MAX];
    evaluator_terms(evaluator, inputs, terms);
    for (size_t t = 0; t < model->term_count; t++) {
        const struct model_range *range = extrapolation_has_range(model, &model->terms[t])
                                              ? model_range_find(part, model->terms[t].name)
                                              : NULL;
        if (range)
            compare_range(ret, range->name, terms[t], range->minimum, range->maximum);
    }
}

/* Records a text that the fit did not see: the dummies alone would take it for the first level. */
static void compare_levels(const struct evaluator *evaluator, const double *inputs,
                           struct evaluator_value *ret) {
    for (size_t i = 0; i < evaluator->input_count; i++)
        if (evaluator->inputs[i].level_count > 0 && inputs[i] < 0) {
            ret->extrapolated_by = INFINITY;
            ret->extrapolation = evaluator->inputs[i].name;
            ret->extrapolated_above = false;
        }
}

/* How far a row lies beyond the hull of measured rows, as a share of the hull's width in that direction; 0:
 * inside, or the model has no hull. */
double extrapolation_beyond_hull(const struct evaluator *evaluator, const double *inputs) {
    const struct model_hull *hull = evaluator->model->hull;
    double worst = 0;
    for (size_t d = 0; evaluator->hull && d < hull->direction_count; d++) {
        double sum = 0, size = 0, width = hull->maximum[d] - hull->minimum[d];
        for (size_t c = 0; c < hull->column_count; c++) {
            double one =
                hull->directions[d * hull->column_count + c] * hull->scale[c] * inputs[evaluator->hull[c]];
            sum += one;
            size += fabs(one);
        }
        double off = fmax(sum - hull->maximum[d], hull->minimum[d] - sum);
        if (off > size * 1e-14) /* more than the rounding error of the sum */
            worst = fmax(worst, width > 0 ? off / width : INFINITY);
    }
    return worst;
}

/* Finds the input that is furthest outside its measured range, and whether the row is outside the hull
 * (extrapolation.h). */
void extrapolation_find(const struct evaluator *evaluator, const struct model_group *group,
                        const double *inputs, struct evaluator_value *ret) {
    const struct model_part *part = evaluator_part(evaluator, group, inputs);
    ret->extrapolated_by = 1;
    ret->extrapolation = NULL;
    ret->extrapolated_above = false;
    ret->outside_hull = extrapolation_beyond_hull(evaluator, inputs);
    if (!part)
        return;
    compare_columns(evaluator, part, inputs, ret);
    if (evaluator->over != SIZE_MAX)
        compare_segments(evaluator, group, inputs, ret);
    if (!ret->extrapolation)
        compare_terms(evaluator, part, inputs, ret);
    compare_levels(evaluator, inputs, ret);
}

/* ---- Sentences */

bool extrapolation_is_outside(const struct evaluator_value *value) {
    return value->extrapolation || value->outside_hull > 0;
}

/* Writes one sentence on how the row extrapolates into BUFFER, which is returned. */
const char *extrapolation_describe(const struct evaluator_value *value,
                                   char buffer[static EXTRAPOLATION_SENTENCE_SIZE]) {
    size_t size = EXTRAPOLATION_SENTENCE_SIZE;
    if (value->extrapolation && isfinite(value->extrapolated_by))
        snprintf(buffer, size, "'%.128s' is %.3g times %s measured value", value->extrapolation,
                 value->extrapolated_by,
                 value->extrapolated_above ? "the greatest" : "smaller than the least");
    else if (value->extrapolation)
        snprintf(buffer, size, "'%.128s' is outside its measured range", value->extrapolation);
    else if (value->outside_hull > 0 && isfinite(value->outside_hull))
        snprintf(buffer, size,
                 "each value is within its measured range, but the combination lies "
                 "outside the measured rows, by %.2g times the width of their hull",
                 value->outside_hull);
    else if (value->outside_hull > 0)
        snprintf(buffer, size,
                 "each value is within its measured range, but the combination lies "
                 "outside the measured rows");
    else
        snprintf(buffer, size, "all values are within the measured range");
    return buffer;
}

/* Adds a predicted row to TALLY, which keeps the furthest extrapolation. */
void extrapolation_count(struct extrapolation_tally *tally, const struct evaluator_value *value) {
    const struct evaluator_value *furthest = &tally->furthest;
    tally->rows++;
    tally->not_positive += tally->is_time && value->mean <= 0;
    if (!extrapolation_is_outside(value))
        return;
    if (tally->outside++ == 0 || value->extrapolated_by > furthest->extrapolated_by ||
        (value->extrapolated_by == furthest->extrapolated_by && value->outside_hull > furthest->outside_hull))
        tally->furthest = *value;
}

/* Writes one sentence on all rows of TALLY into BUFFER, which is returned; NULL: no row extrapolates and no
 * time is 0 or less. */
const char *extrapolation_summarise(const struct extrapolation_tally *tally,
                                    char buffer[static EXTRAPOLATION_SENTENCE_SIZE]) {
    char clause[EXTRAPOLATION_SENTENCE_SIZE];
    size_t size = EXTRAPOLATION_SENTENCE_SIZE;
    int length = 0;
    if (tally->outside == 0 && tally->not_positive == 0)
        return NULL;
    extrapolation_describe(&tally->furthest, clause);
    if (tally->outside > 0 && tally->rows == 1)
        length = snprintf(buffer, size, "the row is outside the domain of the model: %.600s", clause);
    else if (tally->outside > 0)
        length = snprintf(buffer, size,
                          "%" PRIu64 " of %" PRIu64 " rows are outside the domain of the model; in the "
                          "farthest row, %.500s",
                          tally->outside, tally->rows, clause);
    if (tally->not_positive > 0 && tally->rows == 1)
        snprintf(buffer + length, size - (size_t)length, "%sthe predicted time is 0 or less",
                 length ? "; " : "");
    else if (tally->not_positive > 0)
        snprintf(buffer + length, size - (size_t)length,
                 "%sa time of 0 or less is predicted for %" PRIu64 " of %" PRIu64 " rows", length ? "; " : "",
                 tally->not_positive, tally->rows);
    return buffer;
}
