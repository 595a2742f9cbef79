/* assay model show: what is in a model file. */
#include "engine/command-line/model/command.h"

#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/model/model.h"
#include "engine/model/read.h"
#include "engine/model/report.h"

int model_command_show(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(model_cleanup) struct model *model = NULL;
    cleanup(report_cleanup) struct report *report = report_new();
    const char *name = verb_value(arguments, "--group");
    size_t group = 0;
    int r = model_file_read(arguments->operands[1], &model, failure);
    r = r < 0 || !name ? r : model_group_find(model, name, &group, failure);
    if (r < 0)
        return r;
    model_report(report->root, model, name ? &model->groups[group] : NULL);
    output_report(report, verb_switch(arguments, "--json"), verb_switch(arguments, "--verbose"));
    return 0;
}
