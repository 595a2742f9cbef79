#include "engine/model/model.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/numerics/cholesky.h"
#include "engine/numerics/distribution.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

struct model *model_new(const char *file) {
    struct model *model = xcalloc(1, sizeof *model);
    model->size = sizeof *model;
    model->file = xstrdup(file);
    return model;
}

/* ---- Freeing */

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; texts && i < count; i++)
        free(texts[i]);
    free(texts);
}

void model_term_clear(struct model_term *term) {
    for (size_t f = 0; f < term->factor_count; f++) {
        free(term->factors[f].column);
        free(term->factors[f].level);
        free(term->factors[f].function);
    }
    free(term->name), free(term->unit), free(term->factors);
    *term = (struct model_term){0};
}

void model_hull_free(struct model_hull *hull) {
    if (!hull)
        return;
    free_texts(hull->columns, hull->column_count);
    free(hull->scale), free(hull->directions), free(hull->minimum), free(hull->maximum);
    free(hull);
}

static void free_values(struct model_value *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(values[i].name), free(values[i].unit);
    free(values);
}

void model_noise_clear(struct model_noise *noise) {
    free(noise->method), free(noise->coefficients), free(noise->components), free(noise->floor.covariance);
    *noise = (struct model_noise){0};
}

void model_part_clear(struct model_part *part) {
    for (size_t i = 0; i < part->domain_count; i++)
        free(part->domain[i].name);
    free(part->kind), free(part->name), free(part->estimates), free(part->covariance), free(part->domain);
    model_noise_clear(&part->noise);
    free_values(part->values, part->value_count);
}

void model_group_clear(struct model_group *group, size_t by_count) {
    for (size_t p = 0; p < group->part_count; p++)
        model_part_clear(&group->parts[p]);
    free_texts(group->labels, by_count);
    free_texts(group->notes, group->note_count);
    free_values(group->values, group->value_count);
    free(group->name), free(group->parts);
}

/* Frees the members of ORIGIN. */
void model_origin_clear(struct model_origin *origin) {
    for (size_t i = 0; i < origin->input_count; i++) {
        free(origin->inputs[i].name);
        free(origin->inputs[i].run_id);
        free(origin->inputs[i].experiment);
    }
    free(origin->inputs);
    free(origin->plugin), free(origin->version), free(origin->engine), free(origin->created);
    free(origin->folds_by), free(origin->where);
    free_texts(origin->folds_columns, origin->folds_column_count);
    free_texts(origin->settings, origin->setting_count);
    free_texts(origin->setting_values, origin->setting_count);
}

/* Frees the model; NULL is allowed. */
void model_free(struct model *model) {
    if (!model)
        return;
    for (size_t t = 0; t < model->term_count; t++)
        model_term_clear(&model->terms[t]);
    for (size_t c = 0; c < model->column_count; c++) {
        column_clear(&model->columns[c].about);
        free_texts(model->columns[c].levels, model->columns[c].level_count);
    }
    for (size_t g = 0; g < model->group_count; g++)
        model_group_clear(&model->groups[g], model->by_count);
    for (size_t s = 0; s < model->skipped_count; s++) {
        free_texts(model->skipped[s].labels, model->by_count);
        free(model->skipped[s].name), free(model->skipped[s].reason);
    }
    free_texts(model->by, model->by_count);
    free_texts(model->main_values, model->main_value_count);
    model_hull_free(model->hull);
    model_origin_clear(&model->origin);
    free(model->file), free(model->kind), free(model->over), free(model->named_by), free(model->response);
    free(model->response_unit), free(model->weights), free(model->terms), free(model->columns);
    free(model->groups), free(model->skipped);
    free(model);
}

void model_cleanup(struct model **model) {
    model_free(*model);
}

struct model_term model_term_copy(const struct model_term *term) {
    struct model_term copy = {.name = xstrdup_or_null(term->name),
                              .unit = xstrdup_or_null(term->unit),
                              .factors = xcalloc(term->factor_count + 1, sizeof *copy.factors),
                              .factor_count = term->factor_count};
    for (size_t f = 0; f < term->factor_count; f++)
        copy.factors[f] = (struct model_factor){.column = xstrdup_or_null(term->factors[f].column),
                                                .power = term->factors[f].power,
                                                .level = xstrdup_or_null(term->factors[f].level),
                                                .function = xstrdup_or_null(term->factors[f].function)};
    return copy;
}

/* ---- Times */

double model_unit_seconds(const char *unit) {
    const struct unit *found = unit ? unit_find(unit) : NULL;
    return !unit ? 0 : found && found->dimension == UNIT_TIME ? found->scale : NAN;
}

int model_response_seconds(const struct model *model, double *ret, struct failure *failure) {
    if (isnan(model->response_seconds))
        return failure_input(failure, model->file, 0, 0,
                             "the response '%.128s' has the unit %.64s; expected a time", model->response,
                             model->response_unit);
    *ret = model->response_seconds > 0 ? model->response_seconds : 1;
    return 0;
}

bool model_response_is_time(const struct model *model) {
    const char *unit = model->response_unit ? NULL : unit_of_name(model->response);
    return model->response_seconds > 0 || (unit && strcmp(unit, "s") == 0);
}

/* ---- Finding */

char *model_group_name(char *const *labels, size_t count) {
    cleanup(text_clear) struct text name;
    text_init(&name, SIZE_MAX);
    for (size_t i = 0; i < count; i++)
        text_printf(&name, "%s%s", i ? "/" : "", labels[i]);
    return xstrdup(count ? name.bytes : "all");
}

/* The index of the group NAME into *RET. -EINVAL with FAILURE: there is none; the message suggests near
 * names. */
int model_group_find(const struct model *model, const char *name, size_t *ret, struct failure *failure) {
    cleanup_free const char **names = xcalloc(model->group_count + 1, sizeof *names);
    char instead[TEXT_INSTEAD_SIZE];
    for (size_t g = 0; g < model->group_count; g++)
        names[g] = model->groups[g].name;
    size_t found = text_find(name, names, model->group_count);
    if (found == model->group_count)
        return failure_input(failure, model->file, 0, 0, "the model has no group '%.128s'; %s", name,
                             text_instead(name, names, found, instead));
    *ret = found;
    return 0;
}

const struct model_column *model_column_find(const struct model *model, const char *name) {
    for (size_t c = 0; c < model->column_count; c++)
        if (strcmp(model->columns[c].about.name, name) == 0)
            return &model->columns[c];
    return NULL;
}

const struct model_range *model_range_find(const struct model_part *part, const char *name) {
    for (size_t i = 0; i < part->domain_count; i++)
        if (strcmp(part->domain[i].name, name) == 0)
            return &part->domain[i];
    return NULL;
}

const struct model_value *model_values_add(const struct model_value ***list, size_t *count,
                                           const struct model_value *value) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*list)[i]->name, value->name) == 0)
            return (*list)[i];
    *list = xrealloc(*list, (*count + 1) * sizeof **list);
    return (*list)[(*count)++] = value;
}

const struct model_value *model_value_find(const struct model_value *values, size_t count, const char *name) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(values[i].name, name) == 0)
            return &values[i];
    return NULL;
}

double model_group_value(const struct model_group *group, const char *name) {
    const struct model_value *value = model_value_find(group->values, group->value_count, name);
    if (!value && group->part_count > 0)
        value = model_value_find(group->parts[0].values, group->parts[0].value_count, name);
    return value ? value->value : NAN;
}

const char *model_column_unit(const struct model *model, const char *name) {
    const struct model_column *column = model_column_find(model, name);
    if (model->response && strcmp(model->response, name) == 0)
        return model->response_unit;
    return column ? column->about.unit : NULL;
}

/* ---- Distributions */

/* The factor of a t distribution: the root of FREEDOM over a chi-squared variable made of a NORMAL number.
 * FREEDOM counts as at least 2, and the variable is cut at its 0.5 % quantiles, so that means of draws are
 * finite. */
static double draw_scale(double normal, double freedom) {
    static const double least = 0.005;
    if (!(freedom > 0))
        return 1;
    double upper = fmin(fmax(distribution_normal_upper(normal), least), 1 - least), known = fmax(freedom, 2);
    return sqrt(known / distribution_chi_squared_quantile(1 - upper, known));
}

/* Adds SCALE times a draw from COVARIANCE to the estimates. */
static void add_draw(struct model_estimate *estimates, size_t count, const double *covariance, double scale,
                     const double *normals) {
    cleanup_free double *triangle = xcalloc(count * count + 1, sizeof *triangle);
    if (cholesky_factor_semidefinite(count, covariance, triangle) < 0)
        return;
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++)
            estimates[i].estimate += scale * triangle[i + j * count] * normals[j];
}

/* Draws the estimates of a part from a multivariate t distribution: normals of its covariance times one
 * factor of its degrees of freedom. For a noise with a floor there are two factors, each for its share of
 * covariance and sigma. */
static void draw_part(const struct model *model, struct model_part *part, const char *stream,
                      double (*normal)(void *context, const char *stream, uint64_t index), void *context) {
    size_t count = model->term_count;
    const struct model_noise_floor *floor = &part->noise.floor;
    cleanup_free double *normals = xcalloc(2 * count + 2, sizeof *normals);
    cleanup_free double *rest = xcalloc(count * count + 1, sizeof *rest);
    struct model_estimate *estimates = xcalloc(count + 1, sizeof *estimates);
    memcpy(estimates, part->estimates, count * sizeof *estimates);
    part->estimates = estimates;
    for (size_t i = 0; i < 2 * count + 2; i++)
        normals[i] = normal(context, stream, i);
    double scale = draw_scale(normals[2 * count], part->freedom), low = scale;
    if (floor->covariance)
        low = draw_scale(normals[2 * count + 1], floor->freedom);
    for (size_t i = 0; part->covariance && i < count * count; i++)
        rest[i] = part->covariance[i] - (floor->covariance ? floor->covariance[i] : 0);
    if (part->covariance)
        add_draw(estimates, count, rest, scale, normals);
    if (part->covariance && floor->covariance)
        add_draw(estimates, count, floor->covariance, low, normals + count);
    double *coefficients = part->noise.coefficients ? xcalloc(count + 1, sizeof *coefficients) : NULL;
    for (size_t i = 0; coefficients && i < count; i++)
        coefficients[i] = scale * part->noise.coefficients[i];
    part->noise.coefficients = coefficients;
    part->noise.constant = scale * part->noise.constant + (low - scale) * floor->sigma;
    part->noise.floor.sigma = low * floor->sigma;
}

/* A copy of MODEL whose estimates and noise are drawn from their distribution, with numbers from NORMAL by
 * stream and index. It shares the rest with MODEL; free it by model_draw_free() before MODEL. */
struct model *model_draw(const struct model *model,
                         double (*normal)(void *context, const char *stream, uint64_t index), void *context) {
    struct model *drawn = xmalloc(sizeof *drawn);
    *drawn = *model;
    drawn->groups = xcalloc(model->group_count + 1, sizeof *drawn->groups);
    for (size_t g = 0; g < model->group_count; g++) {
        struct model_group *group = &drawn->groups[g];
        *group = model->groups[g];
        group->parts = xcalloc(group->part_count + 1, sizeof *group->parts);
        for (size_t p = 0; p < group->part_count; p++) {
            cleanup_free char *stream = xformat("%s/%zu", group->name, p);
            group->parts[p] = model->groups[g].parts[p];
            draw_part(model, &group->parts[p], stream, normal, context);
        }
    }
    return drawn;
}

void model_draw_free(struct model *drawn) {
    for (size_t g = 0; drawn && g < drawn->group_count; g++) {
        for (size_t p = 0; p < drawn->groups[g].part_count; p++)
            free(drawn->groups[g].parts[p].estimates), free(drawn->groups[g].parts[p].noise.coefficients);
        free(drawn->groups[g].parts);
    }
    if (drawn)
        free(drawn->groups);
    free(drawn);
}
