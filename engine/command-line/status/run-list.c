#include "engine/command-line/status/run-list.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/run/record/status.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { RUNS_MAX = 1 << 20 };

static void close_folder(DIR **folder) {
    if (*folder)
        closedir(*folder);
}

/* Takes PATH over, also when it fails. */
static int add_path(struct run_list *list, char *path, struct failure *failure) {
    if (list_reserve(&list->paths, &list->capacity, list->count + 1, sizeof *list->paths, RUNS_MAX) < 0) {
        free(path);
        return failure_set(failure, -EFBIG, "there are more than %d runs", RUNS_MAX);
    }
    list->paths[list->count++] = path;
    return 0;
}

/* Is PATH the archive of a run that has no folder beside it? Links and what lies deeper are looked at like
 * the rest; what else ends in .zip is reported when it is read. */
static bool is_lone_archive(const char *path) {
    cleanup_free char *folder = run_status_folder_of(path);
    return folder && !file_is_folder(path) && !run_status_is_run(folder);
}

static int add_entry(struct run_list *list, const char *folder, const char *name, struct failure *failure) {
    cleanup_free char *path = file_join(folder, name);
    if (!run_status_is_run(path) && !is_lone_archive(path))
        return 0;
    return add_path(list, take_pointer(path), failure);
}

static int compare_paths(const void *a, const void *b) {
    return strcmp(*(const char *const *)a, *(const char *const *)b);
}

/* Adds FOLDER if it is a run, else the runs and archives in it, sorted by name. */
int run_list_add(struct run_list *list, const char *folder, struct failure *failure) {
    if (run_status_is_run(folder))
        return add_path(list, xstrdup(folder), failure);
    cleanup(close_folder) DIR *stream = opendir(folder);
    if (!stream)
        return failure_input(failure, NULL, 0, 0, "cannot list '%s': %s; expected a folder with runs", folder,
                             strerror(errno));
    const struct dirent *entry;
    int r = 0;
    while (r == 0 && (entry = readdir(stream)))
        if (entry->d_name[0] != '.')
            r = add_entry(list, folder, entry->d_name, failure);
    if (r == 0 && list->count > 0)
        qsort(list->paths, list->count, sizeof *list->paths, compare_paths);
    return r;
}

void run_list_clear(struct run_list *list) {
    for (size_t i = 0; i < list->count; i++)
        free(list->paths[i]);
    free(list->paths);
    *list = (struct run_list){0};
}

/* As text that sorts by time; "" when it is not known. */
static void find_begin(const char *path, char begun[static CLOCK_TEXT_SIZE]) {
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    int64_t wall_ns = file_is_folder(path) ? run_status_begun_ns(path) : 0;
    begun[0] = '\0';
    if (wall_ns)
        clock_format(wall_ns, begun);
    else if (!file_is_folder(path) && run_status_read_archive(path, &status, NULL) == 0)
        memcpy(begun, status->started, CLOCK_TEXT_SIZE);
}

/* *RET is the run in FOLDER that began last; the caller frees. FAILURE_INPUT: there is none. */
int run_list_newest(const char *folder, char **ret, struct failure *failure) {
    cleanup(run_list_clear) struct run_list list = {0};
    int r = run_list_add(&list, folder, failure);
    if (r < 0)
        return r;
    char last[CLOCK_TEXT_SIZE] = "", begun[CLOCK_TEXT_SIZE];
    char **newest = NULL;
    for (size_t i = 0; i < list.count; i++) {
        find_begin(list.paths[i], begun);
        if (!newest || strcmp(begun, last) >= 0) {
            newest = &list.paths[i];
            memcpy(last, begun, sizeof last);
        }
    }
    if (!newest)
        return failure_input(failure, NULL, 0, 0, "there is no run in '%s'", folder);
    *ret = take_pointer(*newest);
    return 0;
}
