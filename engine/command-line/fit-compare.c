/* assay fit compare: models side by side, and on measurements that they have not seen. */
#include "engine/command-line/fit-verbs.h"
#include "engine/documents/unit.h"
#include "engine/fit/choice.h"
#include "engine/fit/measured.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/model.h"
#include "engine/model/read.h"
#include "engine/table/folds.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MODELS_MAX = 16, GROUPS_SHOWN = 4 };

struct comparison {
    struct model *models[MODELS_MAX];
    size_t count;
    struct contender contenders[MODELS_MAX];
    /* With --data: a table for each model, which is converted to its units; of the same rows. */
    struct table *tables[MODELS_MAX];
    struct measured *measured[MODELS_MAX];
    struct score_row *predicted[MODELS_MAX]; /* in the response's unit of the first */
    struct choice choice;
};

static void comparison_clear(struct comparison *comparison) {
    for (size_t i = 0; i < comparison->count; i++) {
        free(comparison->predicted[i]);
        measured_free(comparison->measured[i]);
        table_free(comparison->tables[i]);
        model_file_free(comparison->models[i]);
    }
}

static int read_models(const struct verb_arguments *arguments, struct comparison *ret,
                       struct failure *failure) {
    size_t count = arguments->operand_count - 1;
    if (count < 2 || count > MODELS_MAX)
        return failure_input(failure, NULL, 0, 0, "'compare' is given %zu model%s; expected 2 to %d", count,
                             count == 1 ? "" : "s", (int)MODELS_MAX);
    for (int r = 0; ret->count < count; ret->count++) {
        struct model **model = &ret->models[ret->count];
        r = model_file_read(arguments->operands[ret->count + 1], model, failure);
        if (r < 0)
            return r;
        if (strcmp((*model)->response, ret->models[0]->response) != 0)
            r = failure_input(failure, (*model)->file, 0, 0,
                              "the model is of '%s'; expected '%s', as in '%s'", (*model)->response,
                              ret->models[0]->response, ret->models[0]->file);
        contender_count(*model, &ret->contenders[ret->count].of_mean, &ret->contenders[ret->count].of_noise);
        if (r < 0) {
            ret->count++;
            return r;
        }
    }
    return 0;
}

/* ---- On measurements */

/* What model I says of the rows, in the unit of the first model. */
static int predict(struct comparison *comparison, size_t i, const char *const *inputs, size_t count,
                   struct failure *failure) {
    static const struct table_options hashed = {.hash = true};
    static const struct measured_options options = {.response = true};
    const struct model *model = comparison->models[i], *first = comparison->models[0];
    double multiply = 1, divide = 1;
    int r = table_open(inputs, count, &hashed, &comparison->tables[i], failure);
    r = r < 0 ? r : measured_read(model, comparison->tables[i], &options, &comparison->measured[i], failure);
    if (r < 0)
        return r;
    if (model->response_unit && first->response_unit &&
        !unit_conversion(model->response_unit, first->response_unit, &multiply, &divide))
        return failure_input(failure, model->file, 0, 0, "'%s' is in '%s'; expected '%s', as in '%s'",
                             model->response, model->response_unit, first->response_unit, first->file);
    const struct score_rows *rows = &comparison->measured[i]->rows;
    struct score_row *predicted = xcalloc(rows->count + 1, sizeof *predicted);
    score_predict(comparison->measured[i]->evaluator, model->groups, rows, NULL, rows->count, predicted);
    for (size_t row = 0; row < rows->count; row++) {
        predicted[row].mean *= multiply / divide;
        predicted[row].sigma *= multiply / divide;
        predicted[row].log_density -= log(multiply / divide);
    }
    comparison->contenders[i].predicted = comparison->predicted[i] = predicted;
    return 0;
}

/* Rows are weighted as the first model with weights has them; rows that are one setting to all models are
 * one. */
static void choose(struct comparison *comparison) {
    struct score_rows rows = comparison->measured[0]->rows;
    const uint32_t *settings[MODELS_MAX];
    cleanup_free uint32_t *units = xcalloc(rows.count + 1, sizeof *units);
    for (size_t i = 0; i < comparison->count; i++) {
        settings[i] = comparison->measured[i]->rows.settings;
        rows.weights = rows.weights ? rows.weights : comparison->measured[i]->rows.weights;
    }
    folds_units(&(struct folds_columns){.codes = settings, .code_count = comparison->count}, rows.count,
                units);
    rows.settings = units;
    choice_make(comparison->contenders, comparison->count, &rows, &comparison->choice);
}

static int try_models(const struct verb_arguments *arguments, struct comparison *comparison,
                      struct failure *failure) {
    size_t count = 0;
    cleanup_free const char **inputs = verb_values(arguments, "--data", &count);
    int r = 0;
    for (size_t i = 0; r == 0 && count > 0 && i < comparison->count; i++)
        r = predict(comparison, i, inputs, count, failure);
    if (r == 0 && count > 0)
        choose(comparison);
    return r;
}

/* ---- The report */

/* "A", "B", ...; the name lasts. */
static const char *letter(size_t i) {
    static const char letters[MODELS_MAX][2] = {"A", "B", "C", "D", "E", "F", "G", "H",
                                                "I", "J", "K", "L", "M", "N", "O", "P"};
    return letters[i];
}

static const char *noise_of(const struct model *model) {
    static const char *const words[] = {[MODEL_NOISE_NONE] = "N-0",
                                        [MODEL_NOISE_HOMOSCEDASTIC] = "N-1",
                                        [MODEL_NOISE_HETEROSCEDASTIC] = "N-2",
                                        [MODEL_NOISE_MIXTURE] = "mixture"};
    return model->group_count ? words[model->groups[0].parts[0].noise.kind] : "";
}

static void report_models(struct report_section *in, const struct comparison *comparison) {
    static const struct report_column columns[] = {{.name = "model", .label = ""},
                                                   {.name = "file"},
                                                   {.name = "kind"},
                                                   {.name = "terms"},
                                                   {.name = "rows"},
                                                   {.name = "groups"},
                                                   {.name = "parameters"},
                                                   {.name = "noise"}};
    struct report_table *table = report_table(in, "models", NULL, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < comparison->count; i++) {
        const struct model *model = comparison->models[i];
        const struct contender *contender = &comparison->contenders[i];
        uint64_t rows = 0;
        for (size_t g = 0; g < model->group_count; g++)
            rows += model->groups[g].rows;
        cleanup_free char *terms = xstrdup("");
        for (size_t t = 0; t < model->term_count; t++) {
            cleanup_free char *before = terms;
            terms = xformat("%s%s%s", before, t ? " + " : "", model->terms[t].name);
        }
        report_cell_text(table, letter(i));
        report_cell_text(table, model->file);
        report_cell_text(table, model->kind);
        report_cell_text(table, terms);
        report_cell(table, (double)rows);
        report_cell(table, (double)model->group_count);
        report_cell(table, (double)(contender->of_mean + contender->of_noise));
        report_cell_text(table, noise_of(model));
    }
}

static bool is_input(const struct model *model, const struct table_input *input) {
    for (size_t i = 0; i < model->origin.input_count; i++)
        if (input->sha256[0] && strcmp(model->origin.inputs[i].sha256, input->sha256) == 0)
            return true;
    return false;
}

static void report_data(struct report_section *in, const struct comparison *comparison) {
    const char *unit = comparison->models[0]->response_unit;
    const struct report_column columns[] = {
        {.name = "model", .label = ""},
        {.name = "rmse", .label = "error", .unit = unit, .digits = 5},
        {.name = "rmse_error", .label = "std error", .unit = unit, .digits = 2},
        {.name = "relative", .label = "of mean", .digits = 4},
        {.name = "median_relative", .label = "median relative", .digits = 4},
        {.name = "bias", .unit = unit, .digits = 3},
        {.name = "above_least", .label = "above least", .unit = unit, .digits = 2},
        {.name = "above_least_error", .label = "std error", .unit = unit, .digits = 2},
        {.name = "log_score", .label = "log score", .digits = 6},
        {.name = "coverage", .label = "in 95 % interval", .digits = 3},
        {.name = "extrapolated", .label = "rows extrapolated"},
        {.name = "missing", .label = "rows missing"}};
    const struct choice *choice = &comparison->choice;
    report_number(in, "rows", "rows of the data", (double)choice->rows, NULL, 0, false);
    report_number(in, "rows_beyond", "rows that some cannot predict", (double)choice->rows_beyond, NULL, 0,
                  choice->rows_beyond == 0);
    struct report_table *table = report_table(in, "data", NULL, columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < comparison->count; i++) {
        const struct contender *contender = &comparison->contenders[i];
        const struct score *score = &contender->score;
        bool is_judged = contender->is_judged && choice->least != SIZE_MAX;
        double above_error = NAN,
               above = is_judged
                           ? contender_above(contender, &comparison->contenders[choice->least], &above_error)
                           : NAN;
        report_cell_text(table, letter(i));
        const double numbers[] = {
            score->rmse, score->rmse_error, score->relative, score->median_relative,     score->bias, above,
            above_error, score->log_score,  score->coverage, (double)score->extrapolated};
        for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
            report_cell(table, is_judged ? numbers[k] : NAN);
        report_cell(table, (double)contender->missing);
    }
    for (size_t i = 0; i < comparison->count; i++)
        for (size_t k = 0; k < comparison->tables[i]->input_count; k++)
            if (is_input(comparison->models[i], &comparison->tables[i]->inputs[k]))
                report_note(in, REPORT_WARNING,
                            "%s was fitted to '%s': its errors there are not those of a prediction",
                            letter(i), comparison->tables[i]->inputs[k].name);
    if (choice->sufficient == SIZE_MAX)
        report_note(in, REPORT_WARNING, "none of the models could be judged on these rows");
    else
        report_note(
            in, REPORT_LINE,
            "%s suffices: of those whose error is at most one standard error above the least (%s), it "
            "has the fewest parameters of the mean, and the simplest noise within one of the best log "
            "score",
            letter(choice->sufficient), letter(choice->least));
}

/* ---- Estimates */

/* Whether two models were fitted to some of the same data. */
static bool is_shared(const struct model *one, const struct model *other) {
    for (size_t i = 0; i < one->origin.input_count; i++)
        for (size_t k = 0; k < other->origin.input_count; k++) {
            const struct model_input *a = &one->origin.inputs[i], *b = &other->origin.inputs[k];
            if ((a->sha256[0] && strcmp(a->sha256, b->sha256) == 0) ||
                (a->run_id && b->run_id && strcmp(a->run_id, b->run_id) == 0))
                return true;
        }
    return false;
}

/* The estimate of the term NAME in the group NAME of one part, in UNIT; NULL where it has none. */
static const struct model_estimate *find_estimate(const struct model *model, const char *group,
                                                  const struct model_term *term) {
    size_t g = 0, t = 0;
    while (g < model->group_count && strcmp(model->groups[g].name, group) != 0)
        g++;
    while (t < model->term_count && strcmp(model->terms[t].name, term->name) != 0)
        t++;
    if (g == model->group_count || t == model->term_count || model->groups[g].part_count != 1 ||
        (model->terms[t].unit && term->unit && strcmp(model->terms[t].unit, term->unit) != 0))
        return NULL;
    const struct model_estimate *estimate = &model->groups[g].parts[0].estimates[t];
    return estimate->dropped ? NULL : estimate;
}

/* Each term that the first model has, then those that another one adds. */
static void report_group(struct report_section *in, const struct comparison *comparison, const char *group,
                         bool detail) {
    struct report_column columns[2 + 3 * MODELS_MAX] = {{.name = "term"}, {.name = "unit"}};
    char names[MODELS_MAX][3][24];
    size_t count = 2;
    for (size_t i = 0; i < comparison->count; i++) {
        snprintf(names[i][0], sizeof names[i][0], "%s", letter(i));
        snprintf(names[i][1], sizeof names[i][1], "%s_standard_error", letter(i));
        snprintf(names[i][2], sizeof names[i][2], "%s_minus_A_z", letter(i));
        columns[count++] = (struct report_column){.name = names[i][0], .digits = 6};
        columns[count++] = (struct report_column){.name = names[i][1], .label = "std error", .digits = 3};
        if (i > 0)
            columns[count++] =
                (struct report_column){.name = names[i][2], .label = "apart (std errors)", .digits = 3};
    }
    struct report_table *table =
        report_table(report_section(in, group, group, detail), "terms", NULL, columns, count);
    for (size_t i = 0; i < comparison->count; i++)
        for (size_t t = 0; t < comparison->models[i]->term_count; t++) {
            const struct model_term *term = &comparison->models[i]->terms[t];
            bool is_listed = false;
            for (size_t k = 0; k < i; k++)
                is_listed = is_listed || find_estimate(comparison->models[k], group, term);
            if (is_listed)
                continue;
            const struct model_estimate *first = find_estimate(comparison->models[0], group, term);
            report_cell_text(table, term->name);
            report_cell_text(table, term->unit ? term->unit : "");
            for (size_t k = 0; k < comparison->count; k++) {
                const struct model_estimate *own = find_estimate(comparison->models[k], group, term);
                bool is_known =
                    k > 0 && first && own && !is_shared(comparison->models[0], comparison->models[k]);
                report_cell(table, own ? own->estimate : NAN);
                report_cell(table, own ? own->standard_error : NAN);
                if (k > 0)
                    report_cell(table, is_known ? (own->estimate - first->estimate) /
                                                      hypot(own->standard_error, first->standard_error)
                                                : NAN);
            }
        }
}

static void report_estimates(struct report_section *in, const struct comparison *comparison) {
    const struct model *first = comparison->models[0];
    struct report_section *section = report_section(in, "estimates", NULL, false);
    for (size_t g = 0; g < first->group_count; g++)
        report_group(section, comparison, first->groups[g].name, g >= GROUPS_SHOWN);
    if (first->group_count > GROUPS_SHOWN)
        report_note(in, REPORT_LINE, "... and %zu more groups (--json)", first->group_count - GROUPS_SHOWN);
    for (size_t i = 1; i < comparison->count; i++)
        if (is_shared(first, comparison->models[i]))
            report_note(in, REPORT_NOTE,
                        "A and %s were fitted to the same data: their estimates err together, so that the "
                        "standard error of their difference is not known",
                        letter(i));
}

int fit_print(const struct report *report, bool json, struct failure *failure) {
    if (!json) {
        report_print(report, stdout, false);
        return 0;
    }
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 4);
    int r = report_print_json(report, &text, failure);
    fputs(r < 0 ? "" : text.bytes, stdout);
    return r;
}

int fit_compare(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(comparison_clear) struct comparison comparison = {0};
    cleanup(report_cleanup) struct report *report = report_new();
    int r = read_models(arguments, &comparison, failure);
    r = r < 0 ? r : try_models(arguments, &comparison, failure);
    if (r < 0)
        return r;
    report_models(report->root, &comparison);
    if (comparison.tables[0])
        report_data(report->root, &comparison);
    else
        report_note(report->root, REPORT_NOTE,
                    "which suffices is judged on measurements that all predict: --data INPUT");
    report_estimates(report->root, &comparison);
    return fit_print(report, verb_switch(arguments, "--json"), failure);
}
