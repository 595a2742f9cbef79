/*
 * A file of the machine that is read again and again: its descriptor stays open, so that a reading is one
 * pread(2). What has gone away (a PU that was taken offline, a driver that was unloaded) is looked for again
 * once a second; so is what opens and cannot be read.
 */
#ifndef ASSAY_PROBES_SOURCE_H
#define ASSAY_PROBES_SOURCE_H

#include "engine/agent/machine/machine.h"

#include <sys/types.h>

struct source {
    char *path;     /* owned */
    int descriptor; /* -1 while it cannot be opened */
    bool plain;     /* no attribute of the kernel's: once removed, it could still be read */
    int64_t looked_ns;
    int64_t refused_ns; /* when it could not be read although it had just been opened */
};

/* Takes a copy of PATH; opens nothing yet. 0 or -ENOMEM. */
int source_init(struct source *source, const char *path);
/* Of zeroed memory, too. */
void source_clear(struct source *source);

/* All of the file into BUFFER, a NUL after it. NOW_NS: any monotonic time. Its length (more than 0), or a
 * negative errno: -ENODATA if it is empty, -EFBIG if it has SIZE bytes or more. */
ssize_t source_read(struct source *source, const struct machine *machine, int64_t now_ns, char *buffer,
                    size_t size);

/* The same for a file that is one whole number: its digits, with a sign if it has one, at the start of
 * BUFFER, blanks at its end cut off. -EINVAL if it is anything else. */
ssize_t source_read_digits(struct source *source, const struct machine *machine, int64_t now_ns, char *buffer,
                           size_t size);

#endif
