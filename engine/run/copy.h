/* Copying a folder of the user's into the run's folder. */
#ifndef ASSAY_RUN_COPY_H
#define ASSAY_RUN_COPY_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    COPY_FILES_MOST = 200000,
    COPY_DEPTH_MOST = 64,
};

struct copy_target {
    const char *folder;
    /* When not NULL: the copy will be a member of the archive under this folder, and a name that cannot be
     * one is refused as bad input. */
    const char *archive_folder;
    bool skip_hidden; /* leave out every name that begins with a dot */
    /* A folder that is left out wherever it lies below SOURCE: where runs are made, so that none is copied
     * into the next. NULL: none. */
    const char *skip_folder;
};

/* Copies every regular file below SOURCE, with its permission bits. Links, devices and the like are not
 * copied; *RET_LEFT_OUT (may be NULL) counts them. */
int copy_tree(const char *source, const struct copy_target *target, size_t *ret_left_out,
              struct failure *failure);

/* Refuses a SKIPPED that is SOURCE itself: every run would be copied into the next. SKIPPED may be NULL, and
 * need not be there. */
int copy_check_skipped(const char *source, const char *skipped, struct failure *failure);

#endif
