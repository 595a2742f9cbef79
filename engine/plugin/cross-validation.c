#include "engine/plugin/cross-validation.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/evaluation.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { VALUES = 4 };

struct cross_validation {
    const struct fitting *fitting;
    struct cross_validation_options options;
    const struct fitting_listener *const *listeners;
    size_t listener_count;
    struct fitting_listener listener;
    enum {
        CROSS_VALIDATION_WAITING, /* for the first group, which tells whether there is a need */
        CROSS_VALIDATION_NONE,
        CROSS_VALIDATION_DONE,
    } state;
    struct held_out *groups; /* by code */
};

/* ---- Folds */

/* A row without a value says nothing either way; one whose group was not fitted is missing. */
static void add_row(const struct row_evaluation *evaluation, const struct fitted_model *model,
                    const struct refit *refit, size_t i, struct held_out *groups) {
    struct row_value value;
    struct held_out *group = &groups[refit->groups[i]];
    if (row_evaluation_at(evaluation, i, &value))
        held_out_add(group, &value);
    else if (fitted_model_group(model, refit->groups[i]) == SIZE_MAX)
        group->missing++;
    else
        return;
    group->folds += group->last_fold != refit->left_out + 1U;
    group->last_fold = refit->left_out + 1U;
}

static int run_fold(const struct refit *refit, struct held_out *groups, struct failure *failure) {
    cleanup(fitted_model_cleanup) struct fitted_model *model = NULL;
    cleanup(row_evaluation_cleanup) struct row_evaluation *evaluation = NULL;
    int r = refit_run(refit, &model, failure);
    r = r < 0 ? r : row_evaluation_new(refit->fitting, model, refit->groups, &evaluation, failure);
    size_t count = fitting_kept_rows(refit->fitting)->count;
    for (size_t i = 0; r == 0 && i < count; i++)
        if (refit->folds[i] == refit->left_out)
            add_row(evaluation, model, refit, i, groups);
    return r;
}

int cross_validation_run(struct refit *refit, const uint8_t *folds, uint32_t count, bool told,
                         struct held_out *ret, struct failure *failure) {
    memset(ret, 0, refit->group_count * sizeof *ret);
    for (uint32_t fold = 0; fold < count; fold++) {
        if (told)
            fitting_tell(refit->fitting, &(struct fitting_stage){"folds", fold, count, 0});
        refit->folds = folds;
        refit->left_out = (uint8_t)fold;
        int r = run_fold(refit, ret, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* ---- Listening */

static void tell(const struct cross_validation *validation, const char *why) {
    cleanup_free char *note = text_format("there is no cross-validated error: %s", why);
    if (validation->options.note && note)
        validation->options.note(validation->options.note_context, note);
}

/* Why there can be none, or NULL. */
static const char *obstacle(const struct cross_validation *validation) {
    const struct kept_rows *kept = fitting_kept_rows(validation->fitting);
    if (!kept || kept->stride > 1)
        return "the table has more rows than stay in memory";
    if (fitting_group_count(validation->fitting) > CROSS_VALIDATION_GROUPS_MAX)
        return "there are more groups than it is done for";
    return NULL;
}

/* What stops it does not stop the fit. */
static int run(struct cross_validation *validation) {
    const char *why = obstacle(validation);
    if (why) {
        tell(validation, why);
        return 0;
    }
    cleanup_free uint8_t *folds = NULL;
    const struct fitting *fitting = validation->fitting;
    uint32_t count = fitting_group_count(fitting);
    validation->groups = calloc((size_t)count + 1, sizeof *validation->groups);
    if (!validation->groups || fitting_kept_folds(fitting, validation->options.folds, &folds) < 0)
        return -ENOMEM;
    struct refit refit = {
        .fitting = fitting,
        .request = fitting_request(fitting),
        .groups = fitting_kept_rows(fitting)->groups,
        .group_count = count,
    };
    struct failure failure = {0};
    int r =
        cross_validation_run(&refit, folds, validation->options.folds, true, validation->groups, &failure);
    if (r == 0)
        validation->state = CROSS_VALIDATION_DONE;
    else if (r != -ENOMEM)
        tell(validation, failure.text);
    return r == -ENOMEM ? r : 0;
}

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    struct cross_validation *validation = context;
    if (validation->options.folds == 0)
        validation->state = CROSS_VALIDATION_NONE;
    else if (!evaluation_knows(formula->kind)) {
        char why[128];
        snprintf(why, sizeof why, "models of the kind '%.32s' are not evaluated row by row", formula->kind);
        tell(validation, why);
        validation->state = CROSS_VALIDATION_NONE;
    }
    int r = 0;
    for (size_t i = 0; r >= 0 && i < validation->listener_count; i++)
        r = validation->listeners[i]->formula(validation->listeners[i]->context, formula, failure);
    return r;
}

static bool has_value(const struct fit_value *values, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(values[i].name, name) == 0)
            return true;
    return false;
}

static bool has_own(const struct fit_group *group) {
    return has_value(group->values, group->value_count, "cv_rmse") ||
           (group->part_count > 0 &&
            has_value(group->parts[0].values, group->parts[0].value_count, "cv_rmse"));
}

static int pass_group(const struct cross_validation *validation, const struct fit_group *group,
                      struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r >= 0 && i < validation->listener_count; i++)
        r = validation->listeners[i]->group(validation->listeners[i]->context, group, failure);
    return r;
}

/* The group as it is, or with what was found out of it. */
static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct cross_validation *validation = context;
    if (validation->state == CROSS_VALIDATION_WAITING) {
        validation->state = CROSS_VALIDATION_NONE;
        if (!has_own(group) && run(validation) < 0)
            return failure_memory(failure);
    }
    if (validation->state != CROSS_VALIDATION_DONE)
        return pass_group(validation, group, failure);
    const struct held_out *held_out = &validation->groups[group->code];
    cleanup_free struct fit_value *values = xcalloc(group->value_count + VALUES, sizeof *values);
    size_t count = group->value_count;
    if (count > 0)
        memcpy(values, group->values, count * sizeof *values);
    values[count++] = (struct fit_value){"cv_rmse", held_out_rmse(held_out), 1};
    values[count++] = (struct fit_value){"cv_relative", held_out_relative(held_out), 0};
    values[count++] = (struct fit_value){"cv_log_score", held_out_score(held_out), 0};
    values[count++] = (struct fit_value){"folds", held_out->folds, 0};
    struct fit_group more = *group;
    more.values = values;
    more.value_count = count;
    return pass_group(validation, &more, failure);
}

static int hear_skipped(void *context, uint32_t group, uint64_t rows, const char *reason,
                        struct failure *failure) {
    const struct cross_validation *validation = context;
    int r = 0;
    for (size_t i = 0; r >= 0 && i < validation->listener_count; i++)
        r = validation->listeners[i]->skipped(validation->listeners[i]->context, group, rows, reason,
                                              failure);
    return r;
}

/* ---- Life */

int cross_validation_new(const struct fitting *fitting, const struct cross_validation_options *options,
                         const struct fitting_listener *const *listeners, size_t count,
                         struct cross_validation **ret) {
    struct cross_validation *validation = xcalloc(1, sizeof *validation);
    validation->fitting = fitting;
    validation->options = *options;
    validation->listeners = listeners;
    validation->listener_count = count;
    validation->listener = (struct fitting_listener){validation, hear_formula, hear_group, hear_skipped};
    *ret = validation;
    return 0;
}

const struct fitting_listener *cross_validation_listener(const struct cross_validation *validation) {
    return &validation->listener;
}

void cross_validation_free(struct cross_validation *validation) {
    if (!validation)
        return;
    free(validation->groups);
    free(validation);
}

void cross_validation_cleanup(struct cross_validation **validation) {
    cross_validation_free(*validation);
}
