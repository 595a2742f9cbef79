/*
 * Files and folders as a tar, in the form of the agent's tools --pack and --unpack
 * (engine/agent/files/tar.h): each file has its SHA-256 beside it, which the receiver checks.
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

void tree_archive_free(struct archive **archive); /* for cleanup(), of both directions; NULL is fine */

/* ---- writing */

/* Makes a file without a name in $TMPDIR or /tmp, to pack into. Returns a descriptor, or a negative errno. */
int tree_archive_scratch(struct failure *failure);
/* Starts an archive in FILE, a descriptor that the caller closes. */
int tree_archive_create(int file, struct archive **ret, struct failure *failure);
int tree_archive_add_folder(struct archive *archive, const char *path, struct failure *failure);
/* Adds a file of SIZE bytes with the hash SHA256; the caller then adds its bytes by tree_archive_add_bytes().
 */
int tree_archive_add_file(struct archive *archive, const char *path, unsigned mode, uint64_t size,
                          const char *sha256, struct failure *failure);
int tree_archive_add_bytes(struct archive *archive, const void *bytes, size_t length,
                           struct failure *failure);
int tree_archive_finish(struct archive *archive, struct failure *failure);
/* Appends a whole tar with one file of these bytes to RET. */
int tree_archive_of_file(const char *path, unsigned mode, const void *bytes, size_t length, struct text *ret,
                         struct failure *failure);

/* ---- reading: the content comes from a node, and is not trusted */

struct tree_archive_entry {
    bool is_folder;
    const char *path; /* unchecked, but for slashes at its end; valid until the next entry */
    unsigned mode;    /* permission bits */
    uint64_t size;
    char sha256[HASH_HEX_SIZE]; /* "": not given */
};

/* Opens the archive in FILE, a descriptor, or in LENGTH BYTES if FILE is -1. */
int tree_archive_open(int file, const void *bytes, size_t length, struct archive **ret,
                      struct failure *failure);
/* Reads the next entry; entries that are neither files nor folders are skipped. Returns 1 with an entry, 0 at
 * the end, or negative with a sentence. */
int tree_archive_next(struct archive *archive, struct tree_archive_entry *ret, struct failure *failure);
/* Reads the next bytes of the entry. Returns their number, 0 at its end, or negative with a sentence. */
ssize_t tree_archive_read(struct archive *archive, void *bytes, size_t size, struct failure *failure);

#endif
