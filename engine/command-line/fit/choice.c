#include "engine/command-line/fit/choice.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <math.h>

/* Above this share of the mean no model is said to predict well. */
static const double relative_most = 0.5;

static void report_scores(struct report_table *table, const struct contender *contender,
                          const struct choice *choice) {
    bool is_judged = contender->is_judged && choice->best != SIZE_MAX;
    const struct score *score = &contender->score;
    const double numbers[] = {
        score->rmse,      score->rmse_error,          score->relative,  score->median_relative,
        contender->below, contender->below_error,     score->log_score, score->bias,
        score->coverage,  (double)score->extrapolated};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        report_cell(table, is_judged ? numbers[k] : NAN);
}

static void report_sufficient(struct report_section *in, const struct contender *contenders,
                              const struct choice *choice) {
    if (choice->sufficient == SIZE_MAX) {
        report_note(in, REPORT_WARNING, "none of them could be judged");
        return;
    }
    const struct contender *sufficient = &contenders[choice->sufficient];
    report_note(
        in, REPORT_LINE,
        "* suffices: of the models whose log likelihood of a row is at most %g standard errors below the "
        "best (+), it has the fewest parameters of the mean; its noise is the simplest within one "
        "standard error",
        CHOICE_MEAN_ERRORS);
    if (sufficient->grade != REPORT_NOT_USABLE && sufficient->score.relative > relative_most)
        report_note(in, REPORT_WARNING,
                    "none of them predicts well: the error of this one is %.3g %% of the mean",
                    100 * sufficient->score.relative);
}

void fit_choice_report(struct report_section *in, const struct report_column *columns,
                       const char *const *labels, size_t label_count, const struct contender *contenders,
                       size_t count, const struct choice *choice, const char *unit) {
    enum { MODEL_COLUMNS = 6, SCORE_COLUMNS = 10 };
    const struct report_column own[MODEL_COLUMNS + SCORE_COLUMNS] = {
        {.name = "formula", .detail = true},
        {.name = "rows"},
        {.name = "groups"},
        {.name = "noise"},
        {.name = "parameters"},
        {.name = "grade", .detail = true},
        {.name = "rmse", .label = "error", .unit = unit, .digits = 4},
        {.name = "rmse_error", .label = "std error", .unit = unit, .digits = 2},
        {.name = "relative", .label = "of mean", .digits = 3},
        {.name = "median_relative", .label = "median", .digits = 3},
        {.name = "below_best", .label = "below best", .digits = 2},
        {.name = "below_best_error", .label = "std error", .digits = 2},
        {.name = "log_score", .label = "log score", .digits = 5},
        {.name = "bias", .unit = unit, .digits = 3, .detail = true},
        {.name = "coverage", .label = "in 95 % interval", .digits = 3, .detail = true},
        {.name = "extrapolated", .label = "rows extrapolated", .detail = true}};
    bool is_judged = choice->rows > 0;
    cleanup_free struct report_column *all =
        xcalloc(1 + label_count + MODEL_COLUMNS + SCORE_COLUMNS, sizeof *all);
    size_t columns_count = 0;
    all[columns_count++] = (struct report_column){.name = "mark", .label = ""};
    for (size_t k = 0; k < label_count; k++)
        all[columns_count++] = columns[k];
    for (size_t k = 0; k < MODEL_COLUMNS + (is_judged ? SCORE_COLUMNS : 0); k++)
        all[columns_count++] = own[k];
    struct report_table *table = report_table(in, "models", NULL, all, columns_count);
    for (size_t i = 0; i < count; i++) {
        const struct contender *contender = &contenders[i];
        if (!labels[i * label_count])
            continue;
        report_cell_text(table, !is_judged                ? ""
                                : i == choice->sufficient ? "*"
                                : i == choice->best       ? "+"
                                                          : "");
        for (size_t k = 0; k < label_count; k++)
            report_cell_text(table, labels[i * label_count + k]);
        report_cell_text(table, contender->formula ? contender->formula : "");
        report_cell(table, (double)contender->rows);
        report_cell(table, (double)contender->groups);
        report_cell_text(table, contender->noise ? contender->noise : "");
        report_cell(table, (double)(contender->of_mean + contender->of_noise));
        report_cell_text(table, report_grade_word(contender->grade));
        if (is_judged)
            report_scores(table, contender, choice);
    }
    if (is_judged)
        report_sufficient(in, contenders, choice);
}
