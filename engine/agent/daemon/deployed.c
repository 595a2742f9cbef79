#include "engine/agent/daemon/deployed.h"

#include "engine/agent/machine/machine.h"
#include "engine/agent/serve/workspace.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define LAYER ".assay-layer"

enum { FOLDER = O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC };

static int fail_deployment(struct failure *failure, int code, const char *what) {
    return failure_set(failure, code, "cannot deploy a system: %s: %s", what, strerror(-code));
}

int deployed_open_image(const char *sha256, struct failure *failure) {
    char path[PATH_MAX];
    cleanup_free char *cache = workspace_cache();
    snprintf(path, sizeof path, "%s/image-%s", cache ? cache : "", sha256);
    int r = path_check(path, PATH_PLACE, failure);
    if (r < 0)
        return r;
    int image = open(path, FOLDER);
    return image < 0 ? fail_deployment(failure, -errno, path) : image;
}

/* ---- the system */

/* Makes the folders of the layer in the run directory (deployed.h). */
static int make_folders(int directory) {
    static const char *const others[] = {"work", "root", "run"};
    int r = mkdirat(directory, LAYER, 0755); /* the umask is 022 */
    for (size_t i = 0; r == 0 && i < sizeof others / sizeof *others; i++)
        r = mkdirat(directory, others[i], 0700);
    return r < 0 ? -errno : 0;
}

/* Mounts the image and its layer as an overlay, and returns a descriptor of the new root, or negative. Paths
 * are given as /proc/self/fd/N, since overlay's options cannot contain all characters. */
static int mount_system(int directory, int image, struct failure *failure) {
    char options[160], target[64];
    int r = make_folders(directory);
    if (r < 0)
        return fail_deployment(failure, r, "its folders in the run directory");
    snprintf(options, sizeof options,
             "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/" LAYER ",workdir=/proc/self/fd/%d/work",
             image, directory, directory);
    snprintf(target, sizeof target, "/proc/self/fd/%d/root", directory);
    if (mount("assay", target, "overlay", 0, options) < 0)
        return fail_deployment(
            failure, -errno,
            "an overlay is not mounted, which needs a kernel that has them, and a workspace on "
            "ext4, xfs, tmpfs or another file system that they can write to");
    int root = openat(directory, "root", FOLDER);
    return root < 0 ? fail_deployment(failure, -errno, "its root") : root;
}

/* ---- files shared with the node */

static const struct {
    const char *source, *target;
} shared[] = {
    /* /proc comes first: the others are mounted by their names in /proc/self/fd */
    {"/proc", "/proc"},
    {"/sys", "/sys"},
    {"/dev", "/dev"},
    {"/run", "/" MACHINE_NODE_RUN},
    {"/etc/hosts", "/etc/hosts"},
    {"/etc/resolv.conf", "/etc/resolv.conf"},
};
enum { SHARED = sizeof shared / sizeof *shared, DEV = 2 };

/* Makes the empty file or folder TARGET to mount on, inside the new root, so that no symbolic link of the
 * image leads out of it. A file of the image in its place is removed. */
static int make_target(const char *target, bool is_folder) {
    char parents[PATH_MAX];
    snprintf(parents, sizeof parents, "%s", target);
    if (!is_folder)
        *strrchr(parents, '/') = '\0';
    int r = file_make_folders(parents, NULL);
    if (r < 0 || is_folder)
        return r;
    (void)unlink(target);
    int file = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return file < 0 ? -errno : close(file);
}

/* Mounts the node's file or folder SOURCE on TARGET. SOURCE, a descriptor, is taken over; negative: the node
 * has no such file, and nothing is mounted. */
static int mount_shared(int source, const char *target, struct failure *failure) {
    cleanup_close int owned = source;
    char name[64] = ".";
    struct stat status;
    if (source < 0)
        return 0;
    if (strcmp(target, "/proc") != 0)
        snprintf(name, sizeof name, "/proc/self/fd/%d", source);
    int r = fstat(source, &status) < 0 ? -errno : make_target(target, S_ISDIR(status.st_mode));
    if (r == 0 && S_ISDIR(status.st_mode) && fchdir(source) < 0)
        r = -errno;
    if (r == 0 && mount(name, target, NULL, MS_BIND | MS_REC, NULL) < 0)
        r = -errno;
    return r < 0 ? fail_deployment(failure, r, target) : 0;
}

/* Makes ROOT the process's "/", and mounts the shared files of the node, the agent's program and the run
 * directory DIRECTORY, at its old PATH, in it. The node's root is no longer reachable. */
static int enter_root(int root, int directory, const char *path, struct failure *failure) {
    char program[PATH_MAX] = "";
    (void)!readlink("/proc/self/exe", program, sizeof program - 1);
    int sources[SHARED], own = open(program, O_PATH | O_CLOEXEC), r = 0;
    int run = openat(directory, "run", O_PATH | O_CLOEXEC);
    for (size_t i = 0; i < SHARED; i++)
        sources[i] = open(shared[i].source, O_PATH | O_CLOEXEC);
    if (fchdir(root) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0)
        return fail_deployment(failure, -errno, "its root");
    for (size_t i = 0; r == 0 && i < SHARED; i++) {
        r = mount_shared(sources[i], shared[i].target, failure);
        if (i == DEV) /* fails where there is no /dev/shm, which is fine */
            (void)mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777");
    }
    r = r < 0 ? r : mount_shared(own, program, failure);
    r = r < 0 ? r : mount_shared(run, path, failure);
    return r == 0 && chdir("/") < 0 ? fail_deployment(failure, -errno, "/") : r;
}

/* Mounts a fresh system from the image SHA256 below the run directory and makes it the root of this process.
 * Needs root. */
int deployed_enter(struct run_directory *directory, const char *sha256, struct failure *failure) {
    char path[PATH_MAX];
    (void)path_of_file(directory->folder, "", path, sizeof path);
    if (directory->parent >= 0)
        run_directory_find_abandoned(directory->parent, NULL, true);
    if (unshare(CLONE_NEWNS | CLONE_NEWIPC) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return fail_deployment(failure, -errno, "mounts of its own need root");
    /* Opened again: nothing can be mounted on descriptors of the node's own mount namespace. */
    cleanup_close int image = deployed_open_image(sha256, failure), folder = open(path, FOLDER);
    if (image < 0 || folder < 0)
        return image < 0 ? image : fail_deployment(failure, -errno, path);
    mode_t mask = umask(022);
    cleanup_close int root = mount_system(folder, image, failure);
    int r = root < 0 ? root : enter_root(root, folder, path, failure);
    umask(mask);
    unsetenv("TMPDIR"); /* names a folder of the node */
    if (r < 0)
        return r;
    cleanup_close_descriptor(&directory->folder);
    directory->folder = open(path, FOLDER);
    return directory->folder < 0 ? fail_deployment(failure, -errno, path) : 0;
}
