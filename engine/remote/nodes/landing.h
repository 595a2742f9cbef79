/*
 * Stores files that a node sends in a folder of its own, and nowhere else: a node may be hostile, so every
 * path is checked, and no link below the folder is followed.
 *
 * Files are written in a temporary folder .assay-* and get their names together, when all are on the disk: a
 * file with its final name is complete. (A folder .assay-* that is found later was left by an engine that was
 * killed.)
 */
#ifndef ASSAY_NODES_LANDING_H
#define ASSAY_NODES_LANDING_H

#include "engine/foundation/failure.h"

#include <stddef.h>

struct landing;

enum { LANDING_DEPTH_MAX = 64, LANDING_FILES_MAX = 400000 };

/* RET: stores files in FOLDER/NAME; landing_free(). Both are made if they do not exist; FOLDER may be a link,
 * NAME may not. -EXDEV when assay runs as root and another user may write to NAME. */
int landing_new(const char *folder, const char *name, struct landing **ret, struct failure *failure);
/* Removes the files that were not committed. NULL is fine. */
void landing_free(struct landing *landing);

/* The reason why PATH must not be used: it is absolute or empty, has an empty, "." or ".." part or a control
 * character (C0, DEL, C1), is too long or too deep. NULL: it may be used. */
const char *landing_problem(const char *path);

/* A descriptor of a new file in the temporary folder, to write and read, which landing_free() removes; one at
 * most. The caller closes it. */
int landing_open_scratch(struct landing *landing, struct failure *failure);
/* mkdir -p. landing_problem(PATH) is NULL. */
int landing_make_folder(struct landing *landing, const char *path, struct failure *failure);
/* A descriptor, to write, of a file that gets the name PATH at landing_commit(), and MODE (its owner may
 * always read and write); the caller closes it. Makes the folders of PATH. */
int landing_add(struct landing *landing, const char *path, unsigned mode, struct failure *failure);
/* Removes the file that was added last. */
void landing_drop_last(struct landing *landing);
/* Syncs the files that were added to the disk and gives them their names. Files that cannot get theirs are
 * removed, and the first of them is the failure. */
int landing_commit(struct landing *landing, struct failure *failure);

#endif
