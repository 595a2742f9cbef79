/* assay stop: ends a run that another process carries out, as Ctrl-C does where it can be pressed. */
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/report/shown.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    cleanup_free char *folder = NULL;
    struct run_lock_owner owner;
    int r = run_status_find_folder(arguments->operands[0], &folder, failure);
    if (r == 0)
        r = run_status_read(folder, &status, failure);
    if (r < 0)
        return r;
    if (status->condition == RUN_IS_QUEUED)
        return failure_set_kind(failure, FAILURE_INPUT, -ESRCH,
                                "the run '%s' has not begun: %s; 'assay release' deletes that job", folder,
                                status->history.reservation);
    r = run_lock_signal(folder, SIGINT, &owner, failure);
    if (r < 0)
        return r == -ESRCH ? failure_prefix(failure, "it is %s", run_condition_name(status->condition)) : r;
    printf("process %" PRId64
           " ends its measurements, and seals what there is; 'assay attach %s' follows it\n",
           owner.pid, shown(folder).text);
    return 0;
}

static const struct verb_option options[] = {{NULL, 0, NULL, NULL, false}};

const struct verb verb_stop = {
    .name = "stop",
    .summary = "end a run that was detached",
    .synopsis = "assay stop RUN",
    .description =
        "Asks the engine that works on the run RUN, its folder or an archive beside that, to end: it does "
        "what it does at Ctrl-C, ends the measurements, puts the nodes back, seals what there is (status "
        "interrupted) and gives the nodes back. 'assay resume' continues such a run. This command returns at "
        "once; again, it insists as a second Ctrl-C does.\n\n"
        "The engine is found by the lock that it holds on the run's folder, so that nothing else is meant. "
        "It must be of this machine: where the engine is in a job (--detach=job), call this on the node that "
        "'assay status' names, or let the job manager send SIGINT ('scancel --batch --signal=INT JOB'). A "
        "run whose job has not begun is taken out of the queue by 'assay release'.\n\n"
        "  assay stop runs/quickstart-20261122T120000-1a2b3c4d",
    .options = options,
    .operands_least = 1,
    .operands_most = 1,
    .run = run,
};
