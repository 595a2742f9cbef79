#include "engine/command-line/predict/prediction-command.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"

#include <stdio.h>
#include <stdlib.h>

/* No input may be overwritten. */
static int check_output(const struct verb_arguments *arguments, const struct prediction_request *request,
                        struct failure *failure) {
    cleanup_free const char **paths = xcalloc(request->model_count + 1, sizeof *paths);
    for (size_t i = 0; i < request->model_count; i++)
        paths[i] = models_path(request->models[i]);
    paths[request->model_count] = request->scenarios;
    return output_check(verb_value(arguments, "--output"), paths, request->model_count + 1, failure);
}

int prediction_command_make(const struct verb_arguments *arguments, struct prediction **ret,
                            struct failure *failure) {
    struct prediction_request request = {.models = arguments->operands + 1,
                                         .model_count = arguments->operand_count - 1,
                                         .seed = 1,
                                         .scenarios = verb_value(arguments, "--scenario")};
    cleanup_free const char **settings = verb_values(arguments, "--set", &request.setting_count);
    uint64_t draws = 0;
    request.settings = settings;
    int r = verb_check_settings(arguments, "--set", failure);
    r = r < 0 ? r : verb_count(arguments, "--seed", 0, UINT64_MAX, &request.seed, failure);
    r = r < 0 ? r : verb_count(arguments, "--draws", 0, UINT64_MAX, &draws, failure);
    r = r < 0 ? r : check_output(arguments, &request, failure);
    if (r < 0)
        return r;
    request.draws = (size_t)draws;
    return prediction_make(arguments->installation, arguments->verb->name, arguments->operands[0], &request,
                           ret, failure);
}

void prediction_command_warn(const struct prediction *prediction) {
    for (size_t i = 0; i < prediction->models.count; i++) {
        const struct given_model *given = &prediction->models.items[i];
        if (given->remark && given->grade == MODEL_NOT_USABLE)
            fprintf(stderr, "assay: warning: %s\n", shown(given->remark).text);
    }
}
