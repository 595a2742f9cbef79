/* What `assay run`, `assay reserve` and `assay resume` have in common: a campaign is read; a part of a run is
 * carried out and shown, and with --resubmit further parts. */
#ifndef ASSAY_COMMAND_LINE_RUN_EXECUTION_H
#define ASSAY_COMMAND_LINE_RUN_EXECUTION_H

#include "engine/command-line/verb.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/inputs.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/record/observer.h"

/* A part of a run that is to be carried out: the first of a new run (`inputs` NULL), or another one. */
struct execution {
    const struct verb_arguments *arguments;
    const struct campaign *campaign;
    const struct campaign_overrides *overrides; /* that the campaign was read with */
    const struct inputs *inputs;                /* of the run that is continued; NULL: a new run */
    const char *path;                           /* of the campaign's file; NULL: it was recorded by a run */
    const char *folder;                         /* in which a new run's folder is made */
    char *
        *ret_reserved; /* not NULL: only its nodes are reserved, and this is the run's folder, the caller's */
    char **ret_begun;  /* not NULL: a new run is only begun (run_begin), and this is where its folder goes */
};

/* Refuses --until and --resubmit that do not go together or make no sense. *RET_UNTIL_NS is 0 without
 * --until. */
int execution_check_limits(const struct execution *execution, int64_t *ret_until_ns, struct failure *failure);

/* Reads the campaign that the first operand is or has, with the options on top, and calls CARRY_OUT with it.
 */
int execution_begin(const struct verb_arguments *arguments,
                    int (*carry_out)(const struct execution *execution, struct failure *failure),
                    struct failure *failure);
/* Carries out EXECUTION and shows its progress; or, with --detach, starts it (detach.h) and says how to
 * follow it. */
int execution_run(const struct execution *execution, struct failure *failure);
/* Carries out EXECUTION in this process; OBSERVER shows it. */
int execution_perform(const struct execution *execution, struct run_observer observer,
                      struct failure *failure);

/* For struct run_request: how long the units of each row take, by the campaign's model (durations.h). */
int execution_predict(void *context, const struct plan *plan, double *ret_seconds, struct failure *failure);

/* Refuses to continue a run whose original files have changed since, with the difference. AS_RECORDED: only
 * reports it. */
int execution_check_changes(const struct inputs *inputs, bool as_recorded, struct failure *failure);

#endif
