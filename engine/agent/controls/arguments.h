/* What the tools of the controls are given. */
#ifndef ASSAY_CONTROLS_ARGUMENTS_H
#define ASSAY_CONTROLS_ARGUMENTS_H

#include "engine/agent/controls/control.h"
#include "engine/agent/controls/lines.h"
#include "engine/agent/controls/shelf.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>

enum { /* which a tool takes besides --root */
       CONTROL_ARGUMENTS_NAMES = 1,
       CONTROL_ARGUMENTS_ABANDONED = 2,
       CONTROL_ARGUMENTS_VALUES = 4,
};

struct control_arguments {
    const char *root, *session, *label;
    bool abandoned;
    const char *asked[CONTROL_COUNT];
};

/* What a tool does; SHELF is NULL if nothing lies there and it was not to be made, or if
 * it cannot be looked at, which is told after. 0 or more: done; negative:
 * not, with a sentence unless the lines have said all. */
typedef int control_work(struct shelf *shelf, const struct control_arguments *given, struct lines *lines,
                         struct failure *failure);

/* All of a tool but that. Its exit status. */
int control_tool(int count, char **arguments, unsigned which, enum shelf_use use, control_work *work);

#endif
