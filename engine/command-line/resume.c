/* assay resume: continues a run that was killed, or that ended before all was measured. */
#include "engine/command-line/execution.h"
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct verb_option options[] = {
    EXECUTION_OPTION_UNTIL,
    EXECUTION_OPTION_RESUBMIT,
    EXECUTION_OPTION_DETACH,
    {"--as-recorded", 0, NULL,
     "continues with the run's own copies of campaign, design, experiment and source, although the originals "
     "have changed since",
     false},
    {"--spares", 0, "LIST",
     "more nodes that may take the places of nodes that are lost, of a run whose nodes ssh reaches: names "
     "and ranges, or @FILE; the run remembers them",
     true},
    {"--json", 0, NULL, "prints events as JSON, one a line, on standard output", false},
    EXECUTION_OPTION_QUIET,
    {NULL, 0, NULL, NULL, false},
};

static int resume(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(inputs_clear) struct inputs inputs = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    cleanup_free char *folder = NULL;
    size_t spare_count = 0;
    cleanup_free const char **spares = verb_values(arguments, "--spares", &spare_count);
    int r = run_status_find_folder(arguments->operands[0], &folder, failure);
    if (r == 0)
        r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    if (r == 0)
        r = inputs_read(folder, &inputs, failure);
    if (r == 0)
        r = execution_check_changes(&inputs, verb_switch(arguments, "--as-recorded"), failure);
    if (r == 0)
        r = campaign_read_recorded(folder, &installation, spares, spare_count, &campaign, failure);
    if (r < 0)
        return r;
    struct execution execution = {
        .arguments = arguments, .installation = &installation, .campaign = campaign, .inputs = &inputs};
    return execution_carry_out(&execution, failure);
}

const struct verb verb_resume = {
    .name = "resume",
    .summary = "continue a run that ended before all was measured",
    .synopsis =
        "assay resume RUN [--until WHEN] [--resubmit] [--detach[=job]] [--as-recorded] [--spares LIST]...",
    .description =
        "Continues a run that was killed, whose machine was restarted, or that was sealed before all was "
        "measured: RUN is its folder, or an archive of it beside that folder. Nothing that is on disk is "
        "measured again; what is left follows in the order that it would have had, as another part of the "
        "same run, with block numbers of its own. Units that had failed are tried again. Whatever an earlier "
        "part has left on the nodes is ended and put back first, and the nodes must be the same "
        "machines.\n\n"
        "A run whose campaign, design, experiment, source or list of hosts has changed since is refused with "
        "the difference, and stays as it is; files that are new do not matter. --as-recorded continues with "
        "the copies in the run's folder. Two programs cannot work on one run: the second is refused, with "
        "who has it.\n\n"
        "A node that is gone for good can be replaced: --spares names others, of the same cores, and one of "
        "them measures the whole share of each node that cannot be reached.\n\n"
        "A part that follows an archive makes another one, NAME-2.zip and so on, with everything in it. Of a "
        "run that was completed and sealed the archive's path is printed again.\n\n"
        "  assay resume runs/quickstart-20261122T120000-1a2b3c4d\n"
        "  assay resume runs/quickstart-20261122T120000-1a2b3c4d.zip --until 18:30\n"
        "  assay resume runs/quickstart-20261122T120000-1a2b3c4d --spares dahu-33\n"
        "  assay status runs/quickstart-20261122T120000-1a2b3c4d",
    .options = options,
    .operands_least = 1,
    .operands_most = 1,
    .run = resume,
};
