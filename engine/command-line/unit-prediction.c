#include "engine/command-line/unit-prediction.h"

#include "engine/command-line/shown.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

static int check_model(const struct predict_model *model, double *ret_scale, struct failure *failure) {
    if (!evaluation_knows(model->kind))
        return failure_input(failure, model->name, 0, 0,
                             "the model is of kind '%s', expected 'linear', 'piecewise' or 'maximum'",
                             model->kind);
    const struct unit *unit = model->response_unit ? unit_find(model->response_unit) : NULL;
    if (!unit || unit->dimension != UNIT_TIME)
        return failure_input(failure, model->name, 0, 0,
                             "the model's response '%s' has the unit '%s', expected a time", model->response,
                             model->response_unit ? model->response_unit : "");
    *ret_scale = unit->scale;
    return 0;
}

/* The model's columns in the design, and what the values of a row are written to. */
struct binding {
    const char **names;
    size_t count;
    struct evaluation *evaluation;
    size_t *columns;
    double *values;
    const char **texts;
    char (*written)[NUMBER_TEXT_SIZE];
};

static void binding_clear(struct binding *binding) {
    evaluation_free(binding->evaluation);
    free(binding->names);
    free(binding->columns);
    free(binding->values);
    free(binding->texts);
    free(binding->written);
}

static int find_columns(struct binding *binding, const struct predict_model *model,
                        const struct design *design, struct failure *failure) {
    for (size_t i = 0; i < binding->count; i++) {
        size_t column = design_find(design, binding->names[i]);
        bool number = evaluation_uses_number(binding->evaluation, i);
        if (column == SIZE_MAX || (number && design->columns[column].type == DESIGN_TEXT))
            return failure_input(
                failure, model->name, 0, 0, "the model needs '%s', which is %s; expected a %s of the design",
                binding->names[i], column == SIZE_MAX ? "no column of the design" : "a text there",
                number ? "number" : "column");
        binding->columns[i] = column;
    }
    return 0;
}

static int bind_columns(struct binding *binding, const struct predict_model *model,
                        const struct design *design, struct failure *failure) {
    int r = evaluation_columns(model, &binding->names, &binding->count);
    r = r < 0 ? r : evaluation_new(model, binding->names, binding->count, &binding->evaluation, failure);
    if (r < 0)
        return r;
    binding->columns = xcalloc(binding->count + 1, sizeof *binding->columns);
    binding->values = xcalloc(binding->count + 1, sizeof *binding->values);
    binding->texts = xcalloc(binding->count + 1, sizeof *binding->texts);
    binding->written = xcalloc(binding->count + 1, sizeof *binding->written);
    return find_columns(binding, model, design, failure);
}

static void take_row(struct binding *binding, const struct design *design, size_t row) {
    for (size_t i = 0; i < binding->count; i++) {
        if (evaluation_uses_number(binding->evaluation, i))
            binding->values[i] = design_number(design, row, binding->columns[i]);
        if (evaluation_uses_text(binding->evaluation, i))
            binding->texts[i] = design_value(design, row, binding->columns[i], binding->written[i]);
    }
}

/* Of all groups, the longest; the group that the row is furthest outside of counts in TALLY. */
static double row_value(const struct binding *binding, const struct predict_model *model,
                        struct evaluation_tally *tally) {
    double longest = NAN;
    struct evaluation_tally groups = {.furthest = {.left = 1}};
    for (size_t g = 0; g < model->group_count; g++) {
        struct evaluation_value value;
        if (evaluation_row(binding->evaluation, g, binding->values, binding->texts, &value) < 0)
            continue;
        longest = fmax(longest, value.mean); /* of a number and NAN, the number */
        evaluation_tally_add(&groups, &value);
    }
    evaluation_tally_add(tally, &groups.furthest);
    return longest;
}

int unit_prediction_make(void *context, const struct plan *plan, double *ret_seconds,
                         struct failure *failure) {
    (void)context;
    cleanup(model_cleanup) struct model *read = NULL;
    cleanup(binding_clear) struct binding binding = {0};
    int r = model_read(plan->campaign->walltime.model, &read, failure);
    if (r < 0)
        return r;
    const struct predict_model *model = model_view(read);
    const struct design *design = plan->design;
    double scale = 1;
    r = check_model(model, &scale, failure);
    r = r < 0 ? r : bind_columns(&binding, model, design, failure);
    if (r < 0)
        return r;
    struct evaluation_tally tally = {0};
    for (size_t row = 0; row < design->row_count; row++) {
        take_row(&binding, design, row);
        double seconds = scale * row_value(&binding, model, &tally);
        ret_seconds[row] = seconds > 0 ? seconds : NAN;
    }
    char sentence[EVALUATION_SENTENCE_SIZE];
    if (evaluation_tally_describe(&tally, sentence))
        fprintf(stderr, "assay: warning: %s: %s\n", shown(model->name).text, shown(sentence).text);
    return 0;
}
