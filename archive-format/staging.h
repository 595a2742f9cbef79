/* The files of a staging folder that go into an archive. */
#ifndef ASSAY_ARCHIVE_FORMAT_STAGING_H
#define ASSAY_ARCHIVE_FORMAT_STAGING_H

#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct staged_file {
    char *name; /* relative, owned; a folder's without a slash at its end */
    bool folder;
    uint64_t size;
    char sha256[HASH_HEX_SIZE]; /* "" until it is hashed, and for folders */
};

struct staging {
    const char *folder; /* borrowed */
    struct staged_file *files;
    size_t count, capacity;
};

/* Finds the files below FOLDER and the folders that they are in, by the rules of archive_seal (writer.h),
 * sorted by the bytes of their names. Removes hidden files there that a killed process was about to rename
 * (file_replace()). The caller clears *RET, which borrows FOLDER. */
int staging_scan(const char *folder, struct staging *ret, struct failure *failure);
void staging_clear(struct staging *staging);

/* The file or folder called NAME, or NULL. */
struct staged_file *staging_find(const struct staging *staging, const char *name);
/* Puts BYTES into the staging folder as the file NAME (no folders in it), in place of what had that name,
 * hashed. */
int staging_put(struct staging *staging, const char *name, const char *bytes, size_t length,
                struct failure *failure);
/* Hashes every file that is not hashed yet. A file whose size is not what it was is refused. */
int staging_hash(struct staging *staging, struct failure *failure);

#endif
