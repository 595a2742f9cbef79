/* assay release: gives back what an engine that died has reserved. */
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/report/shown.h"
#include "engine/run/campaign/campaign.h"
#include "engine/run/record/status.h"
#include "engine/run/record/submission.h"
#include "engine/run/run.h"

#include <stdio.h>
#include <stdlib.h>

static void print_sentence(void *context, const char *sentence) {
    (void)context;
    puts(shown(sentence).text);
}

static int release_nodes(const char *folder, const struct run_status *status, const struct campaign *campaign,
                         const struct installation *installation, struct failure *failure) {
    if (campaign->testbed.backend->reclaim)
        return run_give_back(folder, &status->history, campaign, installation, print_sentence, NULL, failure);
    printf("testbed '%s' reserves nothing\n", campaign->testbed.backend->name);
    return 0;
}

int command_release(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    cleanup_free char *folder = NULL;
    cleanup(run_lock_cleanup) struct run_lock *lock = NULL;
    int r = run_status_find_folder(arguments->operands[0], &folder, failure);
    if (r == 0)
        r = run_lock_take(folder, &lock, failure); /* the engine of a run that runs gives them back itself */
    if (r == 0)
        r = run_status_read(folder, &status, failure);
    if (r == 0 && !status->run_id[0]) {
        puts("nothing is reserved: the engine was killed before the run had begun");
        return 0;
    }
    if (r == 0)
        r = campaign_read_recorded(folder, arguments->installation, NULL, 0, &campaign, failure);
    if (r == 0)
        r = release_nodes(folder, status, campaign, arguments->installation, failure);
    return r == 0 && status->condition == RUN_IS_QUEUED
               ? submission_journal(folder, "engine-withdrawn", NULL, failure)
               : r;
}
