#include "engine/model/check.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"
#include "engine/model/evaluator.h"
#include "engine/numerics/cholesky.h"

#include <ctype.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { CORNER_COLUMNS_MAX = 8 }; /* 256 corners of a domain */

/* Relative difference up to which two numbers of the file count as equal. */
static const double rounding = 1e-6;

struct check {
    struct model_findings *findings;
    const struct model *model;
    const struct document_node *root;
    struct evaluator *evaluator;      /* NULL where the kind has none */
    const struct document_node *node; /* of the part that is being checked */
};

/* Adds an error at the node AT to the findings. */
#define complain(check, at, ...) model_findings_add((check)->findings, at, false, __VA_ARGS__)

/* ---- The head */

static void expect_text(struct check *check, const struct document_node *at, const char *key,
                        const char *text) {
    if (!text)
        complain(check, at, "'%s' is missing; expected a text", key);
}

/* Whether TEXT is a time like "2026-11-22T08:00:00Z"; fractions and offsets are allowed. */
static bool is_time(const char *text) {
    int length = 0;
    unsigned year, month, day, hour, minute, second;
    if (sscanf(text, "%4u-%2u-%2uT%2u:%2u:%2u%n", &year, &month, &day, &hour, &minute, &second, &length) !=
            6 ||
        length != 19)
        return false;
    if (text[length] == '.')
        length += 1 + (int)strspn(text + length + 1, "0123456789");
    return month >= 1 && month <= 12 && day >= 1 && day <= 31 && hour < 24 && minute < 60 && second <= 60 &&
           (strcmp(text + length, "Z") == 0 || text[length] == '+' || text[length] == '-');
}

/* Reports an origin that is missing or lacks a file, a checksum, or when and by what the model was made. */
static void check_origin(struct check *check) {
    enum { UNITS = 3 };
    static const char *const units[UNITS] = {"setting", "row", "columns"};
    const struct model_origin *origin = &check->model->origin;
    const struct document_node *node = document_get(check->root, "origin");
    if (!node) {
        complain(check, check->root, "'origin' is missing; expected the inputs that the model was made from");
        return;
    }
    expect_text(check, node, "plugin", origin->plugin);
    expect_text(check, node, "version", origin->version);
    expect_text(check, node, "engine", origin->engine);
    expect_text(check, node, "created", origin->created);
    if (origin->created && !is_time(origin->created))
        complain(check, document_get(node, "created"),
                 "'created' is '%.64s'; expected a time such as 2026-11-22T08:00:00Z", origin->created);
    if (origin->folds_by && text_find(origin->folds_by, units, UNITS) == UNITS)
        complain(check, document_get(node, "folds_by"),
                 "'folds_by' is '%.64s'; expected setting, row or columns", origin->folds_by);
    if (origin->input_count == 0)
        complain(check, node, "'inputs' is empty; expected at least one file");
    for (size_t i = 0; i < origin->input_count; i++)
        if (origin->inputs[i].sha256[0] == '\0')
            model_findings_add(check->findings, node, true, "the input '%.128s' has no 'sha256'",
                               origin->inputs[i].name);
}

static void expect_column(struct check *check, const struct document_node *at, const char *name,
                          const char *user) {
    if (name && !model_column_find(check->model, name))
        complain(check, at, "'columns' has no '%.64s', but %s use this column", name, user);
}

/* Reports a factor whose column the model lacks, or whose level its column does not have. */
static void check_factor(struct check *check, const struct document_node *at,
                         const struct model_factor *factor) {
    const struct model_column *column = model_column_find(check->model, factor->column);
    bool seen = !factor->level || !column || column->level_count == 0;
    for (size_t l = 0; !seen && l < column->level_count; l++)
        seen = strcmp(column->levels[l], factor->level) == 0;
    if (!seen)
        complain(check, at, "'%.64s' is no level of the column '%.64s'", factor->level, factor->column);
    expect_column(check, at, factor->column, "terms");
}

/* Adds NAME to NAMES. Reports, at the node AT, a name that NAMES has already: "WHAT 'NAME' is there
 * twice". */
static void expect_new(struct check *check, struct text_set *names, const char *name, const char *what,
                       const struct document_node *at) {
    size_t before = names->count;
    if (text_set_add(names, name, strlen(name)) < before)
        complain(check, at, "%s '%.128s' occurs twice", what, name);
}

/* Reports names that occur twice: labels, columns, terms, factors of a term; and scales of the hull that are
 * not above 0. */
static void check_names(struct check *check) {
    const struct model *model = check->model;
    const struct document_node *columns = document_get(check->root, "columns"),
                               *terms = document_get(check->root, "terms");
    cleanup(text_set_clear) struct text_set by = {0}, of_columns = {0}, of_terms = {0};
    for (size_t i = 0; i < model->by_count; i++)
        expect_new(check, &by, model->by[i], "in 'by', the column", document_get(check->root, "by"));
    for (size_t i = 0; i < model->column_count; i++)
        expect_new(check, &of_columns, model->columns[i].about.name, "the column", columns->items[i]);
    for (size_t t = 0; t < model->term_count; t++) {
        cleanup(text_set_clear) struct text_set factors = {0};
        expect_new(check, &of_terms, model->terms[t].name, "the term", terms->items[t]);
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const struct model_factor *factor = &model->terms[t].factors[f];
            cleanup_free char *name =
                xformat("%s%s", factor->function ? factor->function : "", factor->column);
            expect_new(check, &factors, name, "the factor", terms->items[t]);
        }
    }
    for (size_t c = 0; model->hull && c < model->hull->column_count; c++)
        if (!(model->hull->scale[c] > 0))
            complain(check, document_get(check->root, "hull"),
                     "the scale of '%.64s' is %.6g; expected above 0", model->hull->columns[c],
                     model->hull->scale[c]);
}

/* Reports a unit with characters that UCUM does not have; a word that is no known unit is only a warning. */
static void check_unit(struct check *check, const struct document_node *at, const char *unit,
                       const char *name) {
    if (!unit || unit_find_written(unit))
        return;
    bool is_word = unit[0] != '\0';
    for (const char *c = unit; *c; c++)
        is_word &= isalnum((unsigned char)*c) || (unsigned char)*c >= 0x80 || strchr("/.*^%[]{}()'\"_+-", *c);
    model_findings_add(check->findings, at, is_word,
                       is_word ? "the unit '%.64s' of '%.64s' is not known, so that values cannot be "
                                 "converted to other units"
                               : "'%.64s' is not a unit for '%.64s'; expected a unit such as s or By/s",
                       unit, name);
}

/* Reports terms, hull and segments that use columns which the model lacks, and unknown units and types. */
static void check_head(struct check *check) {
    const struct model *model = check->model;
    const struct document_node *terms = document_get(check->root, "terms"),
                               *columns = document_get(check->root, "columns");
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++)
            check_factor(check, terms->items[t], &model->terms[t].factors[f]);
    check_unit(check, document_get(check->root, "response"), model->response_unit, model->response);
    for (size_t c = 0; c < model->column_count; c++) {
        const struct document_node *node = document_get(columns->items[c], "type");
        enum column_type type = model->columns[c].about.type;
        if (node && node->kind == DOCUMENT_TEXT && (type == COLUMN_UNKNOWN || type == COLUMN_TIME))
            complain(check, columns->items[c],
                     "the type is '%.64s'; expected integer, number, string or boolean", node->text);
    }
    for (size_t c = 0; c < model->column_count; c++)
        check_unit(check, columns->items[c], model->columns[c].about.unit, model->columns[c].about.name);
    expect_column(check, check->root, model->over, "segments");
    expect_column(check, check->root, model->named_by, "names of parts");
    for (size_t c = 0; model->hull && c < model->hull->column_count; c++)
        expect_column(check, document_get(check->root, "hull"), model->hull->columns[c], "hulls");
}

/* ---- Estimates */

static bool differ(double a, double b) {
    return fabs(a - b) > rounding * fmax(fabs(a), fabs(b));
}

/* Reports a standard error, t or p that contradicts the estimate or its variance. */
static void check_estimate(struct check *check, const struct model_part *part, size_t t) {
    const struct model_estimate *estimate = &part->estimates[t];
    const char *name = check->model->terms[t].name;
    double error = estimate->standard_error, ratio = estimate->estimate / error,
           root = part->covariance ? sqrt(part->covariance[t * (check->model->term_count + 1)]) : NAN;
    if (error < 0)
        complain(check, check->node, "the standard error of '%.64s' is %.6g; expected 0 or more", name,
                 error);
    /* A kind of its plugin's own may have another covariance there: a population's is of its members. */
    if (check->evaluator && !isnan(error) && !isnan(root) && differ(error, root))
        complain(check, check->node,
                 "the standard error of '%.64s' is %.9g, but the root of its variance "
                 "is %.9g; expected equal values",
                 name, error, root);
    if (error > 0 && !isnan(estimate->t) && differ(estimate->t, ratio))
        complain(check, check->node,
                 "t of '%.64s' is %.9g; expected %.9g, the estimate divided by its "
                 "standard error",
                 name, estimate->t, ratio);
    if (estimate->p < 0 || estimate->p > 1)
        complain(check, check->node, "p of '%.64s' is %.6g; expected 0 to 1", name, estimate->p);
}

/* Reports a covariance that is not symmetric or not positive semidefinite. */
static void check_covariance(struct check *check, const struct model_part *part) {
    size_t count = check->model->term_count;
    const double *covariance = part->covariance;
    if (!covariance)
        return;
    cleanup_free double *triangle = xcalloc(count * count + 1, sizeof *triangle);
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < i; j++)
            if (!(fabs(covariance[i * count + j] - covariance[j * count + i]) <=
                  rounding * sqrt(covariance[i * count + i]) * sqrt(covariance[j * count + j]))) {
                complain(check, check->node,
                         "the covariance is not symmetric: for '%.64s' and '%.64s' its two "
                         "entries are %.9g and %.9g",
                         check->model->terms[i].name, check->model->terms[j].name, covariance[i * count + j],
                         covariance[j * count + i]);
                return;
            }
    if (cholesky_factor_semidefinite(count, covariance, triangle) < 0)
        complain(check, check->node,
                 "the covariance is not positive semidefinite: a combination of the "
                 "terms has a variance below 0");
}

/* ---- Values */

/* The range of values whose meaning is the same in every model. */
static const struct {
    const char *name;
    double least, most;
} limits[] = {
    {"sigma", 0, INFINITY},
    {"rss", 0, INFINITY},
    {"r2", -INFINITY, 1},
    {"adjusted_r2", -INFINITY, 1},
    {"pure_error", 0, INFINITY},
    {"cv_rmse", 0, INFINITY},
    {"cv_relative", 0, INFINITY},
    {"lack_of_fit_p", 0, 1},
    {"lack_of_fit_f", 0, INFINITY},
    {"folds", 0, INFINITY},
    {"settings", 0, INFINITY},
    {"degrees_of_freedom", 0, INFINITY},
    {"weight", 0, 1},
    {"heterogeneity", 0, INFINITY},
    {"cv_median_relative", 0, INFINITY},
};

static void check_values(struct check *check, const struct document_node *at,
                         const struct model_value *values, size_t count) {
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < sizeof limits / sizeof *limits; i++)
            if (strcmp(values[v].name, limits[i].name) == 0 &&
                (values[v].value < limits[i].least || values[v].value > limits[i].most))
                complain(check, at, "'%s' is %.6g; expected %.3g to %.3g", limits[i].name, values[v].value,
                         limits[i].least, limits[i].most);
}

/* Reports weights of the parts of a group (shares of populations) that do not add up to 1. */
static void check_weights(struct check *check, const struct document_node *node,
                          const struct model_group *group) {
    double sum = 0;
    bool has_weights = false;
    for (size_t p = 0; p < group->part_count; p++) {
        const struct model_value *weight =
            model_value_find(group->parts[p].values, group->parts[p].value_count, "weight");
        has_weights |= weight != NULL;
        sum += weight ? weight->value : 0;
    }
    if (has_weights && !(fabs(sum - 1) <= rounding))
        complain(check, node, "the weights of the parts add up to %.9g; expected 1", sum);
}

/* ---- The domain */

/* Reports ranges of names that are neither a column nor a term. */
static void check_domain(struct check *check, const struct model_part *part) {
    for (size_t i = 0; i < part->domain_count; i++) {
        const char *name = part->domain[i].name;
        bool known = model_column_find(check->model, name) != NULL;
        for (size_t t = 0; !known && t < check->model->term_count; t++)
            known = strcmp(check->model->terms[t].name, name) == 0;
        if (!known)
            complain(check, document_get(check->node, "domain"),
                     "the domain has a range of '%.64s', which is neither a column nor a "
                     "term",
                     name);
    }
}

/* Lists the ends of each input's range in ENDS. For the column of segments, the part of the range that is in
 * the segment. false: an input has no range, or there are too many inputs. */
static bool find_ends(const struct check *check, const struct model_part *part,
                      double ends[2][CORNER_COLUMNS_MAX]) {
    const struct evaluator *evaluator = check->evaluator;
    for (size_t i = 0; i < evaluator->input_count && i < CORNER_COLUMNS_MAX; i++) {
        bool names = i == evaluator->named_by;
        const struct model_range *range =
            evaluator->inputs[i].is_text ? NULL : model_range_find(part, evaluator->inputs[i].name);
        if (!range && !names)
            return false;
        ends[0][i] = range ? range->minimum : evaluator_code(evaluator, i, part->name);
        ends[1][i] = range ? range->maximum : ends[0][i];
        if (i == evaluator->over) {
            ends[0][i] = fmax(ends[0][i], part->from);
            ends[1][i] = fmin(ends[1][i], part->to);
        }
    }
    return evaluator->input_count <= CORNER_COLUMNS_MAX;
}

/* Reports a sigma below 0, and warns of a predicted time of 0 or less, at the corners of the domain. Mean and
 * sigma are sums of products: they are least at a corner. */
static void check_corners(struct check *check, struct model_part *part) {
    const struct model_group alone = {.parts = part, .part_count = 1};
    double ends[2][CORNER_COLUMNS_MAX], inputs[CORNER_COLUMNS_MAX];
    if (!check->evaluator || !find_ends(check, part, ends))
        return;
    size_t corners = (size_t)1 << check->evaluator->input_count, below = 0, times = 0;
    for (size_t corner = 0; corner < corners; corner++) {
        double mean, sigma;
        for (size_t i = 0; i < check->evaluator->input_count; i++)
            inputs[i] = ends[corner >> i & 1][i];
        if (evaluator_row(check->evaluator, &alone, inputs, &mean, &sigma) < 0)
            continue;
        bool is_no_time = model_response_is_time(check->model) && mean <= 0;
        times += is_no_time;
        below += part->noise.kind == MODEL_NOISE_HETEROSCEDASTIC && isnan(sigma) && !is_no_time;
    }
    if (below > 0)
        complain(check, document_get(check->node, "noise"),
                 "sigma is below 0, and so undefined, at %zu of the %zu corners of the "
                 "domain",
                 below, corners);
    if (times > 0)
        model_findings_add(check->findings, check->node, true,
                           "the predicted time is 0 or less at %zu of the %zu corners of the domain", times,
                           corners);
}

/* Reports a mixture whose mean is far from 0: the mean of the noise is part of the model's mean. */
static void check_mixture(struct check *check, const struct model_noise *noise) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < noise->component_count; i++)
        mean += noise->components[i].weight * noise->components[i].mean;
    for (size_t i = 0; i < noise->component_count; i++)
        variance += noise->components[i].weight *
                    (pow(noise->components[i].mean - mean, 2) + pow(noise->components[i].sigma, 2));
    if (fabs(mean) > sqrt(variance) / 2)
        complain(
            check, document_get(check->node, "noise"),
            "the mean of the mixture is %.6g, and its standard deviation is %.6g; expected a mean near 0",
            mean, sqrt(variance));
}

/* ---- Groups */

static const struct document_node *item_of(const struct document_node *node, const char *key, size_t i) {
    const struct document_node *list = document_get(node, key);
    return list && list->kind == DOCUMENT_SEQUENCE && i < list->count ? list->items[i] : node;
}

/* Checks the values, and the parts, of GROUP; segments must leave no gap. */
static void check_group(struct check *check, const struct document_node *node,
                        const struct model_group *group) {
    if (group->rows == 0)
        complain(check, node, "the group has 0 rows; expected at least 1");
    check_values(check, node, group->values, group->value_count);
    check_weights(check, node, group);
    for (size_t p = 0; p < group->part_count; p++) {
        struct model_part *part = &group->parts[p];
        check->node = item_of(node, "parts", p);
        for (size_t t = 0; t < check->model->term_count; t++)
            check_estimate(check, part, t);
        check_covariance(check, part);
        check_values(check, check->node, part->values, part->value_count);
        check_domain(check, part);
        check_corners(check, part);
        check_mixture(check, &part->noise);
        if (check->evaluator && check->model->over && p > 0 && text_is_same(part->name, part[-1].name) &&
            part->from > part[-1].to)
            complain(check, check->node,
                     "the segment begins at %.9g, but the segment before it ends at %.9g; "
                     "expected no gap",
                     part->from, part[-1].to);
    }
}

static void check_twins(struct check *check) {
    cleanup(text_set_clear) struct text_set names = {0};
    for (size_t g = 0; g < check->model->group_count; g++)
        expect_new(check, &names, check->model->groups[g].name, "the group",
                   item_of(check->root, "groups", g));
}

/* A name with one would be a command to the terminal of whoever reads it. */
static void check_texts(struct check *check, const struct document_node *node) {
    if (node->text && text_has_control(node->text))
        complain(check, node, "'%.64s' has a control character", node->text);
    for (size_t i = 0; i < node->count; i++) {
        if (node->keys)
            check_texts(check, node->keys[i]);
        check_texts(check, node->items[i]);
    }
}

/* ---- The file */

/* Reads the model and reports what contradicts itself or the format, in FINDINGS. *RET is the model, also
 * with findings. Negative with FAILURE: the document is no model. */
static int check_document(const struct document *document, struct model_findings *findings,
                          struct model **ret, struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    int r = model_from_document(document, findings, &model, failure);
    if (r < 0)
        return r;
    struct check check = {.findings = findings, .model = model, .root = document->root};
    if (evaluator_knows(model->kind))
        evaluator_new(model, &check.evaluator, NULL);
    check_origin(&check);
    check_head(&check);
    check_names(&check);
    for (size_t g = 0; g < model->group_count; g++)
        check_group(&check, item_of(check.root, "groups", g), &model->groups[g]);
    check_twins(&check);
    check_texts(&check, check.root);
    evaluator_free(check.evaluator);
    if (ret)
        *ret = take_pointer(model);
    return 0;
}

int model_file_check(const char *path, struct model_findings *findings, struct model **ret,
                     struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    int r = document_read_json_or_pipe(path, &document, failure);
    return r < 0 ? r : check_document(document, findings, ret, failure);
}

int model_file_check_bytes(const char *name, const char *bytes, size_t length,
                           struct model_findings *findings, struct model **ret, struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    int r = document_parse_json(name, bytes, length, &document, failure);
    return r < 0 ? r : check_document(document, findings, ret, failure);
}
