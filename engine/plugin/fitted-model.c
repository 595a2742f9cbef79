#include "engine/plugin/fitted-model.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <stdalign.h>
#include <stdlib.h>
#include <string.h>

enum { CHUNK_BYTES = 1 << 16, CODES_MAX = 1 << 26 };

/* Memory that goes all at once. */
struct chunk {
    struct chunk *next;
    size_t used, size;
    alignas(max_align_t) unsigned char bytes[];
};

struct fitted_model {
    struct fitting_listener listener;
    struct predict_model view;
    struct chunk *chunks;
    size_t bytes;
    struct predict_group *groups;
    size_t group_capacity;
    uint32_t *places; /* by the group's code: its number in the view + 1, or 0 */
    size_t place_count, place_capacity;
    const char *kind; /* of parts, that of the last one first looked at */
    bool cut;
};

/* SIZE bytes that are zero; NULL when out of memory. */
static void *take(struct fitted_model *model, size_t size) {
    size = (size + alignof(max_align_t) - 1) & ~(alignof(max_align_t) - 1);
    struct chunk *chunk = model->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK_BYTES ? size : CHUNK_BYTES;
        chunk = calloc(1, sizeof *chunk + room);
        if (!chunk)
            return NULL;
        chunk->size = room;
        chunk->next = model->chunks;
        model->chunks = chunk;
        model->bytes += room;
    }
    void *taken = chunk->bytes + chunk->used;
    chunk->used += size;
    return taken;
}

/* A copy of the SIZE bytes in the pointer at RET. */
static int copy_bytes(struct fitted_model *model, const void *from, size_t size, void *ret) {
    void *copy = take(model, size);
    if (!copy)
        return -ENOMEM;
    if (size > 0)
        memcpy(copy, from, size);
    memcpy(ret, &copy, sizeof copy);
    return 0;
}

static int copy_text(struct fitted_model *model, const char *text, const char **ret) {
    *ret = NULL;
    return text ? copy_bytes(model, text, strlen(text) + 1, ret) : 0;
}

void fitted_model_free(struct fitted_model *model) {
    if (!model)
        return;
    for (struct chunk *chunk = model->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(model->groups);
    free(model->places);
    free(model);
}

void fitted_model_cleanup(struct fitted_model **model) {
    fitted_model_free(*model);
}

/* ---- Listening */

static int copy_term(struct fitted_model *model, const struct plugin_term *term, struct plugin_term *ret) {
    struct plugin_factor *factors = NULL;
    int r = copy_text(model, term->name, &ret->name);
    r = r < 0 ? r : copy_bytes(model, term->factors, term->factor_count * sizeof *factors, &factors);
    for (size_t f = 0; r == 0 && f < term->factor_count; f++) {
        r = copy_text(model, factors[f].name, &factors[f].name);
        r = r < 0 ? r : copy_text(model, factors[f].level, &factors[f].level);
        r = r < 0 ? r : copy_text(model, factors[f].function, &factors[f].function);
    }
    ret->factors = factors;
    ret->factor_count = term->factor_count;
    return r;
}

static int keep_formula(void *context, const struct fit_formula *formula) {
    struct fitted_model *model = context;
    struct plugin_term *terms = take(model, (formula->term_count + 1) * sizeof *terms);
    if (!terms)
        return -ENOMEM;
    int r = copy_text(model, formula->kind, &model->view.kind);
    r = r < 0 ? r : copy_text(model, formula->over, &model->view.over);
    if (r == 0 && PLUGIN_HAS(formula, named_by))
        r = copy_text(model, formula->named_by, &model->view.named_by);
    for (size_t t = 0; r == 0 && t < formula->term_count; t++)
        r = copy_term(model, &formula->terms[t], &terms[t]);
    model->view.terms = terms;
    model->view.term_count = formula->term_count;
    return r;
}

static int copy_noise(struct fitted_model *model, const struct plugin_noise *noise,
                      const struct plugin_noise **ret) {
    if (!noise)
        return 0;
    struct plugin_noise *copy = NULL;
    int r = copy_bytes(model, noise, sizeof *noise, &copy);
    r = r < 0 ? r : copy_text(model, noise->kind, &copy->kind);
    r = r < 0 ? r : copy_text(model, noise->distribution, &copy->distribution);
    if (r == 0 && noise->coefficients)
        r = copy_bytes(model, noise->coefficients, model->view.term_count * sizeof(double),
                       &copy->coefficients);
    if (r == 0 && noise->components)
        r = copy_bytes(model, noise->components, noise->component_count * sizeof *noise->components,
                       &copy->components);
    if (r < 0)
        return r;
    copy->method = NULL;
    *ret = copy;
    return 0;
}

static int copy_part(struct fitted_model *model, const struct fit_part *part, struct predict_part *ret) {
    size_t terms = model->view.term_count;
    double *estimates = take(model, terms * sizeof *estimates);
    bool *dropped = take(model, terms * sizeof *dropped);
    if (!estimates || !dropped)
        return -ENOMEM;
    for (size_t t = 0; t < terms; t++) {
        estimates[t] = part->estimates[t].estimate;
        dropped[t] = part->estimates[t].dropped;
    }
    *ret =
        (struct predict_part){.from = part->from, .to = part->to, .estimates = estimates, .dropped = dropped};
    if (!model->kind || strcmp(model->kind, part->kind) != 0) {
        int r = copy_text(model, part->kind, &model->kind);
        if (r < 0)
            return r;
    }
    ret->kind = model->kind;
    int r = copy_text(model, part->name, &ret->name);
    return r < 0 ? r : copy_noise(model, part->noise, &ret->noise);
}

static int keep_group(void *context, const struct fit_group *group) {
    struct fitted_model *model = context;
    size_t count = model->view.group_count;
    model->cut |= count == FITTED_MODEL_GROUPS_MAX || model->bytes > FITTED_MODEL_BYTES_MAX;
    if (model->cut)
        return 0;
    int r = list_reserve(&model->groups, &model->group_capacity, count + 1, sizeof *model->groups,
                         FITTED_MODEL_GROUPS_MAX);
    if (r == 0 && group->code >= model->place_count) {
        r = list_reserve(&model->places, &model->place_capacity, (size_t)group->code + 1,
                         sizeof *model->places, CODES_MAX);
        model->place_count = r == 0 ? (size_t)group->code + 1 : model->place_count;
    }
    struct predict_part *parts = take(model, group->part_count * sizeof *parts);
    if (r < 0 || !parts)
        return -ENOMEM;
    for (size_t i = 0; r == 0 && i < group->part_count; i++)
        r = copy_part(model, &group->parts[i], &parts[i]);
    if (r < 0)
        return r;
    model->groups[count] = (struct predict_group){
        .name = "", .rows = group->rows, .parts = parts, .part_count = group->part_count};
    model->places[group->code] = (uint32_t)count + 1;
    model->view.groups = model->groups;
    model->view.group_count = count + 1;
    return 0;
}

static int keep_skipped(void *context, uint32_t code, uint64_t rows, const char *reason) {
    (void)context;
    (void)code;
    (void)rows;
    (void)reason;
    return 0;
}

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    return keep_formula(context, formula) < 0 ? failure_memory(failure) : 0;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    return keep_group(context, group) < 0 ? failure_memory(failure) : 0;
}

static int hear_skipped(void *context, uint32_t group, uint64_t rows, const char *reason,
                        struct failure *failure) {
    (void)failure;
    return keep_skipped(context, group, rows, reason);
}

/* ---- Life */

int fitted_model_new(const char *name, const char *response, struct fitted_model **ret,
                     struct failure *failure) {
    cleanup(fitted_model_cleanup) struct fitted_model *model = calloc(1, sizeof *model);
    if (!model)
        return failure_memory(failure);
    model->view.size = sizeof model->view;
    model->listener = (struct fitting_listener){model, hear_formula, hear_group, hear_skipped};
    if (copy_text(model, name, &model->view.name) < 0 ||
        copy_text(model, response, &model->view.response) < 0)
        return failure_memory(failure);
    *ret = take_pointer(model);
    return 0;
}

const struct fitting_listener *fitted_model_listener(const struct fitted_model *model) {
    return &model->listener;
}

struct fit_writer fitted_model_writer(struct fitted_model *model, const uint32_t *order,
                                      uint32_t group_count) {
    return (struct fit_writer){
        .size = sizeof(struct fit_writer),
        .context = model,
        .order = order,
        .group_count = group_count,
        .formula = keep_formula,
        .group = keep_group,
        .skipped = keep_skipped,
    };
}

const struct predict_model *fitted_model_view(const struct fitted_model *model) {
    return &model->view;
}

size_t fitted_model_group(const struct fitted_model *model, uint32_t code) {
    return code < model->place_count && model->places[code] ? model->places[code] - 1u : SIZE_MAX;
}

bool fitted_model_is_cut(const struct fitted_model *model) {
    return model->cut;
}
