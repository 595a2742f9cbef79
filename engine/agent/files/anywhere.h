/* Absolute paths, which lie outside the run directory: the kernel's rights hold, and links are followed as
 * the kernel does it, with one exception that it makes only in part. A link in a sticky folder that everybody
 * may write to, such as /tmp, which belongs neither to us nor to the folder's owner, leads where another user
 * wants us to read or write: wherever on the way it lies, the failure is -EXDEV, and its sentence names it.
 */
#ifndef ASSAY_FILES_ANYWHERE_H
#define ASSAY_FILES_ANYWHERE_H

#include "engine/foundation/failure.h"

/* As open(), O_CLOEXEC; of what is not there, too, it says that it cannot be read. ROOT stands for "/", also
 * for that of links. */
int anywhere_open(int root, const char *path, int flags, struct failure *failure);

/* To be written, when the user has said that the agent may (--write-anywhere). */

/* The file that PATH leads to, links at its end followed, whether it is there or not; what is there must be a
 * file. The folder that holds it (a descriptor, O_CLOEXEC), and in RET_NAME its name there, which the caller
 * frees. */
int anywhere_open_parent(const char *path, char **ret_name, struct failure *failure);
/* mkdir -p; 0 if it is there. */
int anywhere_make_folders(const char *path, struct failure *failure);
/* rm -rf; 0 if it is not there. A link at the end of PATH is removed, not followed. */
int anywhere_remove_tree(const char *path, struct failure *failure);

#endif
