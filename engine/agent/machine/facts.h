/* What INSPECT reports about the machine. */
#ifndef ASSAY_MACHINE_FACTS_H
#define ASSAY_MACHINE_FACTS_H

#include "engine/agent/machine/machine.h"
#include "engine/agent/wire/protocol.h"

#include <stdbool.h>

/* Appends the records of FACTS. */
int facts_put(struct protocol_writer *writer, const struct machine *machine, struct failure *failure);

/* The files with the memory limits of our control group and of those above it, whether they are there or not.
 */
typedef void facts_visit_path(const struct machine *machine, const char *path, void *context);
void facts_visit_memory_limits(const struct machine *machine, facts_visit_path *visit, void *context);

/* Appends the records of the run directory: its path, and what its file system allows. */
void facts_put_directory(struct protocol_writer *writer, int directory);

/* Appends what the agent has to say of itself; nothing for "". */
void facts_put_note(struct protocol_writer *writer, const char *note);

/* May the engine see this variable ("NAME=VALUE")? Those that change how numerical programs run, by name;
 * never one that looks like a secret (engine/foundation/secret.h). */
bool facts_environment_is_public(const char *variable);

#endif
