#include "engine/plugin/model.h"

#include "engine/documents/document.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model-writer.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { GROUP_NAME_MOST = 4096 };

struct model {
    struct document *document; /* owns the texts that the view points to */
    struct predict_model view;
    struct plugin_term *terms;
    struct predict_group *groups;
    size_t skipped_count;
};

/* ---- Members, each with its place */

struct reading {
    const struct document *document;
    struct failure *failure;
};

static int refuse(const struct reading *reading, const struct document_node *node, const char *key,
                  const char *expected) {
    return failure_input(reading->failure, reading->document->file, node->line, node->column,
                         "'%s' is missing or is not %s", key, expected);
}

static int need(const struct reading *reading, const struct document_node *node, const char *key,
                enum document_kind kind, const struct document_node **ret) {
    const struct document_node *value = document_get(node, key);
    if (!value || value->kind != kind)
        return refuse(reading, value ? value : node, key, document_kind_name(kind));
    *ret = value;
    return 0;
}

static int need_text(const struct reading *reading, const struct document_node *node, const char *key,
                     const char **ret) {
    const struct document_node *value = NULL;
    int r = need(reading, node, key, DOCUMENT_TEXT, &value);
    if (r == 0)
        *ret = value->text;
    return r;
}

static int need_number(const struct reading *reading, const struct document_node *node, const char *key,
                       double *ret) {
    const struct document_node *value = NULL;
    int r = need(reading, node, key, DOCUMENT_NUMBER, &value);
    if (r == 0 && !number_parse_double(value->text, strlen(value->text), ret))
        return refuse(reading, value, key, "a number that a double can hold");
    return r;
}

static int need_whole(const struct reading *reading, const struct document_node *node, const char *key,
                      int64_t minimum, int64_t maximum, int64_t *ret) {
    const struct document_node *value = NULL;
    int64_t whole = 0;
    int r = need(reading, node, key, DOCUMENT_NUMBER, &value);
    if (r == 0 &&
        (!number_parse_int64(value->text, strlen(value->text), &whole) || whole < minimum || whole > maximum))
        return refuse(reading, value, key, "a whole number in range");
    if (r == 0)
        *ret = whole;
    return r;
}

/* ---- The formula */

/* A text that may be missing or null. */
static int may_text(const struct reading *reading, const struct document_node *node, const char *key,
                    const char **ret) {
    const struct document_node *value = document_get(node, key);
    *ret = NULL;
    return !value || value->kind == DOCUMENT_NULL ? 0 : need_text(reading, node, key, ret);
}

static int read_factor(const struct reading *reading, const struct document_node *node,
                       struct plugin_factor *ret) {
    int64_t power = 0;
    int r = need_text(reading, node, "factor", &ret->name);
    r = r < 0 ? r : need_whole(reading, node, "power", -1000, 1000, &power);
    r = r < 0 ? r : may_text(reading, node, "level", &ret->level);
    r = r < 0 ? r : may_text(reading, node, "function", &ret->function);
    if (r == 0 && (power == 0 || (ret->level && power != 1)))
        r = refuse(reading, node, "power", ret->level ? "1, as that of a level must be" : "other than 0");
    if (r == 0 && ret->function && strcmp(ret->function, "log2") != 0)
        r = refuse(reading, node, "function", "one that this assay knows: log2");
    ret->power = (int32_t)power;
    return r;
}

static int read_term(const struct reading *reading, const struct document_node *node,
                     struct plugin_term *ret) {
    const struct document_node *factors = NULL;
    int r = need_text(reading, node, "name", &ret->name);
    r = r < 0 ? r : need(reading, node, "factors", DOCUMENT_SEQUENCE, &factors);
    if (r < 0)
        return r;
    struct plugin_factor *items = calloc(factors->count + 1, sizeof *items);
    if (!items)
        return failure_memory(reading->failure);
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
    int r = need(reading, root, "formula", DOCUMENT_SEQUENCE, &formula);
    if (r < 0)
        return r;
    model->terms = calloc(formula->count + 1, sizeof *model->terms);
    if (!model->terms)
        return failure_memory(reading->failure);
    model->view.terms = model->terms;
    model->view.term_count = formula->count;
    for (size_t i = 0; r == 0 && i < formula->count; i++)
        r = read_term(reading, formula->items[i], &model->terms[i]);
    return r;
}

/* ---- Groups */

/* The labels' values with "/" between them. */
static int read_group_name(const struct reading *reading, const struct document_node *node,
                           const char **ret) {
    const struct document_node *labels = NULL;
    int r = need(reading, node, "labels", DOCUMENT_MAPPING, &labels);
    if (r < 0)
        return r;
    cleanup(text_clear) struct text name;
    text_init(&name, GROUP_NAME_MOST);
    for (size_t i = 0; r == 0 && i < labels->count; i++) {
        const char *label = labels->items[i]->text ? labels->items[i]->text : "";
        r = text_printf(&name, "%s%s", i ? "/" : "", label);
    }
    if (r == 0 && labels->count == 0)
        r = text_append_string(&name, "all");
    char *taken = r == 0 ? text_take(&name) : NULL;
    if (r == -EFBIG)
        return refuse(reading, labels, "labels", "a mapping of texts of a usual length");
    if (!taken)
        return failure_memory(reading->failure);
    *ret = taken;
    return 0;
}

/* The number at KEY, or NaN where it is null. */
static int may_number(const struct reading *reading, const struct document_node *node, const char *key,
                      double *ret) {
    const struct document_node *value = document_get(node, key);
    if (value && value->kind == DOCUMENT_NULL) {
        *ret = NAN;
        return 0;
    }
    return need_number(reading, node, key, ret);
}

/* The estimates, which must be those of the formula in its order. */
static int read_estimates(const struct reading *reading, const struct document_node *node,
                          const struct model *model, struct predict_part *ret) {
    const struct document_node *terms = NULL;
    int r = need(reading, node, "terms", DOCUMENT_SEQUENCE, &terms);
    if (r < 0)
        return r;
    if (terms->count != model->view.term_count)
        return refuse(reading, terms, "terms", "as long as the formula");
    double *estimates = calloc(terms->count + 1, sizeof *estimates);
    if (!estimates)
        return failure_memory(reading->failure);
    ret->estimates = estimates;
    for (size_t t = 0; r == 0 && t < terms->count; t++) {
        const char *name;
        r = need_text(reading, terms->items[t], "name", &name);
        if (r == 0 && strcmp(name, model->terms[t].name) != 0)
            r = refuse(reading, terms->items[t], "name", "the formula's term at this place");
        r = r < 0 ? r : need_number(reading, terms->items[t], "estimate", &estimates[t]);
    }
    return r;
}

static int read_domain(const struct reading *reading, const struct document_node *node,
                       struct predict_part *ret) {
    const struct document_node *domain = NULL;
    int r = need(reading, node, "domain", DOCUMENT_SEQUENCE, &domain);
    if (r < 0)
        return r;
    struct plugin_range *ranges = calloc(domain->count + 1, sizeof *ranges);
    if (!ranges)
        return failure_memory(reading->failure);
    ret->domain = ranges;
    ret->domain_count = domain->count;
    for (size_t i = 0; r == 0 && i < domain->count; i++) {
        r = need_text(reading, domain->items[i], "name", &ranges[i].name);
        r = r < 0 ? r : need_number(reading, domain->items[i], "minimum", &ranges[i].minimum);
        r = r < 0 ? r : need_number(reading, domain->items[i], "maximum", &ranges[i].maximum);
    }
    return r;
}

static int read_components(const struct reading *reading, const struct document_node *node,
                           struct plugin_noise *ret) {
    const struct document_node *list = NULL;
    int r = need(reading, node, "components", DOCUMENT_SEQUENCE, &list);
    if (r < 0)
        return r;
    struct plugin_component *components = calloc(list->count + 1, sizeof *components);
    if (!components)
        return failure_memory(reading->failure);
    ret->components = components;
    ret->component_count = list->count;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        r = need_number(reading, list->items[i], "weight", &components[i].weight);
        r = r < 0 ? r : need_number(reading, list->items[i], "mean", &components[i].mean);
        r = r < 0 ? r : need_number(reading, list->items[i], "sigma", &components[i].sigma);
    }
    return r;
}

/* "sigma": a list of terms by name; that of 1 is the constant. */
static int read_sigma(const struct reading *reading, const struct document_node *node,
                      const struct model *model, struct plugin_noise *ret) {
    const struct document_node *list = NULL;
    int r = need(reading, node, "sigma", DOCUMENT_SEQUENCE, &list);
    if (r < 0)
        return r;
    double *coefficients = calloc(model->view.term_count + 1, sizeof *coefficients);
    if (!coefficients)
        return failure_memory(reading->failure);
    ret->coefficients = coefficients;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const char *name = NULL;
        double estimate = 0;
        r = need_text(reading, list->items[i], "name", &name);
        r = r < 0 ? r : need_number(reading, list->items[i], "estimate", &estimate);
        if (r < 0)
            break;
        size_t t = 0;
        while (t < model->view.term_count && strcmp(model->terms[t].name, name) != 0)
            t++;
        if (strcmp(name, "1") == 0)
            ret->constant = estimate;
        else if (t < model->view.term_count)
            coefficients[t] = estimate;
        else
            r = refuse(reading, list->items[i], "name", "a term of the formula");
    }
    return r;
}

static int read_noise(const struct reading *reading, const struct document_node *node,
                      const struct model *model, struct predict_part *ret) {
    const struct document_node *member = document_get(node, "noise");
    if (!member || member->kind == DOCUMENT_NULL)
        return 0;
    if (member->kind != DOCUMENT_MAPPING)
        return refuse(reading, member, "noise", document_kind_name(DOCUMENT_MAPPING));
    struct plugin_noise *noise = calloc(1, sizeof *noise);
    if (!noise)
        return failure_memory(reading->failure);
    ret->noise = noise;
    noise->size = sizeof *noise;
    int r = need_text(reading, member, "kind", &noise->kind);
    r = r < 0 ? r : need_text(reading, member, "distribution", &noise->distribution);
    r = r < 0 ? r : may_text(reading, member, "method", &noise->method);
    if (r < 0)
        return r;
    return strcmp(noise->kind, "mixture") == 0 ? read_components(reading, member, noise)
                                               : read_sigma(reading, member, model, noise);
}

/* Every member that is a number, and no member that all parts have. */
static int read_values(const struct reading *reading, const struct document_node *node,
                       struct predict_part *ret) {
    struct predict_value *values = calloc(node->count + 1, sizeof *values);
    if (!values)
        return failure_memory(reading->failure);
    ret->values = values;
    for (size_t i = 0; i < node->count; i++) {
        const char *name = node->keys[i]->text;
        enum document_kind kind = node->items[i]->kind;
        if ((kind != DOCUMENT_NUMBER && kind != DOCUMENT_NULL) || strcmp(name, "n") == 0 ||
            strcmp(name, "from") == 0 || strcmp(name, "to") == 0 || strcmp(name, "covariance") == 0 ||
            strcmp(name, "noise") == 0)
            continue;
        struct predict_value *value = &values[ret->value_count++];
        value->name = name;
        int r = may_number(reading, node, name, &value->value);
        if (r < 0)
            return r;
    }
    return 0;
}

/* A bound of a segment: missing or null where there is none. */
static int read_bound(const struct reading *reading, const struct document_node *node, const char *key,
                      double unbounded, double *ret) {
    *ret = unbounded;
    const struct document_node *value = document_get(node, key);
    return !value || value->kind == DOCUMENT_NULL ? 0 : need_number(reading, node, key, ret);
}

static int read_part(const struct reading *reading, const struct document_node *node,
                     const struct model *model, struct predict_part *ret) {
    int r = may_text(reading, node, "kind", &ret->kind);
    if (!ret->kind)
        ret->kind = "whole";
    r = r < 0 ? r : may_text(reading, node, "name", &ret->name);
    r = r < 0 ? r : read_bound(reading, node, "from", -INFINITY, &ret->from);
    r = r < 0 ? r : read_bound(reading, node, "to", INFINITY, &ret->to);
    r = r < 0 ? r : read_estimates(reading, node, model, ret);
    r = r < 0 ? r : read_domain(reading, node, ret);
    r = r < 0 ? r : read_noise(reading, node, model, ret);
    return r < 0 ? r : read_values(reading, node, ret);
}

static int read_group(const struct reading *reading, const struct document_node *node,
                      const struct model *model, struct predict_group *ret) {
    int64_t rows = 0;
    int r = read_group_name(reading, node, &ret->name);
    r = r < 0 ? r : need_whole(reading, node, "n", 0, INT64_MAX, &rows);
    ret->rows = (uint64_t)rows;
    const struct document_node *list = NULL;
    if (r == 0 && document_get(node, "parts")) {
        r = need(reading, node, "parts", DOCUMENT_SEQUENCE, &list);
        if (r == 0 && list->count == 0)
            r = refuse(reading, list, "parts", "a sequence of at least one part");
    }
    if (r < 0)
        return r;
    size_t count = list ? list->count : 1;
    struct predict_part *parts = calloc(count, sizeof *parts);
    if (!parts)
        return failure_memory(reading->failure);
    ret->parts = parts;
    ret->part_count = count;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = read_part(reading, list ? list->items[i] : node, model, &parts[i]);
    return r;
}

static int read_groups(const struct reading *reading, const struct document_node *root, struct model *model) {
    const struct document_node *groups = NULL;
    int r = need(reading, root, "groups", DOCUMENT_SEQUENCE, &groups);
    if (r < 0)
        return r;
    if (groups->count == 0)
        return failure_input(reading->failure, reading->document->file, groups->line, groups->column,
                             "the model has no groups; expected at least one");
    model->groups = calloc(groups->count, sizeof *model->groups);
    if (!model->groups)
        return failure_memory(reading->failure);
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
    int r = need_text(reading, root, "kind", &model->view.kind);
    r = r < 0 ? r : may_text(reading, root, "over", &model->view.over);
    r = r < 0 ? r : need(reading, root, "response", DOCUMENT_MAPPING, &response);
    r = r < 0 ? r : need_text(reading, response, "name", &model->view.response);
    if (r < 0)
        return r;
    const struct document_node *unit = document_get(response, "unit");
    model->view.response_unit = unit && unit->kind == DOCUMENT_TEXT ? unit->text : NULL;
    return 0;
}

/* Takes DOCUMENT over, also when it fails. */
static int from_document(struct document *document, struct model **ret, struct failure *failure) {
    cleanup(model_cleanup) struct model *model = calloc(1, sizeof *model);
    if (!model) {
        document_free(document);
        return failure_memory(failure);
    }
    model->document = document;
    model->view.size = sizeof model->view;
    model->view.name = file_base_name(document->file);
    const struct reading reading = {document, failure};
    int r = read_head(&reading, document->root, model);
    r = r < 0 ? r : read_formula(&reading, document->root, model);
    r = r < 0 ? r : read_groups(&reading, document->root, model);
    if (r < 0)
        return r;
    *ret = take_pointer(model);
    return 0;
}

int model_read(const char *path, struct model **ret, struct failure *failure) {
    struct document *document;
    int r = document_read_json(path, &document, failure);
    return r < 0 ? r : from_document(document, ret, failure);
}

int model_parse(const char *name, const char *bytes, size_t length, struct model **ret,
                struct failure *failure) {
    struct document *document;
    int r = document_parse_json(name, bytes, length, &document, failure);
    return r < 0 ? r : from_document(document, ret, failure);
}

static void free_part(const struct predict_part *part) {
    free((void *)part->estimates);
    free((void *)part->domain);
    free((void *)part->values);
    if (!part->noise)
        return;
    free((void *)part->noise->coefficients);
    free((void *)part->noise->components);
    free((void *)part->noise);
}

void model_free(struct model *model) {
    if (!model)
        return;
    for (size_t t = 0; t < model->view.term_count; t++)
        free((void *)model->terms[t].factors);
    for (size_t i = 0; i < model->view.group_count; i++) {
        free((char *)model->groups[i].name);
        for (size_t p = 0; p < model->groups[i].part_count; p++)
            free_part(&model->groups[i].parts[p]);
        free((void *)model->groups[i].parts);
    }
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

const struct document *model_document(const struct model *model) {
    return model->document;
}

size_t model_skipped_count(const struct model *model) {
    return model->skipped_count;
}
