/*
 * Where assay finds what it was installed with. The program looks at its own place, never at a path fixed
 * when it was built, so that an installed tree can be moved or copied, and the build tree works as it is:
 *
 *     <prefix>/bin/assay                   the running program (from /proc/self/exe)
 *     <prefix>/lib/assay/plugins/NAME.so
 *     <prefix>/share/assay/experiments/NAME/experiment.yaml
 *     <prefix>/libexec/assay/assay-agent
 *     <prefix>/share/assay/agent-source/   what the agent is built from, and delivered by
 *
 * Folders named in ASSAY_PATH, separated by colons, come before these. Each may hold plugins/ and
 * experiments/, and the first one that has the name asked for wins.
 */
#ifndef ASSAY_FOUNDATION_INSTALLATION_H
#define ASSAY_FOUNDATION_INSTALLATION_H

#include "engine/foundation/failure.h"

#include <stddef.h>

enum installation_kind {
    INSTALLATION_PLUGIN,     /* NAME.so, a file */
    INSTALLATION_EXPERIMENT, /* NAME, a folder that holds experiment.yaml */
    INSTALLATION_KINDS,
};

enum {
    INSTALLATION_FOLDERS_MAX = 64,  /* in ASSAY_PATH */
    INSTALLATION_NAMES_MAX = 65536, /* entries looked at when listing */
};

struct installation_names {
    char **items; /* owned, each too */
    size_t count;
};

struct installation {
    char *prefix;       /* absolute */
    char *agent;        /* the agent's path; whether it is there is not checked */
    char *agent_source; /* the folder; the same */
    struct installation_names folders[INSTALLATION_KINDS]; /* where each kind is looked for, first wins;
                                                             absolute, and not all of them need to exist */
};

/* PREFIX, or with NULL the folder above the one that holds the running program. PATH is the value of
 * ASSAY_PATH, or NULL; empty entries are skipped, relative ones are taken from the working directory of this
 * moment. */
int installation_init(struct installation *installation, const char *prefix, const char *path,
                      struct failure *failure);
/* Fine on zeroed memory, and twice. */
void installation_clear(struct installation *installation);

/* The path of the plugin or experiment NAME in *RET, which the caller frees. NAME has no slash. When there is
 * none: FAILURE_INPUT, -ENOENT, naming the nearest one, or all that there are, or the folders searched.
 * -EXDEV: it is another user's, and we are root (path.h). */
int installation_find(const struct installation *installation, enum installation_kind kind, const char *name,
                      char **ret, struct failure *failure);

/* All names of a kind, sorted, each once (a name found twice means its first folder's). */
int installation_list(const struct installation *installation, enum installation_kind kind,
                      struct installation_names *ret, struct failure *failure);
void installation_names_clear(struct installation_names *names);

#endif
