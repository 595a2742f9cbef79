#include "engine/model/read.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/model/evaluator.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The sum of a mixture's weights may differ from 1 by this. */
static const double rounding = 1e-6;
enum { POWER_MAX = 1000, HULL_COLUMNS_MAX = 64, HULL_DIRECTIONS_MAX = 1 << 16, FINDINGS_MAX = 1000 };

/* Reading goes on after an error, with a harmless value in its place, so that all errors are found. */
struct reading {
    const struct document *document;
    struct model_findings *findings; /* gets every error; NULL: only the first one goes to `failure` */
    struct failure *failure;
    int error;
    struct model *model;
    const struct document_node *units; /* of values */
};

/* ---- Errors */

/* Adds a finding, a WARNING or an error, at NODE of the document; beyond FINDINGS_MAX errors are only
 * counted. */
void model_findings_add(struct model_findings *findings, const struct document_node *node, bool warning,
                        const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    findings->error_count += !warning;
    if (findings->count == FINDINGS_MAX)
        return;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    findings->items = xrealloc(findings->items, (findings->count + 1) * sizeof *findings->items);
    findings->items[findings->count++] =
        (struct model_finding){node ? node->line : 0, node ? node->column : 0, warning, xstrdup(sentence)};
}

void model_findings_clear(struct model_findings *findings) {
    for (size_t i = 0; i < findings->count; i++)
        free(findings->items[i].sentence);
    free(findings->items);
    *findings = (struct model_findings){0};
}

/* Reports an error of the file at NODE: to the findings, or, if it is the first, to the failure. Reading goes
 * on. */
__attribute__((format(printf, 3, 4))) static void
refuse(struct reading *reading, const struct document_node *node, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (reading->findings)
        model_findings_add(reading->findings, node, false, "%s", sentence);
    else if (!reading->error)
        reading->error = failure_input(reading->failure, reading->document->file, node->line, node->column,
                                       "%s", sentence);
}

/* Whether so many errors were found that reading stops: nobody reads more, and each costs memory. */
static bool has_too_many_findings(const struct reading *reading) {
    return reading->error || (reading->findings && reading->findings->error_count >= FINDINGS_MAX);
}

/* ---- Members */

static const struct document_node *member_or_null(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind != DOCUMENT_NULL ? value : NULL;
}

/* The member KEY of NODE. NULL after an error: it is missing or of another kind. */
static const struct document_node *required_member(struct reading *reading, const struct document_node *node,
                                                   const char *key, enum document_kind kind) {
    const struct document_node *value = document_get(node, key);
    if (value && value->kind == kind)
        return value;
    if (value)
        refuse(reading, value, "'%s' is %s; expected %s", key, document_kind_name(value->kind),
               document_kind_name(kind));
    else
        refuse(reading, node, "'%s' is missing; expected %s", key, document_kind_name(kind));
    return NULL;
}

/* The member KEY of NODE; NULL if it is missing or null, or, after an error, of another kind. */
static const struct document_node *optional_member(struct reading *reading, const struct document_node *node,
                                                   const char *key, enum document_kind kind) {
    return member_or_null(node, key) ? required_member(reading, node, key, kind) : NULL;
}

static char *required_text(struct reading *reading, const struct document_node *node, const char *key) {
    const struct document_node *value = required_member(reading, node, key, DOCUMENT_TEXT);
    return xstrdup(value ? value->text : "");
}

static char *optional_text(struct reading *reading, const struct document_node *node, const char *key) {
    const struct document_node *value = optional_member(reading, node, key, DOCUMENT_TEXT);
    return value ? xstrdup(value->text) : NULL;
}

/* NODE itself as a number; KEY is for messages. */
static double to_number(struct reading *reading, const struct document_node *node, const char *key) {
    double value = NAN;
    if (node->kind != DOCUMENT_NUMBER)
        refuse(reading, node, "'%s' is %s; expected a number", key, document_kind_name(node->kind));
    else if (!number_parse_double(node->text, strlen(node->text), &value))
        refuse(reading, node, "'%s' is %.64s; expected a number that a double can hold", key, node->text);
    return value;
}

static double required_number(struct reading *reading, const struct document_node *node, const char *key) {
    const struct document_node *value = required_member(reading, node, key, DOCUMENT_NUMBER);
    return value ? to_number(reading, value, key) : NAN;
}

static double optional_number(struct reading *reading, const struct document_node *node, const char *key,
                              double otherwise) {
    return member_or_null(node, key) ? required_number(reading, node, key) : otherwise;
}

static bool optional_flag(struct reading *reading, const struct document_node *node, const char *key) {
    const struct document_node *value = optional_member(reading, node, key, DOCUMENT_BOOLEAN);
    return value && strcmp(value->text, "true") == 0;
}

static uint64_t required_count(struct reading *reading, const struct document_node *node, const char *key) {
    const struct document_node *value = required_member(reading, node, key, DOCUMENT_NUMBER);
    uint64_t count = 0;
    if (value && !number_parse_uint64(value->text, strlen(value->text), &count))
        refuse(reading, value, "'%s' is %.64s; expected a whole number from 0", key, value->text);
    return count;
}

/* The list KEY of NODE, with at most MOST items. Empty if it is missing, which is an error if MUST. */
static const struct document_node *list_member(struct reading *reading, const struct document_node *node,
                                               const char *key, bool must, size_t most) {
    static const struct document_node empty = {.kind = DOCUMENT_SEQUENCE};
    const struct document_node *list = must ? required_member(reading, node, key, DOCUMENT_SEQUENCE)
                                            : optional_member(reading, node, key, DOCUMENT_SEQUENCE);
    if (!list || list->count <= most)
        return list ? list : &empty;
    refuse(reading, list, "'%s' has %zu entries; expected at most %zu", key, list->count, most);
    return &empty;
}

/* The texts of the list KEY, *RET_COUNT of them; items that are no texts are errors and become "". The caller
 * frees. */
static char **texts_of(struct reading *reading, const struct document_node *node, const char *key, bool must,
                       size_t *ret_count) {
    const struct document_node *list = list_member(reading, node, key, must, SIZE_MAX);
    char **texts = xcalloc(list->count + 1, sizeof *texts);
    for (size_t i = 0; i < list->count; i++) {
        bool good = list->items[i]->kind == DOCUMENT_TEXT;
        if (!good)
            refuse(reading, list->items[i], "'%s' has %s; expected texts", key,
                   document_kind_name(list->items[i]->kind));
        texts[i] = xstrdup(good ? list->items[i]->text : "");
    }
    *ret_count = list->count;
    return texts;
}

/* The COUNT numbers of LIST into RET; NaN, after an error, where an item is no number. */
static void numbers_of(struct reading *reading, const struct document_node *list, const char *key,
                       size_t count, double *ret) {
    bool good = list->kind == DOCUMENT_SEQUENCE && list->count == count;
    if (!good)
        refuse(reading, list, "'%s' is not a list of %zu numbers; expected such a list", key, count);
    for (size_t i = 0; i < count; i++)
        ret[i] = good ? to_number(reading, list->items[i], key) : NAN;
}

static double *required_numbers(struct reading *reading, const struct document_node *node, const char *key,
                                size_t count) {
    const struct document_node *list = required_member(reading, node, key, DOCUMENT_SEQUENCE);
    double *numbers = xcalloc(count + 1, sizeof *numbers);
    if (list)
        numbers_of(reading, list, key, count, numbers);
    return numbers;
}

/* ---- The head */

/* Reads a factor of a term: its column, with a power, a level or the function log2. */
static void read_factor(struct reading *reading, const struct document_node *node, struct model_factor *ret) {
    double power = required_number(reading, node, "power");
    ret->column = required_text(reading, node, "column");
    ret->level = optional_text(reading, node, "level");
    ret->function = optional_text(reading, node, "function");
    if (!(fabs(power) <= POWER_MAX) || power != rint(power) || power == 0 || (ret->level && power != 1))
        refuse(reading, node, "'power' is %g; expected %s", power,
               ret->level ? "1, because the factor is a level" : "a whole number, not 0, from -1000 to 1000");
    else
        ret->power = (int32_t)power;
    if (ret->function && (ret->level || strcmp(ret->function, "log2") != 0))
        refuse(reading, node, "'function' is '%.64s'; expected log2", ret->function);
}

/* Reads the model's terms with their factors, units and names. */
static void read_terms(struct reading *reading, const struct document_node *root) {
    struct model *model = reading->model;
    const struct document_node *list = list_member(reading, root, "terms", true, MODEL_TERMS_MAX);
    model->terms = xcalloc(list->count + 1, sizeof *model->terms);
    model->term_count = list->count;
    if (list->count == 0 && evaluator_knows(model->kind))
        refuse(reading, root, "'terms' is empty; expected at least one");
    for (size_t t = 0; t < list->count; t++) {
        struct model_term *term = &model->terms[t];
        const struct document_node *factors =
            list_member(reading, list->items[t], "factors", true, MODEL_FACTORS_MAX);
        term->name = required_text(reading, list->items[t], "name");
        term->unit = optional_text(reading, list->items[t], "unit");
        term->factors = xcalloc(factors->count + 1, sizeof *term->factors);
        term->factor_count = factors->count;
        for (size_t f = 0; f < factors->count; f++)
            read_factor(reading, factors->items[f], &term->factors[f]);
    }
}

/* Reads the columns with units, types and levels. */
static void read_columns(struct reading *reading, const struct document_node *root) {
    struct model *model = reading->model;
    const struct document_node *list = list_member(reading, root, "columns", true, SIZE_MAX);
    model->columns = xcalloc(list->count + 1, sizeof *model->columns);
    model->column_count = list->count;
    for (size_t c = 0; c < list->count; c++) {
        struct model_column *column = &model->columns[c];
        column->about.name = required_text(reading, list->items[c], "name");
        column->about.unit = optional_text(reading, list->items[c], "unit");
        const struct document_node *type = optional_member(reading, list->items[c], "type", DOCUMENT_TEXT);
        column->about.type = column_type_find(type ? type->text : NULL);
        column->levels = texts_of(reading, list->items[c], "levels", false, &column->level_count);
    }
}

/* Reads the convex hull of the measured rows, if the file has one. */
static void read_hull(struct reading *reading, const struct document_node *root) {
    const struct document_node *node = optional_member(reading, root, "hull", DOCUMENT_MAPPING);
    if (!node)
        return;
    struct model_hull *hull = reading->model->hull = xcalloc(1, sizeof *hull);
    if (list_member(reading, node, "columns", true, HULL_COLUMNS_MAX)->count > 0)
        hull->columns = texts_of(reading, node, "columns", true, &hull->column_count);
    const struct document_node *directions =
        list_member(reading, node, "directions", true, HULL_DIRECTIONS_MAX);
    size_t width = hull->column_count, count = hull->direction_count = directions->count;
    hull->directions = xcalloc(count * width + 1, sizeof *hull->directions);
    for (size_t d = 0; d < count; d++)
        numbers_of(reading, directions->items[d], "directions", width, hull->directions + d * width);
    hull->scale = required_numbers(reading, node, "scale", width);
    hull->minimum = required_numbers(reading, node, "minimum", count);
    hull->maximum = required_numbers(reading, node, "maximum", count);
    for (size_t d = 0; d < count; d++)
        if (hull->minimum[d] > hull->maximum[d])
            refuse(reading, node,
                   "the hull goes from %g to %g in direction %zu; expected the minimum "
                   "first",
                   hull->minimum[d], hull->maximum[d], d + 1);
}

/* Reads the files that the model was fitted to, with their checksums. */
static void read_inputs(struct reading *reading, const struct document_node *node,
                        struct model_origin *origin) {
    const struct document_node *list = list_member(reading, node, "inputs", false, SIZE_MAX);
    origin->inputs = xcalloc(list->count + 1, sizeof *origin->inputs);
    origin->input_count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        struct model_input *input = &origin->inputs[i];
        input->name = required_text(reading, list->items[i], "name");
        input->run_id = optional_text(reading, list->items[i], "run_id");
        input->experiment = optional_text(reading, list->items[i], "experiment");
        input->rows = required_count(reading, list->items[i], "rows");
        cleanup_free char *hash = optional_text(reading, list->items[i], "sha256");
        if (hash && (strlen(hash) != 64 || strspn(hash, "0123456789abcdef") != 64))
            refuse(reading, list->items[i],
                   "'sha256' is '%.80s'; expected 64 hexadecimal digits in lower case", hash);
        else if (hash)
            memcpy(input->sha256, hash, sizeof input->sha256);
    }
}

/* Reads how the model was made, if the file says so: plugin, settings, inputs. */
static void read_origin(struct reading *reading, const struct document_node *root) {
    const struct document_node *node = optional_member(reading, root, "origin", DOCUMENT_MAPPING), *settings;
    struct model_origin *origin = &reading->model->origin;
    if (!node)
        return;
    origin->plugin = optional_text(reading, node, "plugin");
    origin->version = optional_text(reading, node, "version");
    origin->engine = optional_text(reading, node, "engine");
    origin->created = optional_text(reading, node, "created");
    origin->rows = required_count(reading, node, "rows");
    origin->seed = member_or_null(node, "seed") ? required_count(reading, node, "seed") : 0;
    origin->folds_by = optional_text(reading, node, "folds_by");
    origin->folds_columns = texts_of(reading, node, "folds_columns", false, &origin->folds_column_count);
    origin->where = optional_text(reading, node, "where");
    read_inputs(reading, node, origin);
    if (!(settings = optional_member(reading, node, "settings", DOCUMENT_MAPPING)))
        return;
    origin->settings = xcalloc(settings->count + 1, sizeof *origin->settings);
    origin->setting_values = xcalloc(settings->count + 1, sizeof *origin->setting_values);
    origin->setting_count = settings->count;
    for (size_t i = 0; i < settings->count; i++) {
        origin->settings[i] = xstrdup(settings->keys[i]->text);
        origin->setting_values[i] = optional_text(reading, settings, settings->keys[i]->text);
    }
}

/* ---- Parts */

/* Reads the estimates of a part, one for each term in the order of `terms`. */
static void read_estimates(struct reading *reading, const struct document_node *node,
                           struct model_part *ret) {
    const struct model *model = reading->model;
    const struct document_node *list = list_member(reading, node, "estimates", true, SIZE_MAX);
    ret->estimates = xcalloc(model->term_count + 1, sizeof *ret->estimates);
    if (list->count != model->term_count)
        refuse(reading, list->items ? list : node,
               "'estimates' has %zu entries; expected %zu, one for each term", list->count,
               model->term_count);
    for (size_t t = 0; t < list->count && t < model->term_count; t++) {
        struct model_estimate *estimate = &ret->estimates[t];
        const struct document_node *item = list->items[t];
        cleanup_free char *name = required_text(reading, item, "term");
        if (strcmp(name, model->terms[t].name) != 0)
            refuse(reading, item,
                   "the estimate belongs to the term '%.64s'; expected '%.64s', in the "
                   "order of 'terms'",
                   name, model->terms[t].name);
        *estimate =
            (struct model_estimate){.estimate = required_number(reading, item, "estimate"),
                                    .standard_error = optional_number(reading, item, "standard_error", NAN),
                                    .t = optional_number(reading, item, "t", NAN),
                                    .p = optional_number(reading, item, "p", NAN),
                                    .dropped = optional_flag(reading, item, "dropped"),
                                    .at_bound = optional_flag(reading, item, "at_bound")};
        if (estimate->estimate != 0 && (estimate->dropped || estimate->at_bound))
            refuse(reading, item, "the estimate of '%.64s' is %g; expected 0, because the term is %s", name,
                   estimate->estimate, estimate->dropped ? "dropped" : "at its bound");
    }
}

/* The covariance of the estimates, a square of one row per term; NULL: there is none, or, after an error, it
 * is not square. */
static double *read_covariance(struct reading *reading, const struct document_node *node) {
    size_t count = reading->model->term_count;
    if (!optional_member(reading, node, "covariance", DOCUMENT_SEQUENCE))
        return NULL;
    const struct document_node *rows = list_member(reading, node, "covariance", true, count);
    bool square = rows->count == count;
    for (size_t i = 0; i < rows->count; i++)
        square = square && rows->items[i]->kind == DOCUMENT_SEQUENCE && rows->items[i]->count == count;
    if (!square) {
        refuse(reading, node,
               "'covariance' is not a square matrix of %zu rows; expected a row for "
               "each term",
               count);
        return NULL;
    }
    double *ret = xcalloc(count * count + 1, sizeof *ret);
    for (size_t i = 0; i < rows->count; i++)
        numbers_of(reading, rows->items[i], "covariance", count, ret + i * count);
    return ret;
}

static double read_freedom(struct reading *reading, const struct document_node *node) {
    double freedom = optional_number(reading, node, "freedom", 0);
    if (freedom < 0)
        refuse(reading, node, "there are %g degrees of freedom; expected more than 0", freedom);
    return fmax(freedom, 0);
}

/* Reads the floor of the noise: the least standard deviation, its degrees of freedom and covariance. */
static void read_floor(struct reading *reading, const struct document_node *noise,
                       struct model_noise_floor *ret) {
    const struct document_node *node = optional_member(reading, noise, "floor", DOCUMENT_MAPPING);
    if (!node)
        return;
    ret->sigma = required_number(reading, node, "sigma");
    ret->freedom = read_freedom(reading, node);
    ret->covariance = read_covariance(reading, node);
    if (ret->sigma < 0 || !ret->covariance || ret->freedom == 0)
        refuse(reading, node,
               "'floor' is incomplete; expected sigma of at least 0, freedom and "
               "covariance");
}

/* Reads the ranges that the part was measured for. */
static void read_domain(struct reading *reading, const struct document_node *node, struct model_part *ret) {
    const struct document_node *domain = optional_member(reading, node, "domain", DOCUMENT_MAPPING);
    size_t count = domain ? domain->count : 0;
    ret->domain = xcalloc(count + 1, sizeof *ret->domain);
    ret->domain_count = count;
    for (size_t i = 0; i < count; i++) {
        struct model_range *range = &ret->domain[i];
        double ends[2];
        range->name = xstrdup(domain->keys[i]->text);
        numbers_of(reading, domain->items[i], range->name, 2, ends);
        range->minimum = ends[0], range->maximum = ends[1];
        if (ends[0] > ends[1])
            refuse(reading, domain->items[i], "the range of '%.64s' is %g to %g; expected the minimum first",
                   range->name, ends[0], ends[1]);
    }
}

/* Reads the components of a mixture of normals; their weights must add up to 1. */
static void read_components(struct reading *reading, const struct document_node *node,
                            struct model_noise *ret) {
    const struct document_node *list = list_member(reading, node, "components", true, MODEL_COMPONENTS_MAX);
    double sum = 0;
    ret->components = xcalloc(list->count + 1, sizeof *ret->components);
    ret->component_count = list->count;
    for (size_t i = 0; i < list->count; i++) {
        struct model_component *component = &ret->components[i];
        component->weight = required_number(reading, list->items[i], "weight");
        component->mean = required_number(reading, list->items[i], "mean");
        component->sigma = required_number(reading, list->items[i], "sigma");
        if (component->weight < 0 || component->sigma < 0)
            refuse(reading, list->items[i],
                   "a component has the weight %g and the sigma %g; expected both at "
                   "least 0",
                   component->weight, component->sigma);
        sum += component->weight;
    }
    if (!(fabs(sum - 1) <= rounding))
        refuse(reading, node, "the weights of the components add up to %.9g; expected 1", sum);
}

/* Reads the noise of a part; a part without one has kind MODEL_NOISE_NONE. */
static void read_noise(struct reading *reading, const struct document_node *part, struct model_noise *ret) {
    static const char *const kinds[] = {[MODEL_NOISE_HOMOSCEDASTIC] = "N-1",
                                        [MODEL_NOISE_HETEROSCEDASTIC] = "N-2",
                                        [MODEL_NOISE_MIXTURE] = "mixture"};
    const struct document_node *node = optional_member(reading, part, "noise", DOCUMENT_MAPPING);
    if (!node)
        return;
    cleanup_free char *kind = required_text(reading, node, "kind");
    cleanup_free char *distribution = optional_text(reading, node, "distribution");
    for (enum model_noise_kind k = MODEL_NOISE_HOMOSCEDASTIC; k <= MODEL_NOISE_MIXTURE; k++)
        if (strcmp(kind, kinds[k]) == 0)
            ret->kind = k;
    if (ret->kind == MODEL_NOISE_NONE)
        refuse(reading, node, "the noise has the kind '%.64s'; expected N-1, N-2 or mixture", kind);
    ret->half_normal = distribution && strcmp(distribution, "half-normal") == 0;
    if (distribution && !ret->half_normal && strcmp(distribution, "normal") != 0)
        refuse(reading, node, "the distribution is '%.64s'; expected normal or half-normal", distribution);
    ret->method = optional_text(reading, node, "method");
    if (ret->kind == MODEL_NOISE_MIXTURE) {
        read_components(reading, node, ret);
        return;
    }
    ret->constant = required_number(reading, node, "constant");
    if (ret->kind == MODEL_NOISE_HOMOSCEDASTIC && ret->constant < 0)
        refuse(reading, node, "sigma is %g; expected 0 or more", ret->constant);
    const struct document_node *list = optional_member(reading, node, "coefficients", DOCUMENT_SEQUENCE);
    if (list && ret->kind == MODEL_NOISE_HETEROSCEDASTIC) {
        ret->coefficients = xcalloc(reading->model->term_count + 1, sizeof *ret->coefficients);
        numbers_of(reading, list, "coefficients", reading->model->term_count, ret->coefficients);
        read_floor(reading, node, &ret->floor);
    }
}

/* The named values of NODE, *RET_COUNT of them. The caller frees. */
static struct model_value *read_values(struct reading *reading, const struct document_node *node,
                                       size_t *ret_count) {
    const struct document_node *map = optional_member(reading, node, "values", DOCUMENT_MAPPING);
    size_t count = map ? map->count : 0;
    struct model_value *values = xcalloc(count + 1, sizeof *values);
    for (size_t i = 0; i < count; i++)
        values[i] = (struct model_value){.name = xstrdup(map->keys[i]->text),
                                         .value = optional_number(reading, map, map->keys[i]->text, NAN),
                                         .unit = optional_text(reading, reading->units, map->keys[i]->text)};
    *ret_count = count;
    return values;
}

/* Reads a part of a group: its interval, estimates, covariance, noise, values and ranges. */
static void read_part(struct reading *reading, const struct document_node *node, struct model_part *ret) {
    ret->kind = required_text(reading, node, "kind");
    ret->name = optional_text(reading, node, "name");
    ret->from = optional_number(reading, node, "from", -INFINITY);
    ret->to = optional_number(reading, node, "to", INFINITY);
    if (ret->from >= ret->to)
        refuse(reading, node, "the part goes from %g to %g; expected 'from' below 'to'", ret->from, ret->to);
    read_estimates(reading, node, ret);
    ret->covariance = read_covariance(reading, node);
    ret->freedom = read_freedom(reading, node);
    read_noise(reading, node, &ret->noise);
    ret->values = read_values(reading, node, &ret->value_count);
    read_domain(reading, node, ret);
}

/* ---- Groups */

/* The labels of a group, one for each column of `by`. The caller frees. */
static char **read_labels(struct reading *reading, const struct document_node *node) {
    const struct model *model = reading->model;
    const struct document_node *map = required_member(reading, node, "labels", DOCUMENT_MAPPING);
    char **labels = xcalloc(model->by_count + 1, sizeof *labels);
    if (map && map->count > model->by_count)
        refuse(reading, map,
               "the group has %zu labels; expected %zu, a label for each column of "
               "'by'",
               map->count, model->by_count);
    for (size_t j = 0; j < model->by_count; j++)
        labels[j] = map ? required_text(reading, map, model->by[j]) : xstrdup("");
    return labels;
}

/* Checks that segments with the same name ascend without overlap, so that at most one holds for a value. */
static void expect_order(struct reading *reading, const struct document_node *node,
                         const struct document_node *list, const struct model_group *group) {
    const struct model *model = reading->model;
    if (!evaluator_knows(model->kind))
        return;
    if (!model->over && !model->named_by && group->part_count > 1)
        refuse(reading, node,
               "the group has %zu parts; expected 1, because the model has neither "
               "'over' nor 'named_by'",
               group->part_count);
    for (size_t p = 1; p < group->part_count; p++) {
        const struct model_part *part = &group->parts[p];
        bool other =
            model->named_by && strcmp(part->name ? part->name : "", part[-1].name ? part[-1].name : "");
        if (model->over && !other && part->from < part[-1].to)
            refuse(reading, list->items[p],
                   "the segment begins at %g, but the segment before it ends at %g; "
                   "expected ascending segments that do not overlap",
                   part->from, part[-1].to);
    }
}

/* Reads a group: labels, rows, values, notes, and its parts, which must be in order. */
static void read_group(struct reading *reading, const struct document_node *node, struct model_group *ret) {
    ret->labels = read_labels(reading, node);
    ret->name = model_group_name(ret->labels, reading->model->by_count);
    ret->rows = required_count(reading, node, "rows");
    ret->values = read_values(reading, node, &ret->value_count);
    ret->notes = texts_of(reading, node, "notes", false, &ret->note_count);
    const struct document_node *list = list_member(reading, node, "parts", true, SIZE_MAX);
    ret->parts = xcalloc(list->count + 1, sizeof *ret->parts);
    for (size_t p = 0; p < list->count && !has_too_many_findings(reading); p++)
        read_part(reading, list->items[p], &ret->parts[ret->part_count++]);
    if (list->count == 0)
        refuse(reading, node, "'parts' is empty; expected at least one");
    expect_order(reading, node, list, ret);
}

/* Reads the groups of the model, and the groups that were not fitted with the reason. */
static void read_groups(struct reading *reading, const struct document_node *root) {
    struct model *model = reading->model;
    const struct document_node *list = list_member(reading, root, "groups", true, SIZE_MAX),
                               *skipped = list_member(reading, root, "skipped", false, SIZE_MAX);
    if (list->count == 0)
        refuse(reading, root, "the model has no groups");
    model->groups = xcalloc(list->count + 1, sizeof *model->groups);
    for (size_t g = 0; g < list->count && !has_too_many_findings(reading); g++)
        read_group(reading, list->items[g], &model->groups[model->group_count++]);
    model->skipped = xcalloc(skipped->count + 1, sizeof *model->skipped);
    model->skipped_count = skipped->count;
    for (size_t s = 0; s < skipped->count; s++) {
        struct model_skipped *group = &model->skipped[s];
        group->labels = read_labels(reading, skipped->items[s]);
        group->name = model_group_name(group->labels, model->by_count);
        group->rows = required_count(reading, skipped->items[s], "rows");
        group->reason = required_text(reading, skipped->items[s], "reason");
    }
}

/* ---- The file */

/* -EINVAL with FAILURE if the document is no model of this format. */
static int check_format(const struct document *document, struct failure *failure) {
    const struct document_node *root = document->root, *format = document_get(root, "assay_model");
    int64_t number = 0;
    if (root->kind != DOCUMENT_MAPPING || !format)
        return failure_input(failure, document->file, root->line, root->column,
                             "this is not a model file of assay: it has no 'assay_model'");
    if (format->kind != DOCUMENT_NUMBER || !number_parse_int64(format->text, strlen(format->text), &number) ||
        number != MODEL_FORMAT)
        return failure_input(failure, document->file, format->line, format->column,
                             "the model has the format %.32s; this assay reads format %d%s",
                             format->kind == DOCUMENT_NUMBER ? format->text : "?", MODEL_FORMAT,
                             number == 1 ? ": fit it again" : "");
    return 0;
}

/* Makes a model of a parsed file (model.h). All errors go to FINDINGS; if it is NULL, the first is the
 * failure. */
int model_from_document(const struct document *document, struct model_findings *findings, struct model **ret,
                        struct failure *failure) {
    int r = check_format(document, failure);
    if (r < 0)
        return r;
    const struct document_node *root = document->root;
    cleanup(model_cleanup) struct model *model = model_new(document->file);
    struct reading reading = {.document = document, .findings = findings, .failure = failure, .model = model};
    const struct document_node *response = required_member(&reading, root, "response", DOCUMENT_MAPPING);
    model->kind = required_text(&reading, root, "kind");
    model->over = optional_text(&reading, root, "over");
    model->named_by = optional_text(&reading, root, "named_by");
    model->response = response ? required_text(&reading, response, "name") : xstrdup("");
    model->response_unit = response ? optional_text(&reading, response, "unit") : NULL;
    model->response_seconds = model_unit_seconds(model->response_unit);
    model->weights = optional_text(&reading, root, "weights");
    reading.units = optional_member(&reading, root, "units", DOCUMENT_MAPPING);
    model->main_values = texts_of(&reading, root, "main_values", false, &model->main_value_count);
    model->by = texts_of(&reading, root, "by", true, &model->by_count);
    read_terms(&reading, root);
    read_columns(&reading, root);
    read_hull(&reading, root);
    read_origin(&reading, root);
    read_groups(&reading, root);
    if (strcmp(model->kind, "smpi") == 0 && !model->named_by)
        refuse(&reading, root,
               "'named_by' is missing; expected the column whose value selects the "
               "part of a row");
    if (reading.error < 0)
        return reading.error;
    *ret = take_pointer(model);
    return 0;
}

int model_file_read(const char *path, struct model **ret, struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    if (text_ends_in(path, ".zip"))
        return failure_input(failure, path, 0, 0,
                             "this is an archive, not a model; 'assay fit' makes a model of it");
    int r = document_read_json_or_pipe(path, &document, failure);
    return r < 0 ? r : model_from_document(document, NULL, ret, failure);
}

int model_file_parse(const char *name, const char *bytes, size_t length, struct model **ret,
                     struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    int r = document_parse_json(name, bytes, length, &document, failure);
    return r < 0 ? r : model_from_document(document, NULL, ret, failure);
}
