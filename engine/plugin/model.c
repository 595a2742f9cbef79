#include "engine/plugin/model.h"

#include "engine/documents/document.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/model-part.h"
#include "engine/plugin/model-reading.h"
#include "engine/plugin/model-writer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUP_NAME_MAX = 4096,
    FACTORS_MAX = 256,     /* of a term */
    READ_FACTORS_MAX = 64, /* of a hull */
    READ_DIRECTIONS_MAX = 1 << 16,
};

struct model {
    struct document *document; /* owns the texts that the view points to */
    struct predict_model view;
    struct plugin_term *terms;
    struct predict_group *groups;
    struct predict_levels *levels;
    struct predict_hull *hull;
    size_t skipped_count;
};

/* ---- The formula */

static int read_factor(const struct reading *reading, const struct document_node *node,
                       struct plugin_factor *ret) {
    int64_t power = 0;
    int r = reading_text(reading, node, "factor", &ret->name);
    r = r < 0 ? r : reading_whole(reading, node, "power", -1000, 1000, &power);
    r = r < 0 ? r : reading_may_text(reading, node, "level", &ret->level);
    r = r < 0 ? r : reading_may_text(reading, node, "function", &ret->function);
    if (r == 0 && (power == 0 || (ret->level && power != 1)))
        r = reading_refuse(reading, node, "power",
                           ret->level ? "1, as that of a level must be" : "other than 0");
    if (r == 0 && ret->function && strcmp(ret->function, "log2") != 0)
        r = reading_refuse(reading, node, "function", "one that this assay knows: log2");
    ret->power = (int32_t)power;
    return r;
}

static int read_term(const struct reading *reading, const struct document_node *node,
                     struct plugin_term *ret) {
    const struct document_node *factors = NULL;
    int r = reading_text(reading, node, "name", &ret->name);
    r = r < 0 ? r : reading_need(reading, node, "factors", DOCUMENT_SEQUENCE, &factors);
    if (r < 0)
        return r;
    if (factors->count > FACTORS_MAX)
        return reading_refuse(reading, factors, "factors", "a sequence of at most 256");
    struct plugin_factor *items = xcalloc(factors->count + 1, sizeof *items);
    ret->factors = items;
    ret->factor_count = factors->count;
    for (size_t i = 0; r == 0 && i < factors->count; i++) {
        r = read_factor(reading, factors->items[i], &items[i]);
    }
    return r;
}

static int read_formula(const struct reading *reading, const struct document_node *root,
                        struct model *model) {
    const struct document_node *formula = NULL;
    int r = reading_need(reading, root, "formula", DOCUMENT_SEQUENCE, &formula);
    if (r < 0)
        return r;
    if (formula->count > EVALUATION_TERMS_MAX)
        return reading_refuse(reading, formula, "formula", "a sequence of at most 1024 terms");
    if (formula->count == 0 && evaluation_knows(model->view.kind))
        return reading_refuse(reading, formula, "formula", "a sequence of at least one term");
    model->terms = xcalloc(formula->count + 1, sizeof *model->terms);
    model->view.terms = model->terms;
    model->view.term_count = formula->count;
    for (size_t i = 0; r == 0 && i < formula->count; i++)
        r = read_term(reading, formula->items[i], &model->terms[i]);
    return r;
}

/* ---- What was seen of all groups together */

static int read_level_texts(const struct reading *reading, const struct document_node *list,
                            struct predict_levels *ret) {
    const char **texts = xcalloc(list->count + 1, sizeof *texts);
    ret->texts = texts;
    ret->count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        if (list->items[i]->kind != DOCUMENT_TEXT)
            return reading_refuse(reading, list->items[i], "levels", "a sequence of texts");
        texts[i] = list->items[i]->text;
    }
    return 0;
}

/* "levels" of the factors that are categories. */
static int read_levels(const struct reading *reading, const struct document_node *root, struct model *model) {
    const struct document_node *factors = document_get(root, "factors");
    if (!factors)
        return 0;
    if (factors->kind != DOCUMENT_SEQUENCE)
        return reading_refuse(reading, factors, "factors", document_kind_name(DOCUMENT_SEQUENCE));
    model->levels = xcalloc(factors->count + 1, sizeof *model->levels);
    model->view.levels = model->levels;
    int r = 0;
    for (size_t i = 0; r == 0 && i < factors->count; i++) {
        const struct document_node *list = document_get(factors->items[i], "levels");
        if (!list || list->kind == DOCUMENT_NULL)
            continue;
        struct predict_levels *levels = &model->levels[model->view.level_count++];
        r = reading_text(reading, factors->items[i], "name", &levels->column);
        r = r < 0 ? r : reading_need(reading, factors->items[i], "levels", DOCUMENT_SEQUENCE, &list);
        r = r < 0 ? r : read_level_texts(reading, list, levels);
    }
    return r;
}

static int read_directions(const struct reading *reading, const struct document_node *node,
                           struct predict_hull *hull) {
    const struct document_node *list = NULL;
    int r = reading_need(reading, node, "directions", DOCUMENT_SEQUENCE, &list);
    if (r < 0)
        return r;
    if (list->count > READ_DIRECTIONS_MAX)
        return reading_refuse(reading, list, "directions", "a sequence of at most 65536");
    size_t width = hull->factor_count;
    double *directions = xcalloc(list->count * width + 1, sizeof *directions);
    hull->directions = directions;
    hull->direction_count = list->count;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const struct document_node *row = list->items[i];
        if (row->kind != DOCUMENT_SEQUENCE || row->count != width)
            return reading_refuse(reading, row, "directions", "a number for each factor");
        for (size_t j = 0; r == 0 && j < width; j++)
            r = reading_entry(reading, row->items[j], "directions", &directions[i * width + j]);
    }
    return r;
}

static int read_hull(const struct reading *reading, const struct document_node *root, struct model *model) {
    const struct document_node *node = document_get(root, "hull"), *factors = NULL;
    if (!node || node->kind == DOCUMENT_NULL)
        return 0;
    int r = reading_need(reading, root, "hull", DOCUMENT_MAPPING, &node);
    r = r < 0 ? r : reading_need(reading, node, "factors", DOCUMENT_SEQUENCE, &factors);
    if (r < 0)
        return r;
    if (factors->count == 0 || factors->count > READ_FACTORS_MAX)
        return reading_refuse(reading, factors, "factors", "a sequence of 1 to 64 columns");
    struct predict_hull *hull = calloc(1, sizeof *hull);
    const char **names = calloc(factors->count, sizeof *names);
    model->view.hull = model->hull = hull;
    if (hull)
        hull->factors = names;
    if (!hull || !names) {
        if (!hull)
            free(names);
        return failure_memory(reading->failure);
    }
    hull->factor_count = factors->count;
    for (size_t i = 0; i < factors->count; i++) {
        if (factors->items[i]->kind != DOCUMENT_TEXT)
            return reading_refuse(reading, factors->items[i], "factors", "a sequence of texts");
        names[i] = factors->items[i]->text;
    }
    r = reading_numbers(reading, node, "scale", factors->count, (double **)&hull->scale);
    r = r < 0 ? r : read_directions(reading, node, hull);
    r = r < 0 ? r
              : reading_numbers(reading, node, "minimum", hull->direction_count, (double **)&hull->minimum);
    r = r < 0 ? r
              : reading_numbers(reading, node, "maximum", hull->direction_count, (double **)&hull->maximum);
    for (size_t d = 0; r == 0 && d < hull->direction_count; d++)
        if (hull->minimum[d] > hull->maximum[d])
            r = reading_doubt(reading, document_get(node, "minimum")->items[d], "minimum",
                              "at most the maximum");
    return r;
}

static void free_hull(struct predict_hull *hull) {
    if (!hull)
        return;
    free((void *)hull->factors);
    free((void *)hull->scale);
    free((void *)hull->directions);
    free((void *)hull->minimum);
    free((void *)hull->maximum);
    free(hull);
}

/* ---- Groups */

/* The labels' values with "/" between them. */
static int read_group_name(const struct reading *reading, const struct document_node *node,
                           const char **ret) {
    const struct document_node *labels = NULL;
    int r = reading_need(reading, node, "labels", DOCUMENT_MAPPING, &labels);
    if (r < 0)
        return r;
    cleanup(text_clear) struct text name;
    text_init(&name, GROUP_NAME_MAX);
    for (size_t i = 0; r == 0 && i < labels->count; i++) {
        const char *label = labels->items[i]->text ? labels->items[i]->text : "";
        r = text_printf(&name, "%s%s", i ? "/" : "", label);
    }
    if (r == 0 && labels->count == 0)
        r = text_append_string(&name, "all");
    char *taken = r == 0 ? text_take(&name) : NULL;
    if (r == -EFBIG)
        return reading_refuse(reading, labels, "labels", "a mapping of texts of a usual length");
    if (!taken)
        return failure_memory(reading->failure);
    *ret = taken;
    return 0;
}

static bool same_text(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* What is evaluated row by row has one part, or segments in order, so that one of them holds; of those that
 * are named, one name's. */
static int check_parts(const struct reading *reading, const struct document_node *node,
                       const struct model *model, const struct predict_group *group) {
    if (!evaluation_is_possible(&model->view))
        return 0;
    const struct document_node *list = document_get(node, "parts");
    bool named = model->view.named_by != NULL;
    if (!model->view.over && !named && group->part_count > 1)
        return reading_doubt(reading, list, "parts", "one part alone, as in a model that is over no column");
    for (size_t i = 1; i < group->part_count; i++)
        if (group->parts[i].from < group->parts[i - 1].to &&
            !(named && !same_text(group->parts[i].name, group->parts[i - 1].name)))
            return reading_doubt(reading, list->items[i], "from", "at least the 'to' of the segment before");
    return 0;
}

static int read_group(const struct reading *reading, const struct document_node *node,
                      const struct model *model, struct predict_group *ret) {
    int64_t rows = 0;
    int r = read_group_name(reading, node, &ret->name);
    r = r < 0 ? r : reading_whole(reading, node, "n", 0, INT64_MAX, &rows);
    ret->rows = (uint64_t)rows;
    const struct document_node *list = NULL;
    if (r == 0 && document_get(node, "parts")) {
        r = reading_need(reading, node, "parts", DOCUMENT_SEQUENCE, &list);
        if (r == 0 && list->count == 0)
            r = reading_refuse(reading, list, "parts", "a sequence of at least one part");
    }
    if (r < 0)
        return r;
    size_t count = list ? list->count : 1;
    struct predict_part *parts = xcalloc(count, sizeof *parts);
    ret->parts = parts;
    ret->part_count = count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = model_part_read(reading, list ? list->items[i] : node, &model->view, &parts[i]);
    return r < 0 ? r : check_parts(reading, node, model, ret);
}

static int read_groups(const struct reading *reading, const struct document_node *root, struct model *model) {
    const struct document_node *groups = NULL;
    int r = reading_need(reading, root, "groups", DOCUMENT_SEQUENCE, &groups);
    if (r < 0)
        return r;
    if (groups->count == 0)
        return failure_input(reading->failure, reading->document->file, groups->line, groups->column,
                             "the model has no groups; expected at least one");
    model->groups = xcalloc(groups->count, sizeof *model->groups);
    model->view.groups = model->groups;
    model->view.group_count = groups->count;
    for (size_t i = 0; r == 0 && i < groups->count; i++)
        r = read_group(reading, groups->items[i], model, &model->groups[i]);
    const struct document_node *skipped = document_get(root, "skipped");
    model->skipped_count = skipped && skipped->kind == DOCUMENT_SEQUENCE ? skipped->count : 0;
    return r;
}

static int read_head(const struct reading *reading, const struct document_node *root, struct model *model) {
    const struct document_node *format = document_get(root, "assay_model");
    if (root->kind != DOCUMENT_MAPPING || !format)
        return failure_input(reading->failure, reading->document->file, root->line, root->column,
                             "this is not a model file of assay: it has no member 'assay_model'");
    char known[NUMBER_TEXT_SIZE];
    number_format_int64(MODEL_FORMAT, known);
    if (!format->text || strcmp(format->text, known) != 0)
        return failure_input(reading->failure, reading->document->file, format->line, format->column,
                             "the model file is of format %s; this assay reads format %s",
                             format->text ? format->text : "?", known);
    const struct document_node *response = NULL;
    int r = reading_text(reading, root, "kind", &model->view.kind);
    r = r < 0 ? r : reading_may_text(reading, root, "over", &model->view.over);
    r = r < 0 ? r : reading_may_text(reading, root, "named_by", &model->view.named_by);
    r = r < 0 ? r : reading_need(reading, root, "response", DOCUMENT_MAPPING, &response);
    r = r < 0 ? r : reading_text(reading, response, "name", &model->view.response);
    if (r < 0)
        return r;
    if (model->view.named_by && strcmp(model->view.kind, "smpi") != 0)
        return reading_refuse(reading, root, "named_by", "of a model of the kind 'smpi'");
    const struct document_node *unit = document_get(response, "unit");
    model->view.response_unit = unit && unit->kind == DOCUMENT_TEXT ? unit->text : NULL;
    return 0;
}

/* Takes DOCUMENT over, also when it fails. */
static int from_document(struct document *document, model_doubt doubt, void *context, struct model **ret,
                         struct failure *failure) {
    cleanup(model_cleanup) struct model *model = calloc(1, sizeof *model);
    if (!model) {
        document_free(document);
        return failure_memory(failure);
    }
    model->document = document;
    model->view.size = sizeof model->view;
    model->view.name = file_base_name(document->file);
    const struct reading reading = {document, failure, doubt, context};
    int r = read_head(&reading, document->root, model);
    r = r < 0 ? r : read_formula(&reading, document->root, model);
    r = r < 0 ? r : read_levels(&reading, document->root, model);
    r = r < 0 ? r : read_hull(&reading, document->root, model);
    r = r < 0 ? r : read_groups(&reading, document->root, model);
    if (r < 0)
        return r;
    *ret = take_pointer(model);
    return 0;
}

int model_read_doubting(const char *path, model_doubt doubt, void *context, struct model **ret,
                        struct failure *failure) {
    struct document *document;
    int r = document_read_json(path, &document, failure);
    return r < 0 ? r : from_document(document, doubt, context, ret, failure);
}

int model_read(const char *path, struct model **ret, struct failure *failure) {
    return model_read_doubting(path, NULL, NULL, ret, failure);
}

int model_parse_doubting(const char *name, const char *bytes, size_t length, model_doubt doubt, void *context,
                         struct model **ret, struct failure *failure) {
    struct document *document;
    int r = document_parse_json(name, bytes, length, &document, failure);
    return r < 0 ? r : from_document(document, doubt, context, ret, failure);
}

int model_parse(const char *name, const char *bytes, size_t length, struct model **ret,
                struct failure *failure) {
    return model_parse_doubting(name, bytes, length, NULL, NULL, ret, failure);
}

void model_free(struct model *model) {
    if (!model)
        return;
    for (size_t t = 0; t < model->view.term_count; t++)
        free((void *)model->terms[t].factors);
    for (size_t i = 0; i < model->view.group_count; i++) {
        free((char *)model->groups[i].name);
        for (size_t p = 0; p < model->groups[i].part_count; p++)
            model_part_clear(&model->groups[i].parts[p]);
        free((void *)model->groups[i].parts);
    }
    for (size_t i = 0; i < model->view.level_count; i++)
        free((void *)model->levels[i].texts);
    free(model->levels);
    free_hull(model->hull);
    free(model->terms);
    free(model->groups);
    document_free(model->document);
    free(model);
}

void model_cleanup(struct model **model) {
    model_free(*model);
}

const struct predict_model *model_view(const struct model *model) {
    return &model->view;
}

double model_seconds(const struct model *model) {
    if (!model->view.response_unit)
        return 0;
    const struct unit *unit = unit_find(model->view.response_unit);
    return unit && unit->dimension == UNIT_TIME ? unit->scale : NAN;
}

int model_time(const struct model *model, double *ret, struct failure *failure) {
    double seconds = model_seconds(model);
    if (isnan(seconds))
        return failure_input(failure, model->view.name, 0, 0,
                             "the response '%.128s' is in %.64s, which is no time", model->view.response,
                             model->view.response_unit);
    *ret = seconds > 0 ? seconds : 1;
    return 0;
}

const struct document *model_document(const struct model *model) {
    return model->document;
}

size_t model_skipped_count(const struct model *model) {
    return model->skipped_count;
}

/* ---- What the view does not have */

static const struct document_node *root_of(const struct model *model) {
    return model_document(model)->root;
}

int model_labels(const struct model *model, const char ***ret, size_t *ret_count) {
    const struct document_node *by = document_get(root_of(model), "by");
    size_t most = by && by->kind == DOCUMENT_SEQUENCE ? by->count : 0, count = 0;
    const char **names = xcalloc(most + 1, sizeof *names);
    for (size_t i = 0; i < most; i++)
        if (by->items[i]->kind == DOCUMENT_TEXT)
            names[count++] = by->items[i]->text;
    *ret = names;
    *ret_count = count;
    return 0;
}

const char *model_label(const struct model *model, size_t group, const char *by) {
    const struct document_node *node = document_get(root_of(model), "groups")->items[group],
                               *label = document_get(document_get(node, "labels"), by);
    return label && label->text ? label->text : "";
}

int model_find_group(const struct model *model, const char *name, size_t *ret, struct failure *failure) {
    const struct predict_model *view = model_view(model);
    for (size_t g = 0; g < view->group_count; g++)
        if (strcmp(view->groups[g].name, name) == 0) {
            *ret = g;
            return 0;
        }
    cleanup_free const char **names = xcalloc(view->group_count, sizeof *names);
    for (size_t g = 0; g < view->group_count; g++)
        names[g] = view->groups[g].name;
    const char *nearest = text_nearest(name, names, view->group_count);
    return failure_input(failure, view->name, 0, 0, "the model has no group '%.128s'; %s '%.128s'%s", name,
                         nearest ? "did you mean" : "its first is", nearest ? nearest : names[0],
                         nearest ? "?" : "");
}

const char *model_unit(const struct model *model, const char *name) {
    const struct document_node *factors = document_get(root_of(model), "factors");
    if (strcmp(name, model_view(model)->response) == 0)
        return model_view(model)->response_unit;
    for (size_t i = 0; factors && i < factors->count; i++) {
        const struct document_node *found = document_get(factors->items[i], "name"),
                                   *unit = document_get(factors->items[i], "unit");
        if (found && found->text && strcmp(found->text, name) == 0)
            return unit && unit->kind == DOCUMENT_TEXT ? unit->text : NULL;
    }
    return NULL;
}

const char *model_weights(const struct model *model) {
    const struct document_node *weights = document_get(root_of(model), "weights");
    return weights && weights->kind == DOCUMENT_TEXT ? weights->text : NULL;
}
