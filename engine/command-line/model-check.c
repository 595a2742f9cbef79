/* assay model check: whether model files hold together, and whether they hold for new measurements. */
#include "engine/command-line/model-command.h"

#include "engine/command-line/fit-request.h"
#include "engine/command-line/shown.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/plugin/model-check.h"
#include "engine/plugin/model-comparison.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    FINDINGS_SHOWN = 100, /* of a file */
    GROUPS_SHOWN = 20,
    NAME_WIDTH = 24,
};

static const double most_usual = 2;

struct checking {
    const char *path;
    bool json;
    cJSON *findings; /* of the file in hand, with --json */
    size_t errors, warnings;
    double most;         /* errors over what the noise says */
    const char **inputs; /* owned: to compare with */
    size_t input_count;
    bool noted;          /* which of them are left out was said */
    const char *verdict; /* on the data; NULL: nothing is wrong, or there are none */
    char reason[FAILURE_TEXT_SIZE];
};

static void checking_clear(struct checking *checking) {
    free(checking->inputs);
    cJSON_Delete(checking->findings);
}

/* ---- Findings */

static bool add_finding(struct checking *checking, size_t line, size_t column, bool warning,
                        const char *sentence) {
    cJSON *object = json_add_object(checking->findings, NULL);
    return object && json_add_uint64(object, "line", line) && json_add_uint64(object, "column", column) &&
           json_add_boolean(object, "warning", warning) && json_add_string(object, "sentence", sentence);
}

static int hear(void *context, const struct model_finding *finding) {
    struct checking *checking = context;
    size_t *count = finding->warning ? &checking->warnings : &checking->errors;
    if (++*count > FINDINGS_SHOWN)
        return 0;
    if (checking->json)
        return add_finding(checking, finding->line, finding->column, finding->warning, finding->sentence)
                   ? 0
                   : -ENOMEM;
    printf("%s:%zu:%zu: %s", shown(checking->path).text, finding->line, finding->column,
           finding->warning ? "warning: " : "");
    shown_print(stdout, finding->sentence, false);
    putchar('\n');
    return 0;
}

/* What ended the reading is a finding, too. */
static int take_refusal(struct checking *checking, const struct failure *refusal, struct failure *failure) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE + 4];
    failure_describe(refusal, sentence, sizeof sentence);
    checking->errors++;
    if (checking->json)
        return add_finding(checking, 0, 0, false, sentence) ? 0 : failure_memory(failure);
    shown_print(stdout, sentence, false);
    putchar('\n');
    return 0;
}

/* ---- Data */

static void judge(struct checking *checking, const struct model_comparison *comparison) {
    const struct comparison *all = &comparison->all;
    checking->verdict = NULL;
    if (all->rows == 0)
        snprintf(checking->reason, sizeof checking->reason, "no row of the data is in a group of the model");
    else if (all->error > checking->most * all->noise)
        snprintf(checking->reason, sizeof checking->reason,
                 "the errors are %.3g times what the noise of the model says; expected at most %g",
                 all->error / all->noise, checking->most);
    else
        return;
    checking->verdict = checking->reason;
}

static void print_heads(const char *unit) {
    char text[64];
    printf("  %-*s %10s %12s %9s %12s %10s %9s %9s\n", NAME_WIDTH, "group", "rows", "error", "relative",
           "noise", "log score", "in 95%", "outside");
    if (model_unit_text(unit, text)[0])
        printf("  %-*s %10s %12s %9s %12s\n", NAME_WIDTH, "", "", model_unit_text(unit, text), "",
               model_unit_text(unit, text));
}

static void print_comparison(const char *name, const struct comparison *one) {
    struct shown clean = shown(name);
    printf("  %-*s %10llu", NAME_WIDTH, clean.text, (unsigned long long)one->rows);
    model_print_number(stdout, 13, 5, one->error);
    if (isnan(one->relative))
        printf(" %9s", "-");
    else
        printf(" %8.3g%%", one->relative * 100);
    model_print_number(stdout, 13, 5, one->noise);
    model_print_number(stdout, 11, 5, one->log_score);
    if (isnan(one->coverage))
        printf(" %9s", "-");
    else
        printf(" %8.2f%%", one->coverage * 100);
    printf(" %9llu\n", (unsigned long long)one->tally.outside);
}

struct ranked {
    size_t group;
    double ratio; /* of the error to the noise, or the error */
};

static int compare_ranks(const void *a, const void *b) {
    const struct ranked *one = a, *other = b;
    if (one->ratio != other->ratio)
        return one->ratio > other->ratio ? -1 : 1;
    return one->group < other->group ? -1 : one->group > other->group;
}

/* Those with rows; the worst first where there are too many for all. */
static int rank_groups(const struct predict_model *view, const struct model_comparison *comparison,
                       struct ranked **ret, size_t *ret_count) {
    struct ranked *ranked = xcalloc(view->group_count, sizeof *ranked);
    *ret_count = 0;
    for (size_t g = 0; g < view->group_count; g++) {
        const struct comparison *one = &comparison->groups[g];
        if (one->rows > 0)
            ranked[(*ret_count)++] =
                (struct ranked){g, one->noise > 0 ? one->error / one->noise : one->error};
    }
    if (*ret_count > GROUPS_SHOWN)
        qsort(ranked, *ret_count, sizeof *ranked, compare_ranks);
    *ret = ranked;
    return 0;
}

static int print_data(const struct model *model, const struct model_comparison *comparison) {
    const struct predict_model *view = model_view(model);
    cleanup_free struct ranked *ranked = NULL;
    size_t count = 0;
    int r = rank_groups(view, comparison, &ranked, &count);
    if (r < 0)
        return r;
    print_heads(view->response_unit);
    print_comparison("all", &comparison->all);
    for (size_t i = 0; count > 1 && i < count && i < GROUPS_SHOWN; i++)
        print_comparison(view->groups[ranked[i].group].name, &comparison->groups[ranked[i].group]);
    if (count > GROUPS_SHOWN)
        printf("  the %d of %zu groups that are worst\n", GROUPS_SHOWN, count);
    if (comparison->strangers)
        printf("  %llu row%s in no group of the model\n", (unsigned long long)comparison->strangers,
               comparison->strangers == 1 ? " is" : "s are");
    if (comparison->incomplete)
        printf("  %llu row%s incomplete, or not told of row by row\n",
               (unsigned long long)comparison->incomplete, comparison->incomplete == 1 ? " is" : "s are");
    char sentence[EVALUATION_SENTENCE_SIZE];
    if (evaluation_tally_describe(&comparison->all.tally, sentence))
        fprintf(stderr, "assay: warning: %s\n", shown(sentence).text);
    return 0;
}

static bool add_comparison(cJSON *parent, const char *name, const struct comparison *one) {
    cJSON *object = json_add_object(parent, NULL);
    return object && json_add_string(object, "group", name) && json_add_uint64(object, "rows", one->rows) &&
           json_add_double(object, "error", one->error) &&
           json_add_double(object, "relative", one->relative) && json_add_double(object, "bias", one->bias) &&
           json_add_double(object, "noise", one->noise) &&
           json_add_double(object, "log_score", one->log_score) &&
           json_add_double(object, "coverage", one->coverage) &&
           json_add_uint64(object, "outside", one->tally.outside);
}

static bool add_data(cJSON *root, const struct model *model, const struct model_comparison *comparison) {
    const struct predict_model *view = model_view(model);
    cJSON *data = json_add_object(root, "data"), *all = data ? json_add_array(data, "all") : NULL,
          *groups = all ? json_add_array(data, "groups") : NULL;
    bool good = groups && add_comparison(all, "all", &comparison->all) &&
                json_add_uint64(data, "strangers", comparison->strangers) &&
                json_add_uint64(data, "incomplete", comparison->incomplete);
    for (size_t g = 0; good && g < view->group_count; g++)
        if (comparison->groups[g].rows > 0)
            good = add_comparison(groups, view->groups[g].name, &comparison->groups[g]);
    return good;
}

/* ---- A file */

static int compare(struct checking *checking, const struct model *model, cJSON *root,
                   struct failure *failure) {
    cleanup(model_comparison_clear) struct model_comparison comparison = {0};
    cleanup(table_stream_cleanup) struct table *table = NULL;
    int r = table_stream_open(checking->inputs, checking->input_count, false, &table, failure);
    if (r == 0 && !checking->noted)
        fitting_request_notes(table);
    checking->noted = true;
    r = r < 0 ? r : model_compare(model, table, &comparison, failure);
    if (r < 0)
        return r;
    judge(checking, &comparison);
    if (!root)
        return print_data(model, &comparison);
    return add_data(root, model, &comparison) ? 0 : failure_memory(failure);
}

static int print_json(struct checking *checking, cJSON *root, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, SIZE_MAX / 2);
    bool good = json_add_string(root, "file", checking->path) &&
                json_add_uint64(root, "errors", checking->errors) &&
                json_add_uint64(root, "warnings", checking->warnings) &&
                json_add_string(root, "verdict", checking->verdict) &&
                cJSON_AddItemToObject(root, "findings", checking->findings);
    if (good)
        checking->findings = NULL; /* it is the root's */
    if (!good || json_print(root, false, &text) < 0)
        return failure_memory(failure);
    printf("%s\n", text.bytes);
    return 0;
}

static void print_end(const struct checking *checking, const struct model *model) {
    const char *name = checking->path;
    size_t left = checking->errors > FINDINGS_SHOWN ? checking->errors - FINDINGS_SHOWN : 0;
    left += checking->warnings > FINDINGS_SHOWN ? checking->warnings - FINDINGS_SHOWN : 0;
    if (left)
        printf("%s: and %zu more\n", shown(name).text, left);
    if (checking->errors)
        printf("%s: refused: %zu finding%s\n", shown(name).text, checking->errors,
               checking->errors == 1 ? "" : "s");
    else if (checking->verdict)
        printf("%s: refused: %s\n", shown(name).text, checking->verdict);
    else
        printf("%s: good: %s model of %zu group%s\n", shown(name).text, shown(model_view(model)->kind).text,
               model_view(model)->group_count, model_view(model)->group_count == 1 ? "" : "s");
}

static int check_file(struct checking *checking, const char *path, struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    cleanup(json_cleanup) cJSON *root = checking->json ? cJSON_CreateObject() : NULL;
    struct failure refusal = {0};
    checking->path = path;
    checking->errors = checking->warnings = 0;
    checking->verdict = NULL;
    if (checking->json && (!root || !(checking->findings = cJSON_CreateArray())))
        return failure_memory(failure);
    int r = model_check(path, hear, checking, &model, &refusal);
    if (r == -ENOMEM)
        return failure_memory(failure);
    r = r < 0 ? take_refusal(checking, &refusal, failure) : 0;
    if (r == 0 && checking->errors == 0 && checking->input_count > 0)
        r = compare(checking, model, root, failure);
    if (r == 0 && checking->json)
        r = print_json(checking, root, failure);
    else if (r == 0)
        print_end(checking, model);
    return r;
}

/* ---- The action */

static int read_options(const struct verb_arguments *arguments, struct checking *ret,
                        struct failure *failure) {
    const char *most = verb_value(arguments, "--most"), *input;
    ret->json = verb_switch(arguments, "--json");
    ret->most = most_usual;
    if (most && (!number_parse_double(most, strlen(most), &ret->most) || !(ret->most > 0)))
        return failure_input(failure, NULL, 0, 0, "--most '%.64s'; expected a number above 0", most);
    ret->inputs = xcalloc(arguments->option_count + 1, sizeof *ret->inputs);
    while ((input = verb_value_at(arguments, "--data", ret->input_count)))
        ret->inputs[ret->input_count++] = input;
    if (most && ret->input_count == 0)
        return failure_input(failure, NULL, 0, 0,
                             "--most is about data, and there are none; expected --data");
    return 0;
}

int model_command_check(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(checking_clear) struct checking checking = {0};
    int r = read_options(arguments, &checking, failure);
    size_t refused = 0;
    for (size_t i = 0; r == 0 && i < arguments->operand_count; i++) {
        r = check_file(&checking, arguments->operands[i], failure);
        refused += checking.errors > 0 || checking.verdict;
    }
    if (r < 0 || refused == 0)
        return r;
    if (arguments->operand_count == 1)
        return failure_input(failure, NULL, 0, 0, "the model does not hold: %s",
                             checking.verdict ? checking.verdict : "see above");
    return failure_input(failure, NULL, 0, 0, "%zu of %zu models do not hold", refused,
                         arguments->operand_count);
}
