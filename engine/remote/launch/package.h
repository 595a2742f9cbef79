/*
 * The agent as it is delivered to nodes: the static binary, identified by its SHA-256, and its sources, for
 * nodes on which the binary does not run.
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
    AGENT_BINARY, /* the binary only */
    AGENT_SOURCE, /* always built on the node */
};

enum agent_input {
    AGENT_INPUT_SCRIPT, /* delivery.sh */
    AGENT_INPUT_BINARY, /* the script, followed by the binary */
    AGENT_INPUT_SOURCE, /* the script, followed by commands that unpack the sources into the working folder */
    AGENT_INPUTS,
};
struct agent_package {
    enum agent_kind kind;
    /* SHA-256 in hexadecimal of the binary, and of the commands that unpack the sources; "": not needed by
     * the kind. */
    char binary_hash[HASH_HEX_SIZE], source_hash[HASH_HEX_SIZE];
    const char *machine; /* the output of `uname -m` on nodes where the binary runs; "": no binary */
    /* The stdin of a node's sh, shared by all deliveries; empty where the kind does not need it. Each begins
     * with the script. */
    struct text inputs[AGENT_INPUTS];
    size_t script_length;
};

/* Reads and hashes the files that the kind needs, and the script that delivers them, into memory.
 * FAILURE_INPUT when a file is missing: the installation is incomplete. */
int agent_package_new(const struct installation *installation, enum agent_kind kind,
                      struct agent_package **ret, struct failure *failure);
void agent_package_free(struct agent_package *package);

/* True where WORD may be part of a command: it is not empty and has only letters, digits and any of _ @ % + =
 * : , . / - */
bool agent_package_is_plain(const char *word);

/* The first line that the command below prints: it shows that the login shell has run the command. */
#define AGENT_SHELL_LINE "ASSAY-SHELL"

/* The path to which a delivery normally copies the binary: "~/.cache/assay/agent-HASH". The caller frees. */
char *agent_package_usual_path(const struct agent_package *package);
/* Appends to RET (on failure a part of it) the command that starts the agent at PATH (NULL: the usual path)
 * with ARGUMENTS, for any kind of login shell: one `exec` with plain arguments (-EINVAL with a sentence
 * otherwise). The command refuses, with exit status 78 and a sentence, a file or folder that other users own
 * or may write. Where the node has no agent at PATH its exit status is 126 or 127. */
int agent_package_command(const struct agent_package *package, const char *path, const char *const *arguments,
                          struct text *ret, struct failure *failure);

#endif
