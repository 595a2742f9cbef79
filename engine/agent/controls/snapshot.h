/*
 * What every file that a control may write held before the first write, to the byte; its owner, and which
 * controls have been set since. As bytes it ends with its own SHA-256, so that a torn one is known.
 */
#ifndef ASSAY_CONTROLS_SNAPSHOT_H
#define ASSAY_CONTROLS_SNAPSHOT_H

#include "engine/agent/controls/control.h"
#include "engine/agent/controls/daemons.h"
#include "engine/agent/controls/lines.h"
#include "engine/agent/machine/process.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    SNAPSHOT_FILES_MAX = 1 << 18,
    SNAPSHOT_CONTENT_MAX_BYTES = PLAN_VALUE_SIZE - 1, /* of one file */
    SNAPSHOT_MAX_BYTES = LINES_MAX_BYTES,
    SNAPSHOT_LABEL_MAX_BYTES = 128,
};

struct kept_file {
    enum control_index control;
    bool late;     /* it came with a PU that was offline at first, and may be gone again */
    char *path;    /* no leading slash */
    char *content; /* as it was, ended by a NUL */
    size_t length;
};

struct snapshot {
    char boot[64]; /* the id of the boot */
    struct owner owner;
    char session[17];                         /* 16 hexadecimal digits, or "" */
    char label[SNAPSHOT_LABEL_MAX_BYTES + 1]; /* one word, or "" */
    int64_t wall_ns;
    unsigned touched; /* 1 << index of each control that was set, or is about to be */
    enum daemon_state daemons[DAEMON_COUNT];
    struct kept_file *files; /* in setting order */
    size_t count, capacity;
};

/* Reads all files of all controls. What cannot be read is left out, because it could not be restored; what is
 * no text is, too. The boot, the owner and the names are the caller's to fill in. 0 or -ENOMEM. */
int snapshot_take(const struct layout *layout, struct snapshot *ret);
/* Keeps one file more, if it is there: 1 if it was kept, 0 if not, or -ENOMEM. */
int snapshot_add(struct snapshot *snapshot, const struct machine *machine, enum control_index control,
                 bool late, const char *path);
void snapshot_clear(struct snapshot *snapshot);

/* One word, or nothing. */
bool snapshot_is_label(const char *text);
bool snapshot_is_session(const char *text);

/* Appends it to lines that have nothing yet; they have the error. */
void snapshot_format(const struct snapshot *snapshot, struct lines *ret);
/* BYTES are changed. -EBADMSG with a sentence if they are not what snapshot_format() writes. */
int snapshot_parse(char *bytes, size_t length, struct snapshot *ret, struct failure *failure);

/* The lines of TOOLS.md: its content (PATH is where it is saved), and its owner. */
void snapshot_print(const struct snapshot *snapshot, const char *path, struct lines *lines);
void snapshot_print_held(const struct snapshot *snapshot, struct lines *lines);

#endif
