/* Restores controls from a snapshot. */
#ifndef ASSAY_CONTROLS_RESTORE_H
#define ASSAY_CONTROLS_RESTORE_H

#include "engine/agent/controls/lines.h"
#include "engine/agent/controls/snapshot-store.h"
#include "engine/agent/machine/machine.h"

#include <stddef.h>

struct restored {
    size_t written;   /* files written */
    size_t daemons;   /* daemons started or stopped */
    size_t different; /* files and daemons that could not be restored */
};

/* Restores SNAPSHOT, which was loaded from STORE: every file of the controls that were touched, and of those
 * that the kernel changes with them, and the daemons. The snapshot is removed from STORE when all are
 * restored. Prints lines about each write, about each difference that is left, and `restored`. Returns 0;
 * -EBUSY when differences are left; or another negative errno with a sentence. */
int restore_snapshot(struct snapshot_store *store, const struct snapshot *snapshot, struct lines *lines,
                     struct restored *ret, struct failure *failure);

/* ---- automatic restoring when agents start and end */

/* Restores the machine's snapshot if its owner has ended; where a command for root was passed (elevation.h),
 * root's snapshot, too. NOTE gets a sentence about what was restored or could not be; "": there was nothing
 * to restore. */
void restore_abandoned(const struct machine *machine, char *note, size_t size);
/* Restores the snapshot if this process owns it. Returns 0, or negative with a sentence. Root's snapshot is
 * left to the guardian. */
int restore_own(const struct machine *machine, struct failure *failure);

#endif
