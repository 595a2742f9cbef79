#include "engine/model/verdict.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/model.h"
#include "engine/model/spread.h"

#include <assay/predict.h>

#include <math.h>
#include <string.h>

enum { SENTENCE_BYTES_MAX = 1 << 16 };

/* A model whose cross-validated error is above these is not for prediction. */
static const double usable_relative = 0.10, usable_median = 0.05;
/* A test with a p value up to this rejects a model. */
static const double significant = 1e-3;

static double greatest(const struct model *model, const char *name) {
    cleanup(model_spread_clear) struct model_spread spread = model_spread_collect(model, name);
    return model_spread_quantile(&spread, 1);
}

static double total(const struct model *model, const char *name) {
    cleanup(model_spread_clear) struct model_spread spread = model_spread_collect(model, name);
    double sum = 0;
    for (size_t i = 0; i < spread.count; i++)
        sum += spread.values[i];
    return sum;
}

static double rows_of(const struct model *model) {
    double rows = 0;
    for (size_t g = 0; g < model->group_count; g++)
        rows += (double)model->groups[g].rows;
    return rows;
}

/* ---- Grades */

static bool is_mixture(const struct model *model) {
    return model->group_count > 0 && model->groups[0].parts[0].noise.kind == MODEL_NOISE_MIXTURE;
}

/* The grade of one group by its cross-validated errors. Unknown without those, and for a mixture, whose mean
 * is not what it models. */
static enum report_grade grade_group(const struct model *model, const struct model_group *group) {
    double relative = model_group_value(group, "cv_relative");
    if (model_group_value(group, "nonpositive_rows") > 0)
        return REPORT_NOT_USABLE;
    if (is_mixture(model) || isnan(relative))
        return REPORT_UNKNOWN;
    return relative <= usable_relative && model_group_value(group, "cv_median_relative") <= usable_median
               ? REPORT_USABLE
               : REPORT_NOT_USABLE;
}

static size_t count_grade(const struct model *model, enum report_grade grade) {
    size_t count = 0;
    for (size_t g = 0; g < model->group_count; g++)
        count += grade_group(model, &model->groups[g]) == grade;
    return count;
}

enum report_grade model_grade(const struct model *model) {
    if (count_grade(model, REPORT_NOT_USABLE) > 0)
        return REPORT_NOT_USABLE;
    return count_grade(model, REPORT_USABLE) > 0 ? REPORT_USABLE : REPORT_UNKNOWN;
}

/* ---- The verdict */

/* Appends the measured ranges, as " of m 64 to 2973, n 64 to 2973". */
static void append_domain(const struct model *model, struct text *text) {
    const char *before = " of";
    for (size_t c = 0; c < model->column_count; c++) {
        double low, high;
        if (model->columns[c].level_count > 0 ||
            !model_spread_range(model->groups, model->group_count, model->columns[c].about.name, &low, &high))
            continue;
        cleanup_free char *from = report_format(low, model->columns[c].about.unit, 4);
        cleanup_free char *to = report_format(high, model->columns[c].about.unit, 4);
        (void)text_printf(text, "%s %s %s to %s", before, model->columns[c].about.name, from, to);
        before = ",";
    }
}

/* Appends the prediction errors. RELATIVE is the error as a share of the mean, MIDDLE the median relative
 * error. */
static void append_scores(const struct model *model, double relative, double middle, struct text *text) {
    cleanup_free char *error = report_format(100 * relative, NULL, 2);
    cleanup_free char *median = report_format(100 * middle, NULL, 2);
    (void)text_printf(text, "cross-validated error %s %%%s (median %s %%) over %.0f %s", error,
                      model->group_count > 1 ? " in the worst group" : "", median, total(model, "settings"),
                      model->column_count > 0 ? "settings" : "rows");
    append_domain(model, text);
}

/* Appends the log score of a mixture: how well it describes the distribution of rows that were left out. */
static void append_log_score(const struct model *model, struct text *text) {
    cleanup(model_spread_clear) struct model_spread scores = model_spread_collect(model, "cv_log_score");
    (void)text_printf(text, "fitted to %.0f rows", rows_of(model));
    append_domain(model, text);
    if (scores.count > 0)
        (void)text_printf(text, "; mean log density of rows left out: %.4g%s",
                          model_spread_quantile(&scores, 0),
                          model->group_count > 1 ? " in the worst group" : "");
}

/* The number of groups whose formula is rejected by the test of lack of fit, and the greatest F of these. */
static size_t count_lacking(const struct model *model, double *ret_f) {
    size_t lacking = 0;
    *ret_f = 0;
    for (size_t g = 0; g < model->group_count; g++)
        if (model_group_value(&model->groups[g], "lack_of_fit_p") < significant) {
            lacking++;
            *ret_f = fmax(*ret_f, model_group_value(&model->groups[g], "lack_of_fit_f"));
        }
    return lacking;
}

static void append_lack_of_fit(const struct model *model, struct text *text) {
    double f;
    size_t lacking = count_lacking(model, &f);
    if (lacking == 0)
        return;
    (void)text_printf(text, "; significant lack of fit (F = %.3g", f);
    if (model->group_count > 1)
        (void)text_printf(text, ", in %zu of %zu groups", lacking, model->group_count);
    (void)text_append_string(text, "): the standard errors are too small");
}

/* Appends how many groups are usable and which is the worst, if groups differ; and how many have no known
 * error. */
static void append_groups(const struct model *model, struct text *text) {
    size_t usable = count_grade(model, REPORT_USABLE), unknown = count_grade(model, REPORT_UNKNOWN);
    const struct model_group *worst = NULL;
    for (size_t g = 0; model->group_count > 1 && g < model->group_count; g++)
        if (grade_group(model, &model->groups[g]) == REPORT_NOT_USABLE &&
            (!worst ||
             model_group_value(&model->groups[g], "cv_relative") > model_group_value(worst, "cv_relative")))
            worst = &model->groups[g];
    if (worst)
        (void)text_printf(text, "; %zu of %zu groups are usable, the worst is '%s'", usable,
                          model->group_count, worst->name);
    if (unknown > 0)
        (void)text_printf(text, "; the prediction error is not known for %zu of %zu groups", unknown,
                          model->group_count);
}

/* Appends how many groups have segments that SimGrid does not accept; a note of the group says which. */
static void append_refused(const struct model *model, struct text *text) {
    const struct model_group *first = NULL;
    size_t refused = 0;
    for (size_t g = model->group_count; g-- > 0;)
        if (model_group_value(&model->groups[g], "refused_by_simgrid") > 0) {
            first = &model->groups[g];
            refused++;
        }
    if (refused > 0 && model->group_count == 1)
        (void)text_append_string(text, "; SimGrid cannot use this model: see its note");
    else if (refused > 0)
        (void)text_printf(text, "; SimGrid cannot use %zu of %zu groups: see the note of group '%s'", refused,
                          model->group_count, first->name);
}

/* The verdict on a model in one sentence: usable or not, errors, domain, lack of fit. The caller frees. */
char *model_verdict(const struct model *model) {
    cleanup(text_clear) struct text text;
    double relative = greatest(model, "cv_relative"), nonpositive = total(model, "nonpositive_rows");
    enum report_grade grade = model_grade(model);
    text_init(&text, SENTENCE_BYTES_MAX); /* a sentence that is too long is cut */
    if (grade != REPORT_UNKNOWN)
        (void)text_append_string(&text, grade == REPORT_USABLE ? "usable: " : "not usable for prediction: ");
    if (is_mixture(model)) {
        append_log_score(model, &text);
    } else if (isnan(relative)) {
        (void)text_printf(&text, "fitted to %.0f rows", rows_of(model));
        append_domain(model, &text);
        (void)text_append_string(&text, "; its prediction error is not known");
    } else {
        append_scores(model, relative, greatest(model, "cv_median_relative"), &text);
        append_groups(model, &text);
    }
    append_lack_of_fit(model, &text);
    if (nonpositive > 0)
        (void)text_printf(&text,
                          "; it predicts 0 or less for %.0f of the %.0f rows that it was fitted "
                          "to",
                          nonpositive, rows_of(model));
    append_refused(model, &text);
    return xstrdup(text.bytes);
}

char *model_verdict_warning(const struct model *model, const char *name) {
    cleanup_free char *sentence = model_verdict(model);
    return model_grade(model) == REPORT_NOT_USABLE ? xformat("'%s' is %s", name, sentence) : NULL;
}

/* Adds verdict, grade and errors to SECTION; HINT, if not NULL, ends the sentence. */
void model_verdict_report(struct report_section *section, const struct model *model, const char *hint) {
    cleanup_free char *sentence = model_verdict(model);
    cleanup_free char *both = xformat("%s%s%s", sentence, hint ? "; " : "", hint ? hint : "");
    double f;
    report_verdict(section, "verdict", model_grade(model), both);
    report_number(section, "cv_relative", "cross-validated error, of the mean",
                  greatest(model, "cv_relative"), "1", 3, true);
    report_number(section, "cv_median_relative", "median relative error",
                  greatest(model, "cv_median_relative"), "1", 3, true);
    report_number(section, "groups_lacking_fit", "groups that lack fit", (double)count_lacking(model, &f),
                  "1", 0, true);
}

/* ---- The speed of matrix products */

double model_verdict_speed_of(const struct model *model, const struct model_group *group) {
    size_t t = predict_product_term(model);
    if (t == model->term_count || !(model->response_seconds > 0) || group->part_count != 1)
        return NAN;
    double seconds = group->parts[0].estimates[t].estimate * model->response_seconds;
    return seconds > 0 ? 2 / seconds : NAN;
}

/* Adds the median asymptotic speed over the groups, with the slowest and the fastest; nothing if the model
 * has no term m*n*k. */
void model_verdict_speed(struct report_section *section, const struct model *model) {
    const struct model_group *slowest = NULL, *fastest = NULL;
    cleanup(model_spread_clear) struct model_spread spread = {0};
    for (size_t g = 0; g < model->group_count; g++) {
        double speed = model_verdict_speed_of(model, &model->groups[g]);
        if (isnan(speed))
            continue;
        slowest = slowest && model_verdict_speed_of(model, slowest) <= speed ? slowest : &model->groups[g];
        fastest = fastest && model_verdict_speed_of(model, fastest) >= speed ? fastest : &model->groups[g];
        model_spread_add(&spread, speed);
    }
    if (spread.count == 0)
        return;
    double least = model_verdict_speed_of(model, slowest), most = model_verdict_speed_of(model, fastest);
    report_number(section, "speed", "asymptotic speed, from 2mnk operations",
                  model_spread_quantile(&spread, 0.5), "flop/s", 3, false);
    if (spread.count == 1)
        return;
    cleanup_free char *slow = report_format(least, "flop/s", 3), *fast = report_format(most, "flop/s", 3);
    cleanup_free char *pair = xformat("%s (%s) and %s (%s): the slowest group has %.3g %% of the speed of "
                                      "the fastest",
                                      slow, slowest->name, fast, fastest->name, 100 * least / most);
    report_text(section, "speeds", "slowest and fastest group", pair, false);
}
