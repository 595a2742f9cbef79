/*
 * A file that is being written. It has no name until it is whole (O_TMPFILE), so that nothing is left when
 * the writer is killed; where the file system knows no such files, it is called `.assay-PID.part`.
 */
#ifndef ASSAY_FILES_PART_H
#define ASSAY_FILES_PART_H

#include <stdbool.h>
#include <sys/types.h>

struct part {
    int folder, file; /* descriptors, owned; -1: none */
    bool named;
    char name[64];
};

/* In part->folder. Each returns 0 or a negative errno. */
int part_open(struct part *part, mode_t mode);
/* The file replaces what is called NAME, if anything is, and is on the disk when this returns. */
int part_commit(struct part *part, const char *name);
void part_clear(struct part *part);

#endif
