/*
 * A testbed says where nodes come from. One file a backend; a campaign names one by its `testbed:` key:
 *
 *     testbed: local
 *     testbed: {hosts: 'dahu-[1-32].grenoble', user: root}     the key that names the backend, and others
 *     testbed: {slurm: {nodes: 4, walltime: 2h}}
 *     testbed: {external: {program: ./pool}}
 *
 * A backend binds its own part of a campaign, reserves nodes and, for each, makes the transport over which an
 * agent is spoken to. Reserving and releasing may talk to the outside world; everything else about a node
 * goes through its agent.
 */
#ifndef ASSAY_TESTBED_TESTBED_H
#define ASSAY_TESTBED_TESTBED_H

#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/foundation/text.h"
#include "engine/remote/launch/transport.h"
#include "engine/remote/link/link.h"

#include <stdbool.h>
#include <stddef.h>

struct testbed;          /* a reservation in progress or held; each backend has its own */
struct testbed_settings; /* what a campaign says to a backend, checked; each backend has its own */

/* The part of a campaign, and the options of the command line, that choose nodes. All borrowed. */
struct testbed_written {
    const struct document *document;
    const struct document_node *node; /* the value of `testbed:`; NULL: the key is not there */
    const char *folder;               /* the campaign's, which paths are relative to */
    size_t choice;                    /* the item to use where the value is a list of testbeds, from 0 */
    /* Lists of nodes, or @FILE, from the command line (--nodes); they replace those of the document. */
    const char *const *nodes;
    size_t node_count;
    const char *const *spares; /* likewise of spare nodes (--spares) */
    size_t spare_count;
};

/* The run that asks a backend for nodes. */
struct testbed_request {
    struct event_loop *loop;
    const struct installation *installation; /* where the agent is */
    const char *run_id;                      /* unique; jobs and reservations are named after it */
    const char *run_name;                    /* for people; letters, digits, '-', '_' and '.' */
    const char *folder;                      /* of the run; files written into it are archived */
    const char *workspace; /* folder on a node in which the agent makes its own; NULL: the node's choice */
    const char *known_id;  /* for reclaim(): the id() that an earlier engine journalled; NULL or "": none */
    bool only_reserved;    /* use an existing reservation, and reserve nothing */
    bool leave_controls;   /* agents do not restore controls that earlier agents left changed */
    /* Reports progress, a sentence for the user; NULL: not reported. */
    void (*report)(void *context, const char *sentence);
    /* Writes a sentence to the log only; NULL: not logged. */
    void (*log)(void *context, const char *sentence);
    /* Called when the reservation ended before its deadline and before release(); NULL: not called. */
    void (*over)(void *context, const char *sentence);
    void *report_context; /* the context of the three functions above */
};

/* How the agent got onto a node. The texts live as long as the transport, or the testbed. */
struct testbed_agent {
    const char *path;      /* of the agent's program on the node */
    bool delivered, built; /* copied to the node now; and compiled there; both false: it was installed */
    const char *damage;    /* why an installed agent had to be replaced; NULL: it had not */
};

struct testbed_backend {
    const char *name; /* as a campaign writes it */
    const char *summary;

    /* ---- the campaign's part, before anything is touched */

    /* Reads and checks the settings. WRITTEN->node is a mapping, or NULL when the backend was only named.
     * *RET must live until the reservation is released. */
    int (*bind)(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure);
    void (*free_settings)(struct testbed_settings *settings); /* NULL is fine */
    /* How many nodes will be reserved; 0: not known before they are reserved. */
    size_t (*expected_nodes)(const struct testbed_settings *settings);
    /* How many spare nodes there are to replace lost ones; their numbers follow those of the others. NULL: no
     * spares. */
    size_t (*spare_nodes)(const struct testbed_settings *settings);
    /* True where the end of the reservation kills the agents before they can restore controls. NULL: false.
     */
    bool (*kills_agents)(const struct testbed_settings *settings);
    /* The value that the reservation itself gives CONTROL ("governor", "frequency", "hyperthreads"), as a
     * campaign would write it; the caller frees. NULL, as the member and as its result: the control is not
     * changed. */
    char *(*asks)(const struct testbed_settings *settings, const char *control);
    /* Appends lines for people on the settings: a word of at most 12 characters, padded to 13, and a text.
     * Returns 0 or -ENOMEM. */
    int (*describe)(const struct testbed_settings *settings, struct text *ret);
    /* Adds members to the JSON object of a resolved campaign: every setting, defaults filled in. */
    void (*resolve)(const struct testbed_settings *settings, cJSON *object);

    /* ---- the run's part */

    /* Reserves nodes, or finds the reservation of an earlier part of the run that was not released. Where
     * `wait` is not NULL, the nodes are only requested. On failure *RET is set all the same when something
     * may have been reserved; the caller releases it. */
    int (*reserve)(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct testbed **ret, struct failure *failure);
    /* The reservation's identifier outside of assay (a job number), to be journalled before waiting. The
     * member is NULL where the backend reserves nothing. */
    const char *(*id)(const struct testbed *testbed);
    /* Waits until the nodes are ready, while the loop turns; -EINTR when it was stopped. Nodes, names and
     * deadline are known only afterwards. NULL: the nodes are ready at once. */
    int (*wait)(struct testbed *testbed, struct failure *failure);
    size_t (*node_count)(const struct testbed *testbed); /* without the spares */
    /* A name that can be a folder of an archive; no two names differ in upper and lower case only. */
    const char *(*node_name)(const struct testbed *testbed, size_t node);
    /* Makes a transport to the agent of a node, not yet started; the caller frees it. The agent makes a
     * folder of its own on the node when it starts, and removes it when it ends. */
    int (*connect)(struct testbed *testbed, size_t node, struct transport **ret, struct failure *failure);
    /* Time-outs of the links over these transports; members that are 0: the defaults of link.h. */
    struct agent_link_policy (*policy)(const struct testbed *testbed);
    /* The agent of a node whose TRANSPORT, made by connect(), is open. */
    struct testbed_agent (*agent)(const struct testbed *testbed, const struct transport *transport);
    /* When the reservation ends, in ns since 1970; 0: not known. It may change while the nodes are used. */
    int64_t (*deadline)(const struct testbed *testbed);
    /* Called when nodes are lost: checks, while the loop turns, whether the reservation still exists, and
     * calls `over` if not. NULL: there is nothing to check. */
    void (*ask)(struct testbed *testbed);
    /* Called after measuring, when the nodes are restored: writes what the testbed itself measured of the
     * nodes (wattmeters) into the run's folder. Missing data is reported and does not fail the run. NULL: the
     * testbed measures nothing. */
    void (*collect)(struct testbed *testbed);
    /* Gives the nodes back and frees TESTBED; all transports must be freed before. FAILURE names nodes that
     * could not be given back. */
    int (*release)(struct testbed *testbed, struct failure *failure);
    /* Frees TESTBED and keeps the reservation, which reserve() finds again. NULL: the backend reserves
     * nothing. */
    void (*leave)(struct testbed *testbed);
    /* Gives back what an engine that died had reserved for the run of REQUEST, and reports whether there was
     * anything. NULL: the backend reserves nothing. */
    int (*reclaim)(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct failure *failure);
    /* Submits a job that runs an engine: COMMAND, ended by NULL, on the job's first node, with its output in
     * the file OUTPUT. That engine's reserve() finds the job that it runs in. NULL: the backend cannot run an
     * engine in a job. */
    int (*submit)(const struct testbed_settings *settings, const struct testbed_request *request,
                  const char *const *command, const char *output, struct failure *failure);
};

/* The backend that a campaign chose, and its settings. Borrows nothing from struct testbed_written. */
struct testbed_choice {
    const struct testbed_backend *backend;
    struct testbed_settings *settings; /* the backend's own; may be NULL */
    size_t number, count;              /* position, from 1, in a list of COUNT testbeds; 0, 0: no list */
};

/* How many spare nodes the chosen backend has. */
size_t testbed_spare_nodes(const struct testbed_choice *choice);

/* Chooses a backend and binds its settings. Without a `testbed:` it is `local`; of a list it is the item that
 * WRITTEN chooses. Nodes from the command line choose `hosts` whatever is written, and the other keys of a
 * mapping for `hosts` still apply. An unknown name is refused with its place and the nearest known name. */
int testbed_bind(const struct testbed_written *written, struct testbed_choice *ret, struct failure *failure);
void testbed_choice_clear(struct testbed_choice *choice);

/* The deadline() of backends that reserve nothing: the end of the Slurm job that this process runs in, from
 * the variable SLURM_JOB_END_TIME (Slurm 22.05 and later), in ns since 1970; 0: the variable is not set. */
int64_t testbed_job_deadline(const struct testbed *testbed);

extern const struct testbed_backend testbed_local, testbed_hosts, testbed_slurm, testbed_oar,
    testbed_grid5000, testbed_external;

#endif
