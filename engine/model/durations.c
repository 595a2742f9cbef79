#include "engine/model/durations.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/model/model.h"
#include "engine/model/read.h"
#include "engine/model/verdict.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* How many seconds the unit of the response is, into *RET. -EINVAL: the response is no time, so that a
 * campaign cannot be planned by it. */
static int check_unit(const struct model *model, double *ret, struct failure *failure) {
    const struct unit *unit = model->response_unit ? unit_find(model->response_unit) : NULL;
    if (!unit || unit->dimension != UNIT_TIME)
        return failure_input(failure, model->file, 0, 0,
                             "the model's response '%s' has the unit '%s'; expected a time", model->response,
                             model->response_unit ? model->response_unit : "");
    *ret = unit->scale;
    return 0;
}

/* The column of DESIGN for each input of the model, into COLUMNS. -EINVAL: the design lacks one, or has texts
 * where numbers are needed. */
static int find_columns(const struct evaluator *evaluator, const struct design *design, size_t *columns,
                        struct failure *failure) {
    for (size_t i = 0; i < evaluator->input_count; i++) {
        const struct evaluator_input *input = &evaluator->inputs[i];
        columns[i] = design_find(design, input->name);
        bool is_text = columns[i] != SIZE_MAX && design->columns[columns[i]].about.type == COLUMN_STRING;
        if (columns[i] == SIZE_MAX || (is_text && !input->is_text))
            return failure_input(failure, evaluator->model->file, 0, 0,
                                 "the model uses '%s', which is %s; expected a %s of the design", input->name,
                                 is_text ? "a text there" : "no column of the design",
                                 input->is_text ? "column" : "number");
    }
    return 0;
}

/* The longest duration that any group of the model predicts, NaN if none does. TALLY gets the furthest
 * extrapolation of all groups. */
static double longest_of(const struct evaluator *evaluator, const double *inputs,
                         struct extrapolation_tally *tally) {
    double longest = NAN;
    struct extrapolation_tally groups = {.furthest = {.extrapolated_by = 1}};
    for (size_t g = 0; g < evaluator->model->group_count; g++) {
        struct evaluator_value value;
        if (evaluator_predict(evaluator, &evaluator->model->groups[g], inputs, &value) < 0)
            continue;
        longest = fmax(longest, value.mean); /* of a number and NaN, the number */
        extrapolation_count(&groups, &value);
    }
    extrapolation_count(tally, &groups.furthest);
    return longest;
}

/* Predicts the duration of each row of DESIGN by the model in FILE, in seconds (durations.h); NaN where the
 * model gives no time. RET_WARNING is "" unless rows extrapolate or the model is not usable. */
int durations_predict(const char *file, const struct design *design, double *ret_seconds,
                      char ret_warning[static EXTRAPOLATION_SENTENCE_SIZE], struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
    struct extrapolation_tally tally = {0};
    double scale = 1;
    int r = model_file_read(file, &model, failure);
    r = r < 0 ? r : check_unit(model, &scale, failure);
    r = r < 0 ? r : evaluator_new(model, &evaluator, failure);
    if (r < 0)
        return r;
    cleanup_free size_t *columns = xcalloc(evaluator->input_count + 1, sizeof *columns);
    cleanup_free double *inputs = xcalloc(evaluator->input_count + 1, sizeof *inputs);
    r = find_columns(evaluator, design, columns, failure);
    for (size_t row = 0; r == 0 && row < design->row_count; row++) {
        for (size_t i = 0; i < evaluator->input_count; i++) {
            char buffer[NUMBER_TEXT_SIZE];
            inputs[i] = evaluator->inputs[i].is_text
                            ? evaluator_code(evaluator, i, design_value(design, row, columns[i], buffer))
                            : design_number(design, row, columns[i]);
        }
        double seconds = scale * longest_of(evaluator, inputs, &tally);
        ret_seconds[row] = seconds > 0 ? seconds : NAN;
    }
    ret_warning[0] = '\0';
    (void)extrapolation_summarise(&tally, ret_warning); /* writes nothing where there is nothing to say */
    size_t length = strlen(ret_warning);
    cleanup_free char *verdict = model_verdict(model);
    if (model_grade(model) == REPORT_NOT_USABLE) /* what is too long is cut */
        (void)snprintf(ret_warning + length, EXTRAPOLATION_SENTENCE_SIZE - length, "%s%s", length ? "; " : "",
                       verdict);
    return r;
}
