/*
 * Lists a file or a folder of the engine's machine for sending: each folder before its files, entries in the
 * order of their names. Links and special files below it are left out and counted.
 */
#ifndef ASSAY_NODES_LOCAL_TREE_H
#define ASSAY_NODES_LOCAL_TREE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

enum { LOCAL_TREE_FILES_MAX = 200000, LOCAL_TREE_DEPTH_MAX = 64 };

struct local_entry {
    bool is_folder;
    char *path;     /* owned: to open it */
    char *relative; /* owned: below the top; "" for a folder that is the top, the name of a file that is */
    unsigned mode;  /* permission bits */
    uint64_t size;  /* of a file, when it was listed; 0 of a folder */
    char hash[HASH_HEX_SIZE]; /* of a file; "" until local_tree_hash() */
};

struct local_tree {
    struct local_entry *entries;
    size_t count, capacity, files, left_out;
    size_t hashed; /* entries that local_tree_hash() has passed */
};

#define LOCAL_TREE_NONE ((struct local_tree){0})

struct local_tree_filter {
    /* Is the file or folder PATH, which is RELATIVE below the top, left out, with all below it? */
    bool (*leaves_out)(void *context, const char *path, const char *relative, const struct stat *status);
    void *context;
};

/* Lists PATH, which may be a link, into TREE. FILTER: NULL: nothing is left out. FAILURE_INPUT when something
 * cannot be read, is beyond the limits or, for root, is another user's (path.h), or PATH is neither a file
 * nor a folder. The caller sets TREE to LOCAL_TREE_NONE before, and clears it, also after a failure. */
int local_tree_read(struct local_tree *tree, const char *path, const struct local_tree_filter *filter,
                    struct failure *failure);
void local_tree_clear(struct local_tree *tree);

/* Hashes one file, so that the caller can turn its loop between two. 1: there may be more; 0: all are hashed.
 * -EBUSY: the file has not the size any more that was listed. */
int local_tree_hash(struct local_tree *tree, struct failure *failure);

/* Appends a line "sha256  path" for each file, sorted by path; all must be hashed. 0 or -EFBIG. */
int local_tree_manifest(const struct local_tree *tree, struct text *ret);

#endif
