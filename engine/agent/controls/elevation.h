/*
 * The tools of the controls, of an agent that is not root's: they run themselves again as root, by words such
 * as `sudo -n` that the agent was started with (--sudo). Nothing else runs as root: neither the agent nor a
 * command that it runs for the engine.
 *
 * What is run is the last of the words where that is the path of an assay-agent (an installed one, which only
 * root can change), and this very program otherwise. The snapshot is root's then, and lies where root's lie.
 * Nobody is there to type a password.
 */
#ifndef ASSAY_CONTROLS_ELEVATION_H
#define ASSAY_CONTROLS_ELEVATION_H

#include "engine/agent/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>

/* WORDS, separated by commas, "sudo,-n", are passed on to all that this process starts; NULL: none. */
void elevation_pass(const char *words);
/* Were words passed on, is this not root, and is the machine the real one? */
bool elevation_is_due(void);

/* Runs TOOL ("--set-controls") with ARGUMENTS as root, on behalf of our parent, which owns the snapshot. Its
 * status; 1 after a sentence on stderr if it could not be run so. */
int elevation_run_tool(const char *tool, int count, char **arguments);

/* restore_abandoned() as root, where root has a snapshot on MACHINE. NOTE likewise. */
void elevation_restore(const struct machine *machine, char *note, size_t size);

#endif
