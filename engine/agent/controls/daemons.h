/* The daemons that would set controls themselves, or move interrupts. Systemd has to run the machine. */
#ifndef ASSAY_CONTROLS_DAEMONS_H
#define ASSAY_CONTROLS_DAEMONS_H

#include "engine/agent/controls/plan.h"
#include "engine/agent/machine/machine.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stdint.h>

enum daemon_state {
    DAEMON_ABSENT,
    DAEMON_STOPPED,
    DAEMON_RUNNING,
    DAEMON_UNKNOWN, /* systemd did not answer: never touched, because its state could not be restored */
};

enum { DAEMON_COUNT = 4 };

extern const char *const daemon_names[DAEMON_COUNT];
extern const char *const daemon_state_names[];

/* How each stands. On a captured machine, and where there is no systemd, all are absent. A unit that could
 * not be started again (masked, or without a file) is absent, whether it runs or not. */
void daemons_look(const struct machine *machine, enum daemon_state ret[static DAEMON_COUNT]);

/* How long the manager of the daemons is waited for from now on, by all calls together: one that hangs does
 * not keep an agent from answering. */
void daemons_limit(int64_t total_ns);

/* Starts or stops one that is there, and reports it as a line. 0, -EACCES (this user may not), or another
 * negative errno with a sentence. */
int daemons_set(struct write_context *context, int index, enum daemon_state wanted,
                enum daemon_state ret_states[static DAEMON_COUNT], struct failure *failure);

#endif
