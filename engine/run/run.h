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
    bool reservation_over; /* ended only because the time was up or the nodes were taken away */
    uint64_t units_done;   /* in this part */
    char *folder;          /* the run's folder; the caller frees */
};

struct run_request {
    const struct campaign *campaign;
    const struct campaign_overrides *overrides; /* of the command line, for inputs.json; NULL: none */
    struct run_outcome *outcome;                /* NULL: not wanted */
    const struct installation *installation;
    const char *folder; /* in which the run's folder and the archive are made; made if it is not there */
    struct run_observer observer;
    /* Adds sentences to RET on how the run in FOLDER differs from the run that it repeats. Called for a run
     * that repeats one, once the controls are set. NULL: nothing is compared. */
    int (*compare)(const char *folder, struct bind_texts *ret, struct failure *failure);
    const char *const *command; /* the engine's own command line, NULL-ended, for the record */
    int64_t
        until_ns; /* since 1970: when the run must have ended, sealed; 0: the campaign or the testbed says */
    /* Sets RET_SECONDS, one for each row of PLAN, to the seconds that a unit takes by the campaign's model
     * (walltime.model); NAN: not known. Called before a node is touched. NULL: no models are read. */
    int (*predict)(void *context, const struct plan *plan, double *ret_seconds, struct failure *failure);
    void *predict_context;
    /* The main results in the run's FOLDER as lines of text, with which README.md begins; the caller frees.
     * Returns NULL when there are none. The pointer may be NULL. */
    char *(*describe_result)(const char *folder);
};

/* Runs the campaign. On success *RET_ARCHIVE is the path of the sealed archive, which the caller frees. A run
 * that fails is sealed too where possible: then *RET_ARCHIVE is set, and FAILURE says why the run failed
 * (FAILURE_EXPERIMENT, FAILURE_INTERRUPTED, FAILURE_PARTIAL, ...). Otherwise *RET_ARCHIVE is NULL, and
 * FAILURE names the run's folder, which keeps all records. A campaign that is refused before anything was
 * measured (FAILURE_INPUT) leaves neither archive nor folder. The first of SIGINT, SIGHUP, SIGTERM and
 * SIGUSR2 ends the measurements and seals; a second one is not needed. */
int run_execute(const struct run_request *request, char **ret_archive, struct failure *failure);

/* Makes the run's folder, reserves nodes and waits for them. They stay reserved; run_resume() measures on
 * them. *RET_FOLDER is the run's folder; the caller frees. Refused when the testbed has no reservations.
 * After a failure or an interruption the nodes are given back and the folder is removed. */
int run_reserve(const struct run_request *request, char **ret_folder, struct failure *failure);
/* Makes the run's folder, *RET_FOLDER (the caller frees), with its journal and its inputs, and nothing else:
 * run_resume() does the rest, in another process. */
int run_begin(const struct run_request *request, char **ret_folder, struct failure *failure);

/* Continues the run of INPUTS with another part: measures the units that are left in the same order, tries
 * failed ones again, and seals all of them. REQUEST's campaign comes from campaign_read_recorded(); REQUEST's
 * folder is ignored. If an earlier part was sealed, this one makes an archive of its own. Otherwise as
 * run_execute().
 * A run that was completed and sealed is not continued: its archive is returned, and nodes that it still has
 * reserved are given back. Refused: a run that another engine works on, a plan whose order or columns this
 * version of assay would change, machines other than before. */
int run_resume(const struct run_request *request, const struct inputs *inputs, char **ret_archive,
               struct failure *failure);

/* Gives back the nodes that the run in FOLDER has reserved. The testbed finds the reservation by the run's
 * name, or by the id in PAST, the run's history. REPORT is called with a sentence: what was given back, or
 * that nothing was reserved. The end of a reservation is journalled. The caller holds the run's lock, and
 * CAMPAIGN's testbed has a reclaim(). */
int run_give_back(const char *folder, const struct run_history *past, const struct campaign *campaign,
                  const struct installation *installation,
                  void (*report)(void *context, const char *sentence), void *context,
                  struct failure *failure);

#endif
