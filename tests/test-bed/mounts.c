#include "tests/test-bed/mounts.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/kernel-files.h"
#include "tests/test-bed/layer.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdio.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

/* Whose /sys plain files are. */
#define PLAIN_MACHINE "intel-pstate"

/* Like layer_write() and layer_folder(), nothing once FAILURE holds one. */
static int do_mount(const char *source, const char *target, const char *type, unsigned long flags,
                    const char *options, struct failure *failure) {
    if (failure->code < 0)
        return failure->code;
    if (mount(source, target, type, flags, options) < 0)
        return failure_set(failure, -errno, "cannot mount %s on '%s'%s%s: %s", type ? type : source, target,
                           options ? " with " : "", options ? options : "", strerror(errno));
    return 0;
}

static int mount_tmpfs(const char *target, const char *size, const char *mode, unsigned long flags,
                       struct failure *failure) {
    char options[2 * SETTINGS_WORD_SIZE];
    snprintf(options, sizeof options, "size=%s,mode=%s", size, mode);
    return do_mount("tmpfs", target, "tmpfs", MS_NOSUID | flags, options, failure);
}

/* Shows FROM at TO as well, with what is mounted below it. FLAGS, such as MS_RDONLY, are TO's only. */
static int show(const char *from, const char *to, unsigned long flags, struct failure *failure) {
    do_mount(from, to, NULL, MS_BIND | MS_REC, NULL, failure);
    if (flags != 0)
        do_mount(from, to, NULL, MS_BIND | MS_REMOUNT | flags, NULL, failure);
    return failure->code;
}

/* What nftw's callback cannot be given. */
static struct { const char *from, *to; } copying;

static int copy_entry(const char *path, const struct stat *status, int type, struct FTW *walk) {
    (void)walk;
    char target[BED_PATH_SIZE], text[8192];
    if (snprintf(target, sizeof target, "%s%s", copying.to, path + strlen(copying.from)) >=
        (int)sizeof target)
        return 0;
    if (type == FTW_D)
        return layer_folder(target, 0755, &(struct failure){0}) < 0;
    if (!S_ISREG(status->st_mode))
        return 0;
    /* Some can only be written, some have values of a moment: what cannot be read is there and empty. */
    cleanup_close int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    ssize_t length = file < 0 ? 0 : read(file, text, sizeof text - 1);
    text[length < 0 ? 0 : length] = '\0';
    return layer_write(target, text, status->st_mode & 07777, &(struct failure){0}) < 0;
}

/* Copies what can be read of this machine's /proc/sys/kernel and /proc/sys/vm to FOLDER/kernel and FOLDER/vm.
 */
static int copy_settings(const char *folder, struct failure *failure) {
    static const char *const parts[] = {"kernel", "vm"};
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char from[32], to[BED_PATH_SIZE];
        snprintf(from, sizeof from, "/proc/sys/%s", parts[i]);
        snprintf(to, sizeof to, "%.200s/%s", folder, parts[i]);
        copying.from = from;
        copying.to = to;
        if (layer_folder(folder, 0755, failure) < 0 || nftw(from, copy_entry, 8, FTW_PHYS) != 0)
            return failure_set(failure, -EIO, "cannot copy '%s' to '%s'", from, to);
    }
    return 0;
}

int mounts_make_bed(const struct bed *bed, struct failure *failure) {
    char inside[BED_PATH_SIZE], path[BED_PATH_SIZE];
    bed_path(bed, inside, "inside");
    do_mount("none", "/", NULL, MS_REC | MS_PRIVATE, NULL, failure);
    layer_folder(inside, 0755, failure);
    mount_tmpfs(inside, "256m", "755", 0, failure);
    static const char *const folders[] = {"root", "volatile", "disk"};
    for (size_t i = 0; failure->code == 0 && i < sizeof folders / sizeof *folders; i++) {
        bed_path(bed, path, "inside/%s", folders[i]);
        layer_folder(path, 0755, failure);
    }
    bed_path(bed, path, "inside/layer");
    if (failure->code == 0)
        layer_make(bed, path, failure);
    bed_path(bed, path, "inside/machine");
    if (failure->code == 0)
        machine_tree_make(PLAIN_MACHINE, path, failure);
    bed_path(bed, path, "inside/proc");
    if (failure->code == 0)
        copy_settings(path, failure);
    bed_path(bed, path, "hosts");
    show(path, "/etc/hosts", 0, failure);
    return failure->code;
}

/* 128 random bits, as systemd writes them. */
static int write_machine_id(const char *path, struct failure *failure) {
    unsigned char random[16];
    char text[2 * sizeof random + 2];
    if (getrandom(random, sizeof random, 0) != sizeof random)
        return failure_set(failure, -EIO, "no random numbers");
    for (size_t i = 0; i < sizeof random; i++)
        snprintf(text + 2 * i, 3, "%02x", random[i]);
    memcpy(text + 2 * sizeof random, "\n", 2);
    return layer_write(path, text, 0444, failure);
}

/* What is in a node's /etc and in no other's. */
static int fill_disk(const struct bed *bed, const struct node *node, const char *etc,
                     struct failure *failure) {
    char path[BED_PATH_SIZE], text[16384];
    snprintf(path, sizeof path, "%.200s/hostname", etc);
    snprintf(text, sizeof text, "%s\n", node->name);
    layer_write(path, text, 0644, failure);
    snprintf(path, sizeof path, "%.200s/machine-id", etc);
    if (failure->code == 0)
        write_machine_id(path, failure);
    if (failure->code == 0)
        layer_sshd_configuration(bed, text, sizeof text, failure);
    snprintf(path, sizeof path, "%.200s/ssh/sshd_config", etc);
    return layer_write(path, text, 0644, failure);
}

int mounts_make_disk(const struct bed *bed, const struct node *node, struct failure *failure) {
    char disk[BED_PATH_SIZE], path[BED_PATH_SIZE];
    bed_path(bed, disk, "inside/disk/%d", node->number);
    layer_folder(disk, 0755, failure);
    mount_tmpfs(disk, bed->settings.disk_size, "755", 0, failure);
    static const struct {
        const char *name;
        mode_t mode;
    } folders[] = {{"upper/etc/ssh", 0755}, {"work", 0755}, {"home", 0755}, {"root", 0700}};
    for (size_t i = 0; failure->code == 0 && i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, sizeof path, "%.200s/%s", disk, folders[i].name);
        layer_folder(path, folders[i].mode, failure);
    }
    snprintf(path, sizeof path, "%.200s/upper/etc", disk);
    fill_disk(bed, node, path, failure);
    if (failure->code < 0 || strcmp(bed->settings.user, "root") == 0)
        return failure->code;
    bed_path(bed, path, "inside/disk/%d/home/%s", node->number, bed->settings.user);
    layer_folder(path, 0700, failure);
    if (failure->code == 0 && chown(path, 1000, 1000) < 0)
        failure_set(failure, -errno, "cannot give '%s' away: %s", path, strerror(errno));
    return failure->code;
}

/* ---- One node -------------------------------------------------------------------------------------------
 */

/* Where a node is put together: BASE is its "/" to be, VOLATILE what is gone when it goes down. */
struct place {
    const struct bed *bed;
    const struct node *node;
    char root[BED_PATH_SIZE], volatiles[BED_PATH_SIZE];
};

static void at(const struct place *place, char path[BED_PATH_SIZE], const char *name) {
    snprintf(path, BED_PATH_SIZE, "%.140s%.115s", place->root, name);
}

static int mount_root(const struct place *place, struct failure *failure) {
    char options[4 * BED_PATH_SIZE];
    const char *folder = place->bed->folder;
    int number = place->node->number;
    snprintf(options, sizeof options,
             "lowerdir=%s/inside/layer:/,upperdir=%s/inside/disk/%d/upper,workdir=%s/inside/disk/%d/work",
             folder, folder, number, folder, number);
    return do_mount("overlay", place->root, "overlay", 0, options, failure);
}

/* NAME of the volatile part over the tree LOWER of the bed, at TARGET of the node. */
static int mount_over(const struct place *place, const char *lower, const char *name, const char *target,
                      struct failure *failure) {
    char upper[BED_PATH_SIZE], work[BED_PATH_SIZE], path[BED_PATH_SIZE], options[4 * BED_PATH_SIZE];
    snprintf(upper, sizeof upper, "%.200s/%s", place->volatiles, name);
    snprintf(work, sizeof work, "%.200s/%s.work", place->volatiles, name);
    layer_folder(upper, 0755, failure);
    layer_folder(work, 0755, failure);
    snprintf(options, sizeof options, "lowerdir=%s/inside/%s,upperdir=%s,workdir=%s", place->bed->folder,
             lower, upper, work);
    at(place, path, target);
    return do_mount("overlay", path, "overlay", 0, options, failure);
}

/* Files instead of this machine's devices but for those that do no harm. */
static int mount_dev(const struct place *place, struct failure *failure) {
    char path[BED_PATH_SIZE];
    at(place, path, "/dev");
    mount_tmpfs(path, "1m", "755", 0, failure);
    static const struct {
        const char *name;
        unsigned major, minor;
    } devices[] = {{"/dev/null", 1, 3},   {"/dev/zero", 1, 5},    {"/dev/full", 1, 7},
                   {"/dev/random", 1, 8}, {"/dev/urandom", 1, 9}, {"/dev/tty", 5, 0}};
    for (size_t i = 0; failure->code == 0 && i < sizeof devices / sizeof *devices; i++) {
        at(place, path, devices[i].name);
        if (mknod(path, S_IFCHR | 0666, makedev(devices[i].major, devices[i].minor)) < 0 ||
            chmod(path, 0666) < 0)
            failure_set(failure, -errno, "cannot make the device '%s': %s", path, strerror(errno));
    }
    static const struct {
        const char *name, *to;
    } links[] = {{"/dev/fd", "/proc/self/fd"},
                 {"/dev/stdin", "fd/0"},
                 {"/dev/stdout", "fd/1"},
                 {"/dev/stderr", "fd/2"},
                 {"/dev/ptmx", "pts/ptmx"}};
    for (size_t i = 0; failure->code == 0 && i < sizeof links / sizeof *links; i++) {
        at(place, path, links[i].name);
        if (symlink(links[i].to, path) < 0)
            failure_set(failure, -errno, "cannot make the link '%s': %s", path, strerror(errno));
    }
    at(place, path, "/dev/cpu_dma_latency");
    layer_write(path, "", 0600, failure);
    at(place, path, "/dev/shm");
    layer_folder(path, 0755, failure);
    mount_tmpfs(path, SETTINGS_SHM_SIZE, "1777", MS_NODEV, failure);
    at(place, path, "/dev/pts");
    layer_folder(path, 0755, failure);
    do_mount("devpts", path, "devpts", MS_NOSUID | MS_NOEXEC, "newinstance,ptmxmode=0666,mode=620,gid=5",
             failure);
    return failure->code;
}

/* /proc of the node's own processes. What of /proc/sys is the whole kernel's is a copy of the node's own, or
 * read-only. */
static int mount_proc(const struct place *place, struct failure *failure) {
    char path[BED_PATH_SIZE], file[2 * BED_PATH_SIZE];
    at(place, path, "/proc");
    do_mount("proc", path, "proc", MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, failure);
    at(place, path, "/proc/sys");
    show(path, path, MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, failure);
    mount_over(place, "proc/kernel", "kernel", "/proc/sys/kernel", failure);
    mount_over(place, "proc/vm", "vm", "/proc/sys/vm", failure);
    at(place, path, "/proc/sysrq-trigger");
    if (access(path, F_OK) == 0)
        show("/dev/null", path, 0, failure);
    /* A boot id and a host name of its own. */
    char boot[64] = "";
    cleanup_close int source = open("/proc/sys/kernel/random/uuid", O_RDONLY | O_CLOEXEC);
    if (source < 0 || read(source, boot, sizeof boot - 1) < 0)
        return failure_set(failure, -errno, "cannot read a random id: %s", strerror(errno));
    snprintf(file, sizeof file, "%s/proc/sys/kernel/random/boot_id", place->root);
    layer_write(file, boot, 0444, failure);
    char name[SETTINGS_WORD_SIZE + 1];
    snprintf(name, sizeof name, "%s\n", place->node->name);
    snprintf(file, sizeof file, "%s/proc/sys/kernel/hostname", place->root);
    layer_write(file, name, 0644, failure);
    /* This one gives another id each time. */
    snprintf(file, sizeof file, "%s/proc/sys/kernel/random/uuid", place->root);
    show("/proc/sys/kernel/random/uuid", file, 0, failure);
    return failure->code;
}

/* FUSE's files, outside of the node's root to be; parts of them are shown in it. */
static int mount_kernel_files(const struct place *place, struct node *node, struct failure *failure) {
    char path[BED_PATH_SIZE];
    snprintf(path, sizeof path, "%.200s/kernel-files", place->volatiles);
    layer_folder(path, 0755, failure);
    if (failure->code == 0)
        kernel_files_mount(node->files_mount, path, failure);
    close(take_descriptor(node->files_mount)); /* who serves has it */
    return failure->code;
}

/* The machine's files of /proc/sys over the copies. What it does not have is not there. */
static int mount_settings(const struct place *place, struct failure *failure) {
    static const char *const optional[] = {"proc/sys/kernel/numa_balancing", "proc/sys/vm/zone_reclaim_mode",
                                           "proc/sys/kernel/nmi_watchdog"};
    const struct machine_tree *machine = &place->bed->kernel->machine;
    char path[2 * BED_PATH_SIZE], from[2 * BED_PATH_SIZE];
    for (size_t i = 0; i < sizeof optional / sizeof *optional; i++) {
        snprintf(path, sizeof path, "%s/%s", place->root, optional[i]);
        if (machine_tree_find(machine, optional[i]) == NULL && unlink(path) < 0 && errno != ENOENT)
            return failure_set(failure, -errno, "cannot remove '%s': %s", path, strerror(errno));
    }
    for (size_t i = 0; failure->code == 0 && i < machine->count; i++) {
        const struct machine_entry *entry = &machine->entries[i];
        bool setting = strncmp(entry->path, "proc/sys/", 9) == 0 && entry->rule[0] != '\0' &&
                       strcmp(entry->rule, "text") != 0;
        if (!setting && strcmp(entry->path, "proc/cpuinfo") != 0)
            continue;
        snprintf(path, sizeof path, "%s/%s", place->root, entry->path);
        snprintf(from, sizeof from, "%s/kernel-files/%s", place->volatiles, entry->path);
        if (access(path, F_OK) < 0)
            layer_write(path, "", 0644, failure);
        show(from, path, 0, failure);
    }
    return failure->code;
}

/* A made-up /sys, but for the node's own network devices, which are true and read-only. */
static int mount_sys(const struct place *place, struct failure *failure) {
    char path[BED_PATH_SIZE], real[BED_PATH_SIZE], from[BED_PATH_SIZE + 32];
    snprintf(real, sizeof real, "%.200s/real", place->volatiles);
    layer_folder(real, 0755, failure);
    do_mount("sysfs", real, "sysfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, NULL, failure);
    snprintf(from, sizeof from, "%.200s/kernel-files/sys", place->volatiles);
    at(place, path, "/sys");
    if (place->bed->kernel != NULL)
        show(from, path, 0, failure);
    else
        mount_over(place, "machine/sys", "sys", "/sys", failure);
    static const char *const network[] = {"/devices/virtual/net", "/class/net"};
    for (size_t i = 0; failure->code == 0 && i < sizeof network / sizeof *network; i++) {
        snprintf(from, sizeof from, "%s%s", real, network[i]);
        snprintf(path, sizeof path, "%.200s/sys%s", place->root, network[i]);
        show(from, path, MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, failure);
    }
    if (failure->code == 0 && umount2(real, MNT_DETACH) < 0)
        failure_set(failure, -errno, "cannot unmount '%s': %s", real, strerror(errno));
    return failure->code;
}

static int mount_user_folders(const struct place *place, struct failure *failure) {
    const struct settings *settings = &place->bed->settings;
    char path[BED_PATH_SIZE], from[BED_PATH_SIZE];
    unsigned long flags = MS_NOSUID | MS_NODEV | (settings->home_read_only ? MS_RDONLY : 0) |
                          (settings->home_noexec ? MS_NOEXEC : 0);
    static const char *const homes[] = {"/home", "/root"};
    for (size_t i = 0; failure->code == 0 && i < 2; i++) {
        bed_path(place->bed, from, "inside/disk/%d%s", place->node->number, homes[i]);
        at(place, path, homes[i]);
        show(from, path, flags, failure);
    }
    at(place, path, "/run");
    mount_tmpfs(path, "64m", "755", MS_NODEV, failure);
    at(place, path, "/run/sshd");
    layer_folder(path, 0755, failure);
    at(place, path, "/run/lock");
    layer_folder(path, 01777, failure);
    at(place, path, "/tmp");
    mount_tmpfs(path, settings->tmp_size, "1777", MS_NODEV | (settings->tmp_noexec ? MS_NOEXEC : 0), failure);
    for (int i = 0; failure->code == 0 && i < settings->share_count; i++) {
        at(place, path, settings->shares[i]);
        if (access(path, F_OK) < 0)
            layer_folder(path, 0755, failure);
        show(settings->shares[i], path, 0, failure);
    }
    return failure->code;
}

int mounts_make(const struct bed *bed, struct node *node, struct failure *failure) {
    struct place place = {.bed = bed, .node = node};
    bed_path(bed, place.root, "inside/root");
    bed_path(bed, place.volatiles, "inside/volatile");
    mount_tmpfs(place.volatiles, "16m", "755", 0, failure);
    mount_root(&place, failure);
    mount_dev(&place, failure);
    mount_proc(&place, failure);
    if (bed->kernel != NULL)
        mount_kernel_files(&place, node, failure);
    if (bed->kernel != NULL)
        mount_settings(&place, failure);
    mount_sys(&place, failure);
    mount_user_folders(&place, failure);
    if (failure->code < 0)
        return failure->code;
    /* The old root goes on top of the new one and from there away, with everything that was mounted on it. */
    if (chdir(place.root) < 0 || syscall(SYS_pivot_root, ".", ".") < 0 || umount2(".", MNT_DETACH) < 0 ||
        chdir("/") < 0)
        return failure_set(failure, -errno, "cannot change the root: %s", strerror(errno));
    return 0;
}

int mounts_limit(const char *path, const char *size, struct failure *failure) {
    char filler[BED_PATH_SIZE], options[SETTINGS_WORD_SIZE + 16];
    snprintf(filler, sizeof filler, "%.200s/.full", path);
    struct statvfs now;
    /* A limit of nothing would be no limit: there is one page at least. */
    char page[4096] = "";
    if (size == NULL) {
        cleanup_close int file = open(filler, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
        if (file >= 0 && write(file, page, sizeof page) < 0)
            return 0; /* it is full already */
    } else
        unlink(filler);
    if (statvfs(path, &now) < 0)
        return failure_set(failure, -errno, "cannot look at '%s': %s", path, strerror(errno));
    if (size != NULL)
        snprintf(options, sizeof options, "size=%s", size);
    else
        snprintf(options, sizeof options, "size=%llu",
                 (unsigned long long)(now.f_blocks - now.f_bfree) * now.f_frsize);
    return do_mount("tmpfs", path, NULL, MS_REMOUNT | (now.f_flag & (ST_NOEXEC | ST_NODEV | ST_NOSUID)),
                    options, failure);
}
