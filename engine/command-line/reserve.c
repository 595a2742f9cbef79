/* assay reserve: the nodes of a campaign, to be used by hand before it is measured. */
#include "engine/command-line/execution.h"
#include "engine/command-line/output.h"
#include "engine/command-line/status-describe.h"

#include "engine/foundation/cleanup.h"

#include <stdlib.h>

static const struct verb_option options[] = {
    EXECUTION_OPTION_OUTPUT,
    EXECUTION_OPTION_SET,
    EXECUTION_OPTION_SEED,
    {"--json", 0, NULL, "prints events as JSON, one a line, and last the run as 'assay status --json' has it",
     false},
    {"--quiet", 'q', NULL, "prints only what is reserved, and what went wrong", false},
    {NULL, 0, NULL, NULL, false},
};

static int reserve_nodes(const struct execution *execution, struct failure *failure) {
    cleanup_free char *folder = NULL;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    if (execution->campaign->testbed.count > 0)
        return failure_input(failure, execution->path, 0, 0,
                             "the campaign has %zu testbeds, expected one whose nodes are to be reserved",
                             execution->campaign->testbed.count);
    struct execution only = *execution;
    only.ret_reserved = &folder;
    int r = execution_carry_out(&only, failure);
    if (r == 0)
        r = run_status_read(folder, &status, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = status_describe(status);
    if (verb_switch(execution->arguments, "--json")) {
        cleanup(json_cleanup) cJSON *object = report_json(report);
        output_json(object, false);
    } else {
        report_print(report, stdout, false);
    }
    return 0;
}

static int reserve(const struct verb_arguments *arguments, struct failure *failure) {
    return execution_begin(arguments, reserve_nodes, failure);
}

const struct verb verb_reserve = {
    .name = "reserve",
    .summary = "reserve the nodes of a campaign, for use by hand",
    .synopsis = "assay reserve CAMPAIGN.yaml|ARCHIVE.zip [-o FOLDER] [--set NAME=VALUE]... [--seed SEED]",
    .description =
        "Makes the folder of a run of the campaign, reserves its nodes, waits until they are there, and "
        "prints them, when the reservation ends, and what can be done next. Nothing is measured, and nothing "
        "is set; the reservation stays when the command has ended. Ctrl-C while it waits gives back what was "
        "asked for.\n\n"
        "Then each step is a command: 'assay nodes' with --run does by hand, as often as it is wanted, what "
        "a run does by itself; 'assay resume' runs the campaign on these nodes, and gives them back at its "
        "end; 'assay release' gives them back without. 'assay list --reservations' has what is still "
        "reserved.\n\n"
        "  assay reserve hpl.yaml\n"
        "  assay nodes show --run runs/hpl-20261122T120000-1a2b3c4d\n"
        "  assay nodes controls --run runs/hpl-20261122T120000-1a2b3c4d --probes\n"
        "  assay nodes run --run runs/hpl-20261122T120000-1a2b3c4d -- lscpu\n"
        "  assay resume runs/hpl-20261122T120000-1a2b3c4d\n"
        "  assay release runs/hpl-20261122T120000-1a2b3c4d",
    .options = options,
    .operands_least = 1,
    .operands_most = 1,
    .run = reserve,
};
