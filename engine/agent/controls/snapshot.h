/*
 * A snapshot: the exact content, before the first write, of every file that a control may write; the
 * snapshot's owner, and which controls have been set since. Its file ends with its own SHA-256, so that an
 * incomplete one is recognized.
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

struct saved_file {
    enum control_index control;
    bool late;     /* of a PU that was offline when the snapshot was made, and may be offline again */
    char *path;    /* no leading slash */
    char *content; /* before the first write, ended by a NUL */
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
    struct saved_file *files; /* in setting order */
    size_t count, capacity;
};

/* Reads all files of all controls into RET. Files that cannot be read, and could not be restored, are left
 * out; so are files with a NUL. The caller fills in the boot, the owner and the names. 0 or -ENOMEM. */
int snapshot_read_files(const struct layout *layout, struct snapshot *ret);
/* Reads one more file into the snapshot. Returns 1; 0 if it cannot be read; or -ENOMEM. */
int snapshot_add(struct snapshot *snapshot, const struct machine *machine, enum control_index control,
                 bool late, const char *path);
void snapshot_clear(struct snapshot *snapshot);

/* True for one word of at most SNAPSHOT_LABEL_MAX_BYTES, or ""; and for 16 hexadecimal digits, or "". */
bool snapshot_is_label(const char *text);
bool snapshot_is_session(const char *text);

/* Writes the snapshot, as in its file, into RET, which is empty; an error is in RET->error. */
void snapshot_format(const struct snapshot *snapshot, struct lines *ret);
/* Reads what snapshot_format() wrote; BYTES are changed in place. -EBADMSG with a sentence for other bytes.
 */
int snapshot_parse(char *bytes, size_t length, struct snapshot *ret, struct failure *failure);

/* Print the lines of TOOLS.md about a snapshot: its content (PATH is its file), and its owner (`held`). */
void snapshot_print(const struct snapshot *snapshot, const char *path, struct lines *lines);
void snapshot_print_held(const struct snapshot *snapshot, struct lines *lines);

#endif
