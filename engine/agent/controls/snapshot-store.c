#include "engine/agent/controls/snapshot-store.h"

#include "engine/agent/files/part.h"
#include "engine/agent/machine/run-directory.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

/* How long the lock is waited for: its holder may be starting daemons. The engine waits 120 s for a tool, and
 * 60 s for an agent that starts. */
enum { LOCK_MS = 100000, UNASKED_LOCK_MS = 2000, ROUND_MS = 5, TRIES_MAX = 100 };

/* ---- the folder */

/* Opens the store's folder, and makes it if MAKE. It must belong to this user, and others must not be able to
 * write to it. Returns 0; -ENOENT without a sentence: it does not exist; or another negative errno. */
static int open_folder(struct snapshot_store *store, bool make, struct failure *failure) {
    const struct machine *machine = &store->machine;
    struct stat status;
    bool private = !machine->captured && geteuid() != 0;
    if (private)
        snprintf(store->leaf, sizeof store->leaf, "assay-%u", (unsigned)geteuid());
    else
        snprintf(store->leaf, sizeof store->leaf, "assay");
    snprintf(store->path, sizeof store->path, "/%s/%s", private ? "tmp" : "run", store->leaf);
    if (make && machine->captured)
        (void)mkdirat(machine->root, "run", 0755);
    /* The controls are the node's, also where the agent is deployed in a system with a /run of its own. */
    store->parent = private ? -ENOENT : machine_open_file(machine, MACHINE_NODE_RUN, O_RDONLY | O_DIRECTORY);
    if (store->parent == -ENOENT)
        store->parent = machine_open_file(machine, private ? "tmp" : "run", O_RDONLY | O_DIRECTORY);
    if (store->parent == -ENOENT && !make)
        return -ENOENT;
    if (store->parent < 0)
        return failure_set(failure, store->parent, "cannot open the folder of '%s': %s", store->path,
                           strerror(-store->parent));
    if (make && mkdirat(store->parent, store->leaf, 0700) < 0 && errno != EEXIST)
        return failure_set(failure, -errno, "cannot make '%s': %s", store->path, strerror(errno));
    store->folder = openat(store->parent, store->leaf, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (store->folder < 0 && errno == ENOENT && !make)
        return -ENOENT;
    if (store->folder < 0 || fstat(store->folder, &status) < 0)
        return failure_set(failure, -errno, "cannot open '%s': %s", store->path, strerror(errno));
    if (status.st_uid != geteuid() || status.st_mode & (S_IWGRP | S_IWOTH))
        return failure_set(
            failure, -EPERM,
            "'%s' belongs to another user or can be written by others: no snapshot is kept there",
            store->path);
    return 0;
}

/* Finds the name of this boot's snapshot file. */
static int find_name(struct snapshot_store *store, struct failure *failure) {
    if (machine_read_value(&store->machine, "proc/sys/kernel/random/boot_id", store->boot,
                           sizeof store->boot) < 0 ||
        store->boot[0] == '\0' || strspn(store->boot, "0123456789abcdefABCDEF-") != strlen(store->boot))
        return failure_set(
            failure, -ENODATA,
            "cannot read '/proc/sys/kernel/random/boot_id', which tells a snapshot of this boot from one "
            "made before a restart");
    snprintf(store->name, sizeof store->name, "controls-%s", store->boot);
    return 0;
}

static bool has_snapshot(const struct snapshot_store *store) {
    struct stat status;
    return fstatat(store->folder, store->name, &status, AT_SYMLINK_NOFOLLOW) == 0;
}

/* ---- the lock */

/* Locks the folder within LIMIT_MS. Returns 0; 1: the folder was removed meanwhile, and is to be opened
 * again; or negative. */
static int lock(struct snapshot_store *store, int limit_ms, struct failure *failure) {
    int64_t end_ns = clock_monotonic_ns() + limit_ms * INT64_C(1000000);
    while (flock(store->folder, LOCK_EX | LOCK_NB) < 0) {
        if (errno != EWOULDBLOCK && errno != EINTR)
            return failure_set(failure, -errno, "cannot lock '%s': %s", store->path, strerror(errno));
        if (clock_monotonic_ns() > end_ns)
            return failure_set(
                failure, -ETIMEDOUT,
                "'%s' has been locked by another process for %d s; try again when it has ended", store->path,
                limit_ms / 1000);
        clock_sleep_ns(ROUND_MS * INT64_C(1000000));
    }
    store->alone = true;
    /* The previous holder of the lock may have removed it. */
    return run_directory_is_named(store->folder, store->parent, store->leaf) ? 0 : 1;
}

static void close_all(struct snapshot_store *store) {
    cleanup_close_descriptor(&store->folder);
    cleanup_close_descriptor(&store->parent);
}

/* One try of store_open(): as lock(). */
static int open_once(struct snapshot_store *store, enum store_use use, struct failure *failure) {
    int r = find_name(store, failure);
    if (r < 0)
        return use == STORE_MAKE ? r : -ENOENT; /* without the boot's id there is no snapshot */
    r = open_folder(store, use == STORE_MAKE, failure);
    if (r < 0)
        return r;
    if (use != STORE_MAKE && !has_snapshot(store))
        return -ENOENT;
    return use == STORE_READ ? 0 : lock(store, use == STORE_LOCK_SOON ? UNASKED_LOCK_MS : LOCK_MS, failure);
}

/* Opens the folder of the snapshot. Tries again while another process removes the folder. */
int store_open(const struct machine *machine, enum store_use use, struct snapshot_store *ret,
               struct failure *failure) {
    for (int i = 0; i < TRIES_MAX; i++) {
        *ret = (struct snapshot_store){.parent = -1, .folder = -1, .machine = *machine};
        int r = open_once(ret, use, failure);
        if (r == 0) {
            size_t length = strlen(ret->path);
            snprintf(ret->path + length, sizeof ret->path - length, "/%s", ret->name);
            return 0;
        }
        close_all(ret);
        if (r < 0)
            return r;
    }
    return failure_set(failure, -EAGAIN,
                       "other processes keep making and removing the folder of the snapshot");
}

void store_close(struct snapshot_store *store) {
    if (store->alone && !has_snapshot(store)) {
        /* Fails, as intended, if the folder has other files. */
        (void)unlinkat(store->parent, store->leaf, AT_REMOVEDIR);
        if (store->machine.captured)
            (void)unlinkat(store->machine.root, "run", AT_REMOVEDIR);
    }
    close_all(store);
}

/* ---- the snapshot */

/* Reads the snapshot's file, which must belong to this user and have no other name. 0; -ENOENT; or -EBADMSG
 * with a sentence. */
static int read_bytes(const struct snapshot_store *store, struct text *ret, struct failure *failure) {
    cleanup_close int file =
        openat(store->folder, store->name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
    struct stat status;
    if (file < 0 && errno == ENOENT)
        return -ENOENT;
    if (file < 0 || fstat(file, &status) < 0)
        return failure_set(failure, -EBADMSG, "cannot open it: %s", strerror(errno));
    if (!S_ISREG(status.st_mode) || status.st_uid != geteuid() || status.st_nlink != 1 ||
        status.st_mode & (S_IWGRP | S_IWOTH))
        return failure_set(failure, -EBADMSG, "expected a file of this user that no other user can write");
    return file_read(machine_path("/proc/self/fd/%d", file), ret, failure) < 0 ? -EBADMSG : 0;
}

/* Reads and checks the snapshot. -EBADMSG: it is damaged, or of another boot. */
int store_load(struct snapshot_store *store, struct snapshot *ret, struct failure *failure) {
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, SNAPSHOT_MAX_BYTES);
    int r = read_bytes(store, &bytes, failure);
    if (r == 0)
        r = snapshot_parse(bytes.bytes, bytes.length, ret, failure);
    if (r == 0 && strcmp(ret->boot, store->boot) != 0) {
        snapshot_clear(ret);
        r = failure_set(failure, -EBADMSG, "the boot id in its text differs from the one in its name");
    }
    if (r == -EBADMSG)
        failure_prefix(failure,
                       "the snapshot '%s' cannot be used (what it should restore stays as it is; "
                       "remove it to continue)",
                       store->path);
    return r;
}

/* Writes the snapshot to a new file, which then replaces the old one. */
int store_save(struct snapshot_store *store, const struct snapshot *snapshot, struct failure *failure) {
    cleanup(lines_clear) struct lines lines;
    cleanup(part_clear) struct part part = {
        .folder = openat(store->folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC), .file = -1};
    lines_init(&lines, SNAPSHOT_MAX_BYTES);
    snapshot_format(snapshot, &lines);
    int r = lines.error;
    if (r == 0)
        r = part_open(&part, 0600);
    if (r == 0)
        r = file_write_all(part.file, lines.text.bytes, lines.text.length);
    if (r == 0)
        r = part_commit(&part, store->name);
    return r < 0 ? failure_set(failure, r, "cannot save the snapshot '%s': %s", store->path, strerror(-r))
                 : 0;
}

int store_discard(struct snapshot_store *store, struct failure *failure) {
    if (unlinkat(store->folder, store->name, 0) < 0 && errno != ENOENT)
        return failure_set(failure, -errno, "cannot remove the snapshot '%s': %s", store->path,
                           strerror(errno));
    (void)fsync(store->folder);
    return 0;
}
