/* The tools of the controls: their arguments and what is the same for all of them. */
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
    int64_t owner; /* of the snapshot: a process, our parent unless another is named */
    const char *asked[CONTROL_COUNT];
};

/* What a tool does. STORE is NULL if there is no snapshot and the store was not to be made. 0 or more: done;
 * negative: not, with a sentence unless the lines have said all. */
typedef int control_work(struct snapshot_store *store, const struct machine *machine,
                         const struct control_arguments *given, struct lines *lines, struct failure *failure);

/* Sets what GIVEN asks for. */
control_work control_set;

#endif
