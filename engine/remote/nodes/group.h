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
 * Memory is bounded whatever nodes print: results have the first NODE_OUTPUT_KEPT bytes of each stream, and
 * files, where the caller gives a folder, have all of it up to a limit.
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
    NODE_NAME_MAX = 200,         /* bytes of a node's name, which becomes part of the names of files */
    NODE_OUTPUT_KEPT = 64 << 10, /* bytes of a stream that a node_result has, unless the command says */
};

struct node_group_listener {
    /* The link of NODE is ready, broken (WHY), ready again, or closed for good (WHY). */
    void (*on_node)(struct node_group *group, size_t node, enum agent_link_state state,
                    const struct failure *why, void *context);
    /* NODES_DONE of the NODES_TOTAL nodes that were asked have answered or failed. */
    void (*on_progress)(struct node_group *group, size_t nodes_done, size_t nodes_total, void *context);
    void *context;
};

/* RET: an empty group; node_group_free(). LISTENER is copied; NULL: no callbacks. Returns 0. */
int node_group_new(struct event_loop *loop, const struct node_group_listener *listener,
                   struct node_group **ret);
/* Frees all links, open ones without waiting (agent_link_free). NULL is fine. */
void node_group_free(struct node_group *group);

/* Adds a node, whose number is the count before. The group owns TRANSPORT from now on, also on failure.
 * POLICY may be NULL. FAILURE_INPUT: the name cannot be one, or there are NODE_GROUP_MAX nodes already. */
int node_group_add(struct node_group *group, struct transport *transport,
                   const struct agent_link_policy *policy, struct failure *failure);
size_t node_group_count(const struct node_group *group);
const char *node_group_name(const struct node_group *group, size_t node);
struct agent_link *node_group_link(const struct node_group *group, size_t node);
/* Is the link of NODE ready, or broken and being mended? Then it can be asked; requests to a broken link
 * wait. */
bool node_group_is_there(const struct node_group *group, size_t node);
/* LEFT_OUT: from now on NODE is not asked, neither with "all nodes" nor where it is named, and its results
 * are NODE_NOT_ASKED. A request under way goes on. node_group_connect() does not start it and does not name
 * it; node_group_close() tells its agent to end, and does not name it either. */
void node_group_leave_out(struct node_group *group, size_t node, bool left_out);

/* Starts all links and waits until each is ready or has failed. 0 if all are ready; else one failure that
 * names the other nodes, folded by reason ("2 of 64 nodes cannot be reached: dahu-[3,7]: connection refused;
 * ..."). Nodes that are ready can be used. FAILURE_INPUT when two have the same name. */
int node_group_connect(struct node_group *group, struct failure *failure);
/* The usual TIMEOUT_NS of node_group_close() for COUNT agents: commands get time to end, folders are removed,
 * often on one file server, and bytes that were sent before go out first, over a slow line. */
#define NODE_GROUP_LEAVE_NS(count) ((int64_t)(count)*100 * EVENT_MILLISECOND + 30 * EVENT_SECOND)
/* Asks all agents to end and waits until they have, TIMEOUT_NS at most. 0, or a failure that names the agents
 * that have not ended, and those that could not be asked and end when their lease is over. An interruption
 * names the latter, too. */
int node_group_close(struct node_group *group, int64_t timeout_ns, struct failure *failure);

/* ---- commands */

/* What a command wrote on stdout or stderr. */
struct node_stream {
    char *bytes; /* the first NODE_OUTPUT_KEPT bytes (or node_group_command.kept) at most, a NUL after */
    size_t length;
    uint64_t total;    /* bytes that the command wrote */
    uint64_t received; /* of these, bytes that the engine got: less than TOTAL when the limit cut them */
    char hash[HASH_HEX_SIZE]; /* SHA-256 of the bytes received */
    char *file; /* path of the file that has the bytes received; NULL: none was wanted, or none came */
};

enum node_outcome {
    NODE_NOT_ASKED, /* the call did not name the node, or the node is left out */
    NODE_SKIPPED,   /* the node has no connection: FAILURE says why */
    NODE_DONE,      /* the command has ended: EXIT says how */
    NODE_FAILED,    /* the command could not be started, or its end is not known: FAILURE */
};

/* What became of a command on one node. */
struct node_result {
    enum node_outcome outcome;
    struct remote_start start;
    struct remote_exit exit;
    struct failure failure;
    struct node_stream output, error;
};

struct node_group_command {
    const struct remote_command_specification *specification; /* the same for all nodes; or `specify` */
    /* When not NULL, called for each node instead, just before the start. Negative, with FAILURE: the command
     * of that node is not started, and this is its result. What *RET points to must stay until the next call
     * for the same group. */
    int (*specify)(size_t node, struct remote_command_specification *ret, void *context,
                   struct failure *failure);
    void *context;     /* of `specify` and `take` */
    const void *input; /* for the stdin of the command on every node; NULL: none */
    size_t input_length;
    /* An existing folder for files FOLDER/NODE.out and FOLDER/NODE.err of streams that are not empty, synced
     * to the disk; one that cannot be written fails the call. NULL: no files. */
    const char *folder;
    const bool *nodes; /* one a node: does it run the command? NULL: all do */
    size_t at_once;    /* nodes whose commands run at once, those with a broken stream not counted; 0: all */
    size_t kept;       /* bytes of each stream that results have; 0: NODE_OUTPUT_KEPT */
    /* When not NULL, gets the bytes of stdout as they come; then neither results nor files have them. */
    void (*take)(size_t node, const char *bytes, size_t length, void *context);
    /* True: an interrupted call sets *RET though it fails. Nodes whose command had not ended are NODE_FAILED,
     * with what the command had written until then, in results and files. */
    bool partial;
};

/* Runs COMMAND on the nodes and waits until all have ended. RET: one result a node, owned:
 * node_results_free(). 0, also when nodes failed; negative when files cannot be written or the call is
 * interrupted, and then the commands have been killed. */
int node_group_run(struct node_group *group, const struct node_group_command *command,
                   struct node_result **ret, struct failure *failure);
void node_results_free(struct node_group *group, struct node_result *results);

/* Did the command end with status 0, before its time limit? */
bool node_result_is_good(const struct node_result *result);
/* 0 if the results of all nodes are good, those not asked aside; else one failure, FAILURE_EXPERIMENT, that
 * names the other nodes, folded by reason: "3 of 64 nodes failed: dahu-[3,7]: exited with status 2: the line
 * of stderr that has the reason; dahu-9: there is no connection: ...". */
int node_results_failure(const struct node_group *group, const struct node_result *results,
                         struct failure *failure);

/* Nodes with equal results. */
struct node_answer {
    size_t *nodes;
    size_t count;
};
/* Groups the nodes that were asked by equal outcome, exit and hashes of both streams. RET: the groups, in the
 * order of their first nodes; owned: node_answers_free(). Returns the number of groups. */
size_t node_results_fold(const struct node_group *group, const struct node_result *results,
                         struct node_answer **ret);
void node_answers_free(struct node_answer *answers, size_t count);

/* ---- files. The receiver of a file checks its SHA-256 before the file gets its name. */

struct node_put {
    const char *local;  /* a file or a folder of the engine's machine */
    const char *remote; /* its path on the nodes: relative to the run directory, or absolute */
};
/* Sends PUT to all nodes; the files are packed once, into a file in $TMPDIR. The nodes make the folder that
 * it goes into. Links and special files are not sent; RET_LEFT_OUT, which may be NULL, counts them.
 * RET_FAILURES: one a node, code 0 where it succeeded, owned by the caller (free). */
int node_group_put(struct node_group *group, const struct node_put *put, struct failure **ret_failures,
                   size_t *ret_left_out, struct failure *failure);
/* Fetches REMOTE, a file or a folder, of every node as FOLDER/NODE/NAME, synced to the disk; "." and "/" have
 * no NAME, and their files come into FOLDER/NODE. Existing files of the same name are replaced, others stay;
 * links and special files of the node are not fetched, links below FOLDER/NODE not followed (landing.h). The
 * files of a node get their names together, when all have come; until then they take twice their space. A
 * file that changes while it is read, or cannot be read, is a failure of its node, whose other files are
 * fetched. */
int node_group_get(struct node_group *group, const char *remote, const char *folder,
                   struct failure **ret_failures, struct failure *failure);
/* One failure that names all nodes whose failure is set, folded by reason; 0 if none is. WHAT begins it: "put
 * 'x'". */
int node_failures_merge(const struct node_group *group, const struct failure *failures, const char *what,
                        struct failure *failure);

/* ---- facts, clocks and small files of every node */

struct node_facts;
/* Asks every node for its facts. RET: one a node, NULL where the node failed; the caller frees each
 * (node_facts_free) and the array. RET_FAILURES: one a node, owned (free). */
int node_group_inspect(struct node_group *group, struct node_facts ***ret, struct failure **ret_failures,
                       struct failure *failure);
/* Measures the offset of the clock of every node. RET: one a node, owned (free); its member exchanges is 0
 * where the node did not answer. */
int node_group_measure_clocks(struct node_group *group, struct agent_clock **ret, struct failure *failure);
/* Reads small files of every node, LIMIT bytes of a node at most: PATHS as for agent_link_read_files(). TAKE
 * is called for each file when it comes, with its number in PATHS. RET_FAILURES: one a node, owned (free), of
 * the first file that could not be read. */
typedef void node_file_callback(size_t node, size_t path, const char *bytes, size_t length, void *context);
int node_group_read(struct node_group *group, const char *const *paths, uint64_t limit,
                    node_file_callback *take, void *context, struct failure **ret_failures,
                    struct failure *failure);

#endif
