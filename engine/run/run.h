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
#include "engine/run/campaign.h"
#include "engine/run/observer.h"

struct run_request {
    const struct campaign *campaign;
    const struct installation *installation;
    const char *folder; /* in which the run's folder and the archive are made; made if it is not there */
    struct run_observer observer;
    const char *const *command; /* the engine's own command line, NULL-ended, for the record */
};

/* Runs the campaign. On success *RET_ARCHIVE is the path of the sealed archive (the caller's). On failure
 * too, when an archive could be sealed: FAILURE then says why the run failed (FAILURE_EXPERIMENT,
 * FAILURE_INTERRUPTED, ...); otherwise *RET_ARCHIVE is NULL and FAILURE names the run's folder, where
 * everything is. SIGINT and SIGTERM are handled while it runs: the first ends the measurements, a second one
 * is not needed. */
int run_execute(const struct run_request *request, char **ret_archive, struct failure *failure);

#endif
