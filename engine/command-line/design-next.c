/* assay design next: the rows that would make a model surer. */
#include "engine/command-line/design-next.h"

#include "engine/command-line/output.h"
#include "engine/design/random.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    ROWS_USUAL = 20,
    OUTPUT_BYTES_MAX = 1 << 28,
};

int next_design_note(struct next_design *next, const char *format, ...) {
    if (next->note_count == NEXT_NOTES_MAX)
        return 0;
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    char *copy = strdup(sentence);
    if (!copy)
        return -ENOMEM;
    next->notes[next->note_count++] = copy;
    return 0;
}

static void next_design_clear(struct next_design *next) {
    design_free(next->chosen);
    next_rows_clear(&next->found);
    candidates_clear(&next->candidates);
    free(next->ranges);
    free(next->domain);
    experiment_free(next->experiment);
    document_free(next->document);
    free(next->experiment_from);
    free(next->groups);
    model_fit_free(next->fit);
    model_free(next->model);
    installation_clear(&next->installation);
    for (size_t i = 0; i < next->note_count; i++)
        free(next->notes[i]);
}

/* ---- What was asked */

static int choose_groups(struct next_design *next, struct failure *failure) {
    const struct predict_model *view = next->fit->view;
    const char *name = verb_value(next->arguments, "--group");
    next->groups = xcalloc(view->group_count, sizeof *next->groups);
    cleanup_free const char **names = xcalloc(view->group_count, sizeof *names);
    for (size_t g = 0; g < view->group_count; g++) {
        names[g] = view->groups[g].name;
        if (!name || strcmp(name, names[g]) == 0)
            next->groups[next->group_count++] = g;
    }
    if (next->group_count > 0)
        return 0;
    const char *nearest = text_nearest(name, names, view->group_count);
    return failure_input(failure, next->model_path, 0, 0, "the model has no group '%.128s'; %s '%.128s'%s",
                         name, nearest ? "did you mean" : "its first is", nearest ? nearest : names[0],
                         nearest ? "?" : "");
}

static int read_criterion(const struct verb_arguments *arguments, enum optimal_criterion *ret,
                          struct failure *failure) {
    const char *text = verb_value(arguments, "--criterion");
    if (text && strcmp(text, "d") != 0 && strcmp(text, "i") != 0)
        return failure_input(
            failure, NULL, 0, 0,
            "--criterion '%.64s', expected i (the average variance of the prediction) or d (the "
            "coefficients)",
            text);
    *ret = text && text[0] == 'd' ? OPTIMAL_D : OPTIMAL_I;
    return 0;
}

static int read_seed(struct next_design *next, struct failure *failure) {
    const char *text = verb_value(next->arguments, "--seed");
    next->seed_drawn = !text;
    if (!text)
        return random_system_seed(&next->seed, failure);
    if (!number_parse_uint64(text, strlen(text), &next->seed))
        return failure_input(failure, NULL, 0, 0,
                             "--seed '%.64s', expected a whole number from 0 to 18446744073709551615", text);
    return 0;
}

static int read_limits(struct next_design *next, struct failure *failure) {
    struct next_request *request = &next->request;
    const char *budget = verb_value(next->arguments, "--budget"),
               *rows = verb_value(next->arguments, "--rows");
    request->budget = INFINITY;
    if (budget && (!unit_parse(budget, UNIT_TIME, &request->budget) || !(request->budget > 0) ||
                   !isfinite(request->budget)))
        return failure_input(failure, NULL, 0, 0, "--budget '%.64s', expected %s above 0", budget,
                             unit_expectation(UNIT_TIME));
    request->rows_most = budget ? OPTIMAL_ROWS_MAX : ROWS_USUAL;
    uint64_t count;
    if (rows && (!number_parse_uint64(rows, strlen(rows), &count) || count < 1 || count > OPTIMAL_ROWS_MAX))
        return failure_input(failure, NULL, 0, 0, "--rows '%.64s', expected a whole number from 1 to %d",
                             rows, OPTIMAL_ROWS_MAX);
    if (rows)
        request->rows_most = count;
    request->distinct = verb_switch(next->arguments, "--distinct");
    request->cost = verb_value(next->arguments, "--cost");
    request->weights = verb_value(next->arguments, "--weights");
    return read_criterion(next->arguments, &request->criterion, failure);
}

static int read_model(struct next_design *next, struct failure *failure) {
    int r = installation_init(&next->installation, NULL, getenv("ASSAY_PATH"), failure);
    r = r < 0 ? r : model_read(next->model_path, &next->model, failure);
    r = r < 0 ? r : model_fit_read(next->model, &next->fit, failure);
    r = r < 0 ? r : choose_groups(next, failure);
    return r < 0 ? r : next_design_find_experiment(next, failure);
}

/* ---- Doing it */

/* Whether all rows are the same point, of more than one. */
static bool is_one_point(const struct next_design *next) {
    const struct design *design = next->chosen;
    bool same = design->row_count > 1;
    for (size_t row = 1; same && row < design->row_count; row++)
        for (size_t j = 0; same && j < design->column_count; j++) {
            char one[NUMBER_TEXT_SIZE], other[NUMBER_TEXT_SIZE];
            same = strcmp(design_value(design, 0, j, one), design_value(design, row, j, other)) == 0;
        }
    return same;
}

static int note_choice(struct next_design *next) {
    const struct next_rows *found = &next->found;
    int r = 0;
    if (found->barred > 0)
        r = next_design_note(next,
                             "%zu of %zu candidates are left out, since the model predicts that they take "
                             "0 s or less",
                             found->barred, next->candidates.design->row_count);
    if (r == 0 && is_one_point(next))
        r = next_design_note(
            next,
            "warning: all %zu rows are one point, which does not tell whether the model holds elsewhere%s",
            next->chosen->row_count,
            found->noise_varies ? ""
                                : "; noise is taken to be the same everywhere, 'assay fit --set noise=N-2' "
                                  "tells how it grows");
    return r;
}

static int note_result(struct next_design *next, struct failure *failure) {
    const struct next_rows *found = &next->found;
    int r = 0;
    if (found->unit_assumed)
        r = next_design_note(next, "the model does not say the unit of '%s'; taken for s",
                             next->fit->view->response);
    if (r == 0 && found->undefined)
        r = next_design_note(next, "%zu of %zu groups have no standard errors, and are left out",
                             found->undefined, next->group_count);
    if (r == 0 && found->classes < found->distinct)
        r = next_design_note(next, "the groups are unsure in %zu different ways, of which %zu stand for all",
                             found->distinct, found->classes);
    if (r == 0 && found->rows.regularised)
        r = next_design_note(next, "the covariance of the coefficients is singular; it was lifted a little");
    r = r < 0 ? r : note_choice(next);
    double times = floor(next->request.budget / found->cost);
    if (r == 0 && found->rows.count == OPTIMAL_ROWS_MAX && isfinite(next->request.budget) && times > 1)
        r = next_design_note(
            next, "%d rows are the most there can be; the budget has room for %.0f repetitions of them",
            OPTIMAL_ROWS_MAX, times);
    return r < 0 ? failure_memory(failure) : 0;
}

static int find(struct next_design *next, struct failure *failure) {
    int r = read_limits(next, failure);
    r = r < 0 ? r : read_seed(next, failure);
    r = r < 0 ? r : read_model(next, failure);
    r = r < 0 ? r : next_design_make_candidates(next, failure);
    if (r < 0)
        return r;
    next->request.fit = next->fit;
    next->request.groups = next->groups;
    next->request.group_count = next->group_count;
    r = next_rows_find(&next->request, &next->found, failure);
    r = r < 0 ? r
              : design_pick(next->candidates.design, next->found.rows.items, next->found.rows.count,
                            &next->chosen, failure);
    return r < 0 ? r : note_result(next, failure);
}

/* The table goes to -o FILE, or to standard output unless that has the JSON. */
static int write_results(const struct next_design *next, struct failure *failure) {
    const char *output = verb_value(next->arguments, "--output");
    bool json = verb_switch(next->arguments, "--json"), to_file = output && strcmp(output, "-") != 0;
    cleanup(text_clear) struct text text;
    text_init(&text, OUTPUT_BYTES_MAX);
    int r = 0;
    if (to_file) {
        r = design_append(next->chosen, NULL, &text, failure);
        r = r < 0 ? r : file_write_output(output, text.bytes, text.length, failure);
        text_reset(&text);
    }
    r = r < 0 ? r : next_design_print(next);
    if (r == 0 && json) {
        r = next_design_append_json(next, &text, failure);
        if (r == 0)
            printf("%s\n", text.bytes);
    } else if (r == 0 && !to_file) {
        r = design_write(next->chosen, NULL, STDOUT_FILENO, "standard output", failure);
    }
    return r;
}

int design_next(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(next_design_clear) struct next_design next = {.arguments = arguments};
    if (arguments->operand_count != 2)
        return failure_input(failure, NULL, 0, 0, "'assay design next' has %zu operands; expected one, MODEL",
                             arguments->operand_count - 1);
    next.model_path = arguments->operands[1];
    const char *inputs[] = {next.model_path, verb_value(arguments, "--candidates"),
                            verb_value(arguments, "--experiment")};
    int r = output_check(verb_value(arguments, "--output"), inputs, 3, failure);
    r = r < 0 ? r : find(&next, failure);
    return r < 0 ? r : write_results(&next, failure);
}
