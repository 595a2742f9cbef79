/*
 * Where on the node a snapshot lies: /run/assay of root, /tmp/assay-UID of anybody else, /run/assay of a
 * captured machine; a folder that only its user may write. There is one a boot, named
 * after the boot's id, so that one of an earlier boot, or of another machine where /tmp is shared, is
 * ignored. A process that changes anything locks the store (flock of the folder), so that two agents that
 * start at once do not both restore.
 */
#ifndef ASSAY_CONTROLS_SNAPSHOT_STORE_H
#define ASSAY_CONTROLS_SNAPSHOT_STORE_H

#include "engine/agent/controls/snapshot.h"

#include <stdbool.h>

enum store_use {
    STORE_LOOK,    /* only to be read; beside others, and without a trace */
    STORE_USE,     /* alone */
    STORE_MAKE,    /* alone, and made if it is not there */
    STORE_UNASKED, /* alone, with a short wait for the lock: an agent that starts has to answer soon */
};

struct snapshot_store {
    int parent, folder; /* descriptors */
    bool alone;
    char leaf[32]; /* what the folder is called in its parent; it is there for this only */
    char boot[64];
    char name[80];          /* of this boot's snapshot */
    char path[128];         /* the same from the machine's root, for people */
    struct machine machine; /* borrowed */
};

/* Opens it, and waits for its lock. Unless it is to be made, -ENOENT, without a sentence, means that there is
 * no snapshot. A machine whose boot has no id has no store. */
int store_open(const struct machine *machine, enum store_use use, struct snapshot_store *ret,
               struct failure *failure);
/* Lets others in. Removes the folder if it is empty. */
void store_close(struct snapshot_store *store);

/* 0; -ENOENT: none; -EBADMSG: one that is damaged, with a sentence. */
int store_load(struct snapshot_store *store, struct snapshot *ret, struct failure *failure);
/* It is on the disk when this returns, whole, or what was there before is. */
int store_save(struct snapshot_store *store, const struct snapshot *snapshot, struct failure *failure);
int store_discard(struct snapshot_store *store, struct failure *failure);

#endif
