/* assay fit compare: models side by side, also on rows that they have not seen. */
#include "engine/command-line/fit-print.h"
#include "engine/command-line/fit-request.h"
#include "engine/command-line/fit-verbs.h"
#include "engine/command-line/shown.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model-trial.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    GROUPS_SHOWN = 4,
    TERMS_MAX = 1024,
    OUTPUT_MAX = 16 << 20,
    COLUMN = 16, /* characters of one model's column */
};

struct comparison {
    struct model *models[MODEL_TRIAL_MAX];
    const struct predict_model *views[MODEL_TRIAL_MAX];
    struct model_summary summaries[MODEL_TRIAL_MAX];
    size_t count;
    const char *terms[TERMS_MAX]; /* of all models together, by name */
    size_t term_count;
    bool tried; /* on rows: */
    struct model_trial trial;
    const char *apart;     /* why there is no verdict, as a clause; or NULL */
    size_t simplest, best; /* SIZE_MAX: no errors to compare */
    size_t scored;         /* of those with the mean of `simplest` the one with the best log score; SIZE_MAX:
                              none has one, or there is no other */
    size_t rivals;         /* how many these are */
};

static void comparison_clear(struct comparison *comparison) {
    for (size_t i = 0; i < comparison->count; i++)
        model_free(comparison->models[i]);
}

/* "A", "B", ... */
static const char *letter(size_t i, char buffer[static 2]) {
    buffer[0] = (char)('A' + i);
    buffer[1] = '\0';
    return buffer;
}

/* ---- Reading */

static int add_terms(struct comparison *comparison, const struct predict_model *view,
                     struct failure *failure) {
    for (size_t t = 0; t < view->term_count; t++) {
        size_t i = 0;
        while (i < comparison->term_count && strcmp(comparison->terms[i], view->terms[t].name) != 0)
            i++;
        if (i == TERMS_MAX)
            return failure_input(failure, view->name, 0, 0, "the models have more than %d different terms",
                                 (int)TERMS_MAX);
        if (i == comparison->term_count)
            comparison->terms[comparison->term_count++] = view->terms[t].name;
    }
    return 0;
}

static int read_models(const struct verb_arguments *arguments, struct comparison *ret,
                       struct failure *failure) {
    size_t count = arguments->operand_count - 1;
    if (count < 2 || count > MODEL_TRIAL_MAX)
        return failure_input(failure, NULL, 0, 0, "'compare' is given %zu model%s; expected 2 to %d", count,
                             count == 1 ? "" : "s", (int)MODEL_TRIAL_MAX);
    for (size_t i = 0; i < count; i++) {
        int r = model_read(arguments->operands[i + 1], &ret->models[i], failure);
        if (r < 0)
            return r;
        ret->count = i + 1;
        ret->views[i] = model_view(ret->models[i]);
        r = model_summary_read(ret->models[i], &ret->summaries[i], failure);
        r = r < 0 ? r : add_terms(ret, ret->views[i], failure);
        if (r < 0)
            return r;
    }
    return 0;
}

static int try_models(const struct verb_arguments *arguments, struct comparison *comparison,
                      struct failure *failure) {
    cleanup(table_stream_cleanup) struct table *table = NULL;
    cleanup_free const char **inputs = xcalloc(arguments->option_count + 1, sizeof *inputs);
    size_t count = 0;
    for (const char *input; (input = verb_value_at(arguments, "--data", count));)
        inputs[count++] = input;
    if (count == 0)
        return 0;
    int r = table_stream_open(inputs, count, false, &table, failure);
    if (r == 0)
        fitting_request_notes(table);
    r = r < 0 ? r
              : model_trial_run((const struct model *const *)comparison->models, comparison->summaries,
                                comparison->count, table, &comparison->trial, failure);
    comparison->tried = r == 0;
    return r;
}

/* ---- Which one suffices */

/* The error of model I on rows that it was not fitted to; its standard error too. Of what the file says only
 * the number of rows is known: the standard error is that of normal errors. */
static double error_of(const struct comparison *comparison, size_t i, double *ret_standard_error) {
    if (comparison->tried) {
        *ret_standard_error = held_out_rmse_error(&comparison->trial.errors[i]);
        return held_out_rmse(&comparison->trial.errors[i]);
    }
    const struct model_summary *summary = &comparison->summaries[i];
    *ret_standard_error = summary->cv_rmse / sqrt(2 * (double)summary->rows);
    return summary->cv_rmse;
}

/* The same of the log score; from a file that of a normal noise: half of t^2 has the variance 1/2. */
static double score_of(const struct comparison *comparison, size_t i, double *ret_standard_error) {
    if (comparison->tried) {
        *ret_standard_error = held_out_score_error(&comparison->trial.errors[i]);
        return held_out_score(&comparison->trial.errors[i]);
    }
    const struct model_summary *summary = &comparison->summaries[i];
    *ret_standard_error = 1 / sqrt(2 * (double)summary->rows);
    return summary->cv_log_score;
}

static uint64_t of_mean(const struct comparison *comparison, size_t i) {
    return comparison->summaries[i].parameters - comparison->summaries[i].of_noise;
}

/* Errors on rows of their own are compared only where these are the same. */
static const char *find_difference(const struct comparison *comparison) {
    const char *why = NULL;
    for (size_t i = 1; !comparison->tried && !why && i < comparison->count; i++)
        why = model_summary_difference(comparison->models[0], comparison->models[i]);
    return why;
}

/* The one with the least error, and how large its error may be for others to be as good. SIZE_MAX: some model
 * has none, and they can only be judged together. */
static size_t find_least(const struct comparison *comparison, double *ret_most) {
    size_t best = SIZE_MAX;
    double spread, least = 0;
    for (size_t i = 0; i < comparison->count; i++) {
        double error = error_of(comparison, i, &spread);
        if (isnan(error))
            return SIZE_MAX;
        if (best != SIZE_MAX && !(error < least))
            continue;
        best = i;
        least = error;
        *ret_most = error + spread;
    }
    return best;
}

/* Whether A's noise is the simpler; of equally simple ones whether its error is less, then its score better.
 */
static bool is_simpler(const struct comparison *comparison, size_t a, size_t b) {
    double spread, error = error_of(comparison, a, &spread), other = error_of(comparison, b, &spread);
    uint64_t noise = comparison->summaries[a].of_noise, second = comparison->summaries[b].of_noise;
    if (noise != second || error != other)
        return noise != second ? noise < second : error < other;
    return score_of(comparison, a, &spread) > score_of(comparison, b, &spread);
}

/* Of the RIVALS, which are as good in error and have as many parameters of the mean: the simplest noise whose
 * log score is within one standard error of the best; where none has one, the simplest. */
static void choose_noise(struct comparison *comparison, const bool *rivals) {
    double spread, least = -INFINITY, best = -INFINITY;
    size_t scored = SIZE_MAX;
    comparison->simplest = SIZE_MAX;
    for (size_t i = 0; i < comparison->count; i++) {
        double score = rivals[i] ? score_of(comparison, i, &spread) : NAN;
        comparison->rivals += rivals[i];
        if (isnan(score) || !(score > best))
            continue;
        scored = i;
        best = score;
        least = score - (isnan(spread) ? 0 : spread);
    }
    for (size_t i = 0; i < comparison->count; i++)
        if (rivals[i] && (scored == SIZE_MAX || score_of(comparison, i, &spread) >= least) &&
            (comparison->simplest == SIZE_MAX || is_simpler(comparison, i, comparison->simplest)))
            comparison->simplest = i;
    comparison->scored = comparison->rivals > 1 ? scored : SIZE_MAX;
}

static void choose(struct comparison *comparison) {
    bool rivals[MODEL_TRIAL_MAX] = {false};
    double most, spread;
    uint64_t fewest = UINT64_MAX;
    comparison->scored = comparison->best = comparison->simplest = SIZE_MAX;
    comparison->apart = find_difference(comparison);
    if (comparison->apart || (comparison->best = find_least(comparison, &most)) == SIZE_MAX)
        return;
    /* A spread that is not known lets none but the least be as good. */
    most = isnan(most) ? error_of(comparison, comparison->best, &spread) : most;
    for (size_t i = 0; i < comparison->count; i++)
        if (error_of(comparison, i, &spread) <= most && of_mean(comparison, i) < fewest)
            fewest = of_mean(comparison, i);
    for (size_t i = 0; i < comparison->count; i++)
        rivals[i] = error_of(comparison, i, &spread) <= most && of_mean(comparison, i) == fewest;
    choose_noise(comparison, rivals);
}

/* ---- For people */

static void print_names(const struct comparison *comparison) {
    for (size_t i = 0; i < comparison->count; i++) {
        const struct predict_model *view = comparison->views[i];
        const struct model_summary *summary = &comparison->summaries[i];
        char name[2];
        printf("%s  %s: %s", letter(i, name), shown(view->name).text, shown(view->response).text);
        for (size_t t = 0; t < view->term_count && t < 12; t++)
            printf("%s%s", t ? " + " : " = ", shown(view->terms[t].name).text);
        printf("%s", view->term_count > 12 ? " + ..." : "");
        if (view->over)
            printf("; over %s", shown(view->over).text);
        for (size_t j = 0; j < summary->by_count; j++)
            printf("%s%s", j ? ", " : "; by ", shown(summary->by[j]).text);
        printf("\n");
    }
}

static void print_row(const char *name, const struct comparison *comparison,
                      void (*print)(const struct comparison *comparison, size_t i)) {
    printf("  %-22s", name);
    for (size_t i = 0; i < comparison->count; i++)
        print(comparison, i);
    printf("\n");
}

static void print_letter(const struct comparison *comparison, size_t i) {
    (void)comparison;
    char name[2];
    printf("%*s", COLUMN, letter(i, name));
}

static void print_kind(const struct comparison *comparison, size_t i) {
    printf("%*.15s", COLUMN, shown(comparison->views[i]->kind).text);
}

static void print_noise(const struct comparison *comparison, size_t i) {
    printf("%*.15s", COLUMN, shown(comparison->summaries[i].noise).text);
}

static void print_rows(const struct comparison *comparison, size_t i) {
    char count[FIT_PRINT_COUNT_MAX];
    printf("%*s", COLUMN, fit_print_count(comparison->summaries[i].rows, count));
}

static void print_groups(const struct comparison *comparison, size_t i) {
    char count[FIT_PRINT_COUNT_MAX];
    printf("%*s", COLUMN, fit_print_count(comparison->views[i]->group_count, count));
}

static void print_parameters(const struct comparison *comparison, size_t i) {
    char count[FIT_PRINT_COUNT_MAX];
    printf("%*s", COLUMN, fit_print_count(comparison->summaries[i].parameters, count));
}

static void print_cv_rmse(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 5, comparison->summaries[i].cv_rmse);
}

static void print_cv_relative(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 4, 100 * comparison->summaries[i].cv_relative);
}

static void print_cv_score(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 6, comparison->summaries[i].cv_log_score);
}

static void print_bic(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 7, comparison->summaries[i].bic);
}

static void print_error(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 5, held_out_rmse(&comparison->trial.errors[i]));
}

static void print_error_error(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 2, held_out_rmse_error(&comparison->trial.errors[i]));
}

static void print_relative(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 4, 100 * held_out_relative(&comparison->trial.errors[i]));
}

static void print_score(const struct comparison *comparison, size_t i) {
    fit_print_number(stdout, COLUMN, 6, held_out_score(&comparison->trial.errors[i]));
}

/* "4 to 9990" for every column of the models. */
static void print_domains(const struct comparison *comparison) {
    for (size_t i = 0; i < comparison->count; i++) {
        const struct predict_model *view = comparison->views[i];
        const struct predict_part *part = &view->groups[0].parts[0];
        char name[2];
        printf("  %s is valid for", letter(i, name));
        size_t told = 0;
        for (size_t d = 0; d < part->domain_count; d++) {
            double minimum, maximum;
            bool term = false; /* that is more than one column: told by its columns */
            for (size_t t = 0; t < view->term_count; t++)
                term |= strcmp(view->terms[t].name, part->domain[d].name) == 0 &&
                        (view->terms[t].factor_count != 1 || view->terms[t].factors[0].power != 1);
            if (term || !model_summary_domain(view, part->domain[d].name, &minimum, &maximum))
                continue;
            printf("%s %s %.6g to %.6g", told++ ? "," : "", shown(part->domain[d].name).text, minimum,
                   maximum);
        }
        printf("%s\n", told ? "" : " what nobody has told");
    }
}

static void print_summaries(const struct comparison *comparison) {
    printf("\n");
    print_row("", comparison, print_letter);
    print_row("kind", comparison, print_kind);
    print_row("rows", comparison, print_rows);
    print_row("groups", comparison, print_groups);
    print_row("parameters", comparison, print_parameters);
    print_row("noise", comparison, print_noise);
    print_row("cv error", comparison, print_cv_rmse);
    print_row("cv error, % of mean", comparison, print_cv_relative);
    print_row("cv log score", comparison, print_cv_score);
    print_row("BIC", comparison, print_bic);
    if (comparison->tried) {
        print_row("error on the data", comparison, print_error);
        print_row("  its standard error", comparison, print_error_error);
        print_row("  % of mean", comparison, print_relative);
        print_row("  log score", comparison, print_score);
    }
    print_domains(comparison);
}

/* ---- Terms */

/* Models of the same groups have them in the same order: one looks at the NEAR-th first. */
static const struct predict_group *find_group(const struct predict_model *view, const char *name,
                                              size_t near) {
    if (near < view->group_count && strcmp(view->groups[near].name, name) == 0)
        return &view->groups[near];
    for (size_t g = 0; g < view->group_count; g++)
        if (strcmp(view->groups[g].name, name) == 0)
            return &view->groups[g];
    return NULL;
}

/* The estimate of the term NAME in a group of one part; false where it has none. */
static bool estimate_of(const struct predict_model *view, const struct predict_group *group, const char *name,
                        double *ret_estimate, double *ret_standard_error) {
    if (!group || group->part_count != 1)
        return false;
    const struct predict_part *part = &group->parts[0];
    for (size_t t = 0; t < view->term_count; t++)
        if (strcmp(view->terms[t].name, name) == 0 && (!part->dropped || !part->dropped[t])) {
            *ret_estimate = part->estimates[t];
            *ret_standard_error = model_summary_standard_error(view, part, t);
            return true;
        }
    return false;
}

/* How far B is from A in standard errors of their difference, as if they were of different rows; NaN where
 * that is not known. */
static double difference(const struct comparison *comparison, const struct predict_group *group, size_t near,
                         const char *term, size_t b) {
    double first, first_error, other, other_error;
    const struct predict_model *const *views = comparison->views;
    if (!estimate_of(views[0], find_group(views[0], group->name, near), term, &first, &first_error) ||
        !estimate_of(views[b], find_group(views[b], group->name, near), term, &other, &other_error))
        return NAN;
    return (other - first) / hypot(first_error, other_error);
}

static void print_term(const struct comparison *comparison, size_t g, const char *term) {
    const struct predict_group *group = &comparison->views[0]->groups[g];
    printf("  %-12s", shown(term).text);
    for (size_t i = 0; i < comparison->count; i++) {
        double estimate = NAN, error = NAN;
        const struct predict_model *view = comparison->views[i];
        bool has = estimate_of(view, find_group(view, group->name, g), term, &estimate, &error);
        fit_print_number(stdout, 14, 6, has ? estimate : NAN);
        fit_print_number(stdout, 11, 3, has ? error : NAN);
    }
    for (size_t i = 1; i < comparison->count; i++) {
        double sigmas = difference(comparison, group, g, term, i);
        if (isnan(sigmas))
            printf("%9s", "-");
        else
            printf("%+9.3g", sigmas);
    }
    printf("\n");
}

static void print_segments(const struct comparison *comparison, size_t g) {
    for (size_t i = 0; i < comparison->count; i++) {
        const struct predict_group *of =
            find_group(comparison->views[i], comparison->views[0]->groups[g].name, g);
        char name[2];
        if (!of || of->part_count < 2)
            continue;
        printf("  %s has %zu %ss", letter(i, name), of->part_count, shown(of->parts[0].kind).text);
        for (size_t p = 1; comparison->views[i]->over && p < of->part_count; p++)
            printf("%s %.6g", p > 1 ? "," : ", breaks at", of->parts[p].from);
        printf("\n");
    }
}

static void print_terms(const struct comparison *comparison) {
    const struct predict_model *first = comparison->views[0];
    char name[2];
    for (size_t g = 0; g < first->group_count && g < GROUPS_SHOWN; g++) {
        printf("\n%s\n  %-12s", shown(first->groups[g].name).text, "term");
        for (size_t i = 0; i < comparison->count; i++)
            printf("%14s%11s", letter(i, name), "std. error");
        for (size_t i = 1; i < comparison->count; i++)
            printf("    %s-A, s", letter(i, name));
        printf("\n");
        for (size_t t = 0; t < comparison->term_count; t++)
            print_term(comparison, g, comparison->terms[t]);
        print_segments(comparison, g);
    }
    if (first->group_count > GROUPS_SHOWN)
        printf("\nand %zu more groups; --json has all of them\n", first->group_count - GROUPS_SHOWN);
    printf("\ns: standard errors of the difference, as if the models were of different rows\n");
}

/* Which of the same mean it is, and why. */
static void print_noise_choice(const struct comparison *comparison) {
    char name[2], other[2];
    double spread, score;
    if (comparison->scored == SIZE_MAX)
        return;
    score = score_of(comparison, comparison->scored, &spread);
    printf(";\nof the %zu models with as many of the mean %s has the simplest noise (%s) whose log score is "
           "within\none standard error of the best, that of %s, %.5g - %.2g",
           comparison->rivals, letter(comparison->simplest, name),
           shown(comparison->summaries[comparison->simplest].noise).text, letter(comparison->scored, other),
           score, spread);
}

static void print_rows_tried(const struct model_trial *trial) {
    char rows[FIT_PRINT_COUNT_MAX];
    printf(".\nIt is judged on %s rows of the data", fit_print_count(trial->rows, rows));
    if (trial->left_out > 0)
        printf(" (%s left out: a model says nothing of them)", fit_print_count(trial->left_out, rows));
    if (trial->outside > 0)
        printf("; %s are outside of what a model was fitted to", fit_print_count(trial->outside, rows));
}

static void print_choice(const struct comparison *comparison) {
    if (comparison->apart) {
        printf("\nwhich one suffices is not told: %s, so their\nerrors on rows left out do not compare; "
               "--data INPUT judges them on the same rows\n",
               comparison->apart);
        return;
    }
    if (comparison->best == SIZE_MAX) {
        printf("\nwhich one suffices is not known: some model has no error on rows left out; --data INPUT "
               "judges them all\n");
        return;
    }
    char simplest[2], best[2];
    double spread, error = error_of(comparison, comparison->best, &spread);
    printf("\n%s suffices: its mean has the fewest parameters of those whose error is at most one standard "
           "error\nabove the least, that of %s, %.5g + %.2g",
           letter(comparison->simplest, simplest), letter(comparison->best, best), error, spread);
    print_noise_choice(comparison);
    if (comparison->tried)
        print_rows_tried(&comparison->trial);
    else
        printf(".\nThat is by their own cross-validation; --data INPUT judges them on other rows");
    printf("\n");
}

/* ---- As JSON */

static bool add_terms_of(cJSON *object, const struct comparison *comparison, size_t i) {
    const struct predict_model *view = comparison->views[i];
    cJSON *groups = json_add_array(object, "groups");
    bool good = groups != NULL;
    for (size_t g = 0; good && g < view->group_count; g++) {
        const struct predict_group *group = &view->groups[g];
        cJSON *of = json_add_object(groups, NULL);
        good = of && json_add_string(of, "name", group->name) && json_add_uint64(of, "n", group->rows) &&
               json_add_uint64(of, "parts", group->part_count);
        cJSON *terms = good && group->part_count == 1 ? json_add_array(of, "terms") : NULL;
        for (size_t t = 0; good && terms && t < view->term_count; t++) {
            double estimate = NAN, error = NAN;
            estimate_of(view, group, view->terms[t].name, &estimate, &error);
            cJSON *term = json_add_object(terms, NULL);
            good = term && json_add_string(term, "name", view->terms[t].name) &&
                   json_add_double(term, "estimate", estimate) &&
                   json_add_double(term, "standard_error", error) &&
                   (i == 0 || json_add_double(term, "difference_in_sigmas",
                                              difference(comparison, group, g, view->terms[t].name, i)));
        }
    }
    return good;
}

static bool add_trial(cJSON *object, const struct held_out *errors) {
    cJSON *data = json_add_object(object, "data");
    return data && json_add_double(data, "rmse", held_out_rmse(errors)) &&
           json_add_double(data, "rmse_standard_error", held_out_rmse_error(errors)) &&
           json_add_double(data, "relative", held_out_relative(errors)) &&
           json_add_double(data, "log_score", held_out_score(errors)) &&
           json_add_double(data, "log_score_standard_error", held_out_score_error(errors));
}

static bool add_domain(cJSON *object, const struct predict_model *view) {
    cJSON *domain = json_add_array(object, "domain");
    bool good = domain != NULL;
    const struct predict_part *part = &view->groups[0].parts[0];
    for (size_t d = 0; good && d < part->domain_count; d++) {
        double minimum, maximum;
        if (!model_summary_domain(view, part->domain[d].name, &minimum, &maximum))
            continue;
        cJSON *range = json_add_object(domain, NULL);
        good = range && json_add_string(range, "name", part->domain[d].name) &&
               json_add_double(range, "minimum", minimum) && json_add_double(range, "maximum", maximum);
    }
    return good;
}

static bool add_model(cJSON *list, const struct comparison *comparison, size_t i) {
    const struct predict_model *view = comparison->views[i];
    const struct model_summary *summary = &comparison->summaries[i];
    cJSON *object = json_add_object(list, NULL);
    return object && json_add_string(object, "file", view->name) &&
           json_add_string(object, "kind", view->kind) &&
           json_add_string(object, "response", view->response) &&
           json_add_string(object, "unit", view->response_unit) &&
           json_add_string(object, "plugin", summary->plugin) &&
           json_add_string(object, "version", summary->version) &&
           json_add_uint64(object, "n", summary->rows) &&
           json_add_uint64(object, "parameters", summary->parameters) &&
           json_add_uint64(object, "parameters_of_noise", summary->of_noise) &&
           json_add_string(object, "noise", summary->noise) &&
           json_add_double(object, "cv_rmse", summary->cv_rmse) &&
           json_add_double(object, "cv_relative", summary->cv_relative) &&
           json_add_double(object, "cv_log_score", summary->cv_log_score) &&
           json_add_double(object, "folds", summary->folds) && json_add_double(object, "bic", summary->bic) &&
           (!comparison->tried || add_trial(object, &comparison->trial.errors[i])) &&
           json_add_boolean(object, "sufficient", i == comparison->simplest) &&
           json_add_boolean(object, "best", i == comparison->best) &&
           json_add_boolean(object, "best_log_score", i == comparison->scored) && add_domain(object, view) &&
           add_terms_of(object, comparison, i);
}

static int print_json(const struct comparison *comparison, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cleanup(text_clear) struct text text;
    text_init(&text, OUTPUT_MAX);
    cJSON *list = object ? json_add_array(object, "models") : NULL;
    bool good = list != NULL;
    for (size_t i = 0; good && i < comparison->count; i++)
        good = add_model(list, comparison, i);
    if (good && comparison->tried)
        good = json_add_uint64(object, "rows", comparison->trial.rows) &&
               json_add_uint64(object, "rows_left_out", comparison->trial.left_out) &&
               json_add_uint64(object, "rows_outside", comparison->trial.outside);
    good = good && json_add_string(object, "no_verdict", comparison->apart);
    if (!good || json_print(object, true, &text) < 0)
        return failure_memory(failure);
    printf("%s\n", text.bytes);
    return 0;
}

int fit_compare(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(comparison_clear) struct comparison comparison = {0};
    int r = read_models(arguments, &comparison, failure);
    r = r < 0 ? r : try_models(arguments, &comparison, failure);
    if (r < 0)
        return r;
    choose(&comparison);
    if (verb_switch(arguments, "--json"))
        return print_json(&comparison, failure);
    print_names(&comparison);
    print_summaries(&comparison);
    print_terms(&comparison);
    print_choice(&comparison);
    return 0;
}
