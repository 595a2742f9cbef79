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
    const char *target;                 /* of a link, for writing; links are never read */
    unsigned mode;                      /* permission bits */
    uint64_t size;                      /* bytes of a file */
    char sha256[TAR_HASH_SIZE];         /* "": not given */
};

/* ---- writing. The first error stays in `status`, and tar_end() returns it. */

struct tar_writer {
    int output;
    uint64_t limit, total; /* bytes of the archive: most (more are -EFBIG), and so far */
    int64_t time_s;        /* of all entries, since 1970 */
    struct text waiting;   /* bytes that are not written yet */
    int status;
};

/* Starts an archive of at most LIMIT bytes on the descriptor OUTPUT. */
void tar_begin(struct tar_writer *tar, int output, uint64_t limit);
/* Writes the header of an entry. */
void tar_put_entry(struct tar_writer *tar, const struct tar_entry *entry);
/* Write the content of a file: tar_put_bytes() any number of times, then tar_put_padding() once, with its
 * size. */
void tar_put_bytes(struct tar_writer *tar, const void *bytes, size_t length);
void tar_put_padding(struct tar_writer *tar, uint64_t size);
/* Writes the end and frees the memory. 0 or a negative errno. */
int tar_end(struct tar_writer *tar);

/* ---- reading */

struct tar_reader {
    int input;
    uint64_t left, padding; /* bytes of the entry's content and padding that are not read yet */
};

/* Reads the next entry; the rest of the last one's content is skipped. Returns 1 with the entry in *RET; 0:
 * the archive has ended, or the input is empty; or a negative errno. */
int tar_next(struct tar_reader *tar, struct tar_entry *ret, struct failure *failure);
/* Reads the next bytes of the entry's content. Returns their number; 0 at its end; or a negative errno. */
ssize_t tar_read(struct tar_reader *tar, void *bytes, size_t size, struct failure *failure);

#endif
