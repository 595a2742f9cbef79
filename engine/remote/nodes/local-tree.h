/*
 * What is to be sent: a file or a folder of the engine's machine as a list, each folder before what is in it,
 * entries in the order of their names. Links and special files below it are left out and counted.
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
    char *path;     /* here; owned */
    char *relative; /* to the top; "" for the top itself when that is a folder, its name when it is a file */
    unsigned mode;  /* permission bits */
    uint64_t size;  /* of a file, when it was looked at */
    char hash[HASH_HEX_SIZE]; /* "" until local_tree_hash() has come by */
};

struct local_tree {
    struct local_entry *entries;
    size_t count, capacity, files, left_out;
    size_t hashed; /* entries before this one need no more of it */
};

#define LOCAL_TREE_NONE ((struct local_tree){0})

/* Whether what lies at PATH, called RELATIVE below the top, is left out, with all that is in it. */
struct local_tree_filter {
    bool (*leaves_out)(void *context, const char *path, const char *relative, const struct stat *status);
    void *context;
};

/* PATH itself may be a link. FILTER: NULL: everything is taken. FAILURE_INPUT for what is neither a file nor
 * a folder, is not there, cannot be read, is beyond the limits or, for root, another user's (path.h). TREE is
 * LOCAL_TREE_NONE before, and to be cleared after failures too. */
int local_tree_read(struct local_tree *tree, const char *path, const struct local_tree_filter *filter,
                    struct failure *failure);
void local_tree_clear(struct local_tree *tree);

/* Hashes the next file, so that a caller with other things to do can do them in between. 1: there may be
 * more; 0: all are hashed. A file that has not the size any more that it had is a failure. */
int local_tree_hash(struct local_tree *tree, struct failure *failure);

/* Appends a line "sha256  path" a file, sorted by path, once all are hashed. 0 or -ENOMEM, -EFBIG. */
int local_tree_manifest(const struct local_tree *tree, struct text *ret);

#endif
