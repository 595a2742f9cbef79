#include "engine/fit/choice.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/formula.h"

#include <float.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Errors whose relative difference is smaller than this are equal but for rounding. */
static const double rounding = 1e-9;

/* The log likelihood ratio of one row is limited to this, up and down. */
static const double ratio_most = 2.9957322735539909; /* log 20 */

enum { MISSING_MOST = 10 }; /* a contender that misses more than 1 of 10 rows is not compared */

/* The number of free parameters of a part's noise; TERMS is the number of its coefficients. */
static uint64_t count_noise_parameters(const struct model_noise *noise, size_t terms) {
    uint64_t count = noise->constant != 0;
    for (size_t t = 0; noise->coefficients && t < terms; t++)
        count += noise->coefficients[t] != 0;
    switch (noise->kind) {
    case MODEL_NOISE_NONE:
        return 0;
    case MODEL_NOISE_MIXTURE: /* weights that add up to 1, means about that of the part, sigmas */
        return 3 * (uint64_t)noise->component_count - 2;
    default:
        return count;
    }
}

/* Describes MODEL in CONTENDER: rows, parameters, noise, grade, formula. Breaks between segments count as
 * parameters of the mean. */
void contender_describe(struct contender *contender, const struct model *model) {
    static const char *const noises[] = {[MODEL_NOISE_NONE] = "N-0",
                                         [MODEL_NOISE_HOMOSCEDASTIC] = "N-1",
                                         [MODEL_NOISE_HETEROSCEDASTIC] = "N-2",
                                         [MODEL_NOISE_MIXTURE] = "mixture"};
    contender->groups = model->group_count;
    contender->grade = model_grade(model);
    contender->verdict = model_verdict(model);
    contender->is_segmented = model->over != NULL;
    contender->noise = model->group_count > 0 ? noises[model->groups[0].parts[0].noise.kind] : "";
    contender->formula =
        formula_print(&(struct formula){.terms = model->terms, .term_count = model->term_count});
    for (size_t g = 0; g < model->group_count; g++) {
        contender->rows += model->groups[g].rows;
        for (size_t p = 0; p < model->groups[g].part_count; p++) {
            const struct model_part *part = &model->groups[g].parts[p];
            for (size_t t = 0; t < model->term_count; t++)
                contender->mean_parameters += !part->estimates[t].dropped && !part->estimates[t].at_bound;
            contender->mean_parameters += model->over && isfinite(part->from) && p > 0;
            contender->noise_parameters += count_noise_parameters(&part->noise, model->term_count);
        }
    }
}

/* Converts the predictions of COUNT rows from unit FROM to TO. false: the units have different dimensions. */
bool contender_convert(struct contender *contender, size_t count, const char *from, const char *to) {
    double multiply = 1, divide = 1;
    if (from && to && !unit_conversion(from, to, &multiply, &divide))
        return false;
    for (size_t row = 0; row < count; row++) {
        contender->predicted[row].mean *= multiply / divide;
        contender->predicted[row].sigma *= multiply / divide;
        contender->predicted[row].log_density -= log(multiply / divide);
    }
    return true;
}

void contender_clear(struct contender *contender) {
    free(contender->formula), free(contender->verdict), free(contender->predicted);
}

/* ---- On which rows */

static bool predicts(const struct contender *contender, size_t row) {
    return contender->predicted && !isnan(contender->predicted[row].mean);
}

/* Decides which contenders are compared, and lists in RET_ROWS the rows that all of these predict. Returns
 * the number of such rows; RET_BEYOND is the number of rows that only some contenders predict. */
static size_t find_common_rows(struct contender *contenders, size_t count, size_t rows, uint32_t *ret_rows,
                               uint64_t *ret_beyond) {
    size_t any = 0, common = 0;
    for (size_t i = 0; i < count; i++)
        contenders[i].missing = 0;
    for (size_t row = 0; row < rows; row++) {
        bool predicted_by_any = false;
        for (size_t i = 0; i < count; i++)
            predicted_by_any = predicted_by_any || predicts(&contenders[i], row);
        for (size_t i = 0; predicted_by_any && i < count; i++)
            contenders[i].missing += !predicts(&contenders[i], row);
        any += predicted_by_any;
    }
    for (size_t i = 0; i < count; i++)
        contenders[i].is_compared =
            any > 0 && contenders[i].predicted && contenders[i].missing <= any / MISSING_MOST;
    for (size_t row = 0; row < rows; row++) {
        bool predicted_by_all = any > 0;
        for (size_t i = 0; predicted_by_all && i < count; i++)
            predicted_by_all = !contenders[i].is_compared || predicts(&contenders[i], row);
        if (predicted_by_all)
            ret_rows[common++] = (uint32_t)row;
    }
    *ret_beyond = any > common ? any - common : 0;
    return common;
}

/* ---- The rule */

struct comparison {
    struct contender *contenders;
    size_t count;
    const struct score_rows *rows;
    const uint32_t *rows_of; /* the common rows */
    size_t row_count;
    double *sigma;            /* by row: standard deviation of the common noise */
    struct score_row *ratios; /* by row: log likelihood ratio of two contenders, scratch */
    struct score_row *zeros;  /* by row: 0, which the ratios are compared with */
};

enum noise { OWN_NOISE, COMMON_NOISE };

/* Mean log likelihood of a row under contender A minus that under B, and its standard error over settings
 * into RET_ERROR. The ratio of each row is limited (Huber 1965), so that no single row decides. */
static double mean_log_ratio(const struct comparison *of, size_t a, size_t b, enum noise noise,
                             double *ret_error) {
    const struct score_row *one = of->contenders[a].predicted, *other = of->contenders[b].predicted;
    for (size_t i = 0; i < of->row_count; i++) {
        size_t row = of->rows_of[i];
        double y = of->rows->response[row], by = of->sigma[row],
               ratio = noise == OWN_NOISE ? one[row].log_density - other[row].log_density
                                          : (one[row].mean - other[row].mean) / by *
                                                ((y - one[row].mean) / by + (y - other[row].mean) / by) / 2;
        of->ratios[row].log_density = fmin(fmax(ratio, -ratio_most), ratio_most);
    }
    struct score_difference mean = score_compare(of->rows, of->zeros, of->ratios, of->rows_of, of->row_count);
    *ret_error = mean.log_score_error;
    return mean.log_score;
}

static bool is_within(double below, double limit) {
    return below <= fmax(limit, rounding);
}

static bool has_noise(const struct contender *contender) {
    return !isnan(contender->score.log_score);
}

/* The likeliest of the contenders that are AMONG; of equal ones the first. With OWN_NOISE only contenders
 * with a noise in every common row count. SIZE_MAX: there is none. */
static size_t find_likeliest(const struct comparison *of, const bool *among, enum noise noise) {
    size_t best = SIZE_MAX;
    double error;
    for (size_t i = 0; i < of->count; i++)
        if (among[i] && (noise == COMMON_NOISE || has_noise(&of->contenders[i])) &&
            (best == SIZE_MAX || mean_log_ratio(of, i, best, noise, &error) > rounding))
            best = i;
    return best;
}

/* Sets the common noise of each row: that of the likeliest contender, or, where no contender has a noise, the
 * least root mean squared error of all. Never below rounding of the response. */
static void find_common_noise(const struct comparison *of, const bool *compared) {
    size_t likeliest = find_likeliest(of, compared, OWN_NOISE);
    double least = INFINITY;
    for (size_t i = 0; i < of->count; i++)
        least = compared[i] ? fmin(least, of->contenders[i].score.rmse) : least;
    for (size_t i = 0; i < of->row_count; i++) {
        size_t row = of->rows_of[i];
        double weight = of->rows->weights ? of->rows->weights[row] : 1,
               sigma = likeliest != SIZE_MAX ? of->contenders[likeliest].predicted[row].sigma
                                             : least / sqrt(weight);
        of->sigma[row] = fmax(fmax(sigma, rounding * fabs(of->rows->response[row])), DBL_MIN);
    }
}

/* Whether two contenders have the same mean, and differ by their noise alone. */
static bool is_same_mean(const struct contender *one, const struct contender *other) {
    return one->mean_parameters == other->mean_parameters && one->groups == other->groups &&
           one->is_segmented == other->is_segmented &&
           (one->formula == other->formula ||
            (one->formula && other->formula && strcmp(one->formula, other->formula) == 0));
}

/* Whether the mean of ONE goes before that of OTHER, both being as likely as the best but for chance. */
static bool is_mean_preferred(const struct contender *one, const struct contender *other) {
    if (one->mean_parameters != other->mean_parameters)
        return one->mean_parameters < other->mean_parameters;
    if (one->is_segmented != other->is_segmented)
        return !one->is_segmented;
    return one->below < other->below;
}

/* Returns the contender with the simplest mean among those as likely as the best, within CHOICE_MEAN_ERRORS
 * standard errors; the best goes to RET, and each contender's distance to it to `below`. */
static size_t choose_mean(struct comparison *of, const bool *compared, struct choice *ret) {
    struct contender *all = of->contenders;
    size_t chosen = ret->best = find_likeliest(of, compared, COMMON_NOISE);
    for (size_t i = 0; i < of->count; i++) {
        if (!compared[i] || i == ret->best)
            continue;
        all[i].below = mean_log_ratio(of, ret->best, i, COMMON_NOISE, &all[i].below_error);
        if (is_within(all[i].below, CHOICE_MEAN_ERRORS * all[i].below_error) &&
            is_mean_preferred(&all[i], &all[chosen]))
            chosen = i;
    }
    return chosen;
}

/* Returns, of the contenders with the same mean as MEAN, the one with the simplest noise whose likelihood is
 * within one standard error of the best. */
static size_t choose_noise(const struct comparison *of, const bool *compared, size_t mean) {
    const struct contender *all = of->contenders;
    cleanup_free bool *same = xcalloc(of->count + 1, sizeof *same);
    for (size_t i = 0; i < of->count; i++)
        same[i] = compared[i] && is_same_mean(&all[i], &all[mean]);
    size_t likeliest = find_likeliest(of, same, OWN_NOISE), chosen = likeliest;
    for (size_t i = 0; likeliest != SIZE_MAX && i < of->count; i++) {
        if (!same[i] || !has_noise(&all[i]) || all[i].noise_parameters > all[chosen].noise_parameters)
            continue;
        double error, below = mean_log_ratio(of, likeliest, i, OWN_NOISE, &error);
        if (is_within(below, error) && (all[i].noise_parameters < all[chosen].noise_parameters || i < chosen))
            chosen = i;
    }
    return chosen == SIZE_MAX ? mean : chosen;
}

/* Compares the contenders on the rows that they all predict and chooses the simplest sufficient one
 * (choice.h). With no common row, best and sufficient stay SIZE_MAX. */
void choice_make(struct contender *contenders, size_t count, const struct score_rows *rows,
                 struct choice *ret) {
    cleanup_free uint32_t *rows_of = xcalloc(rows->count + 1, sizeof *rows_of);
    cleanup_free bool *compared = xcalloc(count + 1, sizeof *compared);
    cleanup_free double *sigma = xcalloc(rows->count + 1, sizeof *sigma);
    cleanup_free struct score_row *ratios = xcalloc(2 * rows->count + 1, sizeof *ratios);
    struct comparison of = {.contenders = contenders,
                            .count = count,
                            .rows = rows,
                            .rows_of = rows_of,
                            .sigma = sigma,
                            .ratios = ratios,
                            .zeros = ratios + rows->count};
    *ret = (struct choice){.best = SIZE_MAX, .sufficient = SIZE_MAX};
    of.row_count = find_common_rows(contenders, count, rows->count, rows_of, &ret->rows_beyond);
    ret->rows = of.row_count;
    for (size_t i = 0; i < count && ret->rows > 0; i++) {
        compared[i] = contenders[i].is_compared;
        if (compared[i])
            contenders[i].score = score_sum(rows, contenders[i].predicted, rows_of, of.row_count);
    }
    if (ret->rows == 0)
        return;
    find_common_noise(&of, compared);
    ret->sufficient = choose_noise(&of, compared, choose_mean(&of, compared, ret));
}

/* ---- The report */

/* Above this share of the mean no model is said to predict well. */
static const double relative_most = 0.5;

/* Adds the scores of CONTENDER to its row of TABLE; empty cells if it was not compared. */
static void report_scores(struct report_table *table, const struct contender *contender,
                          const struct choice *choice) {
    bool is_compared = contender->is_compared && choice->best != SIZE_MAX;
    const struct score *score = &contender->score;
    const double numbers[] = {
        score->rmse,      score->rmse_error,          score->relative,  score->median_relative,
        contender->below, contender->below_error,     score->log_score, score->bias,
        score->coverage,  (double)score->extrapolated};
    for (size_t k = 0; k < sizeof numbers / sizeof *numbers; k++)
        report_cell(table, is_compared ? numbers[k] : NAN);
}

/* Explains the mark *, and warns where no model was chosen or even the chosen one predicts badly. */
static void report_sufficient(struct report_section *in, const struct contender *contenders,
                              const struct choice *choice) {
    if (choice->sufficient == SIZE_MAX) {
        report_note(in, REPORT_WARNING, "no model could be compared: no row is predicted by all of them");
        return;
    }
    const struct contender *sufficient = &contenders[choice->sufficient];
    report_note(in, REPORT_LINE,
                "* is the simplest sufficient model: among the models whose log "
                "likelihood of a row is at most %g standard errors below the best "
                "model's (+), it has the fewest parameters of the mean, and the "
                "simplest noise within one standard error",
                CHOICE_MEAN_ERRORS);
    if (sufficient->grade != REPORT_NOT_USABLE && sufficient->score.relative > relative_most)
        report_note(in, REPORT_WARNING,
                    "no model predicts well: even the error of the model marked * is %.3g "
                    "%% of the mean",
                    100 * sufficient->score.relative);
}

/* Adds a table of all contenders, with a mark for the best and the sufficient one (choice.h). */
void choice_report(struct report_section *in, const struct column *columns, const char *const *labels,
                   size_t label_count, const struct contender *contenders, size_t count,
                   const struct choice *choice, const char *unit) {
    enum { MODEL_COLUMNS = 6, SCORE_COLUMNS = 10 };
    const struct column own[MODEL_COLUMNS + SCORE_COLUMNS] = {
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
    bool is_compared = choice->rows > 0;
    cleanup_free struct column *all = xcalloc(1 + label_count + MODEL_COLUMNS + SCORE_COLUMNS, sizeof *all);
    size_t columns_count = 0;
    all[columns_count++] = (struct column){.name = "mark", .label = ""};
    for (size_t k = 0; k < label_count; k++)
        all[columns_count++] = columns[k];
    for (size_t k = 0; k < MODEL_COLUMNS + (is_compared ? SCORE_COLUMNS : 0); k++)
        all[columns_count++] = own[k];
    struct report_table *table = report_table(in, "models", NULL, all, columns_count);
    for (size_t i = 0; i < count; i++) {
        const struct contender *contender = &contenders[i];
        if (!labels[i * label_count])
            continue;
        report_cell_text(table, !is_compared              ? ""
                                : i == choice->sufficient ? "*"
                                : i == choice->best       ? "+"
                                                          : "");
        for (size_t k = 0; k < label_count; k++)
            report_cell_text(table, labels[i * label_count + k]);
        report_cell_text(table, contender->formula ? contender->formula : "");
        report_cell(table, (double)contender->rows);
        report_cell(table, (double)contender->groups);
        report_cell_text(table, contender->noise ? contender->noise : "");
        report_cell(table, (double)(contender->mean_parameters + contender->noise_parameters));
        report_cell_text(table, report_grade_word(contender->grade));
        if (is_compared)
            report_scores(table, contender, choice);
    }
    if (is_compared)
        report_sufficient(in, contenders, choice);
}
