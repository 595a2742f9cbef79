/* assay status: how one run stands. */
#include "engine/command-line/output.h"
#include "engine/command-line/status/run-list.h"
#include "engine/command-line/verb.h"
#include "engine/run/record/status-report.h"

#include "engine/foundation/cleanup.h"

int command_status(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup_free char *newest = NULL;
    const char *path = arguments->operand_count ? arguments->operands[0] : NULL;
    int r = path ? 0 : run_list_newest("runs", &newest, failure);
    if (r < 0)
        return r;
    if (!path)
        path = newest;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    r = run_status_read_whole(path, &status, failure);
    if (r < 0)
        return r;
    run_status_read_samples(status);
    cleanup(report_cleanup) struct report *page = status_describe(status);
    output_report(page, verb_switch(arguments, "--json"), false);
    return 0;
}
