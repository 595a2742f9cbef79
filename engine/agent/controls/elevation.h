/*
 * Running the tools of the controls as root, for an agent of another user: the tools run themselves again by
 * a command such as `sudo -n`, which the agent was started with (--sudo). Nothing else runs as root: neither
 * the agent nor a command that it runs for the engine.
 *
 * The program that is run is the last word of the command, where that is the path of an assay-agent (an
 * installed one, which only root can change), and this program otherwise. The snapshot is then root's, in
 * root's folder. The command must not ask for a password.
 */
#ifndef ASSAY_CONTROLS_ELEVATION_H
#define ASSAY_CONTROLS_ELEVATION_H

#include "engine/agent/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>

/* Passes the command WORDS, separated by commas ("sudo,-n"), to all processes that this one starts; NULL: no
 * command. */
void elevation_pass(const char *words);
/* True where a command was passed, this process is not root, and the machine is the real one. */
bool elevation_is_due(void);

/* Runs TOOL ("--set-controls") with ARGUMENTS as root, for our parent, which owns the snapshot. Returns its
 * exit status; 1 after a sentence on stderr if it could not be run. */
int elevation_run_tool(const char *tool, int count, char **arguments);

/* Runs restore_abandoned() as root, where root has a snapshot on MACHINE. NOTE gets its sentence, or why it
 * failed. */
void elevation_restore(const struct machine *machine, char *note, size_t size);

#endif
