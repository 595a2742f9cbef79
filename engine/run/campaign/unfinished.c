#include "engine/run/campaign/unfinished.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/record/status.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int is_shown(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

/* Has it units that are left, or no archive, and does nobody work on it? */
static bool is_unfinished(const char *path) {
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    return run_status_read(path, &status, NULL) == 0 && status->journal_bytes > 0 &&
           status->condition != RUN_IS_COMPLETED && status->condition != RUN_IS_RUNNING;
}

enum unfinished unfinished_find(const char *folder, const struct campaign *campaign,
                                const struct campaign_overrides *overrides, struct inputs *ret) {
    struct dirent **entries;
    enum unfinished found = UNFINISHED_NONE;
    bool last = true; /* no run of the campaign's file was met */
    int count = scandir(folder, &entries, is_shown, compare_names);
    if (count < 0) /* there is no such folder */
        return UNFINISHED_NONE;
    for (int i = count - 1; i >= 0; i--) {
        cleanup_free char *path = xformat("%s/%s", folder, entries[i]->d_name);
        cleanup(inputs_clear) struct inputs inputs = {0};
        enum inputs_kinship kinship = INPUTS_OTHER; /* what is no run is none of the campaign's */
        if (found != UNFINISHED_SAME && file_is_folder(path) && inputs_read(path, &inputs, NULL) == 0)
            kinship = inputs_find_kinship(&inputs, campaign, overrides);
        if ((kinship == INPUTS_SAME || (kinship == INPUTS_CHANGED && last)) && is_unfinished(path)) {
            inputs_clear(ret);
            *ret = inputs;
            inputs = (struct inputs){0};
            found = kinship == INPUTS_SAME ? UNFINISHED_SAME : UNFINISHED_CHANGED;
        }
        last = last && kinship == INPUTS_OTHER;
        free(entries[i]);
    }
    free(entries);
    return found;
}
