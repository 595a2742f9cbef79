#include "engine/agent/daemon/deployed.h"

#include "engine/agent/files/claim.h"
#include "engine/agent/files/image.h"
#include "engine/agent/machine/machine.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#define RUN_DIRECTORIES "assay-" /* begins the names of those that runs have */

/* What the new system has of the node. The first gives the others their names while they are mounted. */
static const struct {
    const char *source, *target;
} shared[] = {{"/proc", "/proc"},
              {"/sys", "/sys"},
              {"/dev", "/dev"},
              {"/run", "/" MACHINE_NODE_RUN},
              {"/etc/hosts", "/etc/hosts"},
              {"/etc/resolv.conf", "/etc/resolv.conf"}};
enum { SHARED = sizeof shared / sizeof *shared, RUN = SHARED, PROGRAM, SOURCES };

/* Descriptors, without rights to read: of what is shared, of the folder `run` and of our own program. */
struct sources {
    int items[SOURCES]; /* -1: the node has none */
    char run[PATH_MAX], program[PATH_MAX];
};

static void close_sources(struct sources *sources) {
    for (size_t i = 0; i < SOURCES; i++)
        cleanup_close_descriptor(&sources->items[i]);
}

static void open_sources(int directory, struct sources *ret) {
    for (size_t i = 0; i < SHARED; i++)
        ret->items[i] = open(shared[i].source, O_PATH | O_CLOEXEC);
    ret->items[RUN] = openat(directory, "run", O_PATH | O_DIRECTORY | O_CLOEXEC);
    ret->items[PROGRAM] = open("/proc/self/exe", O_PATH | O_CLOEXEC);
    run_directory_path(directory, "", ret->run, sizeof ret->run);
    run_directory_path(ret->items[PROGRAM], "", ret->program, sizeof ret->program);
}

/* Descriptors stand for paths, which may have characters that mean something to the kernel here. A descriptor
 * of the new root, or negative. */
static int mount_system(int directory, int image, struct failure *failure) {
    static int held = -1; /* until this process ends */
    char options[160], target[64];
    held = claim_make(directory, "upper");
    int r = held < 0 ? held : 0;
    if (r == 0 && (mkdirat(directory, "work", 0700) < 0 || mkdirat(directory, "root", 0700) < 0 ||
                   mkdirat(directory, "run", 0700) < 0))
        r = -errno;
    if (r < 0)
        return failure_set(failure, r, "cannot make the folders of the system in the run directory: %s",
                           strerror(-r));
    snprintf(options, sizeof options,
             "lowerdir=/proc/self/fd/%d,upperdir=/proc/self/fd/%d/upper,workdir=/proc/self/fd/%d/work", image,
             directory, directory);
    snprintf(target, sizeof target, "/proc/self/fd/%d/root", directory);
    if (mount("assay", target, "overlay", 0, options) < 0)
        return failure_set(failure, -errno, "cannot mount the system: %s%s", strerror(errno),
                           errno == ENODEV ? "; the kernel has no overlay file system"
                           : errno == EINVAL
                               ? "; expected the workspace on a file system that an overlay can "
                                 "write to, such as ext4, xfs or tmpfs"
                               : "");
    int root = openat(directory, "root", O_PATH | O_DIRECTORY | O_CLOEXEC);
    return root < 0 ? failure_set(failure, -errno, "cannot open the system: %s", strerror(errno)) : root;
}

/* In the new root, where no link of the image's leads out. What the image has in the way of a file goes. */
static int make_target(const char *target, bool is_folder) {
    cleanup_free char *parents = strdup(target);
    if (!parents)
        return -ENOMEM;
    if (!is_folder)
        *strrchr(parents, '/') = '\0';
    int r = parents[0] ? file_make_folders(parents, NULL) : 0;
    if (r < 0 || is_folder)
        return r;
    if (unlink(target) < 0 && errno != ENOENT)
        return -errno;
    int file = open(target, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0644);
    return file < 0 ? -errno : close(file);
}

static int attach(int source, const char *target, bool by_name, struct failure *failure) {
    char name[64] = ".";
    struct stat status;
    if (by_name)
        snprintf(name, sizeof name, "/proc/self/fd/%d", source);
    int r = fstat(source, &status) < 0 ? -errno : make_target(target, S_ISDIR(status.st_mode));
    if (r == 0 && ((!by_name && fchdir(source) < 0) || mount(name, target, NULL, MS_BIND | MS_REC, NULL) < 0))
        r = -errno;
    return r < 0 ? failure_set(failure, r, "cannot have '%s' in the system: %s", target, strerror(-r)) : 0;
}

/* ROOT becomes "/", of which the node's is underneath, out of reach. */
static int enter(int root, const struct sources *sources, struct failure *failure) {
    if (fchdir(root) < 0 || mount(".", "/", NULL, MS_MOVE, NULL) < 0 || chroot(".") < 0)
        return failure_set(failure, -errno, "cannot enter the system: %s", strerror(errno));
    int r = 0;
    for (size_t i = 0; r == 0 && i < SHARED; i++)
        if (sources->items[i] >= 0)
            r = attach(sources->items[i], shared[i].target, i > 0, failure);
    if (r == 0 && mount("tmpfs", "/dev/shm", "tmpfs", MS_NOSUID | MS_NODEV, "mode=1777") < 0 &&
        errno != ENOENT)
        r = failure_set(failure, -errno, "cannot have '/dev/shm' in the system: %s", strerror(errno));
    if (r == 0)
        r = attach(sources->items[PROGRAM], sources->program, true, failure);
    if (r == 0)
        r = attach(sources->items[RUN], sources->run, true, failure);
    if (r == 0 && chdir("/") < 0)
        r = failure_set(failure, -errno, "cannot enter the system: %s", strerror(errno));
    return r;
}

/* By its path again: what was opened before is in the mounts of the node, on which nothing can be mounted
 * from here. */
static int open_again(int folder, struct failure *failure) {
    char path[PATH_MAX];
    int again = open(run_directory_path(folder, "", path, sizeof path), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return again < 0 ? failure_set(failure, -errno, "cannot open '%.256s': %s", path, strerror(errno))
                     : again;
}

int deployed_enter(struct run_directory *directory, const char *sha256, struct failure *failure) {
    if (directory->parent >= 0)
        claim_remove_abandoned(directory->parent, RUN_DIRECTORIES, "upper");
    if (unshare(CLONE_NEWNS | CLONE_NEWIPC) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0)
        return failure_set(failure, -errno,
                           "cannot have mounts of its own, which deploying a system needs: %s",
                           strerror(errno));
    cleanup_close int image = image_open(sha256, failure);
    cleanup_close int folder = image < 0 ? image : open_again(directory->folder, failure);
    if (folder < 0)
        return folder;
    mode_t mask = umask(022);
    cleanup_close int root = mount_system(folder, image, failure);
    if (root < 0)
        return root;
    cleanup(close_sources) struct sources sources;
    open_sources(folder, &sources);
    int r = enter(root, &sources, failure);
    umask(mask);
    unsetenv("TMPDIR"); /* a folder of the node's */
    if (r < 0)
        return r;
    cleanup_close_descriptor(&directory->folder);
    directory->folder = open(sources.run, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return directory->folder < 0
               ? failure_set(failure, -errno, "cannot open the run directory: %s", strerror(errno))
               : 0;
}
