#include "engine/run/unfinished.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/run-lock.h"

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

/* Is the run in PATH one of those? Folders that are no runs are none. */
static bool take(const char *path, const struct campaign *campaign,
                 const struct campaign_overrides *overrides, struct inputs *ret) {
    struct inputs inputs = {0};
    struct run_lock_owner owner;
    cleanup_free char *archive = text_format("%s.zip", path);
    if (!archive || !file_is_folder(path) || file_exists(archive) || inputs_read(path, &inputs, NULL) < 0)
        return false;
    if (!inputs_are_of(&inputs, campaign, overrides) || run_lock_look(path, &owner, NULL) < 0 || owner.held) {
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
