/*
 * A file that is being written. It has no name until it is complete (O_TMPFILE), so that nothing is left when
 * the writer is killed. File systems without such files get one called `.assay-PID.part`.
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

/* Opens a new file in part->folder. 0 or a negative errno, as part_commit(). */
int part_open(struct part *part, mode_t mode);
/* Gives the file its NAME, replacing an earlier file, durably: it is on the disk when this returns. */
int part_commit(struct part *part, const char *name);
void part_clear(struct part *part);

#endif
