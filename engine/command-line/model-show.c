/* assay model show: a model file for people, or its summary as JSON. */
#include "engine/command-line/model-command.h"

#include "engine/command-line/model-curve.h"
#include "engine/command-line/part-print.h"
#include "engine/command-line/shown.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    DETAILED_GROUPS = 6, /* that many are shown one by one */
    INPUTS_SHOWN = 5,
    SKIPPED_SHOWN = 5,
    NAME_WIDTH_MAX = 40,
    JSON_BYTES_MAX = 1 << 28,
};

struct show {
    const struct model *model;
    const struct predict_model *view;
    const struct document_node *root;
    const char **by; /* owned */
    size_t by_count;
    int width; /* of the longest term's name */
};

static void show_clear(struct show *show) {
    free(show->by);
}

static const char *text_at(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->text && value->kind != DOCUMENT_NULL ? value->text : NULL;
}

static size_t count_at(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind == DOCUMENT_SEQUENCE ? value->count : 0;
}

/* Kinds whose terms do not add up. */
static const struct {
    const char *kind, *phrase;
} joinings[] = {{"maximum", "the greatest of"},
                {"minimum", "the least of"},
                {"harmonic", "the reciprocal of the sum of the reciprocals of"}};

/* "duration (s) = a + b m*n*k, by node, core" */
static void print_formula(const struct show *show) {
    char unit[64];
    const struct predict_model *view = show->view;
    printf("%s: %s model of %s", shown(view->name).text, shown(view->kind).text, shown(view->response).text);
    printf("%s%s%s\n", view->response_unit ? " in" : "", model_unit_text(view->response_unit, unit),
           view->response_unit && strcmp(view->response_unit, "1") == 0 ? " 1" : "");
    bool sum = true;
    printf("%-10s %s = ", "formula", shown(view->response).text);
    for (size_t i = 0; i < sizeof joinings / sizeof *joinings; i++)
        if (strcmp(view->kind, joinings[i].kind) == 0) {
            printf("%s ", joinings[i].phrase);
            sum = false;
        }
    for (size_t t = 0; t < view->term_count; t++)
        printf("%sc%zu%s%s", t ? sum ? " + " : ", " : "", t + 1,
               strcmp(view->terms[t].name, "1") == 0 ? "" : " ",
               strcmp(view->terms[t].name, "1") == 0 ? "" : shown(view->terms[t].name).text);
    if (view->over)
        printf("; on segments of %s", shown(view->over).text);
    if (view->named_by)
        printf("; parts by %s", shown(view->named_by).text);
    for (size_t j = 0; j < show->by_count; j++)
        printf("%s%s", j ? ", " : "; by ", shown(show->by[j]).text);
    if (text_at(show->root, "weights"))
        printf("; weights %s", shown(text_at(show->root, "weights")).text);
    printf("\n");
}

static void print_settings(const struct document_node *origin) {
    const struct document_node *settings = document_get(origin, "settings");
    if (text_at(origin, "seed"))
        printf("; seed %s", shown(text_at(origin, "seed")).text);
    if (text_at(origin, "folds_by"))
        printf("; folds by %s", shown(text_at(origin, "folds_by")).text);
    size_t columns = count_at(origin, "folds_columns");
    for (size_t i = 0; i < columns; i++) {
        const struct document_node *column = document_get(origin, "folds_columns")->items[i];
        printf("%s%s%s", i ? ", " : " (", column->text ? shown(column->text).text : "?",
               i + 1 == columns ? ")" : "");
    }
    for (size_t i = 0; settings && settings->kind == DOCUMENT_MAPPING && i < settings->count; i++)
        if (settings->items[i]->kind != DOCUMENT_NULL) /* not set */
            printf("; %s %s", shown(settings->keys[i]->text).text,
                   settings->items[i]->text ? shown(settings->items[i]->text).text : "-");
    printf("\n");
}

static void print_origin(const struct show *show) {
    const struct document_node *origin = document_get(show->root, "origin"),
                               *inputs = document_get(origin, "inputs");
    if (!text_at(origin, "plugin")) {
        printf("%-10s not told\n", "origin");
        return;
    }
    printf("%-10s %s", "origin", shown(text_at(origin, "plugin")).text);
    printf(" %s", text_at(origin, "version") ? shown(text_at(origin, "version")).text : "");
    if (text_at(origin, "created"))
        printf(" on %s", shown(text_at(origin, "created")).text);
    if (text_at(origin, "rows"))
        printf("; %s row%s", shown(text_at(origin, "rows")).text,
               strcmp(text_at(origin, "rows"), "1") == 0 ? "" : "s");
    print_settings(origin);
    size_t count = count_at(origin, "inputs");
    for (size_t i = 0; i < count && i < INPUTS_SHOWN; i++) {
        const struct document_node *input = inputs->items[i];
        printf("%-10s %s", i ? "" : "inputs",
               text_at(input, "file") ? shown(text_at(input, "file")).text : "?");
        if (text_at(input, "experiment"))
            printf(", of %s", shown(text_at(input, "experiment")).text);
        if (text_at(input, "run_id"))
            printf(", run %s", shown(text_at(input, "run_id")).text);
        if (text_at(input, "sha256"))
            printf(", sha256 %.12s...", shown(text_at(input, "sha256")).text);
        printf("\n");
    }
    if (count > INPUTS_SHOWN)
        printf("%-10s and %zu more\n", "", count - INPUTS_SHOWN);
}

/* ---- A group */

static void print_domain(const struct show *show, const struct predict_part *part) {
    char unit[64];
    for (size_t i = 0; i < part->domain_count; i++) {
        const struct plugin_range *range = &part->domain[i];
        printf("%s%s %.6g to %.6g%s", i ? ", " : "  valid for ", shown(range->name).text, range->minimum,
               range->maximum, model_unit_text(model_unit(show->model, range->name), unit));
    }
    printf("%s", part->domain_count ? "\n" : "");
}

static void print_noise(const struct show *show, const struct predict_part *part) {
    const struct plugin_noise *noise = part->noise;
    char unit[64];
    model_unit_text(show->view->response_unit, unit);
    if (!noise) {
        printf("  noise: none is told\n");
        return;
    }
    printf("  noise %s, %s%s%s: ", noise->kind, noise->distribution, noise->method ? ", by " : "",
           noise->method ? shown(noise->method).text : "");
    for (size_t i = 0; i < noise->component_count; i++)
        printf("%s%.3g%% at %+.4g, sigma %.4g", i ? "; " : "", noise->components[i].weight * 100,
               noise->components[i].mean, noise->components[i].sigma);
    if (!noise->components)
        printf("sigma = %.6g", noise->constant);
    for (size_t t = 0; noise->coefficients && t < show->view->term_count; t++)
        if (noise->coefficients[t] != 0)
            printf(" %c %.6g %s", noise->coefficients[t] < 0 ? '-' : '+', fabs(noise->coefficients[t]),
                   shown(show->view->terms[t].name).text);
    printf("%s\n", unit);
}

static void print_values(const struct predict_part *part) {
    bool any = false;
    for (size_t i = 0; i < part->value_count; i++) {
        if (isnan(part->values[i].value) || part_is_own(part, i))
            continue;
        printf("%s%s %.6g", any ? ", " : "  ", shown(part->values[i].name).text, part->values[i].value);
        any = true;
    }
    printf("%s", any ? "\n" : "");
}

/* The estimates of a group of one part, with what the file has beside them. */
static void print_estimates(const struct show *show, const struct document_node *node,
                            const struct predict_part *part) {
    static const char *const keys[] = {"standard_error", "t", "p"};
    const struct document_node *terms = document_get(node, "terms");
    printf("  %-*s %14s %14s %10s %10s  unit\n", show->width, "term", "estimate", "standard error", "t", "p");
    for (size_t t = 0; t < show->view->term_count; t++) {
        printf("  %-*s", show->width, shown(show->view->terms[t].name).text);
        if (part->dropped && part->dropped[t]) {
            printf(" %14s\n", "left out");
            continue;
        }
        model_print_number(stdout, 15, 7, part->estimates[t]);
        for (size_t k = 0; k < 3; k++) {
            const char *text = text_at(terms->items[t], keys[k]);
            double number = text ? strtod(text, NULL) : NAN;
            if (k == 2 && number == 0) /* too small for a double, not zero */
                printf("%11s", "<1e-300");
            else
                model_print_number(stdout, k ? 11 : 15, k ? 3 : 4, number);
        }
        const char *unit = text_at(terms->items[t], "unit");
        printf("  %s\n", unit ? shown(unit).text : "-");
    }
}

/* The standard errors that the file has beside the estimates of NODE, a part. */
static void read_errors(const struct show *show, const struct document_node *node, double *errors) {
    const struct document_node *terms = document_get(node, "terms");
    for (size_t t = 0; t < show->view->term_count; t++) {
        const char *text = text_at(terms->items[t], "standard_error");
        errors[t] = text ? strtod(text, NULL) : NAN;
    }
}

/* Of the group, as NODE has it: its parts as tables, or of one part what the method has standard errors of.
 */
static int print_parts(const struct show *show, const struct predict_group *group,
                       const struct document_node *node) {
    const struct document_node *formula = document_get(show->root, "formula"),
                               *parts = document_get(node, "parts");
    const struct predict_model *view = show->view;
    size_t terms = view->term_count, count = group->part_count;
    cleanup_free const char **names = xcalloc(2 * terms + 1, sizeof *names);
    cleanup_free struct told_part *told = xcalloc(count, sizeof *told);
    cleanup_free double *errors = xcalloc(count * terms + 1, sizeof *errors);
    for (size_t t = 0; t < terms; t++) {
        names[t] = view->terms[t].name;
        names[terms + t] = text_at(formula->items[t], "unit");
    }
    for (size_t i = 0; i < count; i++) {
        read_errors(show, parts ? parts->items[i] : node, errors + i * terms);
        told[i] = (struct told_part){group->parts[i], errors + i * terms};
    }
    const struct part_heads heads = {
        .plugin = text_at(document_get(show->root, "origin"), "plugin"),
        .names = names,
        .units = names + terms,
        .term_count = terms,
        .response_unit = view->response_unit,
        .over = view->over,
        .over_unit = view->over ? model_unit(show->model, view->over) : NULL,
        .width = show->width,
    };
    if (!parts)
        part_print_own(stdout, &heads, group->parts);
    else if (strcmp(view->kind, "population") == 0)
        part_print_population(stdout, &heads, told, count);
    else
        part_print_tables(stdout, &heads, told, count);
    return 0;
}

/* "node dahu-3, core 7" */
static void print_group_name(const struct show *show, size_t g) {
    printf("%s", show->by_count ? "" : "all rows");
    for (size_t j = 0; j < show->by_count; j++)
        printf("%s%s %s", j ? ", " : "", shown(show->by[j]).text,
               shown(model_label(show->model, g, show->by[j])).text);
}

static int print_group(const struct show *show, size_t g, struct failure *failure) {
    const struct predict_group *group = &show->view->groups[g];
    const struct document_node *node = document_get(show->root, "groups")->items[g],
                               *notes = document_get(node, "notes");
    printf("\n");
    print_group_name(show, g);
    printf(": %llu row%s\n", (unsigned long long)group->rows, group->rows == 1 ? "" : "s");
    int r = 0;
    if (document_get(node, "parts")) {
        r = print_parts(show, group, node);
        r = r < 0 ? r : model_curve_print(show->view, g, stdout, failure);
    } else {
        print_estimates(show, node, group->parts);
        r = print_parts(show, group, node);
        print_values(group->parts);
        print_noise(show, group->parts);
        print_domain(show, group->parts);
    }
    for (size_t i = 0; notes && notes->kind == DOCUMENT_SEQUENCE && i < notes->count; i++)
        printf("  note: %s\n", notes->items[i]->text ? shown(notes->items[i]->text).text : "");
    return r;
}

/* ---- Many groups */

struct spread {
    double minimum, median, maximum;
    size_t count; /* of those that are defined */
};

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Whether the part is of the kind of its group's first one: of a population the days are not, and what they
 * tell does not compare. */
static bool is_first_kind(const struct predict_group *group, size_t p) {
    return strcmp(group->parts[p].kind, group->parts[0].kind) == 0;
}

/* Of what TAKE gives for the parts of the first one's kind; parts that give NaN do not count. VALUES has room
 * for one a part. */
static struct spread spread_of(const struct predict_model *view,
                               double (*take)(const struct predict_part *part, const void *what),
                               const void *what, double *values) {
    size_t count = 0;
    for (size_t g = 0; g < view->group_count; g++)
        for (size_t p = 0; p < view->groups[g].part_count; p++) {
            double value = is_first_kind(&view->groups[g], p) ? take(&view->groups[g].parts[p], what) : NAN;
            if (!isnan(value))
                values[count++] = value;
        }
    if (count == 0)
        return (struct spread){NAN, NAN, NAN, 0};
    qsort(values, count, sizeof *values, compare_doubles);
    return (struct spread){values[0], 0.5 * (values[(count - 1) / 2] + values[count / 2]), values[count - 1],
                           count};
}

static double take_estimate(const struct predict_part *part, const void *what) {
    size_t t = *(const size_t *)what;
    return part->dropped && part->dropped[t] ? NAN : part->estimates[t];
}

static double take_error(const struct predict_part *part, const void *what) {
    const size_t *at = what; /* the term, and how many there are */
    return part->covariance && !(part->dropped && part->dropped[at[0]])
               ? sqrt(part->covariance[at[0] * (at[1] + 1)])
               : NAN;
}

static double take_value(const struct predict_part *part, const void *what) {
    return model_part_value(part, what);
}

static double take_constant(const struct predict_part *part, const void *what) {
    (void)what;
    return part->noise && !part->noise->components ? part->noise->constant : NAN;
}

static size_t parts_of(const struct predict_group *group) {
    size_t count = 0;
    for (size_t p = 0; p < group->part_count; p++)
        count += is_first_kind(group, p);
    return count;
}

static size_t part_count(const struct predict_model *view) {
    size_t count = 0;
    for (size_t g = 0; g < view->group_count; g++)
        count += parts_of(&view->groups[g]);
    return count;
}

static void print_spread(const struct show *show, const char *name, struct spread spread, double error) {
    printf("  %-*s", show->width, shown(name).text);
    model_print_number(stdout, 15, 7, spread.minimum);
    model_print_number(stdout, 15, 7, spread.median);
    model_print_number(stdout, 15, 7, spread.maximum);
    model_print_number(stdout, 15, 4, error);
}

/* Where any group was observed, by the ranges of the first part: all have the same. */
static void print_all_domains(const struct show *show) {
    const struct predict_part *first = show->view->groups[0].parts;
    char unit[64];
    for (size_t i = 0; i < first->domain_count; i++) {
        struct plugin_range all = first->domain[i];
        for (size_t g = 0; g < show->view->group_count; g++)
            for (size_t p = 0; p < show->view->groups[g].part_count; p++) {
                const struct predict_part *part = &show->view->groups[g].parts[p];
                if (i >= part->domain_count || strcmp(part->domain[i].name, all.name) != 0)
                    continue;
                all.minimum = fmin(all.minimum, part->domain[i].minimum);
                all.maximum = fmax(all.maximum, part->domain[i].maximum);
            }
        printf("%s%s %.6g to %.6g%s", i ? ", " : "  valid, in all, for ", shown(all.name).text, all.minimum,
               all.maximum, model_unit_text(model_unit(show->model, all.name), unit));
    }
    printf("%s", first->domain_count ? "\n" : "");
}

/* How many segments there are. */
static void print_part_counts(const struct show *show) {
    size_t least = SIZE_MAX, most = 0;
    for (size_t g = 0; g < show->view->group_count; g++) {
        size_t count = parts_of(&show->view->groups[g]);
        least = count < least ? count : least;
        most = count > most ? count : most;
    }
    if (most > 1)
        printf("  %zu to %zu parts a group, %zu in all; each counts as one below\n", least, most,
               part_count(show->view));
}

/* The values that the first part has: all have the same. */
static int print_spreads(const struct show *show) {
    const struct predict_model *view = show->view;
    cleanup_free double *values = xcalloc(part_count(view) + 1, sizeof *values);
    const struct document_node *formula = document_get(show->root, "formula");
    printf("\n  %-*s %14s %14s %14s %14s  unit\n", show->width, "term", "minimum", "median", "maximum",
           "median error");
    for (size_t t = 0; t < view->term_count; t++) {
        const size_t at[] = {t, view->term_count};
        /* The covariance of a population is how machines differ. */
        bool errors = strcmp(view->kind, "population") != 0;
        double error = errors ? spread_of(view, take_error, at, values).median : NAN;
        print_spread(show, view->terms[t].name, spread_of(view, take_estimate, at, values), error);
        const char *unit = text_at(formula->items[t], "unit");
        printf("  %s\n", unit ? shown(unit).text : "-");
    }
    struct spread constant = spread_of(view, take_constant, NULL, values);
    if (constant.count) {
        print_spread(show, "noise", constant, NAN);
        printf("  %s\n", view->response_unit ? shown(view->response_unit).text : "-");
    }
    const struct predict_part *first = view->groups[0].parts;
    for (size_t i = 0; i < first->value_count; i++) {
        print_spread(show, first->values[i].name, spread_of(view, take_value, first->values[i].name, values),
                     NAN);
        printf("\n");
    }
    return 0;
}

static int print_many(const struct show *show) {
    printf("\n");
    print_part_counts(show);
    int r = print_spreads(show);
    if (r == 0)
        print_all_domains(show);
    printf("\n'--group NAME' shows one of them, such as %s\n", shown(show->view->groups[0].name).text);
    return r;
}

static void print_skipped(const struct show *show) {
    const struct document_node *skipped = document_get(show->root, "skipped");
    size_t count = count_at(show->root, "skipped");
    for (size_t i = 0; i < count && i < SKIPPED_SHOWN; i++) {
        const struct document_node *labels = document_get(skipped->items[i], "labels");
        const char *reason = text_at(skipped->items[i], "reason");
        printf("%s", i ? "  " : "\nnot fitted:\n  ");
        for (size_t j = 0; labels && labels->kind == DOCUMENT_MAPPING && j < labels->count; j++)
            printf("%s%s", j ? "/" : "", labels->items[j]->text ? shown(labels->items[j]->text).text : "");
        printf("%s%s\n", labels && labels->count ? ": " : "", reason ? shown(reason).text : "no reason");
    }
    if (count > SKIPPED_SHOWN)
        printf("  and %zu more\n", count - SKIPPED_SHOWN);
}

/* ---- JSON */

static bool add_spread(cJSON *parent, const char *name, const char *unit, struct spread spread) {
    cJSON *object = json_add_object(parent, NULL);
    return object && json_add_string(object, "name", name) && json_add_string(object, "unit", unit) &&
           json_add_double(object, "minimum", spread.minimum) &&
           json_add_double(object, "median", spread.median) &&
           json_add_double(object, "maximum", spread.maximum);
}

static bool add_member(cJSON *object, const char *key, const struct document_node *node) {
    cJSON *value = node ? json_from_node(node) : cJSON_CreateNull();
    return value && cJSON_AddItemToObject(object, key, value);
}

static bool add_spreads(const struct show *show, cJSON *object, double *values) {
    const struct predict_model *view = show->view;
    const struct document_node *formula = document_get(show->root, "formula");
    cJSON *terms = json_add_array(object, "terms"), *others = json_add_array(object, "values");
    bool good = terms && others;
    for (size_t t = 0; good && t < view->term_count; t++) {
        const size_t at[] = {t, view->term_count};
        good = add_spread(terms, view->terms[t].name, text_at(formula->items[t], "unit"),
                          spread_of(view, take_estimate, at, values));
    }
    const struct predict_part *first = view->groups[0].parts;
    for (size_t i = 0; good && i < first->value_count; i++)
        good = add_spread(others, first->values[i].name, NULL,
                          spread_of(view, take_value, first->values[i].name, values));
    return good;
}

/* The head as it is in the file, and a group or how all of them spread. */
static int print_json(const struct show *show, const char *group, size_t g, struct failure *failure) {
    static const char *const heads[] = {"kind",    "over", "named_by", "response", "formula",
                                        "factors", "hull", "weights",  "by",       "origin"};
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cleanup_free double *values = calloc(part_count(show->view) + 1, sizeof *values);
    if (!object || !values)
        return failure_memory(failure);
    bool good = json_add_string(object, "file", show->view->name) &&
                json_add_uint64(object, "group_count", show->view->group_count) &&
                json_add_uint64(object, "skipped_count", model_skipped_count(show->model));
    for (size_t i = 0; good && i < sizeof heads / sizeof *heads; i++)
        good = add_member(object, heads[i], document_get(show->root, heads[i]));
    good = good && (group ? add_member(object, "group", document_get(show->root, "groups")->items[g])
                          : add_spreads(show, object, values));
    cleanup(text_clear) struct text text;
    text_init(&text, JSON_BYTES_MAX);
    int r = good ? json_print(object, true, &text) : -ENOMEM;
    if (r == -EFBIG)
        return failure_set(failure, r, "the summary is larger than %d bytes", (int)JSON_BYTES_MAX);
    if (r < 0)
        return failure_memory(failure);
    printf("%s\n", text.bytes);
    return 0;
}

/* ---- The action */

static int print_text(const struct show *show, const char *group, size_t g, struct failure *failure) {
    const struct predict_model *view = show->view;
    print_formula(show);
    print_origin(show);
    printf("%-10s %zu%s\n", "groups", view->group_count,
           view->hull ? "; rows outside of what all of them saw together are told" : "");
    int r = 0;
    if (group)
        return print_group(show, g, failure);
    if (view->group_count > DETAILED_GROUPS)
        r = print_many(show);
    for (size_t i = 0; r == 0 && view->group_count <= DETAILED_GROUPS && i < view->group_count; i++)
        r = print_group(show, i, failure);
    print_skipped(show);
    return r;
}

int model_command_show(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    cleanup(show_clear) struct show show = {.width = 4};
    const char *group = verb_value(arguments, "--group");
    size_t g = 0;
    int r = model_read(arguments->operands[0], &model, failure);
    r = r < 0 || !group ? r : model_find_group(model, group, &g, failure);
    r = r < 0 ? r : model_labels(model, &show.by, &show.by_count);
    if (r < 0)
        return r;
    show.model = model;
    show.view = model_view(model);
    show.root = model_document(model)->root;
    for (size_t t = 0; t < show.view->term_count; t++) {
        int width = (int)strlen(shown(show.view->terms[t].name).text);
        show.width = width > show.width ? width : show.width;
    }
    show.width = show.width > NAME_WIDTH_MAX ? NAME_WIDTH_MAX : show.width;
    return verb_switch(arguments, "--json") ? print_json(&show, group, g, failure)
                                            : print_text(&show, group, g, failure);
}
