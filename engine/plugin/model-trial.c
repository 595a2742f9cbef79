#include "engine/plugin/model-trial.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/grouping.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { COLUMNS_MAX = 4096, NAME_LENGTH_MAX = 1 << 16 };

/* A model and its groups among the rows. */
struct candidate {
    const struct model *model;
    const struct predict_model *view;
    const struct model_summary *summary;
    struct evaluation *evaluation;
    struct grouping *grouping;
    size_t by[TABLE_LABELS_MAX];         /* which label columns form its groups */
    const struct predict_group **sorted; /* its groups by name */
    size_t *groups;                      /* by the grouping's code: which of its groups; SIZE_MAX: none */
    size_t group_count, group_capacity;
    const uint32_t *codes; /* of the rows in hand */
};

/* The columns that the models need together. */
struct trial {
    struct candidate candidates[MODEL_TRIAL_MAX];
    size_t count;
    struct table *table;
    const char *numbers[COLUMNS_MAX], *labels[TABLE_LABELS_MAX];
    size_t number_count, label_count;
    size_t response;
    const char *names[COLUMNS_MAX + TABLE_LABELS_MAX]; /* numbers, then labels */
    double values[COLUMNS_MAX + TABLE_LABELS_MAX];     /* of the row in hand */
    const char *texts[COLUMNS_MAX + TABLE_LABELS_MAX];
};

static void trial_free(struct trial **of) {
    struct trial *trial = *of;
    for (size_t i = 0; trial && i < trial->count; i++) {
        evaluation_free(trial->candidates[i].evaluation);
        grouping_free(trial->candidates[i].grouping);
        free((void *)trial->candidates[i].sorted);
        free(trial->candidates[i].groups);
    }
    free(trial);
}

/* ---- Columns */

/* The place of NAME in the list, where it is put if it is not there. */
static int add_name(const char **names, size_t *count, size_t most, const char *name, size_t *ret,
                    struct failure *failure) {
    size_t i = 0;
    while (i < *count && strcmp(names[i], name) != 0)
        i++;
    if (i == most)
        return failure_input(failure, NULL, 0, 0, "the models use more than %zu columns %s", most,
                             most == TABLE_LABELS_MAX ? "of texts" : "of numbers");
    if (i == *count)
        names[(*count)++] = name;
    *ret = i;
    return 0;
}

static int add_columns(struct trial *trial, struct candidate *candidate, struct failure *failure) {
    const struct predict_model *view = candidate->view;
    size_t place;
    int r = 0;
    if (candidate->summary->by_count > TABLE_LABELS_MAX)
        return failure_input(failure, view->name, 0, 0,
                             "the model has %zu columns of groups; expected at most %d",
                             candidate->summary->by_count, (int)TABLE_LABELS_MAX);
    for (size_t j = 0; r == 0 && j < candidate->summary->by_count; j++)
        r = add_name(trial->labels, &trial->label_count, TABLE_LABELS_MAX, candidate->summary->by[j],
                     &candidate->by[j], failure);
    for (size_t t = 0; r == 0 && t < view->term_count; t++)
        for (size_t f = 0; r == 0 && f < view->terms[t].factor_count; f++) {
            const struct plugin_factor *factor = &view->terms[t].factors[f];
            r = factor->level ? add_name(trial->labels, &trial->label_count, TABLE_LABELS_MAX, factor->name,
                                         &place, failure)
                              : add_name(trial->numbers, &trial->number_count, COLUMNS_MAX, factor->name,
                                         &place, failure);
        }
    if (r == 0 && view->over)
        r = add_name(trial->numbers, &trial->number_count, COLUMNS_MAX, view->over, &place, failure);
    return r;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* All models must explain the same, and in the unit of the table where that is known. */
static int check_responses(const struct trial *trial, struct failure *failure) {
    const struct predict_model *first = trial->candidates[0].view;
    for (size_t i = 1; i < trial->count; i++) {
        const struct predict_model *view = trial->candidates[i].view;
        if (strcmp(view->response, first->response) != 0 ||
            !same_text(view->response_unit, first->response_unit))
            return failure_input(
                failure, view->name, 0, 0, "the model is of '%s' in '%s'; expected '%s' in '%s', as in '%s'",
                view->response, view->response_unit ? view->response_unit : "no known unit", first->response,
                first->response_unit ? first->response_unit : "no known unit", first->name);
    }
    return 0;
}

/* The unit that MODEL's file tells of a factor. */
static const char *factor_unit(const struct model *model, const char *name) {
    const struct document_node *factors = document_get(model_document(model)->root, "factors");
    for (size_t i = 0; factors && i < factors->count; i++) {
        const struct document_node *of = document_get(factors->items[i], "name");
        const struct document_node *unit = document_get(factors->items[i], "unit");
        if (of && of->text && strcmp(of->text, name) == 0)
            return unit && unit->kind == DOCUMENT_TEXT ? unit->text : NULL;
    }
    return NULL;
}

static int check_units(const struct trial *trial, struct failure *failure) {
    for (size_t i = 0; i < trial->count; i++)
        for (size_t c = 0; c < trial->number_count; c++) {
            const struct candidate *candidate = &trial->candidates[i];
            size_t column;
            int r = table_stream_find(trial->table, "needed", trial->numbers[c], &column, failure);
            if (r < 0)
                return r;
            const char *known = table_column(trial->table, column)->unit;
            const char *unit = c == trial->response ? candidate->view->response_unit
                                                    : factor_unit(candidate->model, trial->numbers[c]);
            if (known && unit && strcmp(known, unit) != 0)
                return failure_input(failure, table_input(trial->table, 0)->path, 0, 0,
                                     "the column '%s' is in '%s'; expected '%s', as in the model '%s'",
                                     trial->numbers[c], known, unit, candidate->view->name);
        }
    return 0;
}

/* ---- Groups */

static int compare_names(const void *a, const void *b) {
    const struct predict_group *const *x = a, *const *y = b;
    return strcmp((*x)->name, (*y)->name);
}

static int sort_groups(struct candidate *candidate, struct failure *failure) {
    size_t count = candidate->view->group_count;
    candidate->sorted = xcalloc(count + 1, sizeof *candidate->sorted);
    for (size_t g = 0; g < count; g++)
        candidate->sorted[g] = &candidate->view->groups[g];
    qsort((void *)candidate->sorted, count, sizeof *candidate->sorted, compare_names);
    return grouping_new(candidate->summary->by_count, &candidate->grouping, failure);
}

/* The model's group that the grouping's CODE is, by its labels; SIZE_MAX when it has none. */
static int find_group(const struct trial *trial, const struct candidate *candidate, uint32_t code,
                      size_t *ret) {
    cleanup(text_clear) struct text name;
    text_init(&name, NAME_LENGTH_MAX);
    int r = candidate->summary->by_count == 0 ? text_append_string(&name, "all") : 0;
    for (size_t j = 0; r == 0 && j < candidate->summary->by_count; j++)
        r = text_printf(
            &name, "%s%s", j ? "/" : "",
            table_label(trial->table, candidate->by[j], grouping_label(candidate->grouping, code, j)));
    const struct predict_group key = {.name = name.bytes}, *pointer = &key;
    const struct predict_group **found =
        r < 0 ? NULL
              : bsearch(&pointer, (const void *)candidate->sorted, candidate->view->group_count,
                        sizeof *candidate->sorted, compare_names);
    *ret = found ? (size_t)(*found - candidate->view->groups) : SIZE_MAX;
    return r == -ENOMEM ? r : 0;
}

/* The groups of the ROWS in hand. */
static int group_rows(const struct trial *trial, struct candidate *candidate, size_t rows,
                      const uint32_t *const *labels, struct failure *failure) {
    const uint32_t *own[TABLE_LABELS_MAX];
    for (size_t j = 0; j < candidate->summary->by_count; j++)
        own[j] = labels[candidate->by[j]];
    int r = grouping_assign(candidate->grouping, rows, own, &candidate->codes, failure);
    if (r < 0)
        return r;
    size_t count = grouping_count(candidate->grouping);
    if (list_reserve(&candidate->groups, &candidate->group_capacity, count, sizeof *candidate->groups,
                     GROUPING_MAX) < 0)
        return failure_memory(failure);
    for (; candidate->group_count < count; candidate->group_count++)
        if (find_group(trial, candidate, (uint32_t)candidate->group_count,
                       &candidate->groups[candidate->group_count]) < 0)
            return failure_memory(failure);
    return 0;
}

/* ---- Rows */

/* A column that is read both as a number and as texts is bound by its first place. */
static void take_row(struct trial *trial, const struct table_block *block, size_t row) {
    for (size_t c = 0; c < trial->number_count; c++)
        trial->values[c] = block->numbers[c][row];
    for (size_t j = 0; j < trial->label_count; j++) {
        const char *text = table_label(trial->table, j, block->labels[j][row]);
        trial->texts[trial->number_count + j] = text;
        for (size_t c = 0; c < trial->number_count; c++)
            if (strcmp(trial->numbers[c], trial->labels[j]) == 0)
                trial->texts[c] = text;
    }
}

static bool evaluate(const struct trial *trial, const struct candidate *candidate, size_t row,
                     struct row_value *ret, bool *ret_outside) {
    size_t group = candidate->groups[candidate->codes[row]];
    struct evaluation_value value;
    if (group == SIZE_MAX ||
        evaluation_row(candidate->evaluation, group, trial->values, trial->texts, &value) < 0)
        return false;
    const struct predict_part *part =
        evaluation_part(candidate->evaluation, group, trial->values, trial->texts);
    if (!evaluation_is_of_row(candidate->evaluation, part))
        return false;
    *ret = (struct row_value){
        .observed = trial->values[trial->response],
        .weight = 1,
        .mean = value.mean,
        .sigma = value.sigma,
        .noise = part->noise,
        .part = part,
    };
    *ret_outside |= evaluation_outside(&value);
    return isfinite(ret->observed);
}

static void try_row(struct trial *trial, size_t row, struct model_trial *ret) {
    struct row_value values[MODEL_TRIAL_MAX];
    bool good = true, outside = false;
    for (size_t i = 0; good && i < trial->count; i++)
        good = evaluate(trial, &trial->candidates[i], row, &values[i], &outside);
    if (!good) {
        ret->left_out++;
        return;
    }
    ret->rows++;
    ret->outside += outside;
    for (size_t i = 0; i < trial->count; i++)
        held_out_add(&ret->errors[i], &values[i]);
}

static int try_rows(struct trial *trial, struct model_trial *ret, struct failure *failure) {
    int r = table_begin(trial->table, trial->numbers, trial->number_count, trial->labels, trial->label_count,
                        failure);
    struct table_block block;
    while (r >= 0 && (r = table_next(trial->table, &block, failure)) > 0) {
        for (size_t i = 0; r >= 0 && i < trial->count; i++)
            r = group_rows(trial, &trial->candidates[i], block.rows, block.labels, failure);
        for (size_t row = 0; r >= 0 && row < block.rows; row++) {
            take_row(trial, &block, row);
            try_row(trial, row, ret);
        }
    }
    return r;
}

static int prepare(struct trial *trial, struct failure *failure) {
    int r = check_responses(trial, failure);
    for (size_t i = 0; r == 0 && i < trial->count; i++)
        r = add_columns(trial, &trial->candidates[i], failure);
    r = r < 0 ? r
              : add_name(trial->numbers, &trial->number_count, COLUMNS_MAX,
                         trial->candidates[0].view->response, &trial->response, failure);
    r = r < 0 ? r : check_units(trial, failure);
    for (size_t c = 0; c < trial->number_count; c++)
        trial->names[c] = trial->numbers[c];
    for (size_t j = 0; j < trial->label_count; j++)
        trial->names[trial->number_count + j] = trial->labels[j];
    for (size_t i = 0; r == 0 && i < trial->count; i++) {
        struct candidate *candidate = &trial->candidates[i];
        r = evaluation_new(candidate->view, trial->names, trial->number_count + trial->label_count,
                           &candidate->evaluation, failure);
        r = r < 0 ? r : sort_groups(candidate, failure);
    }
    return r;
}

int model_trial_run(const struct model *const *models, const struct model_summary *summaries, size_t count,
                    struct table *table, struct model_trial *ret, struct failure *failure) {
    cleanup(trial_free) struct trial *trial = calloc(1, sizeof *trial);
    if (!trial)
        return failure_memory(failure);
    trial->table = table;
    trial->count = count;
    for (size_t i = 0; i < count; i++)
        trial->candidates[i] =
            (struct candidate){.model = models[i], .view = model_view(models[i]), .summary = &summaries[i]};
    *ret = (struct model_trial){0};
    int r = prepare(trial, failure);
    return r < 0 ? r : try_rows(trial, ret, failure);
}
