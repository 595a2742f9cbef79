#include "plugins/fit-linear/settle.h"

#include <errno.h>
#include <stdlib.h>

struct settling {
    const struct fit *fit;
    struct sums_layout layout;
    struct sum_fit sum_fit;
    struct row_fit *row_fit; /* where rows are held */
    struct sums *all, *folds[MOMENTS_FOLDS_MAX];
    uint32_t fold_count;
    struct sums_cell *cells; /* of the group in hand */
    size_t cell_count, cell_capacity;
};

static enum select selection_rule(const struct fit *fit) {
    enum select rule = (enum select)linear_parameter(fit, PARAMETER_SELECT);
    if (rule == SELECT_AUTO)
        return fit->request->suggested ? SELECT_ELIMINATION : SELECT_NONE;
    return rule;
}

static int settling_init(struct settling *settling, const struct fit *fit) {
    settling->fit = fit;
    sums_layout_init(&settling->layout, fit->expansion, fit->request->weights != NULL);
    const struct selection selection = {.layout = &settling->layout,
                                        .rule = selection_rule(fit),
                                        .threshold = linear_parameter(fit, PARAMETER_THRESHOLD)};
    settling->all = sums_new(&settling->layout);
    settling->fold_count = moments_folds(fit->moments);
    bool complete = settling->all != NULL;
    for (uint32_t f = 0; f < settling->fold_count; f++) {
        settling->folds[f] = sums_new(&settling->layout);
        complete = complete && settling->folds[f];
    }
    int r = complete ? sum_fit_init(&settling->sum_fit, &selection) : -ENOMEM;
    if (r == 0 && fit->holds)
        settling->row_fit = row_fit_new(fit, &settling->layout, &settling->sum_fit);
    return r == 0 && fit->holds && !settling->row_fit ? -ENOMEM : r;
}

struct settling *settling_new(const struct fit *fit) {
    struct settling *settling = calloc(1, sizeof *settling);
    if (settling && settling_init(settling, fit) == 0)
        return settling;
    settling_free(settling);
    return NULL;
}

void settling_free(struct settling *settling) {
    if (!settling)
        return;
    row_fit_free(settling->row_fit);
    sum_fit_clear(&settling->sum_fit);
    sums_free(settling->all);
    for (uint32_t f = 0; f < settling->fold_count; f++)
        sums_free(settling->folds[f]);
    free(settling->cells);
    free(settling);
}

/* The cells of the group, with their levels. */
static int list_cells(struct settling *settling, uint32_t group) {
    const uint32_t *members;
    int r = cells_of_group(settling->fit->cells, group, &members, &settling->cell_count);
    if (r < 0)
        return r;
    if (settling->cell_count > settling->cell_capacity) {
        struct sums_cell *grown = realloc(settling->cells, settling->cell_count * sizeof *grown);
        if (!grown)
            return -ENOMEM;
        settling->cells = grown;
        settling->cell_capacity = settling->cell_count;
    }
    for (size_t i = 0; i < settling->cell_count; i++)
        settling->cells[i] = (struct sums_cell){members[i], cells_codes(settling->fit->cells, members[i])};
    return 0;
}

static void collect(struct settling *settling) {
    const struct moments *moments = settling->fit->moments;
    sums_collect(settling->all, moments, settling->cells, settling->cell_count, 0);
    if (settling->fold_count == 1)
        return;
    for (uint32_t f = 0; f < settling->fold_count; f++)
        sums_collect(settling->folds[f], moments, settling->cells, settling->cell_count, f);
    for (uint32_t f = 1; f < settling->fold_count; f++)
        sums_add(settling->all, settling->folds[f]);
}

/* What is told of the group's rows whether they can be fitted or not. */
static void survey(const struct settling *settling, struct settled *ret) {
    const struct fit *fit = settling->fit;
    const struct sums *all = settling->all;
    ret->rows = all->rows;
    ret->incomplete = all->incomplete;
    ret->layout = &settling->layout;
    for (size_t a = 0; a < settling->layout.width; a++) {
        ret->minimum[a] = all->minimum[a];
        ret->maximum[a] = all->maximum[a];
    }
    for (size_t i = 0; i < fit->formula.input_count; i++) {
        ret->input_minimum[i] = INFINITY;
        ret->input_maximum[i] = -INFINITY;
        for (size_t c = 0; c < settling->cell_count; c++)
            moments_widen_input(fit->moments, settling->cells[c].cell, i, &ret->input_minimum[i],
                                &ret->input_maximum[i]);
    }
}

static int settle_by_rows(struct settling *settling, uint32_t group, struct settled *ret) {
    uint32_t folds = linear_folds(settling->fit);
    int r = row_fit_run(settling->row_fit, group, settling->cells, settling->cell_count, &ret->path,
                        &ret->result, &ret->outcome, ret->reason);
    ret->fitted = r > 0;
    if (ret->fitted && folds > 1)
        r = row_fit_validate(settling->row_fit, settling->all, folds, &ret->validation);
    return r < 0 ? r : 0;
}

static int settle_by_sums(struct settling *settling, struct settled *ret) {
    bool kept[SUMS_COLUMNS_MAX];
    int r = sum_fit_run(&settling->sum_fit, settling->all, kept, &ret->path, &ret->result, ret->reason);
    ret->fitted = r > 0;
    if (ret->fitted && settling->fold_count > 1)
        r = sum_fit_validate(&settling->sum_fit, settling->all, settling->folds, settling->fold_count,
                             &ret->validation);
    return r < 0 ? r : 0;
}

int settle(struct settling *settling, uint32_t group, struct settled *ret) {
    ret->path.count = ret->path.round = 0;
    ret->validation = (struct validation){.folds = 0};
    ret->outcome = (struct row_outcome){.settled = true};
    int r = list_cells(settling, group);
    if (r < 0)
        return r;
    collect(settling);
    survey(settling, ret);
    return settling->row_fit ? settle_by_rows(settling, group, ret) : settle_by_sums(settling, ret);
}
