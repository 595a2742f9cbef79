/* The tools of the controls: their arguments, and their common interface. */
#ifndef ASSAY_CONTROLS_TOOLS_H
#define ASSAY_CONTROLS_TOOLS_H

#include "engine/agent/controls/control.h"
#include "engine/agent/controls/lines.h"
#include "engine/agent/controls/snapshot-store.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stdint.h>

struct control_arguments {
    const char *root, *session, *label;
    bool abandoned, unasked;
    int64_t owner; /* the process that owns the snapshot: our parent unless another is named */
    const char *asked[CONTROL_COUNT];
};

/* The work of a tool. STORE is NULL if there is no snapshot and the tool does not make one. Returns 0 or
 * more: done; negative: not done, with a sentence in FAILURE unless the reasons are in LINES. */
typedef int control_work(struct snapshot_store *store, const struct machine *machine,
                         const struct control_arguments *given, struct lines *lines, struct failure *failure);

/* Sets the controls of GIVEN->asked. */
control_work control_set;

#endif
