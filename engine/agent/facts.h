/* What INSPECT tells of the machine, read through one descriptor that stands for "/", so that a captured tree
 * in a folder can stand for a machine. */
#ifndef ASSAY_AGENT_FACTS_H
#define ASSAY_AGENT_FACTS_H

#include "engine/agent/protocol.h"

#include <stdbool.h>

/* Appends the records of FACTS. CAPTURED: ROOT is a tree in a folder, so that the kernel that runs us is not
 * to be asked for what the tree does not have. */
int facts_put(struct protocol_writer *writer, int root, bool captured, struct failure *failure);

/* Appends the records of the run directory: its path, and what its file system allows. */
void facts_put_directory(struct protocol_writer *writer, int directory);

/* May the engine see this variable ("NAME=VALUE")? Those that change how numerical programs run, by name;
 * never one whose name looks like a secret. */
bool facts_environment_is_public(const char *variable);

#endif
