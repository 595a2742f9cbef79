/* --keep-image: a tar on stdin becomes a root file system of the node's cache. */
#include "engine/agent/files/image.h"

#include "engine/agent/files/claim.h"
#include "engine/agent/files/tar.h"
#include "engine/agent/machine/tool.h"
#include "engine/agent/serve/workspace.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER = 256 << 10, NAME_SIZE = 96 };

#define PART ".image-" /* begins the name of one that is being extracted */

static int name_image(const char *sha256, char ret[static NAME_SIZE], struct failure *failure) {
    if (strlen(sha256) != 64 || strspn(sha256, "0123456789abcdef") != 64)
        return failure_set(failure, -EINVAL, "'%.100s' is not the SHA-256 of an image", sha256);
    snprintf(ret, NAME_SIZE, "image-%s", sha256);
    return 0;
}

/* The folder in which images are. Whoever could write to it could put anything into a deployed system. */
static int open_cache(struct failure *failure) {
    struct stat status;
    cleanup_free char *path = workspace_cache();
    if (geteuid() != 0)
        return failure_set(failure, -EPERM, "deploying a system needs root on the node, and this is user %u",
                           (unsigned)geteuid());
    cleanup_close int cache = path ? open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC) : -1;
    if (cache < 0)
        return failure_set(failure, -ENOTDIR, "images are kept in ~/.cache/assay, which cannot be opened: %s",
                           path ? strerror(errno) : "there is no home folder");
    if (fstat(cache, &status) < 0 || status.st_uid != 0 || status.st_mode & (S_IWGRP | S_IWOTH))
        return failure_set(failure, -EACCES, "'%s' can be written by others: no image is kept there", path);
    return take_descriptor(cache);
}

int image_open(const char *sha256, struct failure *failure) {
    char name[NAME_SIZE];
    int r = name_image(sha256, name, failure);
    cleanup_close int cache = r < 0 ? r : open_cache(failure);
    if (cache < 0)
        return cache;
    int image = openat(cache, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    return image < 0 ? failure_set(failure, -errno, "the image %.12s... is not in ~/.cache/assay: %s", sha256,
                                   strerror(errno))
                     : image;
}

/* ---- extracting: the root of this process is the new folder, which no path and no link leads out of */

static int put_file(struct tar_reader *tar, const struct tar_entry *entry, char *buffer,
                    struct failure *failure) {
    cleanup_close int file = open(entry->path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    ssize_t got;
    if (file < 0)
        return -errno;
    while ((got = tar_read(tar, buffer, BUFFER, failure)) > 0) {
        int r = file_write_all(file, buffer, (size_t)got);
        if (r < 0)
            return r;
    }
    return (int)got;
}

static int put_parents(const char *path) {
    cleanup_free char *parents = strdup(path);
    char *slash = parents ? strrchr(parents, '/') : NULL;
    if (!slash)
        return parents ? 0 : -ENOMEM;
    *slash = '\0';
    return file_make_folders(parents, NULL);
}

/* A later entry of a name takes the place of an earlier one, as in tar. */
static int put_entry(struct tar_reader *tar, const struct tar_entry *entry, char *buffer,
                     struct failure *failure) {
    const struct timespec times[2] = {{.tv_sec = entry->time_s}, {.tv_sec = entry->time_s}};
    struct stat status;
    int r = put_parents(entry->path);
    if (r < 0)
        return r;
    if (entry->type != TAR_FOLDER && unlink(entry->path) < 0 && errno != ENOENT)
        return -errno;
    if (entry->type == TAR_HARD_LINK)
        return link(entry->target, entry->path) < 0 ? -errno : 0;
    if (entry->type == TAR_FILE)
        r = put_file(tar, entry, buffer, failure);
    else if (entry->type == TAR_LINK)
        r = symlink(entry->target, entry->path) < 0 ? -errno : 0;
    else if (mkdir(entry->path, 0700) < 0 &&
             (errno != EEXIST || lstat(entry->path, &status) < 0 || !S_ISDIR(status.st_mode)))
        r = -errno;
    if (r < 0)
        return r;
    /* The owner before the mode: changing it takes set-user-ID bits away. */
    if (lchown(entry->path, entry->owner, entry->group) < 0 ||
        (entry->type != TAR_LINK && chmod(entry->path, entry->mode) < 0) ||
        utimensat(AT_FDCWD, entry->path, times, AT_SYMLINK_NOFOLLOW) < 0)
        return -errno;
    return 0;
}

static int extract(int folder, char *buffer, struct failure *failure) {
    struct tar_reader tar = {.input = 0, .is_system = true};
    struct tar_entry entry;
    int r;
    if (fchdir(folder) < 0 || chroot(".") < 0)
        return failure_set(failure, -errno, "cannot enter the folder of the new system: %s", strerror(errno));
    umask(022);
    while ((r = tar_next(&tar, &entry, failure)) > 0) {
        failure->code = 0;
        r = put_entry(&tar, &entry, buffer, failure);
        if (r < 0 && failure->code == 0)
            failure_set(failure, r, "cannot extract '%.256s' of the image: %s", entry.path, strerror(-r));
        if (r < 0)
            return r;
    }
    if (r == 0 && !tar.has_ended)
        r = failure_set(failure, -EPROTO, "the image on stdin ends too early");
    /* Tars are padded at their end. */
    while (r == 0 && read(0, buffer, BUFFER) > 0)
        continue;
    return r;
}

/* ---- keeping */

/* The name is not on the disk before the bytes are. One that another process has brought meanwhile is as
 * good.
 */
static int keep(int cache, const char *name, char *buffer, struct failure *failure) {
    uint64_t chance;
    char part[NAME_SIZE];
    if (getrandom(&chance, sizeof chance, 0) != sizeof chance)
        return failure_set(failure, -errno, "cannot draw a random number: %s", strerror(errno));
    snprintf(part, sizeof part, PART "%016" PRIx64, chance);
    claim_remove_abandoned(cache, PART, ".");
    cleanup_close int folder = claim_make(cache, part);
    if (folder < 0)
        return failure_set(failure, folder, "cannot make a folder in ~/.cache/assay: %s", strerror(-folder));
    int r = extract(folder, buffer, failure);
    if (r == 0 && syncfs(folder) < 0)
        r = failure_set(failure, -errno, "cannot write the image to the disk: %s", strerror(errno));
    if (r == 0 && renameat(cache, part, cache, name) == 0)
        return 0;
    if (r == 0 && errno != EEXIST && errno != ENOTEMPTY)
        r = failure_set(failure, -errno, "cannot name the image: %s", strerror(errno));
    (void)claim_remove(cache, part, folder);
    return r;
}

int tool_keep_image(int count, char **arguments) {
    char name[NAME_SIZE];
    struct failure failure = {0};
    if (count != 1)
        return tool_complain(2, "usage: --keep-image SHA256 <FILE.tar");
    int r = name_image(arguments[0], name, &failure);
    cleanup_close int cache = r < 0 ? r : open_cache(&failure);
    if (cache < 0)
        return tool_complain(1, "%s", failure.text);
    if (faccessat(cache, name, F_OK, AT_SYMLINK_NOFOLLOW) == 0)
        return 0;
    cleanup_free char *buffer = malloc(BUFFER);
    r = buffer ? keep(cache, name, buffer, &failure) : failure_memory(&failure);
    return r < 0 ? tool_complain(1, "%s", failure.text) : 0;
}
