/* Daemons that would set controls themselves, or move interrupts, as services of systemd. */
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

/* Reads the state of each daemon. On a captured machine, and without systemd, all are absent. A unit that
 * could not be started again (masked, or without a file) counts as absent, whether it runs or not. */
void daemons_read_states(const struct machine *machine, enum daemon_state ret[static DAEMON_COUNT]);

/* Limits the time that all calls of systemctl from now on may take together, so that a systemd that hangs
 * does not block the agent. */
void daemons_limit(int64_t total_ns);

/* Starts or stops a daemon that exists, reports a line `write`, and reads all states again. Returns 0,
 * -EACCES (this user may not), or another negative errno with a sentence. */
int daemons_set(struct write_context *context, int index, enum daemon_state wanted,
                enum daemon_state ret_states[static DAEMON_COUNT], struct failure *failure);

#endif
