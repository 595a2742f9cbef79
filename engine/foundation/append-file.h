/*
 * A file that only grows, durably: bytes are gathered in memory and reach the disk with a commit, many at a
 * time. What is committed is never changed. The journal and the table of results are such files.
 */
#ifndef ASSAY_FOUNDATION_APPEND_FILE_H
#define ASSAY_FOUNDATION_APPEND_FILE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Most bytes that may wait for a commit. */
enum { APPEND_FILE_PENDING_MAX = 256 << 20 };

struct append_file {
    char *path;
    int descriptor;
    uint64_t committed;  /* bytes on disk */
    struct text pending; /* append what comes next here */
    bool broken;         /* part of a failed commit could not be taken back: nothing more is written */
};

/* Creates PATH, which must not exist, and syncs its folder, so that the name survives too. */
int append_file_create(const char *path, struct append_file **ret, struct failure *failure);
/* Opens PATH, a file of ours and not a link, cuts it to its first KEEP_BYTES, syncs these, and continues
 * behind them. A file that is shorter is refused: what was committed there is gone. */
int append_file_open(const char *path, uint64_t keep_bytes, struct append_file **ret,
                     struct failure *failure);
/* Does not commit. NULL is fine. */
void append_file_close(struct append_file *file);

/* Writes what is pending and syncs it. On failure (a full disk, say) the file is cut back to its last
 * committed byte, and what is pending stays, for another try. */
int append_file_commit(struct append_file *file, struct failure *failure);

#endif
