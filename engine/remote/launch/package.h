/*
 * The agent as it is brought to nodes: the static binary, known by its SHA-256, and the sources it is built
 * from, for nodes on which the binary does not run.
 */
#ifndef ASSAY_LAUNCH_PACKAGE_H
#define ASSAY_LAUNCH_PACKAGE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

enum agent_kind {
    AGENT_AUTO,   /* the binary where it runs, the sources elsewhere */
    AGENT_BINARY, /* nothing else */
    AGENT_SOURCE, /* built on the node, always */
};

enum agent_input {
    AGENT_INPUT_SCRIPT, /* delivery.sh */
    AGENT_INPUT_BINARY, /* the script, and then the binary */
    AGENT_INPUT_SOURCE, /* the script, and then sh that unpacks the sources into the working folder */
    AGENT_INPUTS,
};
struct agent_package {
    enum agent_kind kind;
    /* SHA-256 in hexadecimal; "" for what the kind does not need. Of the sources: of the sh that unpacks
     * them. */
    char binary_hash[HASH_HEX_SIZE], source_hash[HASH_HEX_SIZE];
    const char *machine; /* what `uname -m` says where the binary runs; "" when there is none */
    /* What a node's sh gets on its stdin, shared by all deliveries; empty for what the kind does not need.
     * The first bytes of each are the script. */
    struct text inputs[AGENT_INPUTS];
    size_t script_length;
};

/* Reads and hashes what the kind needs, and the script that delivers it; all of it stays in memory.
 * FAILURE_INPUT when a file is not there: the installation is not whole. */
int agent_package_new(const struct installation *installation, enum agent_kind kind,
                      struct agent_package **ret, struct failure *failure);
void agent_package_free(struct agent_package *package);

/* Whether a command may have WORD: it has only letters, digits and any of _ @ % + = : , . / -, and one of
 * them at least. */
bool agent_package_is_plain(const char *word);

/* What the command below prints on a line of its own before anything else: the login shell has run it. */
#define AGENT_SHELL_LINE "ASSAY-SHELL"

/* Where a delivery normally puts the binary: "~/.cache/assay/agent-HASH". The caller frees. */
char *agent_package_usual_path(const struct agent_package *package);
/* Appends to RET (on failure a part of it) the command that starts the agent at PATH (NULL: the usual one)
 * with ARGUMENTS, for the login shell of whatever kind: one `exec`, every argument plain (-EINVAL and a
 * sentence otherwise). It is not started from a folder or file
 * that is another user's or that others may write to, for then it may be anybody's: exit status 78, and a
 * sentence. A node that has no agent there answers with exit status 126 or 127. */
int agent_package_command(const struct agent_package *package, const char *path, const char *const *arguments,
                          struct text *ret, struct failure *failure);

#endif
