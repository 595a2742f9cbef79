#include "engine/plugin/alternatives.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/cross-validation.h"
#include "engine/plugin/grouping.h"
#include "engine/plugin/model-summary.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const char *const terms_words[] = {"M-0", "M-1", "M-2"};
static const char *const noise_words[] = {"N-0", "N-1", "N-2"};
enum { TERMS = 3, NOISES = 3 };

/* What the alternatives have in common. */
struct comparison {
    const struct fitting *fitting;
    uint8_t *folds;
    uint32_t fold_count;
    size_t judged;
    double *parameters; /* of the plugin, those of the alternative in hand */
    size_t noise;       /* which of them is `noise`; SIZE_MAX: the plugin has none */
    uint32_t *groups;   /* of each kept row, by the columns in hand */
    uint32_t group_count;
    struct held_out *held_out; /* room for all groups */
    char *last_formula;        /* terms by name, of the one before: M-2 over one size is M-1 */
};

static void comparison_clear(struct comparison *comparison) {
    free(comparison->folds);
    free(comparison->parameters);
    free(comparison->groups);
    free(comparison->held_out);
    free(comparison->last_formula);
}

/* ---- Parameters */

static size_t find_parameter(const struct fit_operations *operations, const char *name) {
    for (size_t i = 0; i < operations->parameter_count; i++)
        if (strcmp(operations->parameters[i].name, name) == 0)
            return i;
    return SIZE_MAX;
}

/* Sets a parameter of words to WORD, if there is such a one. */
static bool set_word(struct comparison *comparison, const char *name, const char *word) {
    const struct fit_operations *operations = fitting_plugin(comparison->fitting)->operations;
    size_t i = find_parameter(operations, name);
    if (i == SIZE_MAX || !operations->parameters[i].words)
        return false;
    for (size_t w = 0; operations->parameters[i].words[w]; w++)
        if (strcmp(operations->parameters[i].words[w], word) == 0) {
            comparison->parameters[i] = (double)w;
            return true;
        }
    return false;
}

/* As the user set them, but all terms stay and nothing is cross-validated within. */
static int read_parameters(struct comparison *comparison) {
    const struct fit_operations *operations = fitting_plugin(comparison->fitting)->operations;
    size_t folds = find_parameter(operations, "folds");
    comparison->parameters = calloc((size_t)operations->parameter_count + 1, sizeof(double));
    if (!comparison->parameters)
        return -ENOMEM;
    for (size_t i = 0; i < operations->parameter_count; i++)
        comparison->parameters[i] = fitting_parameter(comparison->fitting, i);
    if (folds != SIZE_MAX)
        comparison->parameters[folds] = 0;
    set_word(comparison, "select", "none");
    comparison->noise = find_parameter(operations, "noise");
    return 0;
}

/* ---- Groups */

/* Numbers the groups of the rows that are not left out anew, as grouping does: by first appearance. */
static int number_groups(struct comparison *comparison, const uint32_t *codes, uint32_t count) {
    cleanup_free uint32_t *numbers = xcalloc((size_t)count + 1, sizeof *numbers); /* from 1 */
    comparison->group_count = 0;
    for (size_t i = 0; i < fitting_kept_rows(comparison->fitting)->count; i++) {
        bool left_out = comparison->folds[i] == FOLDS_NONE;
        if (!left_out && numbers[codes[i]] == 0)
            numbers[codes[i]] = ++comparison->group_count;
        comparison->groups[i] = left_out ? 0 : numbers[codes[i]] - 1;
    }
    return 0;
}

/* The groups of the kept rows by the first BY_COUNT columns. */
static int form_groups(struct comparison *comparison, size_t by_count, struct failure *failure) {
    const struct kept_rows *kept = fitting_kept_rows(comparison->fitting);
    cleanup(grouping_cleanup) struct grouping *grouping = NULL;
    const uint32_t *codes;
    int r = kept_rows_group(kept, by_count, &grouping, &codes, failure);
    return r < 0 ? r : number_groups(comparison, codes, grouping_count(grouping));
}

/* ---- One alternative */

static char *formula_of(const struct predict_model *model) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 16);
    for (size_t t = 0; t < model->term_count; t++)
        if (text_printf(&text, "+%s", model->terms[t].name) < 0)
            return NULL;
    return text_take(&text);
}

/* Fits it once to all rows. 1: it is the same as the one before. */
static int fit_once(struct comparison *comparison, struct refit *refit, struct alternative *alternative,
                    struct failure *failure) {
    cleanup(fitted_model_cleanup) struct fitted_model *model = NULL;
    clock_t start = clock();
    int r = refit_run(refit, &model, failure);
    if (r < 0)
        return r;
    alternative->seconds = (double)(clock() - start) / CLOCKS_PER_SEC;
    alternative->parameters = model_summary_parameters(fitted_model_view(model));
    size_t fitted = fitted_model_view(model)->group_count;
    if (fitted < refit->group_count)
        return failure_input(failure, NULL, 0, 0, "%zu of %u groups cannot be fitted",
                             refit->group_count - fitted, refit->group_count);
    char *formula = formula_of(fitted_model_view(model));
    bool same = formula && comparison->last_formula && strcmp(formula, comparison->last_formula) == 0;
    free(comparison->last_formula);
    comparison->last_formula = formula;
    return formula ? same : failure_memory(failure);
}

static void give_reason(struct alternative *alternative, const struct failure *failure) {
    snprintf(alternative->reason, sizeof alternative->reason, "%.*s", (int)sizeof alternative->reason - 1,
             failure->text);
}

/* By the first BY_COUNT columns; of all rows that are not left out. */
static struct refit refit_of(const struct comparison *comparison, const char *terms, size_t by_count,
                             struct fit_request *request) {
    *request = *fitting_request(comparison->fitting);
    request->terms = terms;
    request->by = fitting_options(comparison->fitting)->by;
    request->by_count = by_count;
    request->parameters = comparison->parameters;
    request->suggested = false;
    return (struct refit){
        .fitting = comparison->fitting,
        .request = request,
        .groups = comparison->groups,
        .group_count = comparison->group_count,
        .folds = comparison->folds,
        .left_out = FOLDS_NONE,
    };
}

/* Groups that some terms are too many for. */
static int leave_out_small(struct comparison *comparison, struct small_groups *ret, struct failure *failure) {
    size_t terms[TERMS];
    int r = form_groups(comparison, 0, failure);
    for (size_t t = 0; r == 0 && t < TERMS; t++) {
        cleanup(fitted_model_cleanup) struct fitted_model *model = NULL;
        struct failure own = {0}; /* is told where it is judged */
        struct fit_request request;
        struct refit refit = refit_of(comparison, terms_words[t], 0, &request);
        if (refit_run(&refit, &model, &own) == -ENOMEM)
            return failure_memory(failure);
        terms[t] = model ? fitted_model_view(model)->term_count : 0;
    }
    return r < 0 ? r
                 : small_groups_leave_out(comparison->fitting, comparison->fold_count, terms, TERMS,
                                          comparison->folds, ret, failure);
}

/* 1 where the terms are those of the one before, which then stands for both. */
static int judge(struct comparison *comparison, struct alternative *alternative, bool first_noise,
                 struct failure *failure) {
    struct fit_request request;
    struct refit refit = refit_of(comparison, alternative->terms, alternative->by_count, &request);
    struct failure own = {0};
    size_t most = (fitting_options(comparison->fitting)->by_count + 1) * TERMS * NOISES;
    fitting_tell(comparison->fitting, &(struct fitting_stage){"candidates", comparison->judged++, most, 0});
    alternative->groups = comparison->group_count;
    alternative->seconds = NAN;
    int r = fit_once(comparison, &refit, alternative, &own);
    if (r > 0 && first_noise)
        return 1;
    r = r < 0 ? r
              : cross_validation_run(&refit, comparison->folds, comparison->fold_count, false,
                                     comparison->held_out, &own);
    if (r == -ENOMEM)
        return failure_memory(failure);
    if (r < 0) {
        give_reason(alternative, &own);
        return 0;
    }
    for (uint32_t g = 0; g < comparison->group_count; g++)
        held_out_join(&alternative->errors, &comparison->held_out[g]);
    if (alternative->errors.missing > 0)
        snprintf(alternative->reason, sizeof alternative->reason,
                 "some groups cannot be fitted without a fold of their rows");
    return 0;
}

/* N-0 is N-1 without its noise. */
static void without_noise(const struct alternative *from, struct alternative *ret) {
    *ret = *from;
    ret->noise = noise_words[0];
    ret->parameters -= from->errors.scored > 0 ? from->groups : 0;
    ret->errors.scored = 0;
}

/* All kinds of noise of the terms and groups in hand. */
static int judge_noises(struct comparison *comparison, const char *terms, size_t by_count,
                        struct alternatives *ret, struct failure *failure) {
    bool noisy = set_word(comparison, "noise", noise_words[1]);
    for (size_t n = noisy ? 1 : 0; n < (noisy ? NOISES : 1); n++) {
        if (noisy && !set_word(comparison, "noise", noise_words[n]))
            continue;
        /* Without terms there is nothing that N-2 could grow with. */
        if (n == 2 && strcmp(terms, terms_words[0]) == 0)
            continue;
        size_t at = ret->count + (n == 1);
        struct alternative *alternative = &ret->items[at];
        *alternative = (struct alternative){.terms = terms, .noise = noise_words[n], .by_count = by_count};
        int r = judge(comparison, alternative, n < 2, failure);
        if (r != 0)
            return r < 0 ? r : 0;
        if (n == 1)
            without_noise(alternative, alternative - 1);
        ret->count = at + 1;
    }
    return 0;
}

/* ---- Which one suffices */

/* Whether A is as good as B but for what chance does: within one standard error of B's. */
static bool is_near(const struct alternative *a, const struct alternative *b) {
    return held_out_rmse(&a->errors) <= held_out_rmse(&b->errors) + held_out_rmse_error(&b->errors);
}

/* The one with the least error; of equals, which differ in noise, the first. */
static size_t least_error(const struct alternatives *alternatives) {
    size_t best = SIZE_MAX;
    for (size_t i = 0; i < alternatives->count; i++) {
        double rmse = held_out_rmse(&alternatives->items[i].errors);
        if (!isnan(rmse) && (best == SIZE_MAX || rmse < held_out_rmse(&alternatives->items[best].errors)))
            best = i;
    }
    return best;
}

/* Of the same terms and groups as AT: the simplest noise that is as good as the best. */
static size_t choose_noise(const struct alternatives *alternatives, size_t at, bool best_only) {
    const struct alternative *of = &alternatives->items[at];
    size_t best = SIZE_MAX, simplest = SIZE_MAX;
    for (size_t i = 0; i < alternatives->count; i++) {
        const struct alternative *item = &alternatives->items[i];
        double score = held_out_score(&item->errors);
        if (strcmp(item->terms, of->terms) != 0 || item->by_count != of->by_count || isnan(score))
            continue;
        if (best == SIZE_MAX || score > held_out_score(&alternatives->items[best].errors))
            best = i;
    }
    if (best == SIZE_MAX || best_only)
        return best == SIZE_MAX ? at : best;
    const struct held_out *errors = &alternatives->items[best].errors;
    double least = held_out_score(errors) - held_out_score_error(errors);
    for (size_t i = 0; i < alternatives->count; i++) {
        const struct alternative *item = &alternatives->items[i];
        if (strcmp(item->terms, of->terms) == 0 && item->by_count == of->by_count &&
            held_out_score(&item->errors) >= least && simplest == SIZE_MAX)
            simplest = i;
    }
    return simplest == SIZE_MAX ? best : simplest;
}

static void choose(struct alternatives *alternatives) {
    size_t least = least_error(alternatives), simplest = least;
    alternatives->least = least;
    alternatives->best = alternatives->sufficient = SIZE_MAX;
    if (least == SIZE_MAX)
        return;
    for (size_t i = 0; i < alternatives->count; i++) {
        const struct alternative *item = &alternatives->items[i];
        if (is_near(item, &alternatives->items[least]) &&
            item->parameters < alternatives->items[simplest].parameters)
            simplest = i;
    }
    alternatives->best = choose_noise(alternatives, least, true);
    alternatives->sufficient = choose_noise(alternatives, simplest, false);
}

/* ---- Life */

int alternatives_init(struct alternatives *alternatives, const struct fitting *fitting, uint32_t folds,
                      struct failure *failure) {
    *alternatives =
        (struct alternatives){.folds = folds, .sufficient = SIZE_MAX, .best = SIZE_MAX, .least = SIZE_MAX};
    cleanup(comparison_clear) struct comparison comparison = {.fitting = fitting, .fold_count = folds};
    const struct kept_rows *kept = fitting_kept_rows(fitting);
    size_t by_count = fitting_options(fitting)->by_count;
    comparison.groups = calloc(kept->count + 1, sizeof *comparison.groups);
    comparison.held_out = calloc((size_t)fitting_group_count(fitting) + 1, sizeof *comparison.held_out);
    alternatives->items = calloc((by_count + 1) * TERMS * NOISES, sizeof *alternatives->items);
    if (!comparison.groups || !comparison.held_out || !alternatives->items ||
        read_parameters(&comparison) < 0 || fitting_kept_folds(fitting, folds, &comparison.folds) < 0)
        return failure_memory(failure);
    int r = by_count > 0 ? leave_out_small(&comparison, &alternatives->left_out, failure) : 0;
    for (size_t prefix = 0; r == 0 && prefix <= by_count; prefix++) {
        r = form_groups(&comparison, prefix, failure);
        free(comparison.last_formula);
        comparison.last_formula = NULL;
        for (size_t t = 0; r == 0 && t < TERMS; t++)
            r = judge_noises(&comparison, terms_words[t], prefix, alternatives, failure);
    }
    if (r == 0)
        choose(alternatives);
    return r;
}

void alternatives_clear(struct alternatives *alternatives) {
    free(alternatives->items);
    small_groups_clear(&alternatives->left_out);
    *alternatives = (struct alternatives){0};
}
