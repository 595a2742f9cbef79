#include "engine/fit/binding.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- The columns to read from the table */

static size_t add_name(const char ***names, size_t *count, const char *name) {
    for (size_t i = 0; i < *count; i++)
        if (strcmp((*names)[i], name) == 0)
            return i;
    *names = xrealloc(*names, (*count + 1) * sizeof **names);
    (*names)[*count] = name;
    return (*count)++;
}

static size_t add_number(struct fit_binding *binding, const char *name) {
    return add_name(&binding->numbers, &binding->number_count, name);
}

static size_t add_category(struct fit_binding *binding, const char *name) {
    return add_name(&binding->categories, &binding->category_count, name);
}

static void add_index(const size_t **list, size_t *count, size_t index) {
    size_t *longer = xrealloc((size_t *)*list, (*count + 1) * sizeof *longer);
    longer[(*count)++] = index;
    *list = longer;
}

/* ---- Columns that the plugin's parameters name */

/* The column for a parameter that the user did not set: the first of its usual names that the table has (for
 * a list, all of them, joined by commas); else the only column whose unit converts to the parameter's. NULL:
 * none, or several by unit. The caller frees. */
static char *default_column(const struct fit_binding *binding, const struct plugin_parameter *parameter) {
    const struct table *table = binding->table;
    bool is_list = parameter->type == PLUGIN_COLUMNS || parameter->type == PLUGIN_CATEGORIES;
    const char *found = NULL;
    char *names = NULL;
    for (size_t i = 0; parameter->choices && parameter->choices[i] && (is_list || !names); i++)
        if (table_find(table, parameter->choices[i])) {
            char *longer = xformat("%s%s%s", names ? names : "", names ? "," : "", parameter->choices[i]);
            free(names);
            names = longer;
        }
    for (size_t i = 0;
         !names && parameter->unit && !parameters_is_category(parameter) && i < table->column_count; i++) {
        double multiply, divide;
        const struct column *column = &table->columns[i];
        if (!column->unit || strcmp(column->name, binding->options->response) == 0 ||
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
                         "no column is given for %s (%s); choose one with --set %s=COLUMN", parameter->name,
                         parameter->help, parameter->name);
}

/* Sets the plugin's column parameters that are not set from --sizes, in the order of the parameters. -EINVAL
 * with FAILURE: more sizes than such parameters. */
static int set_sizes(struct fit_binding *binding, struct failure *failure) {
    const struct fit_options *options = binding->options;
    struct parameters *parameters = &binding->parameters;
    size_t size = 0;
    if (binding->library->fit->takes_terms)
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
               : failure_input(failure, NULL, 0, 0,
                               "--sizes has %zu columns; the method %s accepts at most %zu",
                               options->size_count, binding->library->plugin->name, size);
}

/* Gives the model's column NAME the unit of the parameter, adding the column if NAME is an expression. UNIT
 * may be NULL. */
static void set_model_unit(struct fit_binding *binding, const char *name, const char *unit) {
    size_t i = formula_find_column(binding->model_columns, binding->model_column_count, name);
    if (i == binding->model_column_count) {
        binding->model_columns = xrealloc(binding->model_columns, (i + 1) * sizeof *binding->model_columns);
        binding->model_columns[binding->model_column_count++] = (struct model_column){.about.name = name};
    }
    if (unit)
        binding->model_columns[i].about.unit = unit;
}

/* The factor from COLUMN's unit to the parameter's, 1 where either is unknown. -EINVAL: they have different
 * dimensions. */
static int column_scale(const struct plugin_parameter *parameter, const struct column *column, double *ret,
                        struct failure *failure) {
    double multiply, divide;
    *ret = 1;
    if (!parameter->unit || !column || !column->unit || strcmp(column->unit, parameter->unit) == 0 ||
        strcmp(column->unit, "1") == 0)
        return 0;
    if (!unit_conversion(column->unit, parameter->unit, &multiply, &divide))
        return failure_input(failure, NULL, 0, 0,
                             "the column of %s, '%s', has the unit '%s'; expected a unit that "
                             "converts to '%s'",
                             parameter->name, column->name, column->unit, parameter->unit);
    *ret = multiply / divide;
    return 0;
}

/* Checks TEXT, a column or an expression. -EINVAL: it is a single word that names no column, which would be a
 * misspelling rather than an expression. WHAT names its role in the message. */
static int check_number(const struct fit_binding *binding, const char *what, const char *text,
                        struct failure *failure) {
    static const char word[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.";
    if (!text || table_find(binding->table, text))
        return 0;
    size_t length;
    const struct unit *unit;
    unit_read_name(text, strlen(text), &length, &unit);
    cleanup_free char *stem = xstrndup(text, length);
    bool is_word = !text[strspn(text, word)] && !strspn(text, "0123456789.");
    if (!is_word && !(unit && table_find(binding->table, stem))) /* 'duration (ms)' where that is in us */
        return 0;
    return table_no_column(binding->table, what, text, failure);
}

/* Adds the column NAME, which PARAMETER names, to the columns to load, in the parameter's unit.
 * -EINVAL: no such column, or another dimension. */
static int add_parameter_column(struct fit_binding *binding, const struct plugin_parameter *parameter,
                                const char *name, struct failure *failure) {
    struct rows_layout *layout = &binding->layout;
    double scale;
    name = table_column_name(binding->table, name);
    if (parameters_is_category(parameter)) {
        if (!table_find(binding->table, name))
            return table_no_column(binding->table, parameter->name, name, failure);
        add_index(&layout->categories, &layout->category_count, add_category(binding, name));
        return 0;
    }
    int r = check_number(binding, parameter->name, name, failure);
    r = r < 0 ? r : column_scale(parameter, table_find(binding->table, name), &scale, failure);
    if (r < 0)
        return r;
    set_model_unit(binding, name, parameter->unit);
    const struct column *column = table_find(binding->table, name);
    binding->column_units =
        xrealloc(binding->column_units, (layout->column_count + 1) * sizeof *binding->column_units);
    binding->column_units[layout->column_count] = parameter->unit ? parameter->unit
                                                  : column        ? column->unit
                                                                  : NULL;
    layout->column_scales =
        xrealloc((double *)layout->column_scales, (layout->column_count + 1) * sizeof(double));
    ((double *)layout->column_scales)[layout->column_count] = scale;
    add_index(&layout->columns, &layout->column_count, add_number(binding, name));
    return 0;
}

/* Finds the columns of all column parameters of the plugin and adds them to the layout. -EINVAL: a required
 * one has no column. */
static int bind_columns(struct fit_binding *binding, struct failure *failure) {
    struct parameters *parameters = &binding->parameters;
    for (size_t i = 0; i < parameters->count; i++) {
        const struct plugin_parameter *parameter = &parameters->table[i];
        struct plugin_value *value = &parameters->values[i];
        bool is_category = parameters_is_category(parameter);
        if (!is_category && !parameters_is_column(parameter))
            continue;
        cleanup_free char *usual = value->is_set ? NULL : default_column(binding, parameter);
        if (usual) {
            int r = parameters_set(parameters, i, usual, NULL, 0, 0, failure);
            if (r < 0)
                return r;
            value->is_set = false;
        }
        if (!value->text && parameter->required)
            return refuse_missing(parameter, failure);
        value->first = is_category ? binding->layout.category_count : binding->layout.column_count;
        for (size_t k = 0; k < value->count; k++) {
            int r = add_parameter_column(binding, parameter, value->texts ? value->texts[k] : value->text,
                                         failure);
            if (r < 0)
                return r;
        }
    }
    return 0;
}

/* ---- The formula */

static void copy_table_columns(struct fit_binding *binding) {
    const struct table *table = binding->table;
    binding->model_columns = xcalloc(table->column_count + 1, sizeof *binding->model_columns);
    binding->model_column_count = table->column_count;
    for (size_t i = 0; i < table->column_count; i++)
        binding->model_columns[i].about = table->columns[i];
}

static bool is_category_factor(const struct model_factor *factor) {
    return factor->function && strcmp(factor->function, FORMULA_CATEGORY) == 0;
}

/* Parses the formula (the user's --terms or the plugin's), and adds its columns to the layout, each once.
 * Does nothing for a plugin without terms. */
static int read_formula(struct fit_binding *binding, struct failure *failure) {
    const struct fit_options *options = binding->options;
    const struct fit_plugin *plugin = binding->library->fit;
    const char *text = options->terms ? options->terms : plugin->terms;
    struct formula_context context = {.columns = binding->model_columns,
                                      .column_count = binding->model_column_count,
                                      .response = options->response,
                                      .sizes = options->sizes,
                                      .size_count = options->size_count};
    if (!plugin->takes_terms)
        return 0;
    int r = formula_read(text, &context, &binding->written, failure);
    if (r < 0)
        return r;
    for (size_t t = 0; t < binding->written.term_count; t++) {
        const struct model_term *term = &binding->written.terms[t];
        for (size_t f = 0; f < term->factor_count; f++) {
            struct rows_layout *layout = &binding->layout;
            bool is_category = is_category_factor(&term->factors[f]);
            size_t index = is_category ? add_category(binding, term->factors[f].column)
                                       : add_number(binding, term->factors[f].column);
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

/* Replaces each category of the formula by one 0/1 term per level; the table is loaded, so the levels are
 * known. */
static int expand_formula(struct fit_binding *binding, struct failure *failure) {
    const struct table *table = binding->table;
    if (!binding->library->fit->takes_terms)
        return 0;
    for (size_t i = 0; i < binding->model_column_count; i++)
        for (size_t j = 0; j < table->category_count; j++)
            if (strcmp(binding->model_columns[i].about.name, table->categories[j].name) == 0) {
                binding->model_columns[i].levels = table->categories[j].levels;
                binding->model_columns[i].level_count = table->categories[j].level_count;
            }
    int r = formula_expand(&binding->written, binding->model_columns, binding->model_column_count,
                           &binding->formula, failure);
    binding->layout.terms = binding->formula.terms;
    binding->layout.term_count = binding->formula.term_count;
    return r;
}

/* ---- The response */

/* Chooses the unit of the fit: the first of the plugin's units with the response's dimension; for a response
 * without a unit, the first of all. -EINVAL: no unit converts. */
static int choose_response_unit(struct fit_binding *binding, struct failure *failure) {
    const char *const *units = binding->library->fit->response_units;
    const struct column *column = table_find(binding->table, binding->options->response);
    const char *unit = column ? column->unit : NULL;
    double multiply, divide;
    binding->layout.response_scale = 1;
    if (!units || !unit) {
        binding->response_unit = units ? xstrdup(units[0]) : unit ? xstrdup(unit) : NULL;
        return 0;
    }
    for (size_t i = 0; units[i]; i++)
        if (unit_conversion(unit, units[i], &multiply, &divide)) {
            binding->view.response_choice = i;
            binding->layout.response_scale = multiply / divide;
            binding->response_unit = xstrdup(units[i]);
            return 0;
        }
    return failure_input(failure, NULL, 0, 0,
                         "the response '%s' has the unit '%s'; expected a unit that converts to "
                         "'%s'%s",
                         binding->options->response, unit, units[0],
                         units[1] ? ", or to another unit that the method accepts" : "");
}

/* Whether UNIT is of time or energy: a cost, which is above 0. NULL is not. */
static bool is_cost(const char *unit) {
    double multiply, divide;
    return unit &&
           (unit_conversion(unit, "s", &multiply, &divide) || unit_conversion(unit, "J", &multiply, &divide));
}

/* ---- The binding */

static void forward_progress(void *context, uint64_t rows) {
    const struct fit_options *options = context;
    options->progress(options->progress_context, "rows", rows, 0);
}

/* Loads the columns of the binding from the table. -EINVAL with FAILURE as table_load(). */
static int load_table(struct fit_binding *binding, struct failure *failure) {
    const struct fit_options *options = binding->options;
    return table_load(binding->table,
                      &(struct table_selection){.numbers = binding->numbers,
                                                .number_count = binding->number_count,
                                                .categories = binding->categories,
                                                .category_count = binding->category_count,
                                                .where = options->where,
                                                .with_flagged = options->with_flagged,
                                                .progress = options->progress ? forward_progress : NULL,
                                                .progress_context = (void *)options},
                      failure);
}

/* Adds the category columns NAMES to the columns to load, and their indices to *RET, which the caller frees.
 * WHAT is their role in the message if the table lacks one. */
static int add_groups(struct fit_binding *binding, const char *const *names, size_t count, const char *what,
                      size_t **ret, struct failure *failure) {
    *ret = xcalloc(count + 1, sizeof **ret);
    for (size_t i = 0; i < count; i++) {
        if (!table_find(binding->table, names[i]))
            return table_no_column(binding->table, what, names[i], failure);
        (*ret)[i] = add_category(binding, names[i]);
    }
    return 0;
}

/* Sets the plugin's parameters from --set and --sizes, checks them, and finds their columns. */
static int bind_parameters(struct fit_binding *binding, struct failure *failure) {
    const struct fit_options *options = binding->options;
    const char *plugin = binding->library->plugin->name;
    if (options->terms && !options->suggested && !binding->library->fit->takes_terms)
        return failure_input(failure, NULL, 0, 0,
                             "the method %s has no --terms; 'assay fit %s --parameters' lists its "
                             "parameters",
                             plugin, plugin);
    int r = parameters_init(&binding->parameters, binding->library->fit->parameters, failure);
    for (size_t i = 0; r == 0 && i < options->setting_count; i++)
        r = parameters_set_pair(&binding->parameters, options->settings[i], failure);
    r = r < 0 ? r : parameters_check(&binding->parameters, failure);
    r = r < 0 ? r : set_sizes(binding, failure);
    return r < 0 ? r : bind_columns(binding, failure);
}

/* Fills in the view of the binding that the plugin's functions get; the table is loaded. */
static void fill_view(struct fit_binding *binding) {
    const struct table *table = binding->table;
    const struct rows_layout *layout = &binding->layout;
    binding->levels = xcalloc(layout->category_count + 1, sizeof *binding->levels);
    for (size_t i = 0; i < layout->category_count; i++) {
        const struct table_category *category = &table->categories[layout->categories[i]];
        binding->levels[i] =
            (struct fit_levels){(const char *const *)category->levels, category->level_count};
    }
    binding->view.size = sizeof binding->view;
    binding->view.response = binding->options->response;
    binding->view.response_unit = binding->response_unit;
    binding->view.terms = layout->terms;
    binding->view.term_count = layout->term_count;
    binding->view.suggested = binding->options->suggested || !binding->options->terms;
    const char *unit =
        binding->response_unit ? binding->response_unit : unit_of_name(binding->options->response);
    binding->view.positive = is_cost(unit);
    binding->is_positive = unit_is_positive(unit);
    binding->view.levels = binding->levels;
    binding->view.column_units = binding->column_units;
    binding->view.values = binding->parameters.values;
    binding->view.seed = binding->options->seed;
}

/* Finds all columns that the fit needs, without loading the table (binding.h). */
int fit_binding_bind(struct fit_binding *binding, const struct library *library, struct table *table,
                     const struct fit_options *options, struct failure *failure) {
    *binding = (struct fit_binding){.library = library, .table = table, .options = options};
    struct rows_layout *layout = &binding->layout;
    layout->table = table;
    layout->response = add_number(binding, options->response);
    layout->weights = options->weights ? add_number(binding, options->weights) : SIZE_MAX;
    copy_table_columns(binding);
    int r = check_number(binding, "response", options->response, failure);
    r = r < 0 ? r : check_number(binding, "weights", options->weights, failure);
    r = r < 0 ? r : choose_response_unit(binding, failure);
    r = r < 0 ? r : bind_parameters(binding, failure);
    r = r < 0 ? r : read_formula(binding, failure);
    r = r < 0 ? r : add_groups(binding, options->by, options->by_count, "group", &binding->by, failure);
    r = r < 0 ? r
              : add_groups(binding, options->fold_columns, options->fold_column_count, "fold",
                           &binding->fold_categories, failure);
    layout->fold_categories = binding->fold_categories;
    layout->fold_category_count = options->fold_column_count;
    return r;
}

/* Orders the columns of a table that is loaded already, for several fits, as this binding needs them.
 * -EPROTO: one is missing. */
static int arrange_table(struct fit_binding *binding, struct failure *failure) {
    const struct table_selection selection = {.numbers = binding->numbers,
                                              .number_count = binding->number_count,
                                              .categories = binding->categories,
                                              .category_count = binding->category_count};
    return table_arrange(binding->table, &selection)
               ? 0
               : failure_set(failure, -EPROTO, "a column is not loaded");
}

/* Binds the columns, loads or arranges the table, and asks the plugin's check() (binding.h). */
int fit_binding_make(struct fit_binding *binding, const struct library *library, struct table *table,
                     const struct fit_options *options, struct failure *failure) {
    int r = fit_binding_bind(binding, library, table, options, failure);
    r = r < 0 ? r : options->row_folds ? arrange_table(binding, failure) : load_table(binding, failure);
    r = r < 0 ? r : expand_formula(binding, failure);
    if (r < 0)
        return r;
    fill_view(binding);
    struct plugin_message message = {""};
    r = library->fit->check ? library->fit->check(&binding->view, &message) : 0;
    return r < 0 ? library_failure(library, r, &message, failure) : 0;
}

/* Frees what the binding owns. */
void fit_binding_clear(struct fit_binding *binding) {
    struct rows_layout *layout = &binding->layout;
    parameters_clear(&binding->parameters);
    formula_clear(&binding->written);
    formula_clear(&binding->formula);
    free(binding->model_columns), free(binding->numbers), free(binding->categories);
    free((size_t *)layout->columns), free((double *)layout->column_scales),
        free((size_t *)layout->categories);
    free((size_t *)layout->factors), free((size_t *)layout->factor_categories);
    free(binding->by), free(binding->fold_categories), free(binding->levels), free(binding->response_unit);
    free(binding->column_units);
    *binding = (struct fit_binding){0};
}
