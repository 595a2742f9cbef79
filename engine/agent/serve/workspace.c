#include "engine/agent/serve/workspace.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>

enum { REASONS_LIMIT = 1024 };

bool workspace_is_name(const char *name) {
    size_t length = strnlen(name, NAME_MAX + 1);
    return length > 0 && length <= NAME_MAX && !strchr(name, '/') && strcmp(name, ".") != 0 &&
           strcmp(name, "..") != 0;
}

/* Opens the run directory NAME in WORKSPACE. A workspace that does not exist is refused, not made. */
static int open_in(struct run_directory *ret, const char *workspace, const char *name, unsigned flags,
                   struct failure *failure) {
    struct stat status;
    if (stat(workspace, &status) < 0)
        return failure_set(failure, -errno, "cannot use the workspace '%s': %s", workspace, strerror(errno));
    cleanup_free char *path = file_join(workspace, name);
    if (!path)
        return failure_memory(failure);
    return run_directory_open(ret, path, flags | RUN_DIRECTORY_PRIVATE, failure);
}

char *workspace_cache(void) {
    const char *home = getenv("HOME");
    if (!home || home[0] != '/')
        return NULL;
    cleanup_free char *parent = file_join(home, ".cache");
    char *folder = file_join(home, ".cache/assay");
    /* Private, whatever the umask. Errors are ignored: they show when the folder is used. */
    if (parent && folder && file_make_folders(parent, NULL) == 0)
        (void)mkdir(folder, 0700);
    return folder;
}

/* Opens the run directory NAME in WORKSPACE or, if that is NULL, in the first usual folder from which
 * programs can be run. */
int workspace_open(struct run_directory *ret, const char *workspace, const char *name, unsigned flags,
                   struct failure *failure) {
    if (workspace)
        return open_in(ret, workspace, name, flags, failure);
    struct text reasons;
    text_init(&reasons, REASONS_LIMIT);
    const char *temporary = getenv("TMPDIR");
    cleanup_free char *cache = NULL;
    const char *candidates[] = {temporary && temporary[0] == '/' ? temporary : NULL, "/tmp", "/var/tmp", NULL,
                                "/dev/shm"};
    int r = -ENOENT;
    for (size_t i = 0; r < 0 && i < sizeof candidates / sizeof *candidates; i++) {
        struct failure why;
        struct statvfs system;
        if (i == 3) /* the folder in the home folder is made only when it is needed */
            candidates[i] = cache = workspace_cache();
        if (!candidates[i])
            continue;
        if (statvfs(candidates[i], &system) == 0 && system.f_flag & ST_NOEXEC)
            r = failure_set(&why, -ENOEXEC, "programs cannot be run from '%s'", candidates[i]);
        else
            r = open_in(ret, candidates[i], name, flags, &why);
        if (r < 0) /* reasons beyond the limit are dropped */
            (void)text_printf(&reasons, "%s%s", reasons.length ? "; " : "", why.text);
    }
    if (r < 0)
        failure_set(failure, r, "there is no folder for the run directory: %s", reasons.bytes);
    text_clear(&reasons);
    return r;
}

void workspace_find_abandoned(bool is_removed) {
    const char *temporary = getenv("TMPDIR");
    cleanup_free char *cache = workspace_cache();
    const char *const candidates[] = {temporary, "/tmp", "/var/tmp", cache, "/dev/shm"};
    for (size_t i = 0; i < sizeof candidates / sizeof *candidates; i++) {
        bool is_absolute = candidates[i] && candidates[i][0] == '/';
        bool is_known = i > 0 && temporary && is_absolute && strcmp(candidates[i], temporary) == 0;
        cleanup_close int folder =
            is_absolute && !is_known ? open(candidates[i], O_RDONLY | O_DIRECTORY | O_CLOEXEC) : -1;
        if (folder >= 0)
            run_directory_find_abandoned(folder, candidates[i], is_removed);
    }
}
