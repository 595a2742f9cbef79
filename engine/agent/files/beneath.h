/*
 * Paths that stay beneath a folder. A path is refused when it is empty, absolute, too long or has a ".."
 * part; links on the way may lead anywhere below the folder and nowhere else. The kernel watches that
 * (openat2, Linux 5.6); on older ones we walk part by part and refuse every link.
 */
#ifndef ASSAY_FILES_BENEATH_H
#define ASSAY_FILES_BENEATH_H

#include "engine/foundation/failure.h"

#include <sys/types.h>

/* Descriptors are opened with O_CLOEXEC. All return a negative errno and a sentence that names PATH. */
int beneath_open(int folder, const char *path, int flags, mode_t mode, struct failure *failure);
/* The folder that holds the last part of PATH, and that part (a pointer into PATH). "." has no such folder:
 * -EINVAL. */
int beneath_open_parent(int folder, const char *path, const char **ret_name, struct failure *failure);
/* mkdir -p; 0 if it is there. */
int beneath_make_folders(int folder, const char *path, struct failure *failure);
/* rm -rf; 0 if it is not there. Never follows a link; makes folders writable that their owner may
 * not write. "." empties the folder. */
int beneath_remove_tree(int folder, const char *path, struct failure *failure);

/* For tests: what is done without openat2. A descriptor or a negative errno; -EXDEV for an escape. */
int beneath_walk(int folder, const char *path, int flags, mode_t mode);

#endif
