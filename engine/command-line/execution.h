/* What `assay run`, `assay reserve` and `assay resume` have in common: a campaign is read; a part of a run is
 * carried out and shown, and with --resubmit further parts. */
#ifndef ASSAY_COMMAND_LINE_EXECUTION_H
#define ASSAY_COMMAND_LINE_EXECUTION_H

#include "engine/command-line/verb.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/inputs.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/record/observer.h"

/* Options of both, for their tables. */
#define EXECUTION_OPTION_UNTIL                                                                               \
    {                                                                                                        \
        "--until", 0, "WHEN",                                                                                \
            "ends, restored and sealed, by then: a duration from now such as 90min, a clock time such as "   \
            "18:30, or "                                                                                     \
            "a date and time such as 2026-11-22T18:30; earlier, when the campaign's walltime or the "        \
            "testbed says so",                                                                               \
            false                                                                                            \
    }
#define EXECUTION_OPTION_RESUBMIT                                                                            \
    {                                                                                                        \
        "--resubmit", 0, NULL,                                                                               \
            "when the walltime is over, or the nodes are taken away, and units are left: "                   \
            "gives the nodes back, reserves anew and continues, until all is done, or a part has done "      \
            "nothing",                                                                                       \
            false                                                                                            \
    }
#define EXECUTION_OPTION_OUTPUT                                                                              \
    { "--output", 'o', "FOLDER", "where the run's folder and its archive are made; default: runs", false }
#define EXECUTION_OPTION_SET                                                                                 \
    { "--set", 's', "NAME=VALUE", "sets an option of the experiment, over what the campaign says", true }
#define EXECUTION_OPTION_SEED                                                                                \
    { "--seed", 0, "SEED", "the seed of the design and of its order, from 0 to 18446744073709551615", false }
#define EXECUTION_OPTION_DETACH                                                                              \
    {                                                                                                        \
        "--detach", 0, "[=job]",                                                                             \
            "returns once the run has begun, which a process of its own carries out, whatever becomes of "   \
            "this terminal; "                                                                                \
            "with =job, of a testbed that is slurm or oar, an engine within the job that it submits",        \
            false                                                                                            \
    }
#define EXECUTION_OPTION_QUIET                                                                               \
    { "--quiet", 'q', NULL, "prints only what went wrong and the archive's path", false }

/* What there is to carry out: a campaign, for a new run (INPUTS NULL), or another part of a run. */
struct execution {
    const struct verb_arguments *arguments;
    const struct installation *installation;
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
                    int (*act)(const struct execution *execution, struct failure *failure),
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
