/*
 * Where on the node a snapshot lies: /run/assay of root, ~/.cache/assay/controls of anybody else, /run/assay
 * of a captured machine. One a machine and boot, called after the boot's id; in a home, which may be shared,
 * after the machine's (/etc/machine-id), too. A host name may change meanwhile and says nothing. Whoever
 * changes anything has the shelf alone (flock), so that two agents that start at once do not both put back.
 */
#ifndef ASSAY_CONTROLS_SHELF_H
#define ASSAY_CONTROLS_SHELF_H

#include "engine/agent/controls/snapshot.h"

#include <limits.h>
#include <stdbool.h>

enum shelf_use {
    SHELF_LOOK, /* only to be read; beside others, and without a trace */
    SHELF_USE,  /* alone */
    SHELF_MAKE, /* alone, and made if it is not there */
};

struct shelf {
    int parent, folder, lock; /* descriptors; no lock: SHELF_LOOK */
    const char *leaf;         /* what the folder is called in its parent; it is there for this only */
    bool shared;              /* other machines' may lie there, too */
    char host[128], machine_id[64];
    char name[256];      /* of this boot's snapshot */
    char path[PATH_MAX]; /* the same from the machine's root, for people */
    char boot[64];
    struct machine machine; /* borrowed */
};

/* Opens it, and waits for whoever has it alone. If it is not to be made, -ENOENT, without a sentence, says
 * that nothing of this machine lies there. A machine whose boot has no id has no shelf. */
int shelf_open(const struct machine *machine, enum shelf_use use, struct shelf *ret, struct failure *failure);
/* Lets others in. Leaves no trace where nothing lies. */
void shelf_close(struct shelf *shelf);

/* 0; -ENOENT: none; -ESTALE: only one of an earlier boot, which is gone now unless this only looks; -EBADMSG:
 * one that is damaged, with a sentence. */
int shelf_load(struct shelf *shelf, struct snapshot *ret, struct failure *failure);
/* It is on the disk when this returns, whole, or what was there before is. */
int shelf_store(struct shelf *shelf, const struct snapshot *snapshot, struct failure *failure);
int shelf_discard(struct shelf *shelf, struct failure *failure);

#endif
