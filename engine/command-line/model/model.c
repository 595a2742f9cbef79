/* assay model: what is in a model file, whether it holds, and what it says. */
#include "engine/command-line/model/command.h"

#include "engine/foundation/cleanup.h"
#include "engine/model/verdict.h"
#include "engine/report/shown.h"

#include <stdint.h>
#include <stdio.h>

static const struct verb_action actions[] = {
    {"show", 1, 1, "a model", "--group --verbose", model_command_show},
    {"check", 1, SIZE_MAX, "models", "--data --where --with-flagged --most", model_command_check},
    {"eval", 1, SIZE_MAX, "a model, and values as NAME=VALUE unless there is --rows",
     "--group --all --rows --output", model_command_eval},
    {"table", 1, SIZE_MAX, "models", "--output", model_command_table},
    {0},
};

int command_model(const struct verb_arguments *arguments, struct failure *failure) {
    return verb_run_action(arguments, actions, arguments->operands[0], failure);
}

void model_command_warn(const struct model *model) {
    cleanup_free char *warning = model_verdict_warning(model, model->file);
    if (warning)
        fprintf(stderr, "assay: warning: %s\n", shown(warning).text);
}
