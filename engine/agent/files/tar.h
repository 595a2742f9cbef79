/*
 * Tar (POSIX.1-2001, pax) as the agent and the engine exchange it: files and folders, each file with its
 * SHA-256 in the pax record SCHILY.xattr.user.sha256, in hexadecimal, so that the receiver can check it
 * before the file gets its name.
 */
#ifndef ASSAY_FILES_TAR_H
#define ASSAY_FILES_TAR_H

#include "engine/agent/wire/protocol.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum tar_type { TAR_FILE = '0', TAR_LINK = '2', TAR_FOLDER = '5' };
enum { TAR_HASH_SIZE = 65 }; /* 64 hexadecimal digits and a NUL */

struct tar_entry {
    enum tar_type type;
    char path[PROTOCOL_PATH_LIMIT + 1]; /* relative; no slash at its end */
    const char *target;                 /* of a link; only written, never read */
    unsigned mode;                      /* permission bits */
    uint64_t size;                      /* bytes of a file */
    char sha256[TAR_HASH_SIZE];         /* "": not said */
};

/* ---- writing. Errors stick in `status`; tar_end() returns them. */

struct tar_writer {
    int output;
    uint64_t limit, total; /* bytes of the archive; more are -EFBIG */
    int64_t time_s;        /* of all entries, since 1970 */
    struct text waiting;   /* to be written */
    int status;
};

void tar_begin(struct tar_writer *tar, int output, uint64_t limit);
void tar_put_entry(struct tar_writer *tar, const struct tar_entry *entry);
/* The content of a file, in any number of calls; then tar_put_padding() once, with its size. */
void tar_put_bytes(struct tar_writer *tar, const void *bytes, size_t length);
void tar_put_padding(struct tar_writer *tar, uint64_t size);
/* Writes the end and frees the memory. 0 or a negative errno. */
int tar_end(struct tar_writer *tar);

/* ---- reading */

struct tar_reader {
    int input;
    uint64_t left, padding; /* bytes of the entry that are still to come */
};

/* 1: *RET is the next entry; 0: the end, or no archive at all: not one byte came; or a negative errno.
 * Content that was not read is skipped. */
int tar_next(struct tar_reader *tar, struct tar_entry *ret, struct failure *failure);
/* The next bytes of the entry; 0 at its end. */
ssize_t tar_read(struct tar_reader *tar, void *bytes, size_t size, struct failure *failure);

#endif
