/*
 * Files of a run that are many and small: what units wrote, what nodes are. Each would cost two synchronous
 * writes of its own; together, with the journal's next commit, they cost a few.
 */
#ifndef ASSAY_RECORD_FILES_H
#define ASSAY_RECORD_FILES_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum { RUN_FILES_NAMES = 8 };

/* Zeroed but for the folder, it has written nothing. */
struct run_files {
    const char *folder;           /* the run's, absolute; borrowed */
    uint64_t bytes, count;        /* that were written, but for files that grow: only their bytes */
    size_t unsynced;              /* files that were written since the last run_files_sync(); */
    char *names[RUN_FILES_NAMES]; /* the paths of the first of them */
};

/* The file NAME, below the folder, has these bytes; after the next run_files_sync() it does so durably. For
 * what is written once: a crash before that may leave any part of it. */
int run_files_write(struct run_files *files, const char *name, const void *bytes, size_t length,
                    struct failure *failure);
/* Appends to the file NAME, which is made if it is not there. */
int run_files_append(struct run_files *files, const char *name, const void *bytes, size_t length,
                     struct failure *failure);
/* On failure all is kept for another try. */
int run_files_sync(struct run_files *files, struct failure *failure);
/* Forgets which files are not synced. */
void run_files_clear(struct run_files *files);

#endif
