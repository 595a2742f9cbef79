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

/* What the user wrote. */
struct testbed_written {
    const struct document *document;
    const struct document_node *node; /* the value of `testbed:`; NULL: nothing */
    const char *folder;               /* that paths are relative to */
    size_t choice; /* which item counts where the document has a list of testbeds, from 0 */
    /* Lists of nodes from the command line, or @FILE; they stand for those of the document. */
    const char *const *nodes;
    size_t node_count;
    const char *const *spares; /* likewise, those of the spares */
    size_t spare_count;
};

/* What a backend needs to know of the run. */
struct testbed_request {
    struct event_loop *loop;
    const struct installation *installation; /* where the agent is */
    const char *run_id;                      /* unique; names what the backend makes outside */
    const char *run_name;                    /* for people; letters, digits, '-', '_' and '.' */
    const char *folder;                      /* of the run: what is written into it is archived */
    const char *workspace; /* folder on a node in which the agent makes its own; NULL: the node's choice */
    const char *known_id;  /* of reclaim(): what id() of an earlier engine's was; NULL or "": not known */
    bool only_reserved;    /* what is there already is used, and nothing is reserved */
    bool leave_controls;   /* the agents do not put back what others have left changed */
    /* Reports what happens meanwhile, a sentence; NULL: nobody hears it. */
    void (*report)(void *context, const char *sentence);
    /* For the log only; NULL likewise. */
    void (*log)(void *context, const char *sentence);
    /* The nodes are no longer ours, before the deadline and without release; NULL likewise. */
    void (*over)(void *context, const char *sentence);
    void *report_context; /* of all three */
};

/* How the agent came to be on a node. The texts live as long as the transport, or the testbed. */
struct testbed_agent {
    const char *path;      /* on the node */
    bool delivered, built; /* now, and from its sources; neither: it was there */
    const char *damage;    /* of what was there and had to be replaced; NULL: nothing */
};

struct testbed_backend {
    const char *name; /* as a campaign writes it */
    const char *summary;

    /* ---- the campaign's part, before anything is touched */

    /* WRITTEN->node is a mapping, or NULL when the backend was only named. The settings are borrowed by all
     * that follows. */
    int (*bind)(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure);
    void (*free_settings)(struct testbed_settings *settings); /* NULL is fine */
    /* How many nodes it will be; 0: not known before they are reserved. */
    size_t (*expected_nodes)(const struct testbed_settings *settings);
    /* How many more it can give, for such as are lost; their numbers follow those of the others. NULL: none.
     */
    size_t (*spare_nodes)(const struct testbed_settings *settings);
    /* Do the agents end with the reservation, before they can put back what was set? NULL: they do not. */
    bool (*kills_agents)(const struct testbed_settings *settings);
    /* What the reservation is to bring CONTROL ("governor", "frequency", "hyperthreads") to, as a campaign
     * would write it; the caller frees. NULL: nothing, here and as its value. */
    char *(*asks)(const struct testbed_settings *settings, const char *control);
    /* Appends lines for people: a word of at most 12 characters, padded to 13, and what is to be said. 0 or
     * -ENOMEM. */
    int (*describe)(const struct testbed_settings *settings, struct text *ret);
    /* Adds members to the JSON object of a resolved campaign: every setting, defaults filled in. */
    void (*resolve)(const struct testbed_settings *settings, cJSON *object);

    /* ---- the run's part */

    /* Reserves, or finds what an earlier part of the run has reserved and not given back; *RET is held until
     * release. Where `wait` is there, the nodes are only asked for. *RET is given on failure too, when
     * something may have been reserved all the same. */
    int (*reserve)(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct testbed **ret, struct failure *failure);
    /* What the reservation is called outside, to be journalled before waiting; NULL: nothing is reserved. */
    const char *(*id)(const struct testbed *testbed);
    /* Until the nodes are there, while the loop turns: -EINTR when it was stopped. Only then are nodes, names
     * and deadline known. NULL: they are there at once. */
    int (*wait)(struct testbed *testbed, struct failure *failure);
    size_t (*node_count)(const struct testbed *testbed); /* without the spares */
    /* Fit to name a folder of an archive; no two differ by upper and lower case only. */
    const char *(*node_name)(const struct testbed *testbed, size_t node);
    /* A transport to the agent of a node, not yet started; the caller's. The agent gets a folder of its own
     * on the node, made when it starts and removed when it leaves. */
    int (*connect)(struct testbed *testbed, size_t node, struct transport **ret, struct failure *failure);
    /* Of the links over these transports. Members that are 0: agent-link.h's definitions. */
    struct agent_link_policy (*policy)(const struct testbed *testbed);
    /* Of a node whose transport, that which connect() gave, is open. */
    struct testbed_agent (*agent)(const struct testbed *testbed, const struct transport *transport);
    /* When the reservation ends, in ns since 1970; 0: not known. It may change while the nodes are used. */
    int64_t (*deadline)(const struct testbed *testbed);
    /* Asks, while the loop turns, whether the nodes are still ours, and calls `over` if they are not: nodes
     * that are lost may have been taken away, and the engine hears of the nodes first. NULL: what there is to
     * hear has been heard. */
    void (*ask)(struct testbed *testbed);
    /* Writes what was measured of the nodes outside of them into the run's folder, once that is over and they
     * are restored. What cannot be had is reported, and is no failure of the run. NULL: there is nothing. */
    void (*collect)(struct testbed *testbed);
    /* Gives the nodes back and frees; all transports must be gone. What could not be given back is said in
     * FAILURE, after all was tried. */
    int (*release)(struct testbed *testbed, struct failure *failure);
    /* Frees, and leaves the reservation as it is, to be found again by reserve(). NULL: it reserves nothing.
     */
    void (*leave)(struct testbed *testbed);
    /* Gives back what an engine that died has reserved for the run of REQUEST, and reports that, or that
     * there is nothing. NULL: it reserves nothing. */
    int (*reclaim)(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct failure *failure);
    /* Asks for the nodes with an engine in them: the job that is submitted runs COMMAND, ended by NULL, on
     * its first node, and what that prints goes to the file OUTPUT. COMMAND then reserves, and finds the job
     * that it is in. NULL: there is no job that an engine could be in. */
    int (*submit)(const struct testbed_settings *settings, const struct testbed_request *request,
                  const char *const *command, const char *output, struct failure *failure);
};

/* What a campaign chose. Borrows nothing from what was written. */
struct testbed_choice {
    const struct testbed_backend *backend;
    struct testbed_settings *settings; /* the backend's own; may be NULL */
    size_t number, count;              /* of a list of testbeds: which, from 1, of so many; else both are 0 */
};

/* How many spares the choice has. */
size_t testbed_spare_nodes(const struct testbed_choice *choice);

/* Nothing written is `local`; of a list of testbeds it is the one that WRITTEN chooses. Nodes from the
 * command line make it `hosts`, whatever is written; the other keys of a mapping for `hosts` then still
 * count. What is unknown is refused with its place, and the nearest is named. */
int testbed_bind(const struct testbed_written *written, struct testbed_choice *ret, struct failure *failure);
void testbed_choice_clear(struct testbed_choice *choice);

/* As a backend's own deadline(), for those that reserve nothing: the end of the Slurm job that this process
 * runs in, by its environment (SLURM_JOB_END_TIME, seconds since 1970, of Slurm 22.05 and later); 0: it says
 * nothing. */
int64_t testbed_job_deadline(const struct testbed *testbed);

extern const struct testbed_backend testbed_local, testbed_hosts, testbed_slurm, testbed_oar,
    testbed_grid5000, testbed_external;

#endif
