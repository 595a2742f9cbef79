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

int command_stop(const struct verb_arguments *arguments, struct failure *failure) {
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
           " ends its measurements, and seals what there is; 'assay watch %s' follows it\n",
           owner.pid, shown(folder).text);
    return 0;
}
