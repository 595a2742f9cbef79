/*
 * Many nodes at once: the same command on all of them, files to all and from all, and one answer about all.
 *
 *     struct node_group *group;
 *     struct node_group_command command = {.specification = &specification};
 *     struct node_result *results;
 *     node_group_new(loop, NULL, &group);
 *     for (...)
 *         node_group_add(group, transport, NULL, failure);
 *     node_group_connect(group, failure);
 *     node_group_run(group, &command, &results, failure);
 *     node_results_failure(group, results, failure);       "2 of 64 nodes failed: ...", folded
 *
 * The functions here wait: they turn the loop, serving everybody else, until every node has answered or has
 * failed, and give up with FAILURE_INTERRUPTED, -EINTR, when the loop is stopped. A group waits for one thing
 * at a time: -EBUSY from a callback while it does. A node that fails harms no other: what it could not do is
 * in its result, and it is left out of what comes later once its link is closed. No order among nodes is
 * promised.
 *
 * Memory is bounded whatever nodes print: NODE_OUTPUT_KEPT bytes of each stream are kept, and all of it, up
 * to a limit, goes to files where the caller wants it.
 */
#ifndef ASSAY_NODES_GROUP_H
#define ASSAY_NODES_GROUP_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"
#include "engine/remote/launch/transport.h"
#include "engine/remote/link/command.h"
#include "engine/remote/link/link.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node_group;

enum {
    NODE_GROUP_MAX = 16384,
    NODE_NAME_MAX = 200, /* bytes of a node's name, which becomes part of the names of files */
    NODE_OUTPUT_KEPT = 64 << 10,
};

struct node_group_listener {
    /* A node is ready, broken (WHY), there again, or lost (WHY; it will not come back). */
    void (*on_node)(struct node_group *group, size_t node, enum agent_link_state state,
                    const struct failure *why, void *context);
    /* The first NODES_DONE of NODES_TOTAL have answered what is being waited for. */
    void (*on_progress)(struct node_group *group, size_t nodes_done, size_t nodes_total, void *context);
    void *context;
};

/* LISTENER is copied; NULL is fine. */
int node_group_new(struct event_loop *loop, const struct node_group_listener *listener,
                   struct node_group **ret);
/* Ends what is left at once (agent_link_free). NULL is fine. */
void node_group_free(struct node_group *group);

/* Takes TRANSPORT over, also on failure. POLICY may be NULL. The node's number is the count before. */
int node_group_add(struct node_group *group, struct transport *transport,
                   const struct agent_link_policy *policy, struct failure *failure);
size_t node_group_count(const struct node_group *group);
const char *node_group_name(const struct node_group *group, size_t node);
struct agent_link *node_group_link(const struct node_group *group, size_t node);
/* Ready or broken: it can still be asked. */
bool node_group_is_there(const struct node_group *group, size_t node);
/* From now on NODE is not asked, neither with "all nodes" nor where it is named: its results are as
 * of one that was not to be asked; connecting passes it over, and closing, which tells its agent to leave
 * like the others', does not complain of it. What it is being asked already goes on. */
void node_group_leave_out(struct node_group *group, size_t node, bool left_out);

/* Starts all links and waits until each is ready or has failed. 0 if all are ready; else one failure that
 * names them all, folded by what was wrong ("2 of 64 nodes: dahu-[3,7]: connection refused; ..."). Those that
 * are ready can be used. FAILURE_INPUT when two have the same name. */
int node_group_connect(struct node_group *group, struct failure *failure);
/* How long COUNT agents may take to leave: commands have a grace, folders are removed, often on one server,
 * and what was sent before has to go out first, over a slow line. */
#define NODE_GROUP_LEAVE_NS(count) ((int64_t)(count)*100 * EVENT_MILLISECOND + 30 * EVENT_SECOND)
/* Tells all agents to leave and waits until they have, TIMEOUT_NS at most. The failure names those that have
 * not, and those that could not be told and are left to their lease; these also when it is interrupted. */
int node_group_close(struct node_group *group, int64_t timeout_ns, struct failure *failure);

/* ---- commands */

struct node_stream {
    char *bytes; /* the first NODE_OUTPUT_KEPT bytes (or the command's `kept`) at most, a NUL after */
    size_t length;
    uint64_t total;           /* bytes that the command wrote */
    uint64_t received;        /* of these, bytes that reached us: less than TOTAL when the limit cut it */
    char hash[HASH_HEX_SIZE]; /* SHA-256 of all that was received */
    char *file;               /* where all that was received lies; NULL: nowhere, or nothing came */
};

enum node_outcome {
    NODE_NOT_ASKED, /* not one of those that were to be asked */
    NODE_SKIPPED,   /* it was not there to be asked: FAILURE says why */
    NODE_DONE,      /* EXIT tells how it ended */
    NODE_FAILED,    /* it could not be started, or its end is not known: FAILURE */
};

struct node_result {
    enum node_outcome outcome;
    struct remote_start start;
    struct remote_exit exit;
    struct failure failure;
    struct node_stream output, error;
};

struct node_group_command {
    const struct remote_command_specification *specification; /* output_limit and error_limit: bytes, passed
                                                                 on at most; 0: no limit */
    /* When not NULL, asked for each node instead, just before the start: a negative return, with its failure,
     * is that node's result. What *RET points to must stay until the next call for the same group. */
    int (*specify)(size_t node, struct remote_command_specification *ret, void *context,
                   struct failure *failure);
    void *context;     /* of `specify` and `take` */
    const void *input; /* for every node's stdin; NULL: none */
    size_t input_length;
    /* NULL, or an existing folder: streams that are not empty become FOLDER/NODE.out and FOLDER/NODE.err,
     * fsynced; failures to write them fail the call. */
    const char *folder;
    const bool *nodes; /* which of them; NULL: all */
    size_t at_once;    /* nodes whose commands run at once, those with a broken stream not counted; 0: all */
    size_t kept;       /* bytes of each stream that results have; 0: NODE_OUTPUT_KEPT */
    /* When not NULL, gets what a node prints on stdout as it comes; then neither results nor files have it.
     */
    void (*take)(size_t node, const char *bytes, size_t length, void *context);
    /* When the call is interrupted, *RET is given though it fails: those whose command had not ended are
     * NODE_FAILED, with what they had written by then, in files too. */
    bool partial;
};

/* One result a node, owned by the caller: node_results_free(). Fails only when the whole cannot go on
 * (memory, files, interruption); then the commands have been killed. */
int node_group_run(struct node_group *group, const struct node_group_command *command,
                   struct node_result **ret, struct failure *failure);
void node_results_free(struct node_group *group, struct node_result *results);

/* Did it end with status 0, and of itself, not by its time limit? */
bool node_result_is_good(const struct node_result *result);
/* 0 if all that were to be asked are good (skipped nodes count as bad); else one failure, FAILURE_EXPERIMENT,
 * that names all bad nodes, folded by what happened: "3 of 64 nodes failed: dahu-[3,7]: exited with status 2:
 * the line of stderr that has the reason; dahu-9: no connection: ...". */
int node_results_failure(const struct node_group *group, const struct node_result *results,
                         struct failure *failure);

/* Nodes with equal answers (outcome, exit, hashes of both streams) together, in order of first node. RET:
 * owned; node_answers_free(). Returns how many answers there are. */
struct node_answer {
    size_t *nodes;
    size_t count;
};
size_t node_results_fold(const struct node_group *group, const struct node_result *results,
                         struct node_answer **ret);
void node_answers_free(struct node_answer *answers, size_t count);

/* ---- files. Every file's SHA-256 is checked by who receives it, before it gets its name. */

struct node_put {
    const char *local;  /* a file or a folder of the engine's machine */
    const char *remote; /* what it is called there: below the run directory, or absolute */
};
/* To many nodes at once; each file is packed once, into a file in $TMPDIR. The folder that it goes into is
 * made. Links and special files are left out and counted. RET_FAILURES: one a node, code 0 where all is well,
 * owned by the caller (free). */
int node_group_put(struct node_group *group, const struct node_put *put, struct failure **ret_failures,
                   size_t *ret_left_out, struct failure *failure);
/* REMOTE (a file or a folder) of every node as FOLDER/NODE/NAME, durably; REMOTE "." and "/" have no NAME,
 * and what is in them lands in FOLDER/NODE. Files that are there are replaced, others stay; links and special
 * files of the node are left out, links here are not followed (landing.h). The files of a node get their
 * names together, when all have come; until then they take twice their space. A file that changes while it is
 * read, or cannot be read, is a failure of its node, and the others of that node land. */
int node_group_get(struct node_group *group, const char *remote, const char *folder,
                   struct failure **ret_failures, struct failure *failure);
/* One failure that names all nodes whose failure is set, folded; 0 if none is. WHAT: "put 'x'". */
int node_failures_merge(const struct node_group *group, const struct failure *failures, const char *what,
                        struct failure *failure);

/* ---- what each is */

struct node_facts;
/* RET: an array of one a node, NULL where it is not known; the caller frees each and the array. */
int node_group_inspect(struct node_group *group, struct node_facts ***ret, struct failure **ret_failures,
                       struct failure *failure);
/* RET: an array; exchanges 0 where it is not known. */
int node_group_measure_clocks(struct node_group *group, struct agent_clock **ret, struct failure *failure);
/* Small files of every node, LIMIT bytes at most together: PATHS as for agent_link_read_files(). TAKE is
 * called for each as it comes, with its number in PATHS. RET_FAILURES: one a node, of the first that could
 * not be read. */
typedef void node_file_taker(size_t node, size_t path, const char *bytes, size_t length, void *context);
int node_group_read(struct node_group *group, const char *const *paths, uint64_t limit, node_file_taker *take,
                    void *context, struct failure **ret_failures, struct failure *failure);

#endif
