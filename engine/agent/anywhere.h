/* Absolute paths that are written to, when the user has said that the agent may (--write-anywhere): the
 * kernel's rights are the only ones that hold, and links are followed as the kernel does. */
#ifndef ASSAY_AGENT_ANYWHERE_H
#define ASSAY_AGENT_ANYWHERE_H

#include "engine/foundation/failure.h"

/* The file that PATH leads to, links at its end followed, whether it is there or not; what is there must be a
 * file. The folder that holds it (a descriptor, O_CLOEXEC), and in RET_NAME its name there, which the caller
 * frees. */
int anywhere_open_parent(const char *path, char **ret_name, struct failure *failure);
/* mkdir -p; 0 if it is there. */
int anywhere_make_folders(const char *path, struct failure *failure);
/* rm -rf; 0 if it is not there. No link is followed, at the end of PATH either. */
int anywhere_remove_tree(const char *path, struct failure *failure);

#endif
