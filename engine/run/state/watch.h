/*
 * Watching the nodes while they are warmed up and measured: the agent's sampler runs on each of them, what it
 * prints goes to nodes/NODE/probes/ as it comes, and the last samples are kept for gates and for the warm-up.
 *
 *     nodes/NODE/probes/KIND.csv           time, monotonic, late, missed, and the columns of the probe
 *     nodes/NODE/probes/events.csv         time, monotonic, kind, text
 *     nodes/NODE/probes/datapackage.json   what each column is
 *
 * When the sampler is started again with other columns (PUs have come or gone), they go to KIND-2.csv, and so
 * on. Memory is bounded: a few KiB of each file wait to be written, and history.h forgets. Private to this
 * room.
 */
#ifndef ASSAY_STATE_WATCH_H
#define ASSAY_STATE_WATCH_H

#include "archive-format/datapackage.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/remote/link/command.h"
#include "engine/run/campaign/settings.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/state/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Columns of the agent that gates look at. */
#define WATCH_FOREIGN "foreign" /* of load: processors that other programs took */
#define WATCH_DRIFTED "drifted" /* of drift: files that are not as they were set */

enum {
    WATCH_COLUMNS_MAX = 16384, /* of one probe; an agent that has more is wrong */
    WATCH_LINE_MAX = 1 << 20,
    WATCH_EVENT_TEXT = 512,
    WATCH_TIME_COLUMNS =
        4, /* time, monotonic, late, missed: at the front of the files, not of the histories */
};

/* A file that is appended to in pieces, and is open only while that is done: there are thousands of them. */
struct watch_file {
    struct watch_file *next; /* of the same probe, with other columns; owned */
    char *name;              /* below the run's folder; owned */
    struct column *columns;  /* owned, and so are names and units from WATCH_TIME_COLUMNS on */
    size_t column_count;
    struct text pending;
    int64_t written_ns; /* monotonic, when pending was written last; 0: never */
};

struct watch_probe {
    bool there;               /* the sampler has announced its columns */
    struct watch_file *files; /* owned; the newest first */
    struct watch_file *file;  /* the file with the current columns; NULL: none yet */
    unsigned *pus;            /* of each column, UINT_MAX for those of none; owned */
    bool any_package;         /* a column is of a whole package */
    double *values;           /* room for one sample; owned */
    struct history history;   /* times are the node's monotonic clock */
};

enum watch_state { WATCH_OFF, WATCH_STARTING, WATCH_ON, WATCH_ENDING };

struct watch_node {
    struct watch *watch;
    struct run_node *node;
    enum watch_state state;
    struct remote_command *sampler;
    struct text line, errors;
    struct watch_probe probes[PROBE_KINDS];
    int kinds[PROBE_KINDS]; /* by the sampler's index; -1: not one that we know */
    size_t kind_count;
    struct watch_file *events;
    bool described; /* datapackage.json has all files */
    char last_drift[WATCH_EVENT_TEXT], last_error[WATCH_EVENT_TEXT];
    unsigned events_noted, malformed;
    char *missing; /* owned: the probes that the node does not have, in a sentence; NULL: it has all */
};

struct watch {
    struct node_set *set;
    struct watch_node *nodes; /* NULL: none is watched, or not yet */
    size_t count;
    struct event_source *timer; /* writes what waits */
    bool failed;                /* a file could not be written, and that was noted */
};

/* Starts the sampler of each connected node and waits until all have begun. Probes that a node does not have
 * are noted. Does nothing when the campaign wants no probes. */
int watch_start(struct watch *watch, struct failure *failure);
/* Ends the samplers, waits for the last sample of each, and makes all files durable. Fine when none runs. */
int watch_stop(struct watch *watch, struct failure *failure);
/* Frees everything. To be called before the links of the nodes are freed. */
void watch_close(struct watch *watch);

/* The probe KIND of NODE; NULL when it is not sampled or has no columns. */
const struct watch_probe *watch_probe(const struct watch *watch, size_t node, enum probe_kind kind);
/* Are samples of NODE still to come? */
bool watch_is_live(const struct watch *watch, size_t node);
/* The name of a column; which is called NAME; which is of PU: SIZE_MAX when none is. */
const char *watch_column_name(const struct watch_probe *probe, size_t column);
size_t watch_column(const struct watch_probe *probe, const char *name);
size_t watch_pu_column(const struct watch_probe *probe, unsigned pu);
/* Of `temperature`: is the column of a whole package? Where none is, all count as such. */
bool watch_is_package(const struct watch_probe *probe, size_t column);
/* Lets history forget the rows of NODE before TIME_NS, except the last one. */
void watch_forget(struct watch *watch, size_t node, int64_t time_ns);

/* ---- watch-files.c */

/* Makes the COUNT columns, WATCH_TIME_COLUMNS included, those of the probe KIND of NODE. COLUMNS are owned by
 * the file then, or freed. Columns other than before go to another file. */
int watch_open_probe(struct watch_node *node, enum probe_kind kind, struct column *columns, size_t count,
                     struct failure *failure);
void watch_probe_clear(struct watch_probe *probe);
void watch_columns_free(struct column *columns, size_t count); /* as above; NULL is fine */
void watch_file_free(struct watch_file *file);                 /* and those behind it; NULL is fine */
/* Columns that begin with those of the time, and have room for COUNT others. */
struct column *watch_columns_new(size_t count);
void watch_append_event(struct watch_node *node, int64_t wall_ns, int64_t monotonic_ns, const char *kind,
                        const char *text);
/* Writes pending rows to the files. ALL: few rows too, and durably. */
int watch_write_files(struct watch *watch, bool all, struct failure *failure);
/* Writes nodes/NODE/probes/datapackage.json if a file was made since the last call. */
int watch_describe_files(struct watch_node *node, struct failure *failure);

#endif
