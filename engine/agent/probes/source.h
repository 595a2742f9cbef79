/*
 * A file of the machine that is read again and again: its descriptor stays open, so that a reading is one
 * pread(2). A file that disappears (its PU went offline, its driver was unloaded), or that opens and cannot
 * be read, is opened again once a second.
 */
#ifndef ASSAY_PROBES_SOURCE_H
#define ASSAY_PROBES_SOURCE_H

#include "engine/agent/machine/machine.h"

#include <sys/types.h>

struct source {
    char *path;         /* owned */
    int descriptor;     /* -1 while it cannot be opened */
    bool plain;         /* not in sysfs or procfs: once removed, it could still be read */
    int64_t opened_ns;  /* when it was last opened or checked */
    int64_t refused_ns; /* when reading failed although it had just been opened */
};

/* Takes a copy of PATH; opens nothing yet. 0 or -ENOMEM. */
int source_init(struct source *source, const char *path);
/* Closes and frees; zeroed memory is fine. */
void source_clear(struct source *source);

/* Reads the whole file into BUFFER, with a NUL after it. NOW_NS: the present monotonic time. Returns its
 * length, above 0, or a negative errno: -ENODATA if it is empty, -EFBIG if it has SIZE bytes or more. */
ssize_t source_read(struct source *source, const struct machine *machine, int64_t now_ns, char *buffer,
                    size_t size);

/* As source_read() for a file that is one whole number: BUFFER has its digits, with a sign if it has one,
 * without blanks at the end. -EINVAL for any other content. */
ssize_t source_read_digits(struct source *source, const struct machine *machine, int64_t now_ns, char *buffer,
                           size_t size);

#endif
