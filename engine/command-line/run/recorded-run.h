/*
 * Running again what was run before: the campaign of an archive, or that in a run's folder (or an archive's
 * that was extracted), with the experiment, the source, the design and the seed that are beside it. One that
 * was edited is a campaign like any other.
 */
#ifndef ASSAY_COMMAND_LINE_RUN_RECORDED_RUN_H
#define ASSAY_COMMAND_LINE_RUN_RECORDED_RUN_H

#include "engine/foundation/failure.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/inputs.h"

struct recorded_run {
    char *campaign;              /* the file to read: of a run, its resolved campaign */
    char *written;               /* the file that a user wrote, of a run; NULL: it is the above */
    char *temporary;             /* the folder that an archive was extracted to; NULL: none */
    bool is_recorded;            /* else CAMPAIGN is a user's file like any other, or was edited */
    struct inputs inputs;        /* zeroed: CAMPAIGN is of no run; likewise */
    struct campaign_again again; /* which run it is of */
};

/* PATH: a campaign's file, or an archive. */
int recorded_run_open(const char *path, struct recorded_run *ret, struct failure *failure);
/* Removes what was extracted: a new run has copies of its own by its end. */
void recorded_run_close(struct recorded_run *run);
/* For struct run_request: what is not as it was in the run that the one in FOLDER repeats, of nodes, their
 * state and their software. */
int recorded_run_compare(const char *folder, struct bind_texts *ret, struct failure *failure);

#endif
