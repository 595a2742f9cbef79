/* Copying a folder of the engine's machine, to a node or into the run's folder. */
#ifndef ASSAY_RUN_COPY_H
#define ASSAY_RUN_COPY_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/remote/agent-link.h"

enum {
    COPY_FILES_MOST = 200000,
    COPY_DEPTH_MOST = 64,
};

struct copy_target {
    /* Where to: a folder below the run directory of this link's agent, or, with link NULL, a folder here. */
    struct agent_link *link;
    const char *folder;
    /* When not NULL: the copy will be a member of the archive under this folder, and a name that cannot be
     * one is refused as bad input. */
    const char *archive_folder;
    bool skip_version_control; /* leave .git and its kind out */
    bool skip_hidden;          /* leave out every name that begins with a dot */
    /* A folder that is left out wherever it lies below SOURCE: where runs are made, so that none is copied
     * into the next. NULL: none. */
    const char *skip_folder;
    /* When not NULL: a line "sha256  path" a file, sorted by path, is appended. */
    struct text *manifest;
};

/* Copies every regular file below SOURCE, with its permission bits. Links, devices and the like are not
 * copied; *RET_LEFT_OUT (may be NULL) counts them. */
int copy_tree(const char *source, const struct copy_target *target, size_t *ret_left_out,
              struct failure *failure);

#endif
