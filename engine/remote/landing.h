/*
 * Where files from nodes land: a folder of a node's own, below which nothing that the node says leads out. A
 * node may be anybody's: every path is checked, and no link that lies below the folder is followed.
 *
 * A file has all of its bytes under its name, or is not there: it is written beside and renamed.
 */
#ifndef ASSAY_REMOTE_LANDING_H
#define ASSAY_REMOTE_LANDING_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

struct landing;

enum { LANDING_DEPTH_MOST = 64, LANDING_STAGED_SIZE = 64 };

/* FOLDER/NAME, both made if they are not there; FOLDER may be reached by links, NAME is none. */
int landing_new(const char *folder, const char *name, struct landing **ret, struct failure *failure);
void landing_free(struct landing *landing); /* NULL is fine */

/* Why PATH must not be used, or NULL: absolute, empty, with an empty, "." or ".." part, too long or too deep.
 */
const char *landing_problem(const char *path);

/* mkdir -p. PATH has no problem. */
int landing_make_folder(struct landing *landing, const char *path, struct failure *failure);

/* A file on its way to its name. */
struct landed {
    struct landing *landing;
    char *path;     /* owned */
    int parent;     /* the folder that it is in */
    int descriptor; /* -1: none */
    uint64_t written;
    char staged[LANDING_STAGED_SIZE];
};
#define LANDED_NONE ((struct landed){.parent = -1, .descriptor = -1})

/* Makes the folders too. RET is LANDED_NONE before. */
int landed_open(struct landing *landing, const char *path, struct landed *ret, struct failure *failure);
int landed_write(struct landed *landed, const void *bytes, size_t length, struct failure *failure);
/* Synced and renamed. MODE: permission bits; the owner may always read and write. */
int landed_commit(struct landed *landed, unsigned mode, struct failure *failure);
/* What was not committed is removed. Fine on LANDED_NONE, and twice. */
void landed_clear(struct landed *landed);

/* The names of all that was committed and made are on disk. */
int landing_sync(struct landing *landing, struct failure *failure);

#endif
