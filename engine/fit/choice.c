#include "engine/fit/choice.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/model/formula.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Errors that differ by less, relatively, differ by rounding. */
static const double rounding = 1e-9;

enum { MISSING_MOST = 10 }; /* one row of so many is the most that a contender need not predict */

static uint64_t count_noise(const struct model_noise *noise, size_t terms) {
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

/* Breaks between segments count as coefficients do. */
void contender_describe(struct contender *contender, const struct model *model) {
    static const char *const noises[] = {[MODEL_NOISE_NONE] = "N-0",
                                         [MODEL_NOISE_HOMOSCEDASTIC] = "N-1",
                                         [MODEL_NOISE_HETEROSCEDASTIC] = "N-2",
                                         [MODEL_NOISE_MIXTURE] = "mixture"};
    contender->groups = model->group_count;
    contender->grade = model_grade(model);
    contender->verdict = model_verdict(model);
    contender->noise = model->group_count > 0 ? noises[model->groups[0].parts[0].noise.kind] : "";
    contender->formula =
        formula_print(&(struct formula){.terms = model->terms, .term_count = model->term_count});
    for (size_t g = 0; g < model->group_count; g++) {
        contender->rows += model->groups[g].rows;
        for (size_t p = 0; p < model->groups[g].part_count; p++) {
            const struct model_part *part = &model->groups[g].parts[p];
            for (size_t t = 0; t < model->term_count; t++)
                contender->of_mean += !part->estimates[t].dropped && !part->estimates[t].at_bound;
            contender->of_mean += model->over && isfinite(part->from) && p > 0;
            contender->of_noise += count_noise(&part->noise, model->term_count);
        }
    }
}

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

double contender_above(const struct contender *contender, const struct contender *least, double *ret_error) {
    double sum = contender->score.rmse + least->score.rmse;
    *ret_error = sum > 0 ? contender->above.squares_error / sum : 0;
    return sum > 0 ? contender->above.squares / sum : 0;
}

/* ---- On which rows */

static bool predicts(const struct contender *contender, size_t row) {
    return contender->predicted && !isnan(contender->predicted[row].mean);
}

/* Who is judged, and the rows that all of them predict, into RET_ROWS. Returns how many. */
static size_t find_rows(struct contender *contenders, size_t count, size_t rows, uint32_t *ret_rows,
                        uint64_t *ret_beyond) {
    size_t any = 0, common = 0;
    for (size_t i = 0; i < count; i++)
        contenders[i].missing = 0;
    for (size_t row = 0; row < rows; row++) {
        bool by_some = false;
        for (size_t i = 0; i < count; i++)
            by_some = by_some || predicts(&contenders[i], row);
        for (size_t i = 0; by_some && i < count; i++)
            contenders[i].missing += !predicts(&contenders[i], row);
        any += by_some;
    }
    for (size_t i = 0; i < count; i++)
        contenders[i].is_judged =
            any > 0 && contenders[i].predicted && contenders[i].missing <= any / MISSING_MOST;
    for (size_t row = 0; row < rows; row++) {
        bool by_all = any > 0;
        for (size_t i = 0; by_all && i < count; i++)
            by_all = !contenders[i].is_judged || predicts(&contenders[i], row);
        if (by_all)
            ret_rows[common++] = (uint32_t)row;
    }
    *ret_beyond = any > common ? any - common : 0;
    return common;
}

/* ---- The rule */

/* Of the NEAR ones with as few parameters of the mean as there are. */
static void choose_noise(const struct contender *contenders, size_t count, const bool *near,
                         const struct score_rows *rows, const uint32_t *rows_of, struct choice *ret) {
    uint64_t fewest = UINT64_MAX;
    for (size_t i = 0; i < count; i++)
        fewest = near[i] && contenders[i].of_mean < fewest ? contenders[i].of_mean : fewest;
    for (size_t i = 0; i < count; i++) {
        double score = contenders[i].score.log_score;
        if (near[i] && contenders[i].of_mean == fewest && !isnan(score) &&
            (ret->best_score == SIZE_MAX || score > contenders[ret->best_score].score.log_score))
            ret->best_score = i;
    }
    for (size_t i = 0; i < count; i++) {
        const struct contender *one = &contenders[i],
                               *other = ret->sufficient == SIZE_MAX ? NULL : &contenders[ret->sufficient];
        if (!near[i] || one->of_mean > fewest)
            continue;
        if (ret->best_score != SIZE_MAX && i != ret->best_score) {
            struct score_difference below = score_compare(
                rows, one->predicted, contenders[ret->best_score].predicted, rows_of, (size_t)ret->rows);
            if (!(below.log_score <= fmax(below.log_score_error, rounding)))
                continue;
        }
        if (!other || one->of_noise < other->of_noise ||
            (one->of_noise == other->of_noise && one->score.rmse < other->score.rmse * (1 - rounding)))
            ret->sufficient = i;
    }
}

void choice_make(struct contender *contenders, size_t count, const struct score_rows *rows,
                 struct choice *ret) {
    cleanup_free uint32_t *rows_of = xcalloc(rows->count + 1, sizeof *rows_of);
    cleanup_free bool *near = xcalloc(count + 1, sizeof *near);
    *ret = (struct choice){.least = SIZE_MAX, .best_score = SIZE_MAX, .sufficient = SIZE_MAX};
    ret->rows = find_rows(contenders, count, rows->count, rows_of, &ret->rows_beyond);
    for (size_t i = 0; i < count && ret->rows > 0; i++) {
        if (!contenders[i].is_judged)
            continue;
        contenders[i].score = score_sum(rows, contenders[i].predicted, rows_of, (size_t)ret->rows);
        if (ret->least == SIZE_MAX || contenders[i].score.rmse < contenders[ret->least].score.rmse)
            ret->least = i;
    }
    if (ret->least == SIZE_MAX)
        return;
    for (size_t i = 0; i < count; i++) {
        if (!contenders[i].is_judged || i == ret->least)
            continue;
        contenders[i].above = score_compare(rows, contenders[i].predicted, contenders[ret->least].predicted,
                                            rows_of, (size_t)ret->rows);
        double least = contenders[ret->least].score.rmse;
        near[i] =
            contenders[i].above.squares <= fmax(contenders[i].above.squares_error, rounding * least * least);
    }
    near[ret->least] = true;
    choose_noise(contenders, count, near, rows, rows_of, ret);
}
