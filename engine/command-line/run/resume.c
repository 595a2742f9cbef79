/* assay resume: continues a run that was killed, or that ended before all was measured. */
#include "engine/command-line/run/execution.h"
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int command_resume(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    cleanup_free char *folder = NULL;
    size_t spare_count = 0;
    cleanup_free const char **spares = verb_values(arguments, "--spares", &spare_count);
    int r = run_status_find_folder(arguments->operands[0], &folder, failure);
    if (r == 0)
        r = inputs_read(folder, &inputs, failure);
    if (r == 0)
        r = execution_check_changes(&inputs, verb_switch(arguments, "--as-recorded"), failure);
    if (r == 0)
        r = campaign_read_recorded(folder, arguments->installation, spares, spare_count, &campaign, failure);
    if (r < 0)
        return r;
    struct execution execution = {.arguments = arguments, .campaign = campaign, .inputs = &inputs};
    return execution_run(&execution, failure);
}
