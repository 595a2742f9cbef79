#include "engine/fit/request.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- What is read of the table */

static size_t add_name(const char ***names, size_t *count, const char *name) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*names)[i], name) == 0)
            return i;
    *names = xrealloc(*names, (*count + 1) * sizeof **names);
    (*names)[*count] = name;
    return (*count)++;
}

static size_t add_number(struct request *request, const char *name) {
    return add_name(&request->numbers, &request->number_count, name);
}

static size_t add_category(struct request *request, const char *name) {
    return add_name(&request->categories, &request->category_count, name);
}

static void add_index(const size_t **list, size_t *count, size_t index) {
    size_t *longer = xrealloc((size_t *)*list, (*count + 1) * sizeof *longer);
    longer[(*count)++] = index;
    *list = longer;
}

/* ---- Columns that the plugin's parameters name */

/* The first of the parameter's usual names that the table has (of a list all of them, with commas between);
 * else the only column that is in its unit. NULL: there is none. The caller frees. */
static char *find_usual(const struct request *request, const struct plugin_parameter *parameter) {
    const struct table *table = request->table;
    bool is_list = parameter->type == PLUGIN_COLUMNS || parameter->type == PLUGIN_CATEGORIES;
    const char *found = NULL;
    char *names = NULL;
    for (size_t i = 0; parameter->words && parameter->words[i] && (is_list || !names); i++)
        if (table_find(table, parameter->words[i])) {
            char *longer = xformat("%s%s%s", names ? names : "", names ? "," : "", parameter->words[i]);
            free(names);
            names = longer;
        }
    for (size_t i = 0;
         !names && parameter->unit && !parameters_is_category(parameter) && i < table->column_count; i++) {
        double multiply, divide;
        const struct column *column = &table->columns[i];
        if (!column->unit || strcmp(column->name, request->options->response) == 0 ||
            !unit_conversion(column->unit, parameter->unit, &multiply, &divide))
            continue;
        if (found)
            return NULL;
        found = column->name;
    }
    return names ? names : found ? xstrdup(found) : NULL;
}

static int refuse_missing(const struct plugin_parameter *parameter, struct failure *failure) {
    return failure_input(failure, NULL, 0, 0,
                         "which column is the %s (%s)? there is none of its usual names; say it with --set "
                         "%s=COLUMN",
                         parameter->name, parameter->help, parameter->name);
}

/* --sizes name the parameters that are columns, in their order. */
static int take_sizes(struct request *request, struct failure *failure) {
    const struct fit_options *options = request->options;
    struct parameters *parameters = &request->parameters;
    size_t size = 0;
    if (request->library->fit->takes_terms)
        return 0;
    for (size_t i = 0; i < parameters->count && size < options->size_count; i++) {
        const struct plugin_parameter *parameter = &parameters->table[i];
        if (!parameters_is_column(parameter) || parameters->values[i].is_set)
            continue;
        int r = parameters_set(parameters, i, options->sizes[size++], NULL, 0, 0, failure);
        if (r < 0)
            return r;
    }
    return size == options->size_count
               ? 0
               : failure_input(failure, NULL, 0, 0, "%zu sizes; %s takes %zu", options->size_count,
                               request->library->plugin->name, size);
}

/* The model has the column in the parameter's unit; an expression is a column of its own. */
static void set_model_unit(struct request *request, const char *name, const char *unit) {
    size_t i = formula_find_column(request->model_columns, request->model_column_count, name);
    if (i == request->model_column_count) {
        request->model_columns = xrealloc(request->model_columns, (i + 1) * sizeof *request->model_columns);
        request->model_columns[request->model_column_count++] = (struct model_column){.about.name = name};
    }
    if (unit)
        request->model_columns[i].about.unit = unit;
}

/* The scale to the parameter's unit; -EINVAL where the column has another dimension. */
static int column_scale(const struct plugin_parameter *parameter, const struct column *column, double *ret,
                        struct failure *failure) {
    double multiply, divide;
    *ret = 1;
    if (!parameter->unit || !column || !column->unit || strcmp(column->unit, parameter->unit) == 0 ||
        strcmp(column->unit, "1") == 0)
        return 0;
    if (!unit_conversion(column->unit, parameter->unit, &multiply, &divide))
        return failure_input(failure, NULL, 0, 0, "the %s '%s' is in '%s'; expected '%s'", parameter->name,
                             column->name, column->unit, parameter->unit);
    *ret = multiply / divide;
    return 0;
}

/* TEXT is a column or an expression; a single word that is no column is a slip. */
static int check_number(const struct request *request, const char *what, const char *text,
                        struct failure *failure) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    if (!text || table_find(request->table, text))
        return 0;
    size_t length;
    const struct unit *unit;
    unit_read_name(text, strlen(text), &length, &unit);
    cleanup_free char *stem = xstrndup(text, length);
    bool is_word = !text[strspn(text, word)] && !strspn(text, "0123456789.");
    if (!is_word && !(unit && table_find(request->table, stem))) /* 'duration (ms)' where that is in us */
        return 0;
    return table_no_column(request->table, what, text, failure);
}

static int add_parameter_column(struct request *request, const struct plugin_parameter *parameter,
                                const char *name, struct failure *failure) {
    struct rows_layout *layout = &request->layout;
    double scale;
    name = table_column_name(request->table, name);
    if (parameters_is_category(parameter)) {
        if (!table_find(request->table, name))
            return table_no_column(request->table, parameter->name, name, failure);
        add_index(&layout->categories, &layout->category_count, add_category(request, name));
        return 0;
    }
    int r = check_number(request, parameter->name, name, failure);
    r = r < 0 ? r : column_scale(parameter, table_find(request->table, name), &scale, failure);
    if (r < 0)
        return r;
    set_model_unit(request, name, parameter->unit);
    const struct column *column = table_find(request->table, name);
    request->column_units =
        xrealloc(request->column_units, (layout->column_count + 1) * sizeof *request->column_units);
    request->column_units[layout->column_count] = parameter->unit ? parameter->unit
                                                  : column        ? column->unit
                                                                  : NULL;
    layout->column_scales =
        xrealloc((double *)layout->column_scales, (layout->column_count + 1) * sizeof(double));
    ((double *)layout->column_scales)[layout->column_count] = scale;
    add_index(&layout->columns, &layout->column_count, add_number(request, name));
    return 0;
}

static int bind_columns(struct request *request, struct failure *failure) {
    struct parameters *parameters = &request->parameters;
    for (size_t i = 0; i < parameters->count; i++) {
        const struct plugin_parameter *parameter = &parameters->table[i];
        struct plugin_value *value = &parameters->values[i];
        bool is_category = parameters_is_category(parameter);
        if (!is_category && !parameters_is_column(parameter))
            continue;
        cleanup_free char *usual = value->is_set ? NULL : find_usual(request, parameter);
        if (usual) {
            int r = parameters_set(parameters, i, usual, NULL, 0, 0, failure);
            if (r < 0)
                return r;
            value->is_set = false;
        }
        if (!value->text && parameter->required)
            return refuse_missing(parameter, failure);
        value->first = is_category ? request->layout.category_count : request->layout.column_count;
        for (size_t k = 0; k < value->count; k++) {
            int r = add_parameter_column(request, parameter, value->texts ? value->texts[k] : value->text,
                                         failure);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* ---- The formula */

static void take_model_columns(struct request *request) {
    const struct table *table = request->table;
    request->model_columns = xcalloc(table->column_count + 1, sizeof *request->model_columns);
    request->model_column_count = table->column_count;
    for (size_t i = 0; i < table->column_count; i++)
        request->model_columns[i].about = table->columns[i];
}

static bool is_category_factor(const struct model_factor *factor) {
    return factor->function && strcmp(factor->function, FORMULA_CATEGORY) == 0;
}

static int read_formula(struct request *request, struct failure *failure) {
    const struct fit_options *options = request->options;
    const struct fit_plugin *plugin = request->library->fit;
    const char *text = options->terms ? options->terms : plugin->terms;
    struct formula_context context = {.columns = request->model_columns,
                                      .column_count = request->model_column_count,
                                      .response = options->response,
                                      .sizes = options->sizes,
                                      .size_count = options->size_count};
    if (!plugin->takes_terms)
        return 0;
    int r = formula_read(text, &context, &request->written, failure);
    if (r < 0)
        return r;
    for (size_t t = 0; t < request->written.term_count; t++) {
        const struct model_term *term = &request->written.terms[t];
        for (size_t f = 0; f < term->factor_count; f++) {
            struct rows_layout *layout = &request->layout;
            bool is_category = is_category_factor(&term->factors[f]);
            size_t index = is_category ? add_category(request, term->factors[f].column)
                                       : add_number(request, term->factors[f].column);
            const size_t **list = is_category ? &layout->factor_categories : &layout->factors;
            size_t *count = is_category ? &layout->factor_category_count : &layout->factor_count, known = 0;
            while (known < *count && (*list)[known] != index)
                known++;
            if (known == *count)
                add_index(list, count, index);
        }
    }
    return 0;
}

/* The levels of the categories are known now: the dummies are written out. */
static int expand_formula(struct request *request, struct failure *failure) {
    const struct table *table = request->table;
    if (!request->library->fit->takes_terms)
        return 0;
    for (size_t i = 0; i < request->model_column_count; i++)
        for (size_t j = 0; j < table->category_count; j++)
            if (strcmp(request->model_columns[i].about.name, table->categories[j].name) == 0) {
                request->model_columns[i].levels = table->categories[j].levels;
                request->model_columns[i].level_count = table->categories[j].level_count;
            }
    int r = formula_expand(&request->written, request->model_columns, request->model_column_count,
                           &request->formula, failure);
    request->layout.terms = request->formula.terms;
    request->layout.term_count = request->formula.term_count;
    return r;
}

/* ---- The response */

/* The first of the plugin's units of the response's dimension; without a unit it is in the first. */
static int choose_response_unit(struct request *request, struct failure *failure) {
    const char *const *units = request->library->fit->response_units;
    const struct column *column = table_find(request->table, request->options->response);
    const char *unit = column ? column->unit : NULL;
    double multiply, divide;
    request->layout.response_scale = 1;
    if (!units || !unit) {
        request->response_unit = units ? xstrdup(units[0]) : unit ? xstrdup(unit) : NULL;
        return 0;
    }
    for (size_t i = 0; units[i]; i++)
        if (unit_conversion(unit, units[i], &multiply, &divide)) {
            request->view.response_choice = i;
            request->layout.response_scale = multiply / divide;
            request->response_unit = xstrdup(units[i]);
            return 0;
        }
    return failure_input(failure, NULL, 0, 0, "the response '%s' is in '%s'; expected '%s'%s",
                         request->options->response, unit, units[0],
                         units[1] ? ", or another that it takes" : "");
}

/* Whether the response is a time or another cost, which is never 0 or less. */
static bool is_cost(const char *unit) {
    double multiply, divide;
    return unit &&
           (unit_conversion(unit, "s", &multiply, &divide) || unit_conversion(unit, "J", &multiply, &divide));
}

/* ---- All of it */

static void hear_rows(void *context, uint64_t rows) {
    const struct fit_options *options = context;
    options->progress(options->progress_context, "rows", rows, 0);
}

static int load(struct request *request, struct failure *failure) {
    const struct fit_options *options = request->options;
    return table_load(request->table,
                      &(struct table_selection){.numbers = request->numbers,
                                                .number_count = request->number_count,
                                                .categories = request->categories,
                                                .category_count = request->category_count,
                                                .where = options->where,
                                                .with_flagged = options->with_flagged,
                                                .progress = options->progress ? hear_rows : NULL,
                                                .progress_context = (void *)options},
                      failure);
}

static int add_groups(struct request *request, const char *const *names, size_t count, const char *what,
                      size_t **ret, struct failure *failure) {
    *ret = xcalloc(count + 1, sizeof **ret);
    for (size_t i = 0; i < count; i++) {
        if (!table_find(request->table, names[i]))
            return table_no_column(request->table, what, names[i], failure);
        (*ret)[i] = add_category(request, names[i]);
    }
    return 0;
}

static int bind_parameters(struct request *request, struct failure *failure) {
    const struct fit_options *options = request->options;
    const char *plugin = request->library->plugin->name;
    if (options->terms && !options->suggested && !request->library->fit->takes_terms)
        return failure_input(failure, NULL, 0, 0,
                             "%s takes no terms; 'assay fit %s --parameters' lists what can be set", plugin,
                             plugin);
    int r = parameters_init(&request->parameters, request->library->fit->parameters, failure);
    for (size_t i = 0; r == 0 && i < options->setting_count; i++)
        r = parameters_set_pair(&request->parameters, options->settings[i], failure);
    r = r < 0 ? r : parameters_check(&request->parameters, failure);
    r = r < 0 ? r : take_sizes(request, failure);
    return r < 0 ? r : bind_columns(request, failure);
}

static void fill_view(struct request *request) {
    const struct table *table = request->table;
    const struct rows_layout *layout = &request->layout;
    request->levels = xcalloc(layout->category_count + 1, sizeof *request->levels);
    for (size_t i = 0; i < layout->category_count; i++) {
        const struct table_category *category = &table->categories[layout->categories[i]];
        request->levels[i] =
            (struct fit_levels){(const char *const *)category->levels, category->level_count};
    }
    request->view.size = sizeof request->view;
    request->view.response = request->options->response;
    request->view.response_unit = request->response_unit;
    request->view.terms = layout->terms;
    request->view.term_count = layout->term_count;
    request->view.suggested = request->options->suggested || !request->options->terms;
    const char *unit =
        request->response_unit ? request->response_unit : unit_of_name(request->options->response);
    request->view.positive = is_cost(unit);
    request->is_positive = unit_is_positive(unit);
    request->view.levels = request->levels;
    request->view.column_units = request->column_units;
    request->view.values = request->parameters.values;
    request->view.seed = request->options->seed;
}

int request_bind(struct request *request, const struct library *library, struct table *table,
                 const struct fit_options *options, struct failure *failure) {
    *request = (struct request){.library = library, .table = table, .options = options};
    struct rows_layout *layout = &request->layout;
    layout->table = table;
    layout->response = add_number(request, options->response);
    layout->weights = options->weights ? add_number(request, options->weights) : SIZE_MAX;
    take_model_columns(request);
    int r = check_number(request, "response", options->response, failure);
    r = r < 0 ? r : check_number(request, "weights", options->weights, failure);
    r = r < 0 ? r : choose_response_unit(request, failure);
    r = r < 0 ? r : bind_parameters(request, failure);
    r = r < 0 ? r : read_formula(request, failure);
    r = r < 0 ? r : add_groups(request, options->by, options->by_count, "group", &request->by, failure);
    r = r < 0 ? r
              : add_groups(request, options->fold_columns, options->fold_column_count, "fold",
                           &request->fold_categories, failure);
    layout->fold_categories = request->fold_categories;
    layout->fold_category_count = options->fold_column_count;
    return r;
}

/* Of a table that is loaded for several fits. */
static int arrange(struct request *request, struct failure *failure) {
    const struct table_selection selection = {.numbers = request->numbers,
                                              .number_count = request->number_count,
                                              .categories = request->categories,
                                              .category_count = request->category_count};
    return table_arrange(request->table, &selection)
               ? 0
               : failure_set(failure, -EPROTO, "a column is not loaded");
}

int request_make(struct request *request, const struct library *library, struct table *table,
                 const struct fit_options *options, struct failure *failure) {
    int r = request_bind(request, library, table, options, failure);
    r = r < 0 ? r : options->row_folds ? arrange(request, failure) : load(request, failure);
    r = r < 0 ? r : expand_formula(request, failure);
    if (r < 0)
        return r;
    fill_view(request);
    struct plugin_message message = {""};
    r = library->fit->check ? library->fit->check(&request->view, &message) : 0;
    return r < 0 ? library_failure(library, r, &message, failure) : 0;
}

void request_clear(struct request *request) {
    struct rows_layout *layout = &request->layout;
    parameters_clear(&request->parameters);
    formula_clear(&request->written);
    formula_clear(&request->formula);
    free(request->model_columns), free(request->numbers), free(request->categories);
    free((size_t *)layout->columns), free((double *)layout->column_scales),
        free((size_t *)layout->categories);
    free((size_t *)layout->factors), free((size_t *)layout->factor_categories);
    free(request->by), free(request->fold_categories), free(request->levels), free(request->response_unit);
    free(request->column_units);
    *request = (struct request){0};
}
