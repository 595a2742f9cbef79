/*
 * Where files from nodes land: a folder of a node's own, below which nothing that the node says leads out. A
 * node may be anybody's: every path is checked, and no link that lies below the folder is followed.
 *
 * Files are written in a folder beside and get their names together, when all are on the disk: a file has all
 * of its bytes under its name, or is not there. (A folder .assay-* that is found there was left by an engine
 * that was killed.)
 */
#ifndef ASSAY_NODES_LANDING_H
#define ASSAY_NODES_LANDING_H

#include "engine/foundation/failure.h"

#include <stddef.h>

struct landing;

enum { LANDING_DEPTH_MAX = 64, LANDING_FILES_MAX = 400000 };

/* FOLDER/NAME, both made if they are not there; FOLDER may be reached by links, NAME is none. */
int landing_new(const char *folder, const char *name, struct landing **ret, struct failure *failure);
/* Files that were not committed are removed. NULL is fine. */
void landing_free(struct landing *landing);

/* Why PATH must not be used, or NULL: absolute, empty, with an empty, "." or ".." part, with a control
 * character (C0, DEL, C1), too long or too deep. */
const char *landing_problem(const char *path);

/* A new file beside those that land, to be written to and read, which goes with the landing; one at most. The
 * caller closes it. */
int landing_open_scratch(struct landing *landing, struct failure *failure);
/* mkdir -p. PATH has no problem. */
int landing_make_folder(struct landing *landing, const char *path, struct failure *failure);
/* A descriptor of a file that will be called PATH, and have MODE (the owner may always read and write); the
 * caller closes it. Makes the folders too. */
int landing_add(struct landing *landing, const char *path, unsigned mode, struct failure *failure);
/* The file that was added last is not to land. */
void landing_drop_last(struct landing *landing);
/* All files that were added get their names, and are on the disk; those that cannot get theirs are removed,
 * and the first of them is the failure. */
int landing_commit(struct landing *landing, struct failure *failure);

#endif
