/*
 * Folders that their maker holds: they are locked (flock) as long as the descriptor is open, so that one
 * whose maker was killed can be told from one that is in use.
 */
#ifndef ASSAY_FILES_CLAIM_H
#define ASSAY_FILES_CLAIM_H

/* Makes the folder NAME in the folder PARENT, mode 0755; nobody finds it by that name before it is locked. A
 * descriptor (O_CLOEXEC) that holds it, or a negative errno. */
int claim_make(int parent, const char *name);

/* Removes, with all that is in them, the folders in PARENT whose names begin with PREFIX, which are this
 * user's, and which nobody holds: what is held is the folder INNER in them; ".": they themselves. What cannot
 * be removed stays. */
void claim_remove_abandoned(int parent, const char *prefix, const char *inner);

/* Removes the folder NAME in PARENT with all that is in it. FOLDER: a descriptor of it. 0 or a negative
 * errno.
 */
int claim_remove(int parent, const char *name, int folder);

#endif
