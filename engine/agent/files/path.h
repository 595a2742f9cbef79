/*
 * Paths that the engine names.
 *
 * A relative path stays below the run directory: one that is empty, too long, or has a ".." part is refused,
 * and so is a link on its way that leads out (-EXDEV).
 *
 * An absolute path may lie anywhere: the kernel's permissions hold, and links are followed as the kernel
 * follows them, with one exception. A link in a sticky folder that everybody may write to, such as /tmp,
 * which belongs neither to us nor to the owner of the folder, leads where another user wants us to read or
 * write. Wherever on the way it lies, it is refused (-EXDEV).
 */
#ifndef ASSAY_FILES_PATH_H
#define ASSAY_FILES_PATH_H

#include "engine/foundation/failure.h"

#include <limits.h>
#include <stddef.h>
#include <sys/types.h>

/* Each returns 0 or a descriptor (O_CLOEXEC), or a negative errno and a sentence that names PATH. DIRECTORY
 * is the run directory. */

/* ROOT (a descriptor) stands for "/", also for that of links; -1: an absolute path is refused. */
int path_open(int directory, int root, const char *path, int flags, struct failure *failure);
/* The folder of the file PATH, and in RET_NAME its name there. A link at the end of an absolute path is
 * followed; one at the end of a relative path is what will be replaced. The file need not exist; what exists
 * under this name must be a regular file or a link. */
int path_open_parent(int directory, const char *path, char ret_name[static NAME_MAX + 1],
                     struct failure *failure);
/* Up to SIZE bytes of FILE into BYTES, fewer only at its end. How many, or a negative errno. */
ssize_t path_read_up_to(int file, void *bytes, size_t size);
/* mkdir -p. */
int path_make_folders(int directory, const char *path, struct failure *failure);

#endif
