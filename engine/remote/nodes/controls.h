/*
 * Controls of many nodes, such as frequency and turbo, by the agent's tools: read, recorded, set, restored.
 * engine/agent/TOOLS.md has their names, values and statuses.
 *
 * To change controls: node_controls_keep(), and its snapshots synced to the disk with the run;
 * node_controls_set(); later node_controls_restore(). When the engine or its agent dies in between, the node
 * restores itself.
 */
#ifndef ASSAY_NODES_CONTROLS_H
#define ASSAY_NODES_CONTROLS_H

#include "engine/foundation/text.h"
#include "engine/remote/nodes/group.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { NODE_CONTROLS_LIMIT = 64 }; /* of one node; more are an error of its agent */

enum node_control_status {
    NODE_CONTROL_AVAILABLE,
    NODE_CONTROL_READ_ONLY, /* the node has it, and nobody can set it */
    NODE_CONTROL_ABSENT,
    NODE_CONTROL_DENIED,  /* the user of the agent may not set it */
    NODE_CONTROL_UNKNOWN, /* the agent wrote another status */
};

/* Strings are owned by the struct node_control_state that holds them. */
struct node_control {
    char *name;
    enum node_control_status status;
    char *value, *possible, *driver; /* in the words of a campaign; possible values separated by blanks */
    char *why;                       /* the reason when it is not available; "" when it is */
};

struct node_control_state {
    struct node_control *controls; /* in the order in which they are set */
    size_t count;
    char *boot_id, *driver;
    double base_hz, max_hz;  /* 0: unknown */
    char *holder;            /* session and label of the agent whose snapshot the node has; NULL: none */
    bool holder_alive;       /* that agent still runs */
    int64_t holder_since_ns; /* since 1970, by the clock of the node; 0: not known */
};

/* Reads the controls of all nodes. RET: one a node, owned: node_control_states_free(). RET_FAILURES: one a
 * node, owned (free). */
int node_controls_show(struct node_group *group, struct node_control_state **ret,
                       struct failure **ret_failures, struct failure *failure);
void node_control_states_free(struct node_control_state *states, size_t count);
const char *node_control_status_name(enum node_control_status status); /* "available" ... */

/* ---- changing */

enum node_setting_status {
    NODE_SETTING_DONE,
    NODE_SETTING_UNCHANGED, /* the control had this value already */
    NODE_SETTING_MISMATCH,  /* written, and another value was read afterwards */
    NODE_SETTING_ABSENT,
    NODE_SETTING_READ_ONLY,
    NODE_SETTING_DENIED,
    NODE_SETTING_FAILED,
    NODE_SETTING_INVALID, /* not a value of this control on this node */
};

/* One control that was to be set on one node. */
struct node_setting {
    char *control, *asked, *before, *after;
    enum node_setting_status status;
    char *sentence;
};

/* What setting or restoring did on one node. node_change_init() first, node_change_clear() last. */
struct node_change {
    struct node_setting *settings;
    size_t count;
    double target_min_hz, target_max_hz; /* frequencies that a busy PU may have now; 0: not known */
    struct text writes;                  /* the lines "write" of the tool, without their first field */
    /* "PATH=VALUE" of the files that were set, for the probe `drift`. The group owns the texts, each once,
     * because nodes of a kind have the same. */
    const char **expectations;
    size_t expectation_count;
    /* Of node_controls_restore() only. */
    char *restored; /* session and label of the agent whose snapshot was restored; NULL: none was */
    uint64_t files_written, files_different;
    struct text different; /* lines of files that still differ: CONTROL, PATH, WANTED, FOUND, name of errno,
                              separated by tabs */
    char *nothing;         /* why the node has nothing to restore; NULL: it has */
    char *held; /* session and label of a running agent whose snapshot was not touched; NULL: none */
};
void node_change_init(struct node_change *change);
void node_change_clear(struct node_change *change);
const char *node_setting_status_name(enum node_setting_status status); /* "done" ... */

/* Makes each node store a snapshot of its controls, and appends its lines to SNAPSHOTS[node]. LABEL: names
 * the owner of the snapshot; one word of at most 128 bytes. A node with the snapshot of another running agent
 * fails with -EBUSY in RET_FAILURES (one a node, owned). */
int node_controls_keep(struct node_group *group, const char *label, struct text *snapshots,
                       struct failure **ret_failures, struct failure *failure);

/* Sets controls of all nodes. ASSIGNMENTS: "NAME=VALUE", NULL-ended. CHANGES: one a node, cleared first; the
 * statuses of their settings say which controls could not be set. RET_FAILURES: one a node, owned, set when
 * the tool itself failed. */
int node_controls_set(struct node_group *group, const char *const *assignments, struct node_change *changes,
                      struct failure **ret_failures, struct failure *failure);

/* Restores what differs from the snapshots of the nodes. NODES: one a node; NULL: all. ABANDONED: only
 * snapshots whose agent does not run any more. CHANGES and RET_FAILURES as above. */
int node_controls_restore(struct node_group *group, const bool *nodes, bool abandoned,
                          struct node_change *changes, struct failure **ret_failures,
                          struct failure *failure);

/* ---- measuring the frequency */

/* The frequencies that were measured on one node. */
struct node_proof {
    unsigned *pus; /* owned: numbers of the PUs */
    double *hz;    /* owned: the frequency of each while it was busy */
    size_t count;
    char *source; /* "aperf", "cpufreq", "cycles"; owned */
};
void node_proofs_free(struct node_proof *proofs, size_t count);
/* Keeps all PUs of all nodes busy for MILLISECONDS and measures their frequencies. RET: one a node, owned:
 * node_proofs_free(). RET_FAILURES: one a node, owned. */
int node_controls_prove(struct node_group *group, unsigned milliseconds, struct node_proof **ret,
                        struct failure **ret_failures, struct failure *failure);

#endif
