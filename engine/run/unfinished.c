#include "engine/run/unfinished.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/run-status.h"

#include <dirent.h>
#include <errno.h>
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

/* Is the run in PATH one of those? Folders that are no runs are none. */
static bool take(const char *path, const struct campaign *campaign,
                 const struct campaign_overrides *overrides, struct inputs *ret) {
    struct inputs inputs = {0};
    if (!file_is_folder(path) || inputs_read(path, &inputs, NULL) < 0)
        return false;
    if (!inputs_are_of(&inputs, campaign, overrides) || !is_unfinished(path)) {
        inputs_clear(&inputs);
        return false;
    }
    *ret = inputs;
    return true;
}

int unfinished_find(const char *folder, const struct campaign *campaign,
                    const struct campaign_overrides *overrides, struct inputs *ret, bool *ret_found,
                    struct failure *failure) {
    struct dirent **entries;
    *ret_found = false;
    int count = scandir(folder, &entries, is_shown, compare_names);
    if (count < 0)
        return errno == ENOMEM ? failure_memory(failure) : 0;
    for (int i = count - 1; i >= 0; i--) {
        cleanup_free char *path = file_join(folder, entries[i]->d_name);
        if (path && !*ret_found)
            *ret_found = take(path, campaign, overrides, ret);
        free(entries[i]);
    }
    free(entries);
    return 0;
}
