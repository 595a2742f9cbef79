#include "engine/agent/controls/shelf.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <unistd.h>

/* Whoever has it may be starting daemons, which takes a minute each at worst. */
enum { LOCK_MS = 300000, ROUND_MS = 5, TRIES = 100 };
enum { LOCK_NAME_SIZE = NAME_MAX + 1 };

/* ---- the folder */

/* Ours, and nobody else's to write to. */
static int check_folder(int folder, const char *path, struct failure *failure) {
    struct stat status;
    if (fstat(folder, &status) < 0)
        return failure_set(failure, -errno, "cannot look at '%s': %s", path, strerror(errno));
    if (status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH))
        return failure_set(
            failure, -EPERM,
            "'%s' belongs to another user or can be written by others: no snapshot is kept there", path);
    return 0;
}

/* The folder NAME in PARENT. */
static int open_below(int parent, const char *name, bool make, const char *path, struct failure *failure) {
    if (make && mkdirat(parent, name, 0700) < 0 && errno != EEXIST)
        return failure_set(failure, -errno, "cannot make '%s': %s", path, strerror(errno));
    int folder = openat(parent, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (folder < 0 && errno == ENOENT && !make)
        return -ENOENT;
    if (folder < 0)
        return failure_set(failure, -errno, "cannot open '%s': %s", path, strerror(errno));
    int r = check_folder(folder, path, failure);
    if (r < 0)
        close(folder);
    return r < 0 ? r : folder;
}

static int open_in_run(struct shelf *shelf, bool make, struct failure *failure) {
    const struct machine *machine = &shelf->machine;
    if (make && machine->captured && mkdirat(machine->root, "run", 0755) < 0 && errno != EEXIST)
        return failure_set(failure, -errno, "cannot make '/run' of the captured machine: %s",
                           strerror(errno));
    int run = machine_open_file(machine, "run", O_RDONLY | O_DIRECTORY);
    if (run == -ENOENT && !make)
        return -ENOENT;
    if (run < 0)
        return failure_set(failure, run, "cannot open '/run': %s", strerror(-run));
    shelf->parent = run;
    shelf->leaf = "assay";
    snprintf(shelf->path, sizeof shelf->path, "/run/assay");
    return open_below(run, shelf->leaf, make, shelf->path, failure);
}

static int open_in_home(struct shelf *shelf, bool make, struct failure *failure) {
    const char *home = getenv("HOME");
    if (!home || home[0] != '/')
        return make ? failure_set(failure, -ENOENT, "there is no $HOME to keep a snapshot in") : -ENOENT;
    cleanup_free char *cache = file_join(home, ".cache"), *ours = file_join(home, ".cache/assay");
    if (!cache || !ours)
        return failure_memory(failure);
    if (make && file_make_folders(cache, failure) < 0)
        return failure->code;
    /* It may be there with any mode: agents are kept in it, too. */
    if (make && mkdir(ours, 0700) < 0 && errno != EEXIST)
        return failure_set(failure, -errno, "cannot make '%s': %s", ours, strerror(errno));
    shelf->parent = open(ours, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (shelf->parent < 0 && !make)
        return -ENOENT;
    if (shelf->parent < 0)
        return failure_set(failure, -errno, "cannot open '%s': %s", ours, strerror(errno));
    shelf->leaf = "controls";
    snprintf(shelf->path, sizeof shelf->path, "%s/%s", ours, shelf->leaf);
    return open_below(shelf->parent, shelf->leaf, make, shelf->path, failure);
}

static int open_folder(struct shelf *shelf, bool make, struct failure *failure) {
    return shelf->shared ? open_in_home(shelf, make, failure) : open_in_run(shelf, make, failure);
}

/* ---- names */

/* An id in the names of files. "" if it is not there. */
static void read_id(const struct machine *machine, const char *path, char *id, size_t size) {
    if (machine_read_value(machine, path, id, size) < 0)
        id[0] = '\0';
    for (char *at = id; *at; at++)
        if (!isalnum((unsigned char)*at) && *at != '-')
            *at = '_';
}

static int name_machine(struct shelf *shelf, struct failure *failure) {
    struct utsname name = {.nodename = ""};
    if (machine_read_value(&shelf->machine, "proc/sys/kernel/hostname", shelf->host, sizeof shelf->host) <
        0) {
        if (!shelf->machine.captured)
            uname(&name);
        snprintf(shelf->host, sizeof shelf->host, "%.64s", name.nodename);
    }
    read_id(&shelf->machine, "etc/machine-id", shelf->machine_id, sizeof shelf->machine_id);
    read_id(&shelf->machine, "proc/sys/kernel/random/boot_id", shelf->boot, sizeof shelf->boot);
    if (!shelf->boot[0])
        return failure_set(
            failure, -ENODATA,
            "the id of this boot, '/proc/sys/kernel/random/boot_id', cannot be read: without it "
            "nobody could tell a snapshot from one of before a restart");
    bool both = shelf->shared && shelf->machine_id[0];
    snprintf(shelf->name, sizeof shelf->name, "controls+%s%s%s", shelf->boot, both ? "+" : "",
             both ? shelf->machine_id : "");
    return 0;
}

static int read_bytes(const struct shelf *shelf, const char *name, struct text *ret, struct failure *failure);

/* Whether file NAME was this machine's before it was restarted. In a home only what says so itself: machines
 * may have the same name, or have been made from the same image with its id, but hardly both. */
static bool is_earlier(const struct shelf *shelf, const char *name) {
    if (strncmp(name, "controls+", 9) != 0 || strcmp(name, shelf->name) == 0)
        return false;
    if (!shelf->shared)
        return true;
    const char *id = strchr(name + 9, '+');
    if (!id || !shelf->machine_id[0] || strcmp(id + 1, shelf->machine_id) != 0)
        return false;
    cleanup(snapshot_clear) struct snapshot snapshot = {0};
    struct failure unused;
    struct text bytes;
    text_init(&bytes, SNAPSHOT_LIMIT + 1);
    bool known = read_bytes(shelf, name, &bytes, &unused) == 0 &&
                 snapshot_parse(bytes.bytes, bytes.length, &snapshot, &unused) == 0;
    text_clear(&bytes);
    return known && strcmp(snapshot.machine_id, shelf->machine_id) == 0 &&
           strcmp(snapshot.host, shelf->host) == 0 && strcmp(snapshot.boot, shelf->boot) != 0;
}

/* The lock of the snapshot SNAPSHOT: where other machines' may lie, one of its own. */
static void lock_name(const struct shelf *shelf, const char *snapshot, char name[static LOCK_NAME_SIZE]) {
    snprintf(name, LOCK_NAME_SIZE, "lock%.250s", shelf->shared ? snapshot + strlen("controls") : "");
}

/* Removes each snapshot of this machine that is not of this boot; true if there is one. */
static bool remove_earlier(const struct shelf *shelf, bool only_look) {
    int again = openat(shelf->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    if (!entries) {
        cleanup_close_descriptor(&again);
        return false;
    }
    bool any = false;
    struct dirent *entry;
    char name[LOCK_NAME_SIZE];
    while ((entry = readdir(entries))) {
        if (!is_earlier(shelf, entry->d_name))
            continue;
        any = any || !strchr(entry->d_name, '.'); /* not what was being written */
        if (only_look)
            continue;
        (void)unlinkat(shelf->folder, entry->d_name, 0);
        if (!shelf->shared)
            continue;
        lock_name(shelf, entry->d_name, name);
        (void)unlinkat(shelf->folder, name, 0);
    }
    closedir(entries);
    return any;
}

static bool has_any(const struct shelf *shelf) {
    struct stat status;
    return fstatat(shelf->folder, shelf->name, &status, AT_SYMLINK_NOFOLLOW) == 0 ||
           remove_earlier(shelf, true);
}

/* ---- alone */

/* Whether the lock is still the file of its name: whoever had it may have taken it away. */
static bool is_named(const struct shelf *shelf, const char *name) {
    struct stat here, there;
    return fstat(shelf->lock, &here) == 0 && fstatat(shelf->folder, name, &there, AT_SYMLINK_NOFOLLOW) == 0 &&
           here.st_dev == there.st_dev && here.st_ino == there.st_ino;
}

/* 0; 1: the lock or its folder went away meanwhile, and all is to begin anew; or negative. */
static int lock(struct shelf *shelf, struct failure *failure) {
    char name[LOCK_NAME_SIZE];
    lock_name(shelf, shelf->name, name);
    shelf->lock = openat(shelf->folder, name, O_RDWR | O_CREAT | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (shelf->lock < 0 && errno == ENOENT)
        return 1;
    if (shelf->lock < 0)
        return failure_set(failure, -errno, "cannot make '%s' in '%s': %s", name, shelf->path,
                           strerror(errno));
    int64_t end_ns = clock_monotonic_ns() + LOCK_MS * INT64_C(1000000);
    while (flock(shelf->lock, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            break; /* a file server without locks: as good as it gets */
        if (clock_monotonic_ns() > end_ns)
            return failure_set(failure, -ETIMEDOUT, "another process has had the snapshot in '%s' for %d s",
                               shelf->path, LOCK_MS / 1000);
        clock_sleep_ns(ROUND_MS * INT64_C(1000000));
    }
    return is_named(shelf, name) ? 0 : 1;
}

static void close_all(struct shelf *shelf) {
    cleanup_close_descriptor(&shelf->lock);
    cleanup_close_descriptor(&shelf->folder);
    cleanup_close_descriptor(&shelf->parent);
    shelf->lock = shelf->folder = shelf->parent = -1;
}

int shelf_open(const struct machine *machine, enum shelf_use use, struct shelf *ret,
               struct failure *failure) {
    bool make = use == SHELF_MAKE;
    for (int i = 0; i < TRIES; i++) {
        struct shelf shelf = {.parent = -1, .folder = -1, .lock = -1, .machine = *machine};
        shelf.shared = !machine->captured && geteuid() != 0;
        int r = name_machine(&shelf, failure);
        if (r < 0 && make)
            return r;
        shelf.folder = open_folder(&shelf, make, failure);
        if (shelf.folder < 0)
            r = shelf.folder;
        if (r == 0)
            r = make || has_any(&shelf) ? 0 : -ENOENT;
        if (r == 0 && use != SHELF_LOOK)
            r = lock(&shelf, failure);
        if (r == 0) {
            snprintf(shelf.path + strlen(shelf.path), sizeof shelf.path - strlen(shelf.path), "/%s",
                     shelf.name);
            *ret = shelf;
            return 0;
        }
        close_all(&shelf);
        if (r < 0)
            return r;
    }
    return failure_set(failure, -EAGAIN, "the folder of the snapshot is made and removed all the time");
}

void shelf_close(struct shelf *shelf) {
    char name[LOCK_NAME_SIZE];
    if (shelf->lock >= 0 && !has_any(shelf)) {
        lock_name(shelf, shelf->name, name);
        (void)unlinkat(shelf->folder, name, 0);
        /* Only if nothing is left in it. */
        (void)unlinkat(shelf->parent, shelf->leaf, AT_REMOVEDIR);
        if (shelf->machine.captured)
            (void)unlinkat(shelf->machine.root, "run", AT_REMOVEDIR);
    }
    close_all(shelf);
}

/* ---- what lies there */

static int damaged(const struct shelf *shelf, struct failure *failure) {
    return failure_prefix(failure,
                          "the snapshot '%s' cannot be used (what it should put back stays as it is; "
                          "remove it to go on)",
                          shelf->path);
}

/* A file of ours that nobody else has a name for. */
static int read_bytes(const struct shelf *shelf, const char *name, struct text *ret,
                      struct failure *failure) {
    cleanup_close int file = openat(shelf->folder, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    if (file < 0)
        return errno == ENOENT ? -ENOENT
                               : failure_set(failure, -EBADMSG, "cannot open it: %s", strerror(errno));
    struct stat status;
    if (fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || status.st_uid != geteuid() ||
        status.st_nlink != 1 || status.st_mode & (S_IWGRP | S_IWOTH))
        return failure_set(failure, -EBADMSG,
                           "it is no file that only its owner, who is this user, can write");
    if (status.st_size > SNAPSHOT_LIMIT)
        return failure_set(failure, -EBADMSG, "it has more than %d MiB", SNAPSHOT_LIMIT >> 20);
    char *space;
    size_t size = (size_t)status.st_size;
    if (text_reserve(ret, size, &space) < 0)
        return failure_memory(failure);
    for (size_t length = 0; length < size;) {
        ssize_t got = read(file, space + length, size - length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return failure_set(failure, -EBADMSG, "cannot read it: %s",
                               got < 0 ? strerror(errno) : "it became shorter");
        length += (size_t)got;
    }
    ret->length = size;
    return 0;
}

int shelf_load(struct shelf *shelf, struct snapshot *ret, struct failure *failure) {
    bool earlier = remove_earlier(shelf, shelf->lock < 0);
    struct text bytes;
    text_init(&bytes, SNAPSHOT_LIMIT + 1);
    struct snapshot snapshot = {0};
    int r = read_bytes(shelf, shelf->name, &bytes, failure);
    if (r == 0)
        r = snapshot_parse(bytes.bytes, bytes.length, &snapshot, failure);
    text_clear(&bytes);
    if (r == 0 &&
        (strcmp(snapshot.machine_id, shelf->machine_id) != 0 || strcmp(snapshot.boot, shelf->boot) != 0)) {
        r = failure_set(failure, -EBADMSG, "it is of another machine or boot than its name says");
        snapshot_clear(&snapshot);
    }
    if (r == -ENOENT && earlier)
        return -ESTALE;
    if (r == -EBADMSG)
        return damaged(shelf, failure);
    if (r == 0)
        *ret = snapshot;
    return r;
}

int shelf_store(struct shelf *shelf, const struct snapshot *snapshot, struct failure *failure) {
    struct text bytes;
    text_init(&bytes, SNAPSHOT_LIMIT);
    char part[sizeof shelf->name + 8];
    snprintf(part, sizeof part, "%s.part", shelf->name);
    int r = snapshot_format(snapshot, &bytes);
    if (r == 0 && unlinkat(shelf->folder, part, 0) < 0 && errno != ENOENT)
        r = -errno;
    cleanup_close int file =
        r < 0 ? -1 : openat(shelf->folder, part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (r == 0 && file < 0)
        r = -errno;
    if (r == 0)
        r = file_write_all(file, bytes.bytes, bytes.length);
    if (r == 0 && (fsync(file) < 0 || renameat(shelf->folder, part, shelf->folder, shelf->name) < 0 ||
                   (fsync(shelf->folder) < 0 && errno != EINVAL)))
        r = -errno;
    text_clear(&bytes);
    if (r < 0) {
        (void)unlinkat(shelf->folder, part, 0);
        return failure_set(failure, r, "cannot keep the snapshot '%s': %s", shelf->path, strerror(-r));
    }
    return 0;
}

int shelf_discard(struct shelf *shelf, struct failure *failure) {
    if (unlinkat(shelf->folder, shelf->name, 0) < 0 && errno != ENOENT)
        return failure_set(failure, -errno, "cannot remove the snapshot '%s': %s", shelf->path,
                           strerror(errno));
    (void)fsync(shelf->folder);
    return 0;
}
