#include "engine/plugin/model-part.h"
#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What the weights of a mixture may miss 1 by, and entries of a covariance each other, as a share. */
static const double rounding = 1e-6;

/* ---- Estimates */

/* "dropped": the part leaves the term out. */
static int read_dropped(const struct reading *reading, const struct document_node *node, size_t term,
                        size_t count, double estimate, struct predict_part *ret) {
    const struct document_node *dropped = document_get(node, "dropped");
    if (!dropped)
        return 0;
    if (dropped->kind != DOCUMENT_BOOLEAN)
        return reading_refuse(reading, dropped, "dropped", "true or false");
    if (strcmp(dropped->text, "true") != 0)
        return 0;
    if (estimate != 0)
        return reading_doubt(reading, node, "estimate", "0, as that of a term that is dropped must be");
    if (!ret->dropped && !(ret->dropped = calloc(count, sizeof *ret->dropped)))
        return failure_memory(reading->failure);
    ((bool *)ret->dropped)[term] = true;
    return 0;
}

/* Those of the formula, in its order. */
static int read_estimates(const struct reading *reading, const struct document_node *node,
                          const struct predict_model *model, struct predict_part *ret) {
    const struct document_node *terms = NULL;
    int r = reading_need(reading, node, "terms", DOCUMENT_SEQUENCE, &terms);
    if (r < 0)
        return r;
    if (terms->count != model->term_count)
        return reading_refuse(reading, terms, "terms", "as long as the formula");
    double *estimates = xcalloc(terms->count + 1, sizeof *estimates);
    ret->estimates = estimates;
    for (size_t t = 0; r == 0 && t < terms->count; t++) {
        const struct document_node *term = terms->items[t];
        const char *name;
        r = reading_text(reading, term, "name", &name);
        if (r == 0 && strcmp(name, model->terms[t].name) != 0)
            r = reading_refuse(reading, term, "name", "the formula's term at this place");
        r = r < 0 ? r : reading_number(reading, term, "estimate", &estimates[t]);
        r = r < 0 ? r : read_dropped(reading, term, t, terms->count, estimates[t], ret);
    }
    return r;
}

/* No variance is below zero, and no two terms are more alike than each is to itself. */
static bool could_be_covariance(const double *covariance, size_t i, size_t j, size_t count) {
    double one = covariance[i * count + i], two = covariance[j * count + j],
           limit = sqrt(one) * sqrt(two) * (1 + rounding), off = covariance[i * count + j];
    return one >= 0 && two >= 0 && fabs(off) <= limit &&
           fabs(off - covariance[j * count + i]) <= rounding * limit;
}

static int read_covariance(const struct reading *reading, const struct document_node *node, size_t count,
                           struct predict_part *ret) {
    const struct document_node *rows = document_get(node, "covariance");
    if (!rows || rows->kind == DOCUMENT_NULL)
        return 0;
    static const char expected[] = "a square of numbers, one for each two terms";
    if (rows->kind != DOCUMENT_SEQUENCE || rows->count != count)
        return reading_refuse(reading, rows, "covariance", expected);
    double *covariance = xcalloc(count * count + 1, sizeof *covariance);
    ret->covariance = covariance;
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        const struct document_node *row = rows->items[i];
        if (row->kind != DOCUMENT_SEQUENCE || row->count != count)
            return reading_refuse(reading, row, "covariance", expected);
        for (size_t j = 0; r == 0 && j < count; j++)
            r = reading_entry(reading, row->items[j], "covariance", &covariance[i * count + j]);
    }
    for (size_t i = 0; r == 0 && i < count; i++)
        for (size_t j = 0; r == 0 && j <= i; j++)
            if (!could_be_covariance(covariance, i, j, count))
                r = reading_doubt(reading, rows->items[i]->items[j], "covariance",
                                  "symmetric with variances on its diagonal that bound the rest");
    return r;
}

/* ---- Where it holds */

static int read_domain(const struct reading *reading, const struct document_node *node,
                       struct predict_part *ret) {
    const struct document_node *domain = NULL;
    int r = reading_need(reading, node, "domain", DOCUMENT_SEQUENCE, &domain);
    if (r < 0)
        return r;
    struct plugin_range *ranges = xcalloc(domain->count + 1, sizeof *ranges);
    ret->domain = ranges;
    ret->domain_count = domain->count;
    for (size_t i = 0; r == 0 && i < domain->count; i++) {
        r = reading_text(reading, domain->items[i], "name", &ranges[i].name);
        r = r < 0 ? r : reading_number(reading, domain->items[i], "minimum", &ranges[i].minimum);
        r = r < 0 ? r : reading_number(reading, domain->items[i], "maximum", &ranges[i].maximum);
        if (r == 0 && ranges[i].minimum > ranges[i].maximum)
            r = reading_doubt(reading, domain->items[i], "minimum", "at most the maximum");
    }
    return r;
}

/* A bound of a segment: missing or null where there is none. */
static int read_bound(const struct reading *reading, const struct document_node *node, const char *key,
                      double unbounded, double *ret) {
    *ret = unbounded;
    const struct document_node *value = document_get(node, key);
    return !value || value->kind == DOCUMENT_NULL ? 0 : reading_number(reading, node, key, ret);
}

static int read_bounds(const struct reading *reading, const struct document_node *node,
                       struct predict_part *ret) {
    int r = read_bound(reading, node, "from", -INFINITY, &ret->from);
    r = r < 0 ? r : read_bound(reading, node, "to", INFINITY, &ret->to);
    return r == 0 && !(ret->from < ret->to) ? reading_doubt(reading, node, "from", "below 'to'") : r;
}

/* ---- Noise */

static int read_components(const struct reading *reading, const struct document_node *node,
                           struct plugin_noise *ret) {
    const struct document_node *list = NULL;
    int r = reading_need(reading, node, "components", DOCUMENT_SEQUENCE, &list);
    if (r < 0)
        return r;
    if (list->count == 0 || list->count > MODEL_COMPONENTS_MAX)
        return reading_refuse(reading, list, "components", "a sequence of 1 to 1024 normals");
    struct plugin_component *components = xcalloc(list->count, sizeof *components);
    ret->components = components;
    ret->component_count = list->count;
    double sum = 0;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const struct document_node *item = list->items[i];
        r = reading_number(reading, item, "weight", &components[i].weight);
        r = r < 0 ? r : reading_number(reading, item, "mean", &components[i].mean);
        r = r < 0 ? r : reading_number(reading, item, "sigma", &components[i].sigma);
        if (r == 0 && components[i].weight < 0)
            r = reading_doubt(reading, item, "weight", "0 or more");
        if (r == 0 && components[i].sigma < 0)
            r = reading_doubt(reading, item, "sigma", "0 or more");
        sum += components[i].weight;
    }
    return r == 0 && !(fabs(sum - 1) <= rounding)
               ? reading_doubt(reading, list, "components", "such that the weights add up to 1")
               : r;
}

/* "sigma": a list of terms by name; that of 1 is the constant. */
static int read_sigma(const struct reading *reading, const struct document_node *node,
                      const struct predict_model *model, struct plugin_noise *ret) {
    const struct document_node *list = NULL;
    bool linear = strcmp(ret->kind, "N-2") == 0;
    int r = reading_need(reading, node, "sigma", DOCUMENT_SEQUENCE, &list);
    if (r < 0)
        return r;
    double *coefficients = xcalloc(model->term_count + 1, sizeof *coefficients);
    ret->coefficients = coefficients;
    for (size_t i = 0; r == 0 && i < list->count; i++) {
        const struct document_node *item = list->items[i];
        const char *name = NULL;
        double estimate = 0;
        r = reading_text(reading, item, "name", &name);
        r = r < 0 ? r : reading_number(reading, item, "estimate", &estimate);
        if (r < 0)
            break;
        size_t t = 0;
        while (t < model->term_count && strcmp(model->terms[t].name, name) != 0)
            t++;
        if (strcmp(name, "1") == 0)
            ret->constant += estimate;
        else if (linear && t < model->term_count)
            coefficients[t] += estimate;
        else
            r = reading_refuse(reading, item, "name", linear ? "1 or a term of the formula" : "1");
    }
    return r == 0 && !linear && ret->constant < 0
               ? reading_doubt(reading, list, "sigma", "0 or more, as a standard deviation is")
               : r;
}

static int read_noise(const struct reading *reading, const struct document_node *node,
                      const struct predict_model *model, struct predict_part *ret) {
    const struct document_node *member = document_get(node, "noise");
    if (!member || member->kind == DOCUMENT_NULL)
        return 0;
    if (member->kind != DOCUMENT_MAPPING)
        return reading_refuse(reading, member, "noise", document_kind_name(DOCUMENT_MAPPING));
    struct plugin_noise *noise = xcalloc(1, sizeof *noise);
    ret->noise = noise;
    noise->size = sizeof *noise;
    int r = reading_text(reading, member, "kind", &noise->kind);
    r = r < 0 ? r : reading_text(reading, member, "distribution", &noise->distribution);
    r = r < 0 ? r : reading_may_text(reading, member, "method", &noise->method);
    if (r < 0)
        return r;
    if (strcmp(noise->distribution, "normal") != 0 && strcmp(noise->distribution, "half-normal") != 0)
        return reading_refuse(reading, document_get(member, "distribution"), "distribution",
                              "normal or half-normal");
    if (strcmp(noise->kind, "mixture") == 0)
        return read_components(reading, member, noise);
    if (strcmp(noise->kind, "N-1") != 0 && strcmp(noise->kind, "N-2") != 0)
        return reading_refuse(reading, document_get(member, "kind"), "kind", "N-1, N-2 or mixture");
    return read_sigma(reading, member, model, noise);
}

/* ---- The rest */

/* Every member that is a number, and no member that all parts have. */
static int read_values(const struct reading *reading, const struct document_node *node,
                       struct predict_part *ret) {
    static const char *const others[] = {"n", "from", "to", "name", "kind", "covariance", "noise"};
    struct predict_value *values = xcalloc(node->count + 1, sizeof *values);
    ret->values = values;
    for (size_t i = 0; i < node->count; i++) {
        const struct document_node *item = node->items[i];
        bool other = item->kind != DOCUMENT_NUMBER && item->kind != DOCUMENT_NULL;
        for (size_t k = 0; !other && k < sizeof others / sizeof *others; k++)
            other = strcmp(node->keys[i]->text, others[k]) == 0;
        if (other)
            continue;
        struct predict_value *value = &values[ret->value_count++];
        *value = (struct predict_value){node->keys[i]->text, NAN};
        int r = item->kind == DOCUMENT_NULL ? 0 : reading_entry(reading, item, value->name, &value->value);
        if (r < 0)
            return r;
    }
    return 0;
}

int model_part_read(const struct reading *reading, const struct document_node *node,
                    const struct predict_model *model, struct predict_part *ret) {
    int r = reading_may_text(reading, node, "kind", &ret->kind);
    if (!ret->kind)
        ret->kind = "whole";
    r = r < 0 ? r : reading_may_text(reading, node, "name", &ret->name);
    r = r < 0 ? r : read_bounds(reading, node, ret);
    r = r < 0 ? r : read_estimates(reading, node, model, ret);
    r = r < 0 ? r : read_covariance(reading, node, model->term_count, ret);
    r = r < 0 ? r : read_domain(reading, node, ret);
    r = r < 0 ? r : read_noise(reading, node, model, ret);
    return r < 0 ? r : read_values(reading, node, ret);
}

void model_part_clear(const struct predict_part *part) {
    free((void *)part->estimates);
    free((void *)part->dropped);
    free((void *)part->covariance);
    free((void *)part->domain);
    free((void *)part->values);
    if (!part->noise)
        return;
    free((void *)part->noise->coefficients);
    free((void *)part->noise->components);
    free((void *)part->noise);
}
