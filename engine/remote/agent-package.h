/*
 * The agent as it is brought to nodes: the static binary, known by its SHA-256, and the sources it is built
 * from, for nodes on which the binary does not run.
 */
#ifndef ASSAY_REMOTE_AGENT_PACKAGE_H
#define ASSAY_REMOTE_AGENT_PACKAGE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"

#include <stddef.h>

struct agent_package;

enum agent_kind {
    AGENT_AUTO,   /* the binary where it runs, the sources elsewhere */
    AGENT_BINARY, /* nothing else */
    AGENT_SOURCE, /* built on the node, always */
};

/* Reads and hashes both. */
int agent_package_new(const struct installation *installation, enum agent_kind kind,
                      struct agent_package **ret, struct failure *failure);
void agent_package_free(struct agent_package *package);
enum agent_kind agent_package_kind(const struct agent_package *package);
const char *agent_package_binary_hash(const struct agent_package *package); /* hex */
const char *agent_package_source_hash(const struct agent_package *package);

/* Appends the command that starts the agent at PATH (NULL: where a delivery normally puts it, below the home
 * folder) with ARGUMENTS, for the login shell of whatever kind: one `exec`, every argument of the characters
 * A-Z a-z 0-9 and _ @ % + = : , . / - (-EINVAL and a sentence otherwise). A node that has no agent there
 * answers with exit status 126 or 127. */
int agent_package_command(const struct agent_package *package, const char *path, const char *const *arguments,
                          struct text *ret, struct failure *failure);

#endif
