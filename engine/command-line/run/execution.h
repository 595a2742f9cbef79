/* What `assay run`, `assay reserve` and `assay resume` have in common: a campaign is read; a part of a run is
 * carried out and shown, and with --resubmit further parts. */
#ifndef ASSAY_COMMAND_LINE_RUN_EXECUTION_H
#define ASSAY_COMMAND_LINE_RUN_EXECUTION_H

#include "engine/command-line/verb.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/inputs.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/record/observer.h"

/* What there is to carry out: a campaign, for a new run (INPUTS NULL), or another part of a run. */
struct execution {
    const struct verb_arguments *arguments;
    const struct campaign *campaign;
    const struct campaign_overrides *overrides; /* that it was read with */
    const struct inputs *inputs;
    const char *path;   /* of the campaign's file; NULL: it was recorded by a run */
    const char *folder; /* in which a new run's folder is made */
    char *
        *ret_reserved; /* not NULL: only its nodes are reserved, and this is the run's folder, the caller's */
    char **ret_begun;  /* not NULL: a new run is only begun (run_begin), and this is where its folder goes */
};

/* Refuses --until and --resubmit that make no sense; *RET_UNTIL_NS is 0 without --until. */
int execution_check_limits(const struct execution *execution, int64_t *ret_until_ns, struct failure *failure);

/* Reads the campaign that the first operand is or has, with what the options say of it, and calls ACT. */
int execution_begin(const struct verb_arguments *arguments,
                    int (*carry_out)(const struct execution *execution, struct failure *failure),
                    struct failure *failure);
/* With its progress; or, with --detach, begins it (detach.h) and says how to follow it. */
int execution_carry_out(const struct execution *execution, struct failure *failure);
/* In this process, shown by OBSERVER. */
int execution_perform(const struct execution *execution, struct run_observer observer,
                      struct failure *failure);

/* For struct run_request: how long the units of each row take, by the campaign's model (durations.h). */
int execution_predict(void *context, const struct plan *plan, double *ret_seconds, struct failure *failure);

/* Refuses a run whose originals have changed since, with the difference; only reports it, with AS_RECORDED.
 */
int execution_check_changes(const struct inputs *inputs, bool as_recorded, struct failure *failure);

#endif
