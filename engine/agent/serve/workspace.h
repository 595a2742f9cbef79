/* Where on the node the run directory is made, when the user gave only its name. */
#ifndef ASSAY_SERVE_WORKSPACE_H
#define ASSAY_SERVE_WORKSPACE_H

#include "engine/agent/machine/run-directory.h"

/* One part of a path, neither empty nor "." nor "..", of at most 255 bytes. */
bool workspace_is_name(const char *name);

/* $HOME/.cache/assay, made private if it was not there; the caller frees. NULL: there is no home folder, or
 * no memory. */
char *workspace_cache(void);

/* run_directory_open() of the folder NAME, which must be ours (RUN_DIRECTORY_PRIVATE), in WORKSPACE; or, when
 * that is NULL, in the first of $TMPDIR, /tmp, /var/tmp, $HOME/.cache/assay (made if it is not there) and
 * /dev/shm in which it can be made and from which programs can be run. The failure says what was wrong with
 * each. */
int workspace_open(struct run_directory *ret, const char *workspace, const char *name, unsigned flags,
                   struct failure *failure);

/* run_directory_find_abandoned() in each of these folders. */
void workspace_find_abandoned(bool is_removed);

#endif
