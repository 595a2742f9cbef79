#include "engine/fit/description.h"

#include "engine/fit/binding.h"
#include "engine/fit/fit.h"
#include "engine/foundation/memory.h"
#include "engine/model/evaluator.h"
#include "engine/model/hull.h"
#include "engine/model/model.h"

#include <stdlib.h>
#include <string.h>

/* Copies into the model the columns that its terms, segments or part names use. */
static void describe_columns(const struct fit_binding *binding, struct model *model) {
    model->columns = xcalloc(binding->model_column_count + 1, sizeof *model->columns);
    for (size_t i = 0; i < binding->model_column_count; i++) {
        const struct model_column *from = &binding->model_columns[i];
        bool used = model->over && strcmp(model->over, from->about.name) == 0;
        used = used || (model->named_by && strcmp(model->named_by, from->about.name) == 0);
        for (size_t t = 0; t < model->term_count; t++)
            for (size_t f = 0; f < model->terms[t].factor_count; f++)
                used = used || strcmp(model->terms[t].factors[f].column, from->about.name) == 0;
        if (!used)
            continue;
        struct model_column *to = &model->columns[model->column_count++];
        *to = (struct model_column){.about = column_copy(&from->about),
                                    .levels = xcalloc(from->level_count + 1, sizeof *to->levels),
                                    .level_count = from->level_count};
        for (size_t k = 0; k < from->level_count; k++)
            to->levels[k] = xstrdup(from->levels[k]);
    }
}

/* Removes from the domain of PART the columns and terms that the model does not use, such as `over` of a fit
 * without breaks. */
static void drop_unused_ranges(const struct model *model, struct model_part *part) {
    size_t count = 0;
    for (size_t i = 0; i < part->domain_count; i++) {
        bool used = model_column_find(model, part->domain[i].name);
        for (size_t t = 0; t < model->term_count; t++)
            used = used || strcmp(model->terms[t].name, part->domain[i].name) == 0;
        if (used)
            part->domain[count++] = part->domain[i];
        else
            free(part->domain[i].name);
    }
    part->domain_count = count;
}

/* Lists the columns whose values define a fold: those that the user named, or all that make a setting. */
static void describe_folds(const struct fit_binding *binding, struct model_origin *origin) {
    const struct rows_layout *layout = &binding->layout;
    const struct fit_options *options = binding->options;
    size_t most = layout->factor_count + layout->column_count + layout->factor_category_count +
                  layout->category_count + options->fold_column_count;
    char **names = origin->folds_columns = xcalloc(most + 1, sizeof *names);
    for (size_t i = 0; i < options->fold_column_count; i++)
        names[origin->folds_column_count++] = xstrdup(options->fold_columns[i]);
    if (options->folds_by != FIT_FOLDS_BY_SETTING)
        return;
    for (size_t i = 0; i < layout->factor_count; i++)
        names[origin->folds_column_count++] = xstrdup(binding->numbers[layout->factors[i]]);
    for (size_t i = 0; i < layout->column_count; i++)
        names[origin->folds_column_count++] = xstrdup(binding->numbers[layout->columns[i]]);
    for (size_t i = 0; i < layout->factor_category_count; i++)
        names[origin->folds_column_count++] = xstrdup(binding->categories[layout->factor_categories[i]]);
    for (size_t i = 0; i < layout->category_count; i++)
        names[origin->folds_column_count++] = xstrdup(binding->categories[layout->categories[i]]);
}

/* Records in the model how it was fitted: plugin, parameters, rows, folds, seed, and the input files with
 * checksums. */
static void describe_origin(const struct fit_binding *binding, struct model_origin *origin) {
    const struct fit_options *options = binding->options;
    const struct table *table = binding->table;
    static const char *const folds_by[] = {
        [FIT_FOLDS_BY_SETTING] = "setting", [FIT_FOLDS_BY_ROW] = "row", [FIT_FOLDS_BY_COLUMNS] = "columns"};
    origin->plugin = xformat("fit-%s", binding->library->plugin->name);
    origin->version = xstrdup(binding->library->plugin->version);
    origin->rows = table->rows;
    origin->seed = options->seed;
    origin->folds_by = xstrdup(folds_by[options->folds_by]);
    describe_folds(binding, origin);
    origin->where = options->where ? xstrdup(options->where) : NULL;
    parameters_describe(&binding->parameters, 0, binding->parameters.count, origin);
    origin->inputs = xcalloc(table->input_count + 1, sizeof *origin->inputs);
    for (size_t i = 0; i < table->input_count; i++) {
        const struct table_input *from = &table->inputs[i];
        struct model_input *to = &origin->inputs[origin->input_count++];
        *to = (struct model_input){.name = xstrdup(from->name),
                                   .run_id = from->run_id ? xstrdup(from->run_id) : NULL,
                                   .experiment = from->experiment ? xstrdup(from->experiment) : NULL,
                                   .rows = from->rows};
        snprintf(to->sha256, sizeof to->sha256, "%s", from->sha256);
    }
}

/* The unit of a coefficient of TERM; NULL if unknown. In a kind of model that only the plugin evaluates, a
 * term is a quantity itself and has the unit of its column. The caller frees. */
static char *term_unit(const struct fit_binding *binding, const struct model *model,
                       const struct model_term *term) {
    if (evaluator_knows(model->kind))
        return formula_unit(term, model->response_unit, binding->model_columns, binding->model_column_count);
    size_t i = term->factor_count == 1
                   ? formula_find_column(binding->model_columns, binding->model_column_count,
                                         term->factors[0].column)
                   : binding->model_column_count;
    const char *unit = i < binding->model_column_count ? binding->model_columns[i].about.unit : NULL;
    return unit ? xstrdup(unit) : NULL;
}

/* Describes the fitted MODEL for its file: response, units, columns, main values and origin. Drops an unknown
 * hull and ranges of unused columns. */
void description_fill(const struct fit_binding *binding, struct model *model) {
    const struct fit_options *options = binding->options;
    model->response = xstrdup(options->response);
    model->response_unit = binding->response_unit ? xstrdup(binding->response_unit) : NULL;
    model->response_seconds = model_unit_seconds(model->response_unit);
    model->weights = options->weights ? xstrdup(options->weights) : NULL;
    model->by = xcalloc(options->by_count + 1, sizeof *model->by);
    for (size_t i = 0; i < options->by_count; i++)
        model->by[model->by_count++] = xstrdup(options->by[i]);
    if (model->hull && !model_hull_is_known(model->hull)) {
        model_hull_free(model->hull);
        model->hull = NULL;
    }
    for (size_t t = 0; t < model->term_count; t++)
        model->terms[t].unit = term_unit(binding, model, &model->terms[t]);
    describe_columns(binding, model);
    const struct fit_plugin *plugin = binding->library->fit;
    for (size_t i = 0; PLUGIN_HAS(plugin, main_values) && plugin->main_values && plugin->main_values[i]; i++)
        xappend(&model->main_values, &model->main_value_count, xstrdup(plugin->main_values[i]));
    for (size_t g = 0; g < model->group_count; g++)
        for (size_t p = 0; p < model->groups[g].part_count; p++)
            drop_unused_ranges(model, &model->groups[g].parts[p]);
    describe_origin(binding, &model->origin);
}
