#include "engine/command-line/predict/prediction-command.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/predict/search.h"
#include "engine/report/shown.h"

#include <stdio.h>
#include <stdlib.h>

int prediction_command_check(const struct verb_arguments *arguments, const char *output,
                             struct failure *failure) {
    size_t models = arguments->operand_count - 1;
    cleanup_free const char **paths = xcalloc(models + 1, sizeof *paths);
    for (size_t i = 0; i < models; i++)
        paths[i] = models_path(arguments->operands[1 + i]);
    paths[models] = verb_value(arguments, "--scenario");
    int r = output_check(output, paths, models + 1, failure);
    return r < 0 ? r : verb_check_settings(arguments, "--set", failure);
}

int prediction_command_make(const struct verb_arguments *arguments, struct prediction_request *request,
                            struct prediction **ret, struct failure *failure) {
    cleanup_free const char **settings = verb_values(arguments, "--set", &request->setting_count);
    uint64_t draws = 0, threads = 0, search = 0;
    request->models = arguments->operands + 1;
    request->model_count = arguments->operand_count - 1;
    request->seed = 1;
    request->scenarios = verb_value(arguments, "--scenario");
    request->settings = settings;
    int r = verb_count(arguments, "--seed", 0, UINT64_MAX, &request->seed, failure);
    r = r < 0 ? r : verb_count(arguments, "--draws", 0, UINT64_MAX, &draws, failure);
    r = r < 0 ? r : verb_count(arguments, "--threads", 1, 4096, &threads, failure);
    r = r < 0 ? r : verb_count(arguments, "--search", 1, SEARCH_BUDGET_MAX, &search, failure);
    if (r < 0)
        return r;
    request->draws = (size_t)draws;
    request->threads = (size_t)threads;
    request->search = (size_t)search;
    return prediction_make(arguments->installation, arguments->verb->name, arguments->operands[0], request,
                           ret, failure);
}

void prediction_command_warn(const struct prediction *prediction) {
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        if (given->remark && given->grade == MODEL_NOT_USABLE)
            fprintf(stderr, "assay: warning: %s\n", shown(given->remark).text);
    }
}
