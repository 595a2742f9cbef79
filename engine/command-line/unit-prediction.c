#include "engine/command-line/unit-prediction.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/plugin/model.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where a term finds the values of its factors. */
struct factor {
    size_t column;
    int32_t power;
};

struct term {
    struct factor *factors; /* owned */
    size_t count;
};

static void free_terms(struct term *terms, size_t count) {
    for (size_t i = 0; terms && i < count; i++)
        free(terms[i].factors);
    free(terms);
}

static int check_model(const struct predict_model *model, double *ret_scale, struct failure *failure) {
    if (strcmp(model->kind, "linear") != 0)
        return failure_input(failure, model->name, 0, 0, "the model is of kind '%s', expected 'linear'",
                             model->kind);
    const struct unit *unit = model->response_unit ? unit_find(model->response_unit) : NULL;
    if (!unit || unit->dimension != UNIT_TIME)
        return failure_input(failure, model->name, 0, 0,
                             "the model's response '%s' has the unit '%s', expected a time", model->response,
                             model->response_unit ? model->response_unit : "");
    *ret_scale = unit->scale;
    return 0;
}

static int find_factors(const struct predict_model *model, const struct plugin_term *written,
                        const struct design *design, struct term *ret, struct failure *failure) {
    ret->factors = calloc(written->factor_count + 1, sizeof *ret->factors);
    if (!ret->factors)
        return failure_memory(failure);
    ret->count = written->factor_count;
    for (size_t i = 0; i < ret->count; i++) {
        const char *name = written->factors[i].name;
        size_t column = design_find(design, name);
        if (column == SIZE_MAX || design->columns[column].type == DESIGN_TEXT)
            return failure_input(
                failure, model->name, 0, 0,
                "the model's term '%s' needs '%s', which is %s; expected a number of the design",
                written->name, name, column == SIZE_MAX ? "no column of the design" : "a text there");
        ret->factors[i] = (struct factor){.column = column, .power = written->factors[i].power};
    }
    return 0;
}

static double term_value(const struct term *term, const struct design *design, size_t row) {
    double value = 1;
    for (size_t i = 0; i < term->count; i++)
        value *= pow(design_number(design, row, term->factors[i].column), term->factors[i].power);
    return value;
}

/* Of all groups, the longest. */
static double row_value(const struct predict_model *model, const double *values) {
    double longest = NAN;
    for (size_t g = 0; g < model->group_count; g++) {
        double sum = 0;
        for (size_t t = 0; t < model->term_count; t++)
            sum += model->groups[g].parts[0].estimates[t] * values[t];
        longest = fmax(longest, sum); /* of a number and NAN, the number */
    }
    return longest;
}

int unit_prediction_make(void *context, const struct plan *plan, double *ret_seconds,
                         struct failure *failure) {
    (void)context;
    cleanup(model_cleanup) struct model *read = NULL;
    int r = model_read(plan->campaign->walltime.model, &read, failure);
    if (r < 0)
        return r;
    const struct predict_model *model = model_view(read);
    const struct design *design = plan->design;
    double scale = 1;
    struct term *terms = calloc(model->term_count + 1, sizeof *terms);
    cleanup_free double *values = calloc(model->term_count + 1, sizeof *values);
    r = terms && values ? check_model(model, &scale, failure) : failure_memory(failure);
    for (size_t t = 0; r == 0 && t < model->term_count; t++)
        r = find_factors(model, &model->terms[t], design, &terms[t], failure);
    for (size_t row = 0; r == 0 && row < design->row_count; row++) {
        for (size_t t = 0; t < model->term_count; t++)
            values[t] = term_value(&terms[t], design, row);
        double seconds = scale * row_value(model, values);
        ret_seconds[row] = seconds > 0 ? seconds : NAN;
    }
    free_terms(terms, model->term_count);
    return r;
}
