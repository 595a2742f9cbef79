#include "engine/agent/anywhere.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LINKS_LIMIT = 40 }; /* as the kernel has it */

/* PATH without slashes at its end, in BUFFER. It must have a name there. */
static int normalize(const char *path, char buffer[PATH_MAX], struct failure *failure) {
    size_t length = strnlen(path, PATH_MAX);
    if (length >= PATH_MAX)
        return failure_set(failure, -ENAMETOOLONG, "'%.64s...' is longer than %d bytes", path, PATH_MAX - 1);
    memcpy(buffer, path, length + 1);
    while (length > 1 && buffer[length - 1] == '/')
        buffer[--length] = '\0';
    const char *name = strrchr(buffer, '/') + 1;
    if (name[0] == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return failure_set(failure, -EINVAL, "'%.256s' has no name at its end", path);
    return 0;
}

/* If AT is a link, what it leads to takes its place, and 1 is returned. */
static int follow(char at[PATH_MAX]) {
    char link[PATH_MAX], next[PATH_MAX];
    ssize_t length = readlink(at, link, sizeof link - 1);
    if (length < 0)
        return errno == EINVAL || errno == ENOENT ? 0 : -errno; /* no link; nothing there */
    link[length] = '\0';
    size_t folder = link[0] == '/' ? 0 : (size_t)(strrchr(at, '/') + 1 - at);
    if (folder + (size_t)length >= sizeof next)
        return -ENAMETOOLONG;
    memcpy(next, at, folder);
    memcpy(next + folder, link, (size_t)length + 1);
    memcpy(at, next, folder + (size_t)length + 1);
    return 1;
}

int anywhere_open_parent(const char *path, char **ret_name, struct failure *failure) {
    char at[PATH_MAX], again[PATH_MAX];
    int r = normalize(path, at, failure);
    for (int links = 0; r == 0; links++) {
        r = links < LINKS_LIMIT ? follow(at) : -ELOOP;
        if (r < 0)
            return failure_set(failure, r, "cannot write '%.256s': %s", path, strerror(-r));
        if (r == 0)
            break;
        memcpy(again, at, sizeof again);
        r = normalize(again, at, failure);
    }
    if (r < 0)
        return r;
    struct stat status;
    if (lstat(at, &status) == 0 && !S_ISREG(status.st_mode))
        return failure_set(failure, S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL,
                           "cannot write '%.256s': it is %s", path,
                           S_ISDIR(status.st_mode) ? "a folder" : "not a file");
    char *slash = strrchr(at, '/');
    cleanup_free char *name = strdup(slash + 1);
    if (!name)
        return failure_memory(failure);
    slash[slash == at] = '\0'; /* the root keeps its slash */
    int folder = open(at, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (folder < 0)
        return failure_set(failure, -errno, "cannot open folder '%.256s': %s", at, strerror(errno));
    *ret_name = take_pointer(name);
    return folder;
}

int anywhere_make_folders(const char *path, struct failure *failure) {
    char plain[PATH_MAX];
    if (path[strspn(path, "/")] == '\0')
        return 0; /* the root is there */
    int r = normalize(path, plain, failure);
    return r < 0 ? r : file_make_folders(plain, failure);
}

int anywhere_remove_tree(const char *path, struct failure *failure) {
    char plain[PATH_MAX];
    int r = normalize(path, plain, failure);
    return r < 0 ? r : file_remove_tree(plain, failure);
}
