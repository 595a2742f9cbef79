#include "engine/agent/files/part.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

void part_clear(struct part *part) {
    if (part->named)
        unlinkat(part->folder, part->name, 0);
    cleanup_close_descriptor(&part->file);
    cleanup_close_descriptor(&part->folder);
}

int part_open(struct part *part, mode_t mode) {
    snprintf(part->name, sizeof part->name, ".assay-%ld.part", (long)getpid());
    part->file = openat(part->folder, ".", O_TMPFILE | O_WRONLY | O_CLOEXEC, mode);
    if (part->file >= 0)
        return 0;
    part->file = openat(part->folder, part->name, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, mode);
    part->named = part->file >= 0;
    return part->file < 0 ? -errno : 0;
}

/* Syncs the part to the disk and renames it to NAME, which is replaced. 0 or a negative errno. */
int part_commit(struct part *part, const char *name) {
    char link[64];
    snprintf(link, sizeof link, "/proc/self/fd/%d", part->file);
    if (fsync(part->file) < 0)
        return -errno;
    if (!part->named && linkat(AT_FDCWD, link, part->folder, part->name, AT_SYMLINK_FOLLOW) < 0)
        return -errno;
    part->named = true;
    if (renameat(part->folder, part->name, part->folder, name) < 0)
        return -errno;
    part->named = false;
    /* Some file systems cannot sync a folder (EINVAL). */
    return fsync(part->folder) < 0 && errno != EINVAL ? -errno : 0;
}
