#include "engine/run/record/unfinished.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/record/status.h"

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

struct search {
    const struct campaign *campaign;
    const struct campaign_overrides *overrides;
    bool met; /* a run of the campaign's file, which is later than all that follow */
    enum unfinished found;
    struct inputs inputs; /* of what was found */
};

static void keep(struct search *search, enum unfinished found, struct inputs *inputs) {
    inputs_clear(&search->inputs);
    search->found = found;
    search->inputs = *inputs;
    *inputs = (struct inputs){0};
}

/* Is the run in PATH one of those? Folders that are no runs are none. */
static void look_at(struct search *search, const char *path) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    if (!file_is_folder(path) || inputs_read(path, &inputs, NULL) < 0)
        return;
    enum inputs_kinship kinship = inputs_find_kinship(&inputs, search->campaign, search->overrides);
    if (kinship == INPUTS_OTHER)
        return;
    bool last = !search->met;
    search->met = true;
    if ((kinship == INPUTS_SAME || last) && is_unfinished(path))
        keep(search, kinship == INPUTS_SAME ? UNFINISHED_SAME : UNFINISHED_CHANGED, &inputs);
}

int unfinished_find(const char *folder, const struct campaign *campaign,
                    const struct campaign_overrides *overrides, struct inputs *ret,
                    enum unfinished *ret_found, struct failure *failure) {
    struct dirent **entries;
    struct search search = {.campaign = campaign, .overrides = overrides};
    *ret_found = UNFINISHED_NONE;
    int count = scandir(folder, &entries, is_shown, compare_names);
    if (count < 0)
        return errno == ENOMEM ? failure_memory(failure) : 0;
    for (int i = count - 1; i >= 0; i--) {
        cleanup_free char *path = file_join(folder, entries[i]->d_name);
        if (path && search.found != UNFINISHED_SAME)
            look_at(&search, path);
        free(entries[i]);
    }
    free(entries);
    *ret_found = search.found;
    *ret = search.inputs;
    return 0;
}
