#include "engine/agent/files/claim.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

int claim_make(int parent, const char *name) {
    char early[NAME_MAX + 1];
    snprintf(early, sizeof early, "new-%s", name);
    if (mkdirat(parent, early, 0755) < 0 && errno != EEXIST)
        return -errno;
    cleanup_close int folder = openat(parent, early, FOLDER);
    if (folder < 0 || fchmod(folder, 0755) < 0 || flock(folder, LOCK_EX | LOCK_NB) < 0 ||
        renameat(parent, early, parent, name) < 0)
        return -errno;
    return take_descriptor(folder);
}

int claim_remove(int parent, const char *name, int folder) {
    int r = file_empty_folder(folder);
    return r == 0 && unlinkat(parent, name, AT_REMOVEDIR) < 0 ? -errno : r;
}

static bool is_abandoned(int folder, const char *inner) {
    struct stat status;
    cleanup_close int held = openat(folder, inner, FOLDER);
    return held >= 0 && fstat(held, &status) == 0 && status.st_uid == geteuid() &&
           flock(held, LOCK_EX | LOCK_NB) == 0;
}

void claim_remove_abandoned(int parent, const char *prefix, const char *inner) {
    int again = openat(parent, ".", FOLDER);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    struct dirent *entry;
    if (!entries)
        cleanup_close_descriptor(&again);
    while (entries && (entry = readdir(entries))) {
        struct stat status;
        if (strncmp(entry->d_name, prefix, strlen(prefix)) != 0)
            continue;
        cleanup_close int folder = openat(parent, entry->d_name, FOLDER);
        if (folder >= 0 && fstat(folder, &status) == 0 && status.st_uid == geteuid() &&
            is_abandoned(folder, inner))
            (void)claim_remove(parent, entry->d_name, folder);
    }
    if (entries)
        closedir(entries);
}
