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

/* Does it have units left, or no archive, and is no engine working on it? */
static bool is_unfinished(const char *path) {
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    return run_status_read(path, &status, NULL) == 0 && status->journal_bytes > 0 &&
           status->condition != RUN_IS_COMPLETED && !run_status_is_under_way(status);
}

/* Looks for an unfinished run of the campaign in FOLDER, from the newest name on; *RET are its inputs. A run
 * of a changed campaign counts only if it is the newest of that file. */
enum inputs_match unfinished_find(const char *folder, const struct campaign *campaign,
                                  const struct campaign_overrides *overrides, struct inputs *ret) {
    struct dirent **entries;
    enum inputs_match found = INPUTS_OTHER;
    bool last = true; /* no run of the campaign's file was met */
    int count = scandir(folder, &entries, is_shown, compare_names);
    if (count < 0) /* there is no such folder */
        return INPUTS_OTHER;
    for (int i = count - 1; i >= 0; i--) {
        cleanup_free char *path = xformat("%s/%s", folder, entries[i]->d_name);
        cleanup(inputs_clear) struct inputs inputs = {0};
        enum inputs_match match = INPUTS_OTHER; /* what is not a run is not the campaign's */
        if (found != INPUTS_SAME && file_is_folder(path) && inputs_read(path, &inputs, NULL) == 0)
            match = inputs_match(&inputs, campaign, overrides);
        if ((match == INPUTS_SAME || (match == INPUTS_CHANGED && last)) && is_unfinished(path)) {
            inputs_clear(ret);
            *ret = inputs;
            inputs = (struct inputs){0};
            found = match;
        }
        last = last && match == INPUTS_OTHER;
        free(entries[i]);
    }
    free(entries);
    return found;
}
