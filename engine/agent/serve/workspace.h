/* Chooses the folder on the node in which the run directory is made, when the user gave only its name. */
#ifndef ASSAY_SERVE_WORKSPACE_H
#define ASSAY_SERVE_WORKSPACE_H

#include "engine/agent/machine/run-directory.h"

/* True where NAME is one component of a path: not empty, no '/', not "." or "..", at most 255 bytes. */
bool workspace_is_name(const char *name);

/* The path of $HOME/.cache/assay, which is made, private, if it does not exist; the caller frees. NULL: there
 * is no home folder, or no memory. */
char *workspace_cache(void);

/* Opens the run directory NAME, which must be our user's (RUN_DIRECTORY_PRIVATE), in WORKSPACE by
 * run_directory_open(). With NULL it is made in the first of $TMPDIR, /tmp, /var/tmp, $HOME/.cache/assay
 * (made if missing) and /dev/shm that allows it and from which programs can be run. FAILURE has the reason
 * for each folder. */
int workspace_open(struct run_directory *ret, const char *workspace, const char *name, unsigned flags,
                   struct failure *failure);

/* Calls run_directory_find_abandoned() for each of these folders. */
void workspace_find_abandoned(bool is_removed);

#endif
