/* Putting back what a snapshot has. */
#ifndef ASSAY_CONTROLS_RESTORE_H
#define ASSAY_CONTROLS_RESTORE_H

#include "engine/agent/controls/lines.h"
#include "engine/agent/controls/snapshot-store.h"
#include "engine/agent/machine/machine.h"

#include <stddef.h>

struct restored {
    size_t written;   /* files */
    size_t daemons;   /* started or stopped */
    size_t different; /* files and daemons that are not as they were */
};

/* Puts back what lies in STORE, which is SNAPSHOT: every file of a control that was touched, or that changes
 * along with one, and the daemons. The snapshot goes when all is as it was. Reports each write, what is left
 * different, and `restored`. 0; -EBUSY when something is left different; or another negative errno with a
 * sentence. */
int restore_snapshot(struct snapshot_store *store, const struct snapshot *snapshot, struct lines *lines,
                     struct restored *ret, struct failure *failure);

/* ---- for agents, which do it unasked */

/* If the snapshot here belongs to a process that is gone, restores it; with words for that (elevation.h) that
 * of root, too. NOTE gets a sentence about what was done, or could not be; it is empty if there was nothing
 * to do. */
void restore_abandoned(const struct machine *machine, char *note, size_t size);
/* The same if it belongs to this process: 0, or negative with a sentence. What root has kept for it is left
 * to its guardian. */
int restore_own(const struct machine *machine, struct failure *failure);

#endif
