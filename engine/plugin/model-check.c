#include "engine/plugin/model-check.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/group-names.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    CORNERS_FACTORS_MAX = 8, /* 256 corners of a domain */
    SHA256_DIGITS = 64,
};

/* What numbers that belong together may differ by, as a share. */
static const double rounding = 1e-6;
/* What the least eigenvalue of a matrix of correlations may be below zero by. */
static const double definite = 1e-8;

struct check {
    model_check_listener listener;
    void *context;
    const struct model *model;
    const struct predict_model *view;
    const struct document_node *root;
    struct evaluation *evaluation; /* of all factors; NULL where the kind has none */
    const char **columns;          /* of it */
    size_t column_count;
    int stopped; /* what the listener returned */
};

static void check_clear(struct check *check) {
    evaluation_free(check->evaluation);
    free(check->columns);
}

__attribute__((format(printf, 4, 5))) static void tell(struct check *check, const struct document_node *at,
                                                       bool warning, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    if (check->stopped)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    const struct model_finding finding = {at->line, at->column, warning, sentence};
    check->stopped = check->listener(check->context, &finding);
}

static int hear_doubt(void *context, size_t line, size_t column, const char *sentence) {
    struct check *check = context;
    const struct model_finding finding = {line, column, false, sentence};
    if (!check->stopped)
        check->stopped = check->listener(check->context, &finding);
    return check->stopped;
}

/* ---- Members that must be there */

enum {
    TEXT = 1 << DOCUMENT_TEXT,
    NUMBER = 1 << DOCUMENT_NUMBER,
    NOTHING = 1 << DOCUMENT_NULL,
    LIST = 1 << DOCUMENT_SEQUENCE,
    MAPPING = 1 << DOCUMENT_MAPPING,
};

/* The member, or NULL after it was told that it is missing or no such thing. */
static const struct document_node *need(struct check *check, const struct document_node *node,
                                        const char *key, unsigned kinds, const char *expected) {
    const struct document_node *value = document_get(node, key);
    if (value && (kinds & 1u << value->kind))
        return value;
    tell(check, value ? value : node, false, "'%s' is %s; expected %s", key,
         value ? document_kind_name(value->kind) : "missing", expected);
    return NULL;
}

static bool is_count(const struct document_node *node) {
    int64_t count;
    return number_parse_int64(node->text, strlen(node->text), &count) && count >= 0;
}

static void need_count(struct check *check, const struct document_node *node, const char *key) {
    const struct document_node *value = need(check, node, key, NUMBER, "a number of rows");
    if (value && !is_count(value))
        tell(check, value, false, "'%s' is %.32s; expected a whole number of rows", key, value->text);
}

static bool is_sha256(const char *text) {
    return strlen(text) == SHA256_DIGITS && strspn(text, "0123456789abcdef") == SHA256_DIGITS;
}

static void check_input(struct check *check, const struct document_node *input) {
    need(check, input, "file", TEXT, "the name of a file");
    need(check, input, "run_id", TEXT | NOTHING, "a text or null");
    need_count(check, input, "rows");
    const struct document_node *hash = need(check, input, "sha256", TEXT, "64 hexadecimal digits");
    if (hash && !is_sha256(hash->text))
        tell(check, hash, false, "'sha256' is '%.80s'; expected 64 hexadecimal digits in lower case",
             hash->text);
}

/* "2026-11-22T08:00:00Z", fractions allowed. */
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

static void check_folds(struct check *check, const struct document_node *origin) {
    const struct document_node *by = document_get(origin, "folds_by"),
                               *columns = document_get(origin, "folds_columns");
    if (by &&
        (by->kind != DOCUMENT_TEXT || (strcmp(by->text, "setting") != 0 && strcmp(by->text, "row") != 0 &&
                                       strcmp(by->text, "columns") != 0)))
        tell(check, by, false, "'folds_by' is not one of setting, row, columns");
    bool texts = !columns || columns->kind == DOCUMENT_SEQUENCE;
    for (size_t i = 0; columns && texts && i < columns->count; i++)
        texts = columns->items[i]->kind == DOCUMENT_TEXT;
    if (!texts)
        tell(check, columns, false, "'folds_columns' is not a list of names");
}

static void check_origin(struct check *check) {
    static const char *const texts[] = {"plugin", "version", "engine", "created"};
    const struct document_node *origin = need(check, check->root, "origin", MAPPING, "a mapping");
    if (!origin)
        return;
    const struct document_node *value = NULL;
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        value = need(check, origin, texts[i], TEXT, "a text");
    if (value && !is_time(value->text))
        tell(check, value, false, "'created' is '%.64s'; expected a time such as 2026-11-22T08:00:00Z",
             value->text);
    need_count(check, origin, "rows");
    const struct document_node *inputs = need(check, origin, "inputs", LIST, "the files that were read");
    if (inputs && inputs->count == 0)
        tell(check, inputs, false, "'inputs' is empty; expected at least one file");
    for (size_t i = 0; inputs && i < inputs->count; i++)
        check_input(check, inputs->items[i]);
    const struct document_node *seed = document_get(origin, "seed"),
                               *settings = document_get(origin, "settings");
    uint64_t number;
    if (seed &&
        (seed->kind != DOCUMENT_NUMBER || !number_parse_uint64(seed->text, strlen(seed->text), &number)))
        tell(check, seed, false, "'seed' is not a whole number");
    if (settings && settings->kind != DOCUMENT_MAPPING)
        tell(check, settings, false, "'settings' is not a mapping");
    check_folds(check, origin);
}

static void check_skipped(struct check *check) {
    const struct document_node *skipped =
        need(check, check->root, "skipped", LIST, "the groups that could not be fitted");
    for (size_t i = 0; skipped && i < skipped->count; i++) {
        need(check, skipped->items[i], "labels", MAPPING, "a text for each column of 'by'");
        need_count(check, skipped->items[i], "n");
        need(check, skipped->items[i], "reason", TEXT, "why the group was not fitted");
    }
}

/* ---- The formula */

static bool has_factor(const struct document_node *factors, const char *name) {
    bool has = false;
    for (size_t i = 0; !has && factors && i < factors->count; i++) {
        const struct document_node *one = document_get(factors->items[i], "name");
        has = one && one->text && strcmp(one->text, name) == 0;
    }
    return has;
}

static void check_formula(struct check *check) {
    const struct document_node *formula = document_get(check->root, "formula"),
                               *factors = need(check, check->root, "factors", LIST, "the terms' columns");
    need(check, check->root, "weights", TEXT | NOTHING, "a column or null");
    for (size_t i = 0; factors && i < factors->count; i++) {
        need(check, factors->items[i], "name", TEXT, "the name of a column");
        need(check, factors->items[i], "unit", TEXT | NOTHING, "a UCUM code or null");
    }
    for (size_t t = 0; t < check->view->term_count; t++) {
        const struct plugin_term *term = &check->view->terms[t];
        const struct document_node *node = formula->items[t];
        need(check, node, "unit", TEXT | NOTHING, "a UCUM code or null");
        for (size_t u = 0; u < t; u++)
            if (strcmp(check->view->terms[u].name, term->name) == 0)
                tell(check, node, false, "the term '%.64s' is in the formula twice", term->name);
        for (size_t f = 0; factors && f < term->factor_count; f++)
            if (!has_factor(factors, term->factors[f].name))
                tell(check, node, false, "'factors' has no '%.64s', which the term '%.64s' uses",
                     term->factors[f].name, term->name);
    }
    if (check->view->over && factors && !has_factor(factors, check->view->over))
        tell(check, factors, false, "'factors' has no '%.64s', which the segments are over",
             check->view->over);
    if (check->view->named_by && factors && !has_factor(factors, check->view->named_by))
        tell(check, factors, false, "'factors' has no '%.64s', which the parts are named by",
             check->view->named_by);
}

/* ---- Estimates */

/* A number at KEY, NaN where it is null. */
static double number_at(struct check *check, const struct document_node *node, const char *key) {
    double value = NAN;
    const struct document_node *member = need(check, node, key, NUMBER | NOTHING, "a number or null");
    if (member && member->kind == DOCUMENT_NUMBER)
        number_parse_double(member->text, strlen(member->text), &value);
    return value;
}

static bool differ(double a, double b) {
    return fabs(a - b) > rounding * fmax(fabs(a), fabs(b));
}

static void check_estimates(struct check *check, const struct document_node *node,
                            const struct predict_part *part) {
    const struct document_node *terms = document_get(node, "terms");
    size_t count = check->view->term_count;
    for (size_t i = 0; i < count; i++) {
        const struct document_node *term = terms->items[i];
        const char *name = check->view->terms[i].name;
        need(check, term, "unit", TEXT | NOTHING, "a UCUM code or null");
        double error = number_at(check, term, "standard_error"), t = number_at(check, term, "t"),
               p = number_at(check, term, "p");
        if (error < 0)
            tell(check, term, false, "the standard error of '%.64s' is %.6g; expected 0 or more", name,
                 error);
        /* A kind of its plugin's own may have another covariance there: a population's is of its members. */
        bool own = !evaluation_knows(check->view->kind);
        if (!own && part->covariance && !isnan(error) &&
            differ(error, sqrt(part->covariance[i * (count + 1)])))
            tell(check, term, false,
                 "the standard error of '%.64s' is %.9g, and the root of its variance is %.9g; expected the "
                 "same",
                 name, error, sqrt(part->covariance[i * (count + 1)]));
        if (error > 0 && !isnan(t) && differ(t, part->estimates[i] / error))
            tell(check, term, false,
                 "t of '%.64s' is %.9g; expected %.9g, its estimate over its standard error", name, t,
                 part->estimates[i] / error);
        if (p < 0 || p > 1)
            tell(check, term, false, "p of '%.64s' is %.6g; expected 0 to 1", name, p);
    }
}

/* Cholesky's decomposition of the correlations, a little lifted: it ends where an eigenvalue is below zero.
 */
static bool is_definite(const double *covariance, size_t count, double *work) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            double scale = sqrt(covariance[i * (count + 1)]) * sqrt(covariance[j * (count + 1)]);
            double sum = i == j ? 1 + definite : scale > 0 ? covariance[i * count + j] / scale : 0;
            for (size_t k = 0; k < j; k++)
                sum -= work[i * count + k] * work[j * count + k];
            if (i == j && !(sum > 0))
                return false;
            work[i * count + j] = i == j ? sqrt(sum) : sum / work[j * (count + 1)];
        }
    return true;
}

static int check_covariance(struct check *check, const struct document_node *node,
                            const struct predict_part *part) {
    size_t count = check->view->term_count;
    if (!part->covariance)
        return 0;
    cleanup_free double *work = calloc(count * count + 1, sizeof *work);
    if (!work)
        return -ENOMEM;
    bool variances = true; /* others were told of when the file was read */
    for (size_t i = 0; i < count; i++)
        variances = variances && part->covariance[i * (count + 1)] >= 0;
    if (variances && !is_definite(part->covariance, count, work))
        tell(check, document_get(node, "covariance"), false,
             "the covariance is none: some combination of the terms would have a variance below zero");
    return 0;
}

/* ---- The domain */

static void check_domain(struct check *check, const struct document_node *node,
                         const struct predict_part *part) {
    const struct document_node *domain = document_get(node, "domain");
    for (size_t i = 0; i < part->domain_count; i++) {
        const char *name = part->domain[i].name;
        bool known = has_factor(document_get(check->root, "factors"), name);
        for (size_t t = 0; !known && t < check->view->term_count; t++)
            known = strcmp(check->view->terms[t].name, name) == 0;
        if (!known)
            tell(check, domain->items[i], false,
                 "the domain has a range of '%.64s'; expected a factor or a term", name);
    }
}

/* The ends of the factors' ranges, by column of the evaluation; false where one has no range. */
static bool find_ranges(const struct check *check, const struct predict_part *part,
                        const struct plugin_range **ret) {
    for (size_t c = 0; c < check->column_count; c++) {
        ret[c] = NULL;
        for (size_t i = 0; i < part->domain_count; i++)
            if (strcmp(part->domain[i].name, check->columns[c]) == 0)
                ret[c] = &part->domain[i];
        if (!ret[c] || evaluation_uses_text(check->evaluation, c))
            return false;
    }
    return true;
}

/* At the corners of what the part has seen: sigma is a sum of products, and falls below zero there first. */
static void check_noise(struct check *check, const struct document_node *node,
                        const struct predict_part *part) {
    const struct plugin_range *ranges[CORNERS_FACTORS_MAX];
    double terms[EVALUATION_TERMS_MAX], values[CORNERS_FACTORS_MAX];
    if (!part->noise || part->noise->components)
        return;
    bool varies = false;
    for (size_t t = 0; part->noise->coefficients && t < check->view->term_count; t++)
        varies = varies || part->noise->coefficients[t] != 0;
    if (!varies || !check->evaluation || check->column_count > CORNERS_FACTORS_MAX ||
        !find_ranges(check, part, ranges))
        return;
    size_t below = 0, corners = (size_t)1 << check->column_count;
    for (size_t corner = 0; corner < corners; corner++) {
        for (size_t c = 0; c < check->column_count; c++)
            values[c] = corner >> c & 1 ? ranges[c]->maximum : ranges[c]->minimum;
        evaluation_terms(check->evaluation, values, NULL, terms);
        below += !(evaluation_sigma(check->view, part, terms) > 0);
    }
    if (below > 0)
        tell(check, document_get(node, "noise"), below < corners,
             "the noise is not above zero at %zu of the %zu corners of the domain", below, corners);
}

static void check_segments(struct check *check, const struct document_node *node,
                           const struct predict_group *group) {
    const struct document_node *list = document_get(node, "parts");
    for (size_t p = 1; check->evaluation && p < group->part_count; p++)
        if (group->parts[p].from > group->parts[p - 1].to)
            tell(check, list->items[p], false,
                 "the segment begins at %.9g, and the one before it ends at %.9g; expected no gap",
                 group->parts[p].from, group->parts[p - 1].to);
}

/* ---- Groups */

static void check_labels(struct check *check, const struct document_node *node,
                         const struct document_node *by) {
    const struct document_node *labels = document_get(node, "labels");
    for (size_t j = 0; by && j < by->count; j++) {
        const struct document_node *label =
            by->items[j]->text ? document_get(labels, by->items[j]->text) : NULL;
        if (!label || label->kind != DOCUMENT_TEXT)
            tell(check, labels, false, "the group has no text for '%.64s', which is in 'by'",
                 by->items[j]->text ? by->items[j]->text : "?");
    }
    if (by && labels->count > by->count)
        tell(check, labels, false, "the group has %zu labels; expected %zu, as in 'by'", labels->count,
             by->count);
}

static int check_group(struct check *check, const struct document_node *node, const struct document_node *by,
                       const struct predict_group *group) {
    const struct document_node *list = document_get(node, "parts"), *notes = NULL;
    check_labels(check, node, by);
    if (group->rows == 0)
        tell(check, document_get(node, "n"), false, "the group has 0 rows; expected at least 1");
    notes = need(check, node, "notes", LIST, "sentences");
    for (size_t i = 0; notes && i < notes->count; i++)
        if (notes->items[i]->kind != DOCUMENT_TEXT)
            tell(check, notes->items[i], false, "a note is %s; expected a text",
                 document_kind_name(notes->items[i]->kind));
    int r = 0;
    for (size_t p = 0; r == 0 && p < group->part_count; p++) {
        const struct document_node *at = list ? list->items[p] : node;
        need(check, at, "covariance", LIST | NOTHING, "a square of numbers or null");
        check_estimates(check, at, &group->parts[p]);
        check_domain(check, at, &group->parts[p]);
        check_noise(check, at, &group->parts[p]);
        r = check_covariance(check, at, &group->parts[p]);
    }
    check_segments(check, node, group);
    return r;
}

static int check_twins(struct check *check, const struct document_node *groups, struct failure *failure) {
    cleanup(group_names_cleanup) struct group_names *names = NULL;
    int r = group_names_new(check->view, &names, failure);
    for (size_t next = 0, g; r == 0 && (g = group_names_twin(names, &next)) != SIZE_MAX;)
        tell(check, groups->items[g], false, "the group '%.128s' is there twice",
             check->view->groups[g].name);
    return r;
}

/* ---- The whole */

/* The columns that terms and segments use, bound to themselves. */
static int prepare(struct check *check, struct failure *failure) {
    int r = evaluation_columns(check->view, &check->columns, &check->column_count);
    if (r < 0)
        return r;
    if (!evaluation_is_possible(check->view))
        return 0;
    /* What it refuses was told of when the file was read. */
    r = evaluation_new(check->view, check->columns, check->column_count, &check->evaluation, NULL);
    return r == -ENOMEM ? failure_memory(failure) : 0;
}

static int check_all(struct check *check, struct failure *failure) {
    const struct document_node *groups = document_get(check->root, "groups"),
                               *by = need(check, check->root, "by", LIST, "the columns that make groups");
    check_origin(check);
    check_formula(check);
    check_skipped(check);
    int r = 0;
    for (size_t g = 0; r == 0 && !check->stopped && g < check->view->group_count; g++)
        r = check_group(check, groups->items[g], by, &check->view->groups[g]);
    if (r < 0)
        return failure_memory(failure);
    return check->stopped ? 0 : check_twins(check, groups, failure);
}

/* Takes MODEL over, also when it fails. */
static int check_model(struct check *check, struct model *taken, struct model **ret,
                       struct failure *failure) {
    cleanup(model_cleanup) struct model *model = taken;
    check->model = model;
    check->view = model_view(model);
    check->root = model_document(model)->root;
    int r = prepare(check, failure);
    if (r == 0 && !check->stopped)
        r = check_all(check, failure);
    if (r == 0 && check->stopped)
        r = failure_memory(failure); /* nothing else stops a listener */
    if (r == 0)
        *ret = take_pointer(model);
    return r;
}

int model_check(const char *path, model_check_listener listener, void *context, struct model **ret,
                struct failure *failure) {
    cleanup(check_clear) struct check check = {.listener = listener, .context = context};
    struct model *model;
    int r = model_read_doubting(path, hear_doubt, &check, &model, failure);
    return r < 0 ? r : check_model(&check, model, ret, failure);
}

int model_check_parse(const char *name, const char *bytes, size_t length, model_check_listener listener,
                      void *context, struct model **ret, struct failure *failure) {
    cleanup(check_clear) struct check check = {.listener = listener, .context = context};
    struct model *model;
    int r = model_parse_doubting(name, bytes, length, hear_doubt, &check, &model, failure);
    return r < 0 ? r : check_model(&check, model, ret, failure);
}
