/*
 * What a run was made from: `inputs.json` in its folder says where the campaign, the experiment and the files
 * of its design and hosts lay, what the command line set, and has the hashes of the design and of its order.
 * A run that is resumed is made from its campaign.resolved.json and the copies beside it; originals that have
 * changed since are reported.
 */
#ifndef ASSAY_CAMPAIGN_INPUTS_H
#define ASSAY_CAMPAIGN_INPUTS_H

#include "engine/documents/bind.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/campaign/plan.h"

#include <stdbool.h>

struct inputs_file {
    char *path, *sha256;
};

/* All texts are owned; NULL where there is none. inputs.json has the members but for the first. */
struct inputs {
    char *run_folder; /* the run's, absolute */

    struct inputs_file campaign;
    char *experiment;          /* the experiment's folder; NULL: written in the campaign */
    struct inputs_file source; /* the folder that its source was copied from (NULL: from a copy), and the hash
                                  of the copy, source.tar; both NULL: it has none, or a clone */
    struct bind_texts originals; /* files that the campaign was read from: itself, its hosts and design */
    char *table_sha256, *order_sha256;
    char *seed;
    struct bind_texts settings, nodes; /* the command line's --set and --nodes */
    char *testbed;                     /* likewise, --testbed */
    char *again;                       /* the archive or folder of the run that this one repeats, absolute */
    struct bind_texts executables;     /* files of the copied experiment: members of archives have no
                                          permission bits */
    struct bind_texts left_out;        /* members that are in no copy, since they may hold secrets */
    struct plan_facts
        facts; /* that the design was made with, once they are known and if it depends on them */
};

/* Writes inputs.json into RUN_FOLDER, which has the campaign.yaml and, where there is one, the design.csv and
 * experiment/ of this run. OVERRIDES: the command line's; NULL: none. LEFT_OUT as in copies.h. */
int inputs_write(const char *run_folder, const struct plan *plan, const struct campaign_overrides *overrides,
                 const struct bind_texts *left_out, struct failure *failure);
/* Replaces the plan's facts and hashes in inputs.json by those of PLAN, which was made with known facts. */
int inputs_take_plan(const char *run_folder, const struct plan *plan, struct failure *failure);
/* Updates inputs.json after copies of files have come from nodes. */
int inputs_take_copies(const char *run_folder, struct failure *failure);
int inputs_read(const char *run_folder, struct inputs *ret, struct failure *failure);
void inputs_clear(struct inputs *inputs);

/* Appends a sentence for each original file that has changed since, separated by "; ". Files that are gone do
 * not count; of folders only files that were copied do. */
int inputs_compare(const struct inputs *inputs, struct text *ret, struct failure *failure);
/* For a run whose folder was extracted from an archive: makes the files executable that were so. */
int inputs_restore_executables(const struct inputs *inputs, struct failure *failure);
/* Refuses a copy of the source that has changed. */
int inputs_check_source(const struct inputs *inputs, struct failure *failure);
/* Refuses a plan with another design or order than the run began with. */
int inputs_check_plan(const struct inputs *inputs, const struct plan *plan, struct failure *failure);

enum inputs_match {
    INPUTS_OTHER,   /* another campaign file, or other options */
    INPUTS_CHANGED, /* the same file and options; the text of the file has changed since */
    INPUTS_SAME,    /* the same file and options, unchanged */
};
/* Was the run of INPUTS made from CAMPAIGN with this command line? */
enum inputs_match inputs_match(const struct inputs *inputs, const struct campaign *campaign,
                               const struct campaign_overrides *overrides);

#endif
