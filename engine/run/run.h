/*
 * A run: one execution of a campaign. Its folder is the staging area of its archive; its journal is the truth
 * after a crash.
 *
 * Phases, each journalled: reserve, deploy, connect, inspect, prepare, control, warm-up, measure, collect,
 * restore, seal, release. Whatever fails, and whatever interrupts, collect, restore, seal and release still
 * run, so that there is an archive that says so.
 */
#ifndef ASSAY_RUN_RUN_H
#define ASSAY_RUN_RUN_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/inputs.h"
#include "engine/run/campaign/plan.h"
#include "engine/run/record/history.h"
#include "engine/run/record/observer.h"

#include <stdbool.h>
#include <stdint.h>

/* How a part of a run ended, beside its failure. */
struct run_outcome {
    bool reservation_over; /* its time was up, or the nodes were taken away, and nothing else was wrong */
    uint64_t units_done;   /* in this part */
    char *folder;          /* the run's; the caller's to free */
};

struct run_request {
    const struct campaign *campaign;
    const struct campaign_overrides
        *overrides;              /* that the campaign was read with, for inputs.json; NULL: none */
    struct run_outcome *outcome; /* NULL: not wanted */
    const struct installation *installation;
    const char *folder; /* in which the run's folder and the archive are made; made if it is not there */
    struct run_observer observer;
    /* Adds sentences to RET: how the run in FOLDER differs from the one that it repeats, if it does repeat
     * one. Called when the nodes are as they are measured. NULL: nothing is compared. */
    int (*compare)(const char *folder, struct bind_texts *ret, struct failure *failure);
    const char *const *command; /* the engine's own command line, NULL-ended, for the record */
    int64_t
        until_ns; /* since 1970: when the run must have ended, sealed; 0: the campaign or the testbed says */
    /* Sets the seconds that a unit of each row of PLAN takes, NAN where that is not known, by the model that
     * the campaign names (walltime.model). Called before anything is touched. NULL: no models are read. */
    int (*predict)(void *context, const struct plan *plan, double *ret_seconds, struct failure *failure);
    void *predict_context;
    /* What the results in the run's FOLDER say, in lines, for the first lines of README.md; the caller frees.
     * NULL: they say nothing. May itself be NULL. */
    char *(*describe_result)(const char *folder);
};

/* Runs the campaign. On success *RET_ARCHIVE is the path of the sealed archive (the caller's). On failure
 * too, when an archive could be sealed: FAILURE then says why the run failed (FAILURE_EXPERIMENT,
 * FAILURE_INTERRUPTED, FAILURE_PARTIAL, ...); otherwise *RET_ARCHIVE is NULL and FAILURE names the run's
 * folder, where everything is. What is refused before anything was measured, FAILURE_INPUT, leaves neither.
 * SIGINT, SIGHUP, SIGTERM and SIGUSR2 are handled while it runs: the first ends
 * the measurements, a second one is not needed. */
int run_execute(const struct run_request *request, char **ret_archive, struct failure *failure);

/* Makes the run's folder, reserves, and waits for the nodes, which stay reserved: run_resume() measures on
 * them. *RET_FOLDER is the run's, the caller's. Refused where the testbed reserves nothing. What fails or is
 * interrupted is given back, and leaves no folder. */
int run_reserve(const struct run_request *request, char **ret_folder, struct failure *failure);
/* Makes the run's folder, *RET_FOLDER (the caller's), with its journal and its inputs, and nothing else:
 * run_resume() does the rest, in another process. */
int run_begin(const struct run_request *request, char **ret_folder, struct failure *failure);

/* Continues the run that INPUTS are of, by another part: what is not done is measured in the same
 * order, what failed is tried again, and all of it is sealed. REQUEST's campaign was read by
 * campaign_read_recorded(); its folder does not count. A part after one that was sealed makes an
 * archive of its own. The rest is as for run_execute(). A run that was completed and sealed has nothing left
 * to do: its archive is returned, and what it has reserved still is given back. Refused: a run that another
 * engine works on, one that another version of assay would measure in another order, other machines than
 * before. */
int run_resume(const struct run_request *request, const struct inputs *inputs, char **ret_archive,
               struct failure *failure);

/* Gives back what the run in FOLDER, whose lock the caller has, has reserved: by its name, or, where the
 * testbed does not say what that has, by what PAST, its history, calls the reservation. REPORT hears what was
 * given back, or that nothing was there; the journal has it, too. CAMPAIGN's testbed has a reclaim(). */
int run_give_back(const char *folder, const struct run_history *past, const struct campaign *campaign,
                  const struct installation *installation,
                  void (*report)(void *context, const char *sentence), void *context,
                  struct failure *failure);

#endif
