#include "engine/fit/alternatives.h"

#include "engine/fit/binding.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/table/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Columns that some alternative needs; `factors` and `texts` are those whose values define a setting. */
struct columns {
    const char **numbers, **categories, **factors, **texts;
    size_t number_count, category_count, factor_count, text_count;
};

static void columns_clear(struct columns *columns) {
    free(columns->numbers), free(columns->categories), free(columns->factors), free(columns->texts);
}

static void add_name(const char ***names, size_t *count, const char *name) {
    if (text_find(name, *names, *count) < *count)
        return;
    *names = xrealloc(*names, (*count + 1) * sizeof **names);
    (*names)[(*count)++] = name;
}

/* ---- The list of alternatives */

/* The choices of the plugin's parameter `noise`; NULL: it has no such parameter, or the user set it. */
static const char *const *noise_choices(const struct library *library, const struct fit_options *options) {
    for (size_t i = 0; i < options->setting_count; i++)
        if (strncmp(options->settings[i], "noise=", strlen("noise=")) == 0)
            return NULL;
    for (const struct plugin_parameter *p = library->fit->parameters; p && p->name; p++)
        if (strcmp(p->name, "noise") == 0 && p->type == PLUGIN_WORD)
            return p->choices;
    return NULL;
}

static void add_item(struct alternatives *ret, const struct library *library, const char *terms,
                     const char *noise, size_t by_count) {
    ret->items = xrealloc(ret->items, (ret->count + 1) * sizeof *ret->items);
    ret->items[ret->count++] =
        (struct alternative){.library = library, .terms = terms, .noise = noise, .by_count = by_count};
}

/* Adds an alternative for each noise that the method offers, homoscedastic and heteroscedastic; one
 * alternative if it offers none. */
static void add_items(struct alternatives *ret, const struct library *library, const char *terms,
                      size_t by_count, const struct fit_options *options) {
    const char *const *noises = noise_choices(library, options);
    size_t before = ret->count;
    for (size_t i = 0; noises && noises[i]; i++)
        if (strcmp(noises[i], "homoscedastic") == 0 || strcmp(noises[i], "heteroscedastic") == 0)
            add_item(ret, library, terms, noises[i], by_count);
    if (ret->count == before)
        add_item(ret, library, terms, NULL, by_count);
}

/* Opens the methods, and lists all combinations of method, terms, noise and number of --by columns in RET.
 * -EINVAL: a method cannot be cross-validated. */
static int list_alternatives(const struct installation *installation,
                             const struct alternatives_request *request, struct alternatives *ret,
                             struct failure *failure) {
    static const char *const named[] = {"M-0", "M-1", "M-2"};
    const char *const *terms = request->term_count ? request->terms : named;
    size_t term_count = request->term_count ? request->term_count : sizeof named / sizeof *named;
    ret->libraries = xcalloc(request->method_count + 1, sizeof *ret->libraries);
    for (; ret->library_count < request->method_count; ret->library_count++) {
        struct library **library = &ret->libraries[ret->library_count];
        int r = library_open(installation, "fit", request->methods[ret->library_count], library, failure);
        if (r < 0)
            return r;
        if ((*library)->fit->needs_all_rows)
            return failure_input(failure, NULL, 0, 0,
                                 "'%s' cannot be cross-validated: its result depends on all rows",
                                 (*library)->plugin->name);
    }
    for (size_t by = 0; by <= request->options->by_count; by++)
        for (size_t m = 0; m < ret->library_count; m++)
            for (size_t t = 0; t < (ret->libraries[m]->fit->takes_terms ? term_count : 1); t++)
                add_items(ret, ret->libraries[m], ret->libraries[m]->fit->takes_terms ? terms[t] : NULL, by,
                          request->options);
    return 0;
}

/* The options for fitting ITEM: those of the user, with ITEM's terms and groups. --sizes are cut to the
 * number of columns that its method has. */
static struct fit_options options_of(const struct alternative *item, const struct fit_options *options) {
    struct fit_options own = *options;
    size_t sizes = 0;
    own.terms = item->terms;
    own.by_count = item->by_count;
    for (const struct plugin_parameter *p = item->library->fit->parameters; p && p->name; p++)
        sizes += parameters_is_column(p);
    if (!item->library->fit->takes_terms && own.size_count > sizes)
        own.size_count = sizes;
    return own;
}

/* ---- The table */

/* Adds the columns that ITEM needs to COLUMNS. The names belong to the table or the options. */
static int add_columns(struct columns *columns, const struct alternative *item, struct table *table,
                       const struct fit_options *options, struct failure *failure) {
    cleanup(fit_binding_clear) struct fit_binding binding;
    struct fit_options own = options_of(item, options);
    int r = fit_binding_bind(&binding, item->library, table, &own, failure);
    for (size_t i = 0; r == 0 && i < binding.number_count; i++) {
        const struct column *column = table_find(table, binding.numbers[i]);
        bool is_factor = i != binding.layout.response && i != binding.layout.weights;
        add_name(&columns->numbers, &columns->number_count, column ? column->name : binding.numbers[i]);
        if (is_factor)
            add_name(&columns->factors, &columns->factor_count, column->name);
    }
    for (size_t j = 0; r == 0 && j < binding.category_count; j++) {
        const char *name = table_find(table, binding.categories[j])->name;
        bool is_factor =
            text_find(name, options->by, options->by_count) == options->by_count &&
            text_find(name, options->fold_columns, options->fold_column_count) == options->fold_column_count;
        add_name(&columns->categories, &columns->category_count, name);
        if (is_factor)
            add_name(&columns->texts, &columns->text_count, name);
    }
    return r;
}

static const double *find_numbers(const struct table *table, const char *name) {
    for (size_t i = 0; name && i < table->number_count; i++)
        if (strcmp(table->numbers[i].name, name) == 0)
            return table->numbers[i].values;
    return NULL;
}

/* Numbers the setting of each row in UNITS: by row, by the user's fold columns, or by all factors. Returns
 * the number of settings. */
static size_t find_settings(const struct table *table, const struct columns *columns,
                            const struct fit_options *options, uint32_t *units) {
    bool by_columns = options->folds_by == FIT_FOLDS_BY_COLUMNS;
    const char *const *texts = by_columns ? options->fold_columns : columns->texts;
    struct folds_columns of = {0};
    cleanup_free const double **numbers = xcalloc(columns->factor_count + 1, sizeof *numbers);
    cleanup_free const uint32_t **codes = xcalloc(table->category_count + 1, sizeof *codes);
    of.numbers = numbers, of.codes = codes;
    if (options->folds_by == FIT_FOLDS_BY_ROW)
        return folds_units(&of, table->rows, units);
    for (size_t i = 0; !by_columns && i < columns->factor_count; i++)
        numbers[of.number_count++] = find_numbers(table, columns->factors[i]);
    for (size_t j = 0; j < (by_columns ? options->fold_column_count : columns->text_count); j++)
        for (size_t k = 0; k < table->category_count; k++)
            if (strcmp(table->categories[k].name, texts[j]) == 0)
                codes[of.code_count++] = table->categories[k].codes;
    return folds_units(&of, table->rows, units);
}

/* ---- One alternative */

/* Whether an earlier alternative has the same method, groups, formula and noise, as M-2 over one size is
 * M-1. */
static bool is_repeated(const struct alternatives *alternatives, size_t at) {
    const struct alternative *one = &alternatives->items[at];
    const struct contender *of_one = &alternatives->contenders[at];
    for (size_t i = 0; i < at; i++) {
        const struct alternative *other = &alternatives->items[i];
        const struct contender *of_other = &alternatives->contenders[i];
        if (other->library == one->library && other->by_count == one->by_count && of_other->formula &&
            strcmp(of_other->formula, of_one->formula) == 0 && of_other->noise == of_one->noise &&
            of_other->noise_parameters == of_one->noise_parameters)
            return true;
    }
    return false;
}

/* Fits alternative AT and keeps the predictions of its held-out rows, in the table's unit. An alternative
 * that cannot be fitted gets a reason, and 0 is returned; negative for other failures. */
static int fit_alternative(struct alternatives *ret, size_t at, struct table *table,
                           const struct fit_options *options, struct failure *failure) {
    struct alternative *item = &ret->items[at];
    struct contender *contender = &ret->contenders[at];
    cleanup(fit_cleanup) struct fit *fit = NULL;
    cleanup_free char *noise = item->noise ? xformat("noise=%s", item->noise) : NULL;
    cleanup_free const char **settings = xcalloc(options->setting_count + 1, sizeof *settings);
    cleanup_free struct score_row *held_out = xcalloc(table->rows + 1, sizeof *held_out);
    const struct column *response = table_find(table, options->response);
    struct fit_options own = options_of(item, options);
    struct failure why = {0};
    for (size_t i = 0; i < options->setting_count; i++)
        settings[i] = options->settings[i];
    settings[own.setting_count] = noise;
    own.setting_count += noise != NULL;
    own.settings = settings;
    own.held_out = held_out;
    for (size_t row = 0; row < table->rows; row++)
        held_out[row].mean = NAN;
    int r = fit_run(item->library, table, &own, &fit, &why);
    if (r < 0) {
        *failure = why;
        item->reason = xstrdup(why.text);
        return why.kind == FAILURE_INPUT ? 0 : r;
    }
    const struct model *model = fit->model;
    if (model->skipped_count > 0)
        item->reason = xformat("%zu of %zu groups cannot be fitted: %s", model->skipped_count,
                               model->skipped_count + model->group_count, model->skipped[0].reason);
    contender_describe(contender, model);
    item->is_repeated = is_repeated(ret, at);
    if (item->is_repeated)
        return 0;
    contender->predicted = take_pointer(held_out);
    contender_convert(contender, table->rows, model->response_unit, response ? response->unit : NULL);
    return 0;
}

/* ---- All alternatives */

/* Loads the table once, makes folds, fits all alternatives on the same folds, and compares them
 * (alternatives.h). */
int alternatives_make(const struct installation *installation, struct table *table,
                      const struct alternatives_request *request, struct alternatives *ret,
                      struct failure *failure) {
    cleanup(columns_clear) struct columns columns = {0};
    struct fit_options options = *request->options;
    *ret = (struct alternatives){0};
    int r = list_alternatives(installation, request, ret, failure);
    for (size_t i = 0; r == 0 && i < ret->count; i++)
        if (ret->items[i].by_count == options.by_count)
            r = add_columns(&columns, &ret->items[i], table, &options, failure);
    r = r < 0 ? r
              : table_load(table,
                           &(struct table_selection){.numbers = columns.numbers,
                                                     .number_count = columns.number_count,
                                                     .categories = columns.categories,
                                                     .category_count = columns.category_count,
                                                     .where = options.where,
                                                     .with_flagged = options.with_flagged},
                           failure);
    if (r < 0)
        return r;
    if (table->rows > ALTERNATIVES_ROWS_MAX / ret->count)
        return failure_input(failure, NULL, 0, 0,
                             "%zu rows times %zu alternatives; expected at most %zu in all: choose "
                             "fewer rows with --where, or fewer alternatives",
                             table->rows, ret->count, ALTERNATIVES_ROWS_MAX);
    cleanup_free uint32_t *settings = xcalloc(table->rows + 1, sizeof *settings);
    cleanup_free uint8_t *folds = xcalloc(table->rows + 1, 1);
    ret->settings = find_settings(table, &columns, &options, settings);
    ret->folds = folds_deal(settings, ret->settings, table->rows, options.folds, options.seed, folds);
    if (ret->folds < 2)
        return failure_input(failure, NULL, 0, 0,
                             "%zu setting%s in %zu rows; expected at least two: cross-validation "
                             "fits to the other settings to predict one setting",
                             ret->settings, ret->settings == 1 ? "" : "s", table->rows);
    options.folds = ret->folds;
    options.row_folds = folds;
    options.progress = NULL;
    ret->contenders = xcalloc(ret->count + 1, sizeof *ret->contenders);
    for (size_t i = 0; r == 0 && i < ret->count; i++) {
        if (request->options->progress)
            request->options->progress(request->options->progress_context, "alternatives", i, ret->count);
        r = fit_alternative(ret, i, table, &options, failure);
    }
    const struct score_rows rows = {.count = table->rows,
                                    .response = find_numbers(table, options.response),
                                    .weights = find_numbers(table, options.weights),
                                    .settings = settings};
    if (r == 0)
        choice_make(ret->contenders, ret->count, &rows, &ret->choice);
    return r;
}

void alternatives_clear(struct alternatives *alternatives) {
    for (size_t i = 0; i < alternatives->count; i++) {
        free(alternatives->items[i].reason);
        if (alternatives->contenders)
            contender_clear(&alternatives->contenders[i]);
    }
    for (size_t i = 0; i < alternatives->library_count; i++)
        library_close(alternatives->libraries[i]);
    free(alternatives->items), free(alternatives->contenders), free(alternatives->libraries);
    *alternatives = (struct alternatives){0};
}

/* ---- The report */

static char *by_label(const struct fit_options *options, size_t count) {
    char *label = xstrdup(count > 0 ? options->by[0] : "");
    for (size_t j = 1; j < count; j++) {
        cleanup_free char *before = label;
        label = xformat("%s,%s", before, options->by[j]);
    }
    return label;
}

/* Adds the comparison of the alternatives to ROOT, with a note for each that was not compared. */
void alternatives_report(struct report_section *root, const struct alternatives *alternatives,
                         const struct table *table, const struct fit_options *options) {
    static const char *const units[] = {
        [FIT_FOLDS_BY_SETTING] = "settings", [FIT_FOLDS_BY_ROW] = "rows", [FIT_FOLDS_BY_COLUMNS] = "columns"};
    static const struct column columns[] = {{.name = "method"}, {.name = "terms"}, {.name = "by"}};
    enum { LABELS = sizeof columns / sizeof *columns };
    size_t count = alternatives->count;
    cleanup_free char **by = xcalloc(count + 1, sizeof *by);
    cleanup_free const char **labels = xcalloc(count * LABELS + 1, sizeof *labels);
    const struct column *response = table_find(table, options->response);
    for (size_t i = 0; i < table->note_count; i++)
        report_note(root, REPORT_NOTE, "%s", table->notes[i]);
    report_text(root, "response", NULL, options->response, false);
    report_number(root, "rows", "rows compared", (double)alternatives->choice.rows, NULL, 0, false);
    report_number(root, "rows_beyond", "rows left out, as some model cannot predict them",
                  (double)alternatives->choice.rows_beyond, NULL, 0, alternatives->choice.rows_beyond == 0);
    report_number(root, "folds", NULL, (double)alternatives->folds, NULL, 0, false);
    report_text(root, "folds_by", "rows in one fold share", units[options->folds_by], false);
    report_number(root, "settings", NULL, (double)alternatives->settings, NULL, 0, false);
    for (size_t i = 0; i < count; i++) {
        const struct alternative *item = &alternatives->items[i];
        by[i] = item->by_count > 0 ? by_label(options, item->by_count) : xstrdup("(pooled)");
        labels[i * LABELS] = item->is_repeated ? NULL : item->library->plugin->name;
        labels[i * LABELS + 1] = item->terms ? item->terms : "";
        labels[i * LABELS + 2] = by[i];
    }
    choice_report(root, columns, labels, LABELS, alternatives->contenders, count, &alternatives->choice,
                  response ? response->unit : NULL);
    size_t sufficient = alternatives->choice.sufficient;
    if (sufficient != SIZE_MAX && alternatives->contenders[sufficient].grade == REPORT_NOT_USABLE)
        report_note(root, REPORT_WARNING, "* is %s", alternatives->contenders[sufficient].verdict);
    for (size_t i = 0; i < count; i++) {
        const struct alternative *item = &alternatives->items[i];
        bool is_compared = alternatives->contenders[i].is_compared;
        if (!item->is_repeated && (item->reason || !is_compared))
            report_note(root, REPORT_NOTE, "%s %s by %s: %s%s", labels[i * LABELS], labels[i * LABELS + 1],
                        by[i], is_compared ? "" : "not compared: ",
                        item->reason ? item->reason
                                     : "some groups have too few rows to be fitted when a fold is left out");
        free(by[i]);
    }
}
