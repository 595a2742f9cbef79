/* The answer to INSPECT: facts about the machine. */
#ifndef ASSAY_MACHINE_FACTS_H
#define ASSAY_MACHINE_FACTS_H

#include "engine/agent/machine/machine.h"
#include "engine/agent/wire/protocol.h"

#include <stdbool.h>

/* Appends the records of FACTS about the machine and the agent's environment. */
int facts_put(struct protocol_writer *writer, const struct machine *machine, struct failure *failure);

/* Calls VISIT for the files with the memory limits of our control group and of those above it, whether they
 * exist or not. */
typedef void facts_visit_path(const struct machine *machine, const char *path, void *context);
void facts_visit_memory_limits(const struct machine *machine, facts_visit_path *visit, void *context);

/* Appends the records of the run directory: its path, and what its file system allows. */
void facts_put_directory(struct protocol_writer *writer, int directory);

/* Appends a note of the agent for the user; nothing for "". */
void facts_put_note(struct protocol_writer *writer, const char *note);

/* True where the engine may record the variable ("NAME=VALUE"): variables that change how numerical programs
 * run, from a list of names; never one that looks like a secret (engine/foundation/secret.h). */
bool facts_environment_is_public(const char *variable);

#endif
