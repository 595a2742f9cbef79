/*
 * Where files from nodes land: a folder of a node's own, below which nothing that the node says leads out. A
 * node may be anybody's: every path is checked, and no link that lies below the folder is followed.
 *
 * A file has all of its bytes under its name, or is not there: it is written in a folder beside, synced and
 * renamed. (A folder .assay-* that is found there was left by an engine that was killed.) Small files are
 * synced together, many at once, because a disk that is asked to be sure of each takes milliseconds for it.
 */
#ifndef ASSAY_NODES_LANDING_H
#define ASSAY_NODES_LANDING_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

struct landing;

enum {
    LANDING_DEPTH_MOST = 64,
    LANDING_TOGETHER_MOST = 256,     /* files that are synced together, */
    LANDING_TOGETHER_SIZE = 1 << 20, /* of at most so many bytes each */
};

/* FOLDER/NAME, both made if they are not there; FOLDER may be reached by links, NAME is none. */
int landing_new(const char *folder, const char *name, struct landing **ret, struct failure *failure);
/* Files that wait for landing_sync() are removed. NULL is fine. */
void landing_free(struct landing *landing);

/* Why PATH must not be used, or NULL: absolute, empty, with an empty, "." or ".." part, too long or too deep.
 */
const char *landing_problem(const char *path);

/* mkdir -p. PATH has no problem. */
int landing_make_folder(struct landing *landing, const char *path, struct failure *failure);

/* A file on its way to its name. */
struct landed {
    struct landing *landing;
    char *path;           /* owned */
    int descriptor;       /* -1: none */
    unsigned long number; /* its name meanwhile */
    uint64_t written;
};
#define LANDED_NONE ((struct landed){.descriptor = -1})

/* Makes the folders too. RET is LANDED_NONE before. */
int landed_open(struct landing *landing, const char *path, struct landed *ret, struct failure *failure);
int landed_write(struct landed *landed, const void *bytes, size_t length, struct failure *failure);
/* All of it is there. It gets its name now, or, when it is small, with others, at the latest by
 * landing_sync(). MODE: permission bits; the owner may always read and write. */
int landed_commit(struct landed *landed, unsigned mode, struct failure *failure);
/* What was not committed is removed. Fine on LANDED_NONE, and twice. */
void landed_clear(struct landed *landed);

/* All that was committed and made has its name, and is on disk. */
int landing_sync(struct landing *landing, struct failure *failure);

#endif
