/*
 * Files and folders as a tar, as the agent's tools --pack and --unpack exchange them
 * (engine/agent/files/tar.h): each file has its SHA-256 beside it, so that who receives it can check it.
 */
#ifndef ASSAY_LINK_TREE_ARCHIVE_H
#define ASSAY_LINK_TREE_ARCHIVE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

struct archive;

void tree_archive_free(struct archive **archive); /* for cleanup(); NULL is fine, of either direction */

/* ---- writing */

/* A file to pack into, in $TMPDIR or /tmp, without a name: a descriptor, or a negative errno. */
int tree_archive_scratch(struct failure *failure);
/* Into FILE, a descriptor that stays the caller's. */
int tree_archive_create(int file, struct archive **ret, struct failure *failure);
int tree_archive_add_folder(struct archive *archive, const char *path, struct failure *failure);
/* Its bytes follow, by tree_archive_add_bytes(). SHA256 is that of all of them. */
int tree_archive_add_file(struct archive *archive, const char *path, unsigned mode, uint64_t size,
                          const char *sha256, struct failure *failure);
int tree_archive_add_bytes(struct archive *archive, const void *bytes, size_t length,
                           struct failure *failure);
int tree_archive_finish(struct archive *archive, struct failure *failure);
/* One file of these bytes as a whole tar, appended to RET. */
int tree_archive_of_file(const char *path, unsigned mode, const void *bytes, size_t length, struct text *ret,
                         struct failure *failure);

/* ---- reading: the node is not trusted */

struct tree_archive_entry {
    bool is_folder;
    const char *path; /* unchecked, but for slashes at its end; valid until the next entry */
    unsigned mode;    /* permission bits */
    uint64_t size;
    char sha256[HASH_HEX_SIZE]; /* "": not said */
};

/* From FILE, or from LENGTH BYTES if FILE is -1. */
int tree_archive_open(int file, const void *bytes, size_t length, struct archive **ret,
                      struct failure *failure);
/* 1: an entry; 0: the end. Whatever is neither a file nor a folder is left out. */
int tree_archive_next(struct archive *archive, struct tree_archive_entry *ret, struct failure *failure);
/* The next bytes of the entry; 0: its end. */
ssize_t tree_archive_read(struct archive *archive, void *bytes, size_t size, struct failure *failure);

#endif
