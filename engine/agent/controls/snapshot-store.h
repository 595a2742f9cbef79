/*
 * The folder of a node's snapshot: /run/assay for root, /tmp/assay-UID for other users, /run/assay of a
 * captured machine; only its user may write it. The snapshot's file is named after the id of the boot, so
 * that a snapshot of an earlier boot, or of another machine where /tmp is shared, is ignored. A process that
 * changes the store locks it (flock of the folder), so that two agents that start at once do not both
 * restore.
 */
#ifndef ASSAY_CONTROLS_SNAPSHOT_STORE_H
#define ASSAY_CONTROLS_SNAPSHOT_STORE_H

#include "engine/agent/controls/snapshot.h"

#include <stdbool.h>

enum store_use {
    STORE_READ,      /* read only, without the lock */
    STORE_LOCK,      /* locked */
    STORE_MAKE,      /* locked, and made if it does not exist */
    STORE_LOCK_SOON, /* locked, with a short wait: an agent that starts must answer soon */
};

struct snapshot_store {
    int parent, folder;     /* descriptors */
    bool alone;             /* this process has the lock */
    char leaf[32];          /* the folder's name in its parent; the folder has no other use */
    char boot[64];          /* id of the boot */
    char name[80];          /* of this boot's snapshot file */
    char path[128];         /* path of that file from the machine's root, for messages */
    struct machine machine; /* borrowed */
};

/* Opens the store for USE, and waits for its lock. Returns 0; -ENOENT, without a sentence, where there is no
 * snapshot (not with STORE_MAKE); or another negative errno with a sentence. A machine whose boot has no id
 * has no store. */
int store_open(const struct machine *machine, enum store_use use, struct snapshot_store *ret,
               struct failure *failure);
/* Releases the lock, and removes the folder if it is empty. */
void store_close(struct snapshot_store *store);

/* Reads the snapshot. 0; -ENOENT: there is none; -EBADMSG with a sentence: it is damaged. */
int store_load(struct snapshot_store *store, struct snapshot *ret, struct failure *failure);
/* Writes the snapshot durably: after a crash the file has the new content or the old, never a part. */
int store_save(struct snapshot_store *store, const struct snapshot *snapshot, struct failure *failure);
/* Removes the snapshot; 0 also where there is none. */
int store_discard(struct snapshot_store *store, struct failure *failure);

#endif
