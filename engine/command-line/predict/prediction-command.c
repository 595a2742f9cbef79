#include "engine/command-line/predict/prediction-command.h"

#include "engine/command-line/fit/verbs.h"
#include "engine/command-line/output.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/predict/search.h"
#include "engine/report/shown.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int prediction_command_check(const struct verb_arguments *arguments, const char *output,
                             struct failure *failure) {
    size_t models = arguments->operand_count - 1, archives;
    cleanup_free const char **paths = xcalloc(models + 1, sizeof *paths);
    cleanup_free const char **from = verb_values(arguments, "--from", &archives);
    for (size_t i = 0; i < models; i++)
        paths[i] = models_path(arguments->operands[1 + i]);
    paths[models] = verb_value(arguments, "--scenario");
    int r = output_check(output, paths, models + 1, failure);
    r = r < 0 ? r : output_check(output, from, archives, failure);
    return r < 0 ? r : verb_check_settings(arguments, "--set", failure);
}

/* Words for models_open(), and the content of those that were fitted here. */
struct given {
    char **words, **texts;
    size_t count;
};

static void given_clear(struct given *given) {
    for (size_t i = 0; i < given->count; i++)
        free(given->words[i]), free(given->texts[i]);
    free(given->words), free(given->texts);
}

/* Fits a model to the archive FILE, for the role that expects its experiment. */
static int add_archive(const struct verb_arguments *arguments, const struct library *library,
                       const char *file, struct given *given, struct failure *failure) {
    const struct predict_role *role = library->predict->roles;
    cleanup(text_clear) struct text model, list;
    cleanup_free char *experiment = NULL;
    text_init(&model, SIZE_MAX / 4);
    text_init(&list, FAILURE_TEXT_SIZE / 2);
    int r = fit_archive(arguments->installation, file, &model, &experiment, failure);
    if (r < 0)
        return failure_prefix(failure, "--from %s", file);
    for (; role->name && !(role->experiment && experiment && strcmp(role->experiment, experiment) == 0);
         role++)
        if (role->experiment)
            (void)text_printf(&list, "%s%s", list.length ? ", " : "", role->experiment);
    if (!role->name)
        return failure_input(failure, file, 0, 0, "no role takes a model of %s%.64s%s; %s%s",
                             experiment ? "the experiment '" : "a file that names no experiment",
                             experiment ? experiment : "", experiment ? "'" : "",
                             list.length ? "expected an archive of: "
                                         : "fit it by 'assay fit' and give ROLE=MODEL instead of --from",
                             list.length ? list.bytes : "");
    given->words[given->count] = xformat("%s=%s", role->name, file);
    given->texts[given->count++] = text_take(&model);
    return 0;
}

/* Reads the models: those of the operands, then those fitted to --from. */
static int read_given(const struct verb_arguments *arguments, struct given *given, struct failure *failure) {
    cleanup(library_cleanup) struct library *library = NULL;
    size_t room = arguments->operand_count + arguments->option_count;
    given->words = xcalloc(room, sizeof *given->words);
    given->texts = xcalloc(room, sizeof *given->texts);
    for (size_t i = 1; i < arguments->operand_count; i++)
        given->words[given->count++] = xstrdup(arguments->operands[i]);
    int r = verb_value(arguments, "--from") ? library_open(arguments->installation, arguments->verb->name,
                                                           arguments->operands[0], &library, failure)
                                            : 0;
    for (size_t i = 0; r == 0 && verb_value_at(arguments, "--from", i); i++)
        r = add_archive(arguments, library, verb_value_at(arguments, "--from", i), given, failure);
    return r;
}

/* Reads --search: a number of runs, or a time within which runs are begun. */
static int read_search(const struct verb_arguments *arguments, struct prediction_request *request,
                       struct failure *failure) {
    const char *text = verb_value(arguments, "--search");
    double seconds = 0, plain;
    uint64_t count = 0;
    if (text && unit_parse(text, UNIT_TIME, &seconds) && !unit_parse(text, UNIT_NONE, &plain)) {
        if (!(seconds > 0 && seconds <= SEARCH_SECONDS_MAX))
            return failure_input(failure, arguments->verb->name, 0, 0,
                                 "--search '%.64s' is no time above 0 and up to %d s", text,
                                 SEARCH_SECONDS_MAX);
        request->search = SEARCH_BUDGET_MAX;
        request->search_ns = (int64_t)(seconds * 1e9);
        return 0;
    }
    int r = verb_count(arguments, "--search", 1, SEARCH_BUDGET_MAX, &count, failure);
    request->search = (size_t)count;
    return r == 0 ? 0
                  : failure_input(failure, arguments->verb->name, 0, 0,
                                  "--search '%.64s' is neither a number of runs from 1 to %d nor a time; "
                                  "expected one of them, such as 500 or 5min",
                                  text, SEARCH_BUDGET_MAX);
}

int prediction_command_make(const struct verb_arguments *arguments, struct prediction_request *request,
                            struct prediction **ret, struct failure *failure) {
    cleanup_free const char **settings = verb_values(arguments, "--set", &request->setting_count);
    uint64_t draws = 0, threads = 0;
    cleanup(given_clear) struct given given = {0};
    request->seed = 1;
    request->settings = settings;
    int r = verb_count(arguments, "--seed", 0, UINT64_MAX, &request->seed, failure);
    r = r < 0 ? r : verb_count(arguments, "--draws", 2, PREDICTION_DRAWS_MAX, &draws, failure);
    r = r < 0 ? r : verb_count(arguments, "--threads", 1, 4096, &threads, failure);
    r = r < 0 ? r : read_search(arguments, request, failure);
    r = r < 0 ? r : read_given(arguments, &given, failure);
    if (r < 0)
        return r;
    request->models = (const char *const *)given.words;
    request->texts = (const char *const *)given.texts;
    request->model_count = given.count;
    request->draws = (size_t)draws;
    request->threads = (size_t)threads;
    request->goal = verb_value(arguments, "--goal");
    return prediction_make(arguments->installation, arguments->verb->name, arguments->operands[0], request,
                           ret, failure);
}

void prediction_command_warn(const struct prediction *prediction) {
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        if (given->remark && given->grade == REPORT_NOT_USABLE)
            fprintf(stderr, "assay: warning: %s\n", shown(given->remark).text);
    }
}
