/* assay reserve: the nodes of a campaign, to be used by hand before it is measured. */
#include "engine/command-line/output.h"
#include "engine/command-line/run/execution.h"
#include "engine/run/record/status-report.h"

#include "engine/foundation/cleanup.h"

#include <stdlib.h>

/* Reserves the nodes and prints the run's status. Refused: a list of testbeds. */
static int reserve_nodes(const struct execution *execution, struct failure *failure) {
    cleanup_free char *folder = NULL;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    if (execution->campaign->testbed.count > 0)
        return failure_input(failure, execution->path, 0, 0,
                             "the campaign has %zu testbeds, expected one whose nodes are to be reserved",
                             execution->campaign->testbed.count);
    struct execution only = *execution;
    only.ret_reserved = &folder;
    int r = execution_run(&only, failure);
    if (r == 0)
        r = run_status_read(folder, &status, failure);
    if (r < 0)
        return r;
    cleanup(report_cleanup) struct report *report = status_describe(status);
    if (verb_switch(execution->arguments, "--json"))
        output_report_line(report);
    else
        output_report(report, false, false);
    return 0;
}

int command_reserve(const struct verb_arguments *arguments, struct failure *failure) {
    return execution_begin(arguments, reserve_nodes, failure);
}
