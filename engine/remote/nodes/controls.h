/*
 * The controls of many nodes, by the agent's tools: looked at, kept, set, put back. engine/agent/TOOLS.md has
 * the words: names, values and statuses.
 *
 * The order of a change: node_controls_keep(), and what it gave durably in the run; node_controls_set();
 * later node_controls_restore(). Whoever dies in between, the node puts itself back.
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
    NODE_CONTROL_READ_ONLY, /* shown, and not for anybody to set here */
    NODE_CONTROL_ABSENT,
    NODE_CONTROL_DENIED, /* there, but not writable by the agent's user */
    NODE_CONTROL_UNKNOWN,
};

/* Strings are owned by the struct node_control_state that holds them. */
struct node_control {
    char *name;
    enum node_control_status status;
    char *value, *possible, *driver; /* as a campaign would write them; possible ones separated by blanks */
    char *why;                       /* it is not available; "" when it is */
};

struct node_control_state {
    struct node_control *controls; /* in the order in which they are set */
    size_t count;
    char *boot_id, *driver;
    double base_hz, max_hz; /* 0: unknown */
    char *holder;           /* whose snapshot lies there: session and label; NULL: there is none */
    bool holder_alive;
    int64_t holder_since_ns; /* since 1970, by the node's clock; 0: it does not say */
};

/* RET: one a node, owned: node_control_states_free(). FAILURES: one a node, owned (free). */
int node_controls_show(struct node_group *group, struct node_control_state **ret,
                       struct failure **ret_failures, struct failure *failure);
void node_control_states_free(struct node_control_state *states, size_t count);
const char *node_control_status_name(enum node_control_status status); /* "available" ... */

/* ---- changing */

enum node_setting_status {
    NODE_SETTING_DONE,
    NODE_SETTING_UNCHANGED, /* it was so already */
    NODE_SETTING_MISMATCH,  /* written, and read back otherwise */
    NODE_SETTING_ABSENT,
    NODE_SETTING_READ_ONLY,
    NODE_SETTING_DENIED,
    NODE_SETTING_FAILED,
    NODE_SETTING_INVALID, /* not a value of this control on this node */
};

struct node_setting {
    char *control, *asked, *before, *after;
    enum node_setting_status status;
    char *sentence;
};

/* What was done on one node. Zeroed memory is an empty one; node_change_clear(). */
struct node_change {
    struct node_setting *settings;
    size_t count;
    double target_min_hz, target_max_hz; /* of a busy PU now; 0: not known */
    struct text writes; /* the tool's lines of every single write, without their first field */
    /* "PATH=VALUE": what files that were set hold now, for the probe `drift`. The texts are the group's,
     * which has each once, for nodes of a kind have the same. */
    const char **expectations;
    size_t expectation_count;
    /* restoring */
    char *restored; /* whose snapshot it was: session and label; NULL: nothing was put back */
    uint64_t files_written, files_different;
    struct text different; /* lines: CONTROL, PATH, WANTED, FOUND, errno's name; separated by tabs */
    char *nothing;         /* why there was nothing to put back; NULL: there was */
    char *held;            /* by whom, alive, it is; NULL */
};
void node_change_init(struct node_change *change);
void node_change_clear(struct node_change *change);
const char *node_setting_status_name(enum node_setting_status status); /* "done" ... */

/* Keeps on each node what it may be changed from, and appends the lines of the snapshot to SNAPSHOTS[node].
 * LABEL: whose, for whoever finds it; one word of at most 128 bytes. A node that somebody else holds is a
 * failure of that node. */
int node_controls_keep(struct node_group *group, const char *label, struct text *snapshots,
                       struct failure **ret_failures, struct failure *failure);

/* ASSIGNMENTS: "NAME=VALUE", NULL-ended, for all nodes. CHANGES: one a node, cleared first. What could not
 * be set is in the settings' statuses; FAILURES are those of nodes whose tool did not do its work. */
int node_controls_set(struct node_group *group, const char *const *assignments, struct node_change *changes,
                      struct failure **ret_failures, struct failure *failure);

/* Puts back what differs from the snapshot. NODES: which; NULL: all. ABANDONED: only what no living agent
 * holds. */
int node_controls_restore(struct node_group *group, const bool *nodes, bool abandoned,
                          struct node_change *changes, struct failure **ret_failures,
                          struct failure *failure);

/* ---- proof */

struct node_proof {
    unsigned *pus; /* owned, as the next: one a PU */
    double *hz;    /* while busy */
    size_t count;
    char *source; /* "aperf", "cpufreq", "cycles"; owned */
};
void node_proofs_free(struct node_proof *proofs, size_t count);
/* All PUs of all nodes are busy for MILLISECONDS, and how fast they were. */
int node_controls_prove(struct node_group *group, unsigned milliseconds, struct node_proof **ret,
                        struct failure **ret_failures, struct failure *failure);

#endif
