/*
 * A folder of the user's as one file, which keeps what members of an archive cannot have: any names,
 * permission bits, empty folders. The same files give the same bytes: no owner, no time. Any tar reads it.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_TAR_H
#define ASSAY_ARCHIVE_FORMAT_TAR_H

#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"

#include <stdint.h>

struct tar_writer;

/* PATH is replaced. */
int tar_create(const char *path, struct tar_writer **ret, struct failure *failure);
/* A folder before what is in it. MODE: permission bits. */
int tar_add_folder(struct tar_writer *tar, const char *name, unsigned mode, struct failure *failure);
/* The content of the file FROM, which must still have SIZE bytes; SHA256 is that of what was packed. */
int tar_add_file(struct tar_writer *tar, const char *name, unsigned mode, uint64_t size, const char *from,
                 char sha256[static HASH_HEX_SIZE], struct failure *failure);
/* Writes the end, and waits until all is on the disk. */
int tar_finish(struct tar_writer *tar, struct failure *failure);
void tar_free(struct tar_writer **tar); /* for cleanup(); NULL is fine */

/* Writes the files and folders of the tar PATH, which may come from anybody, into FOLDER, which must be new.
 * Links, special files, names that lead out of FOLDER, and more than 400,000 entries or 2 GiB are
 * FAILURE_VERIFICATION. */
int tar_extract(const char *path, const char *folder, struct failure *failure);

#endif
