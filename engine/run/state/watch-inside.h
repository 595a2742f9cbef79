/* The inside of watching: what watch.c and watch-files.c share. Nobody else includes it. */
#ifndef ASSAY_STATE_WATCH_INSIDE_H
#define ASSAY_STATE_WATCH_INSIDE_H

#include "engine/foundation/text.h"
#include "engine/remote/link/command.h"
#include "engine/run/run-state.h"
#include "engine/run/state/watch.h"

enum {
    WATCH_COLUMNS_MOST = 16384, /* of one probe; an agent that tells of more is wrong */
    WATCH_LINE_MOST = 1 << 20,
    WATCH_EVENT_TEXT = 512,
    WATCH_FILE_HEADER_COLUMNS = 4, /* time, monotonic, late, missed */
};

/* A file that is appended to in pieces, and is open only while that is done: there are thousands of them. */
struct watch_file {
    char *name; /* owned; below the run's folder; NULL: none yet */
    struct text pending;
};

struct watch_columns {
    char **names, **units; /* owned, and each */
    size_t count;
};

/* A file that is not written to any more, because other columns came. */
struct watch_past {
    char *name; /* owned */
    struct watch_columns columns;
};

struct watch_probe {
    bool there; /* the sampler has told its columns */
    struct watch_columns columns;
    struct watch_file file;
    struct watch_past *past; /* owned */
    size_t past_count;
    bool described; /* in datapackage.json as it is */
    unsigned *pus;  /* of each column, UINT_MAX for those of none; owned */
    double *values; /* room for one sample; owned */
    struct history history;
};

enum watch_state { WATCH_OFF, WATCH_STARTING, WATCH_ON, WATCH_ENDING };

struct watch_node {
    struct watch *watch;
    size_t number;
    enum watch_state state;
    struct remote_command *sampler;
    struct text line, errors;
    struct watch_probe probes[PROBE_KINDS];
    int kinds[PROBE_KINDS]; /* by the sampler's index; -1: none of ours */
    size_t kind_count;
    struct watch_file events;
    bool events_described;
    char last_drift[WATCH_EVENT_TEXT], last_error[WATCH_EVENT_TEXT];
    unsigned events_told, malformed;
    char *missing;          /* owned: what it has no probe for, in a sentence; NULL: nothing */
    const char **arguments; /* of the sampler; owned, and some of them: */
    char **owned_arguments;
};

struct watch {
    struct run *run;
    struct watch_node *nodes;
    size_t count;
    struct event_source *timer; /* writes what waits */
    struct watch_listener listener;
    bool failed; /* to write a file, and that was told */
};

/* ---- watch-files.c */

void watch_columns_clear(struct watch_columns *columns);
void watch_file_clear(struct watch_file *file);
void watch_probe_clear(struct watch_probe *probe);
/* The probe's columns are these from now on; they are taken over if they are new, and then there is a new
 * file. */
int watch_probe_open_file(struct watch_node *node, enum probe_kind kind, struct watch_columns *columns,
                          struct failure *failure);
/* A line of it: REST is TIME,MONO,LATE,MISSED,VALUES as the sampler told them. */
int watch_probe_append(struct watch_probe *probe, const char *rest, size_t length);
int watch_event_append(struct watch_node *node, int64_t wall_ns, int64_t monotonic_ns, const char *kind,
                       const char *text);
/* What waits goes to the files; with ALL, also what is little, and durably. */
int watch_write_files(struct watch *watch, bool all, struct failure *failure);
/* nodes/NODE/probes/datapackage.json, if there are files that it does not describe. */
int watch_describe_files(struct watch_node *node, struct failure *failure);

#endif
