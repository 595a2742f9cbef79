/*
 * A launcher runs commands on one node. By libssh it has a connection, on which commands are channels.
 * Otherwise each command is a child process that runs it on the node (ssh(1), oarsh, srun), or on this
 * machine.
 */
#ifndef ASSAY_LAUNCH_LAUNCHER_H
#define ASSAY_LAUNCH_LAUNCHER_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/remote/channel/channel.h"
#include "engine/remote/ssh/client.h"

struct launcher;

struct launcher_listener {
    void (*on_ready)(struct launcher *launcher, void *context);
    /* Called at most once after each connect, when the connection is lost or could not be made. Its channels
     * have been told before. */
    void (*on_lost)(struct launcher *launcher, const struct failure *why, void *context);
    void *context;
};

/*
 * The command line of a program that runs commands on a node. In each word {node} is replaced by the node's
 * name and {host} by its host, as the user wrote it. The word {command} is replaced by the command as one
 * word, for programs that pass it to a login shell (ssh, oarsh); the word {command...} by the words /bin/sh,
 * -c and the command, for programs that execute their arguments (srun).
 *
 * `attach` runs a command that ends by itself, such as the relay to the agent. `start` runs the agent in the
 * foreground, for as long as it serves. It is needed where all processes of a command are killed at its end,
 * as in a step of Slurm, so that the agent cannot stay as a daemon.
 */
struct launcher_words {
    const char *const *start;  /* NULL: `attach` starts the agent, too */
    const char *const *attach; /* both are ended by NULL */
};
/* The words of the known program NAME ("oarsh", "srun"), or NULL. */
const struct launcher_words *launcher_words_find(const char *name);
/* What WORDS lack, to be put after "expected ..."; NULL: they are valid. */
const char *launcher_words_problem(const char *const *words);

enum launcher_step { LAUNCHER_ATTACH, LAUNCHER_START };

struct launcher_operations {
    int (*connect)(struct launcher *launcher, struct failure *failure);
    int (*open)(struct launcher *launcher, enum launcher_step step, const char *command,
                const struct remote_channel_listener *listener, struct remote_channel **ret,
                struct failure *failure);
    void (*disconnect)(struct launcher *launcher);
    void (*free)(struct launcher *launcher);
};

struct launcher {
    const struct launcher_operations *operations;
    struct event_loop *loop;
    char *node;     /* the node's name, for failures */
    bool has_start; /* the agent must be started by LAUNCHER_START */
    struct launcher_listener listener;
};

/* Makes a launcher that uses libssh. CLIENT is borrowed; DESTINATION is [user@]host[:port]. */
struct launcher *launcher_ssh_new(struct event_loop *loop, struct ssh_client *client, const char *destination,
                                  const char *node);
/* Makes a launcher that runs a program. WORDS is copied; HOST may be NULL where no word has {host}. */
struct launcher *launcher_command_new(struct event_loop *loop, const struct launcher_words *words,
                                      const char *host, const char *node);
/* Makes a launcher for this machine. WORDS is copied: `attach` is the agent's own command, and `start`, if
 * not NULL, copies the image in which it is deployed. The programs end by themselves when their streams are
 * closed (child.h, ends_in_order). */
struct launcher *launcher_local_new(struct event_loop *loop, const struct launcher_words *words,
                                    const char *node);

/* Connects to the node, also again after launcher_disconnect(). Returns 1: ready at once; 0: the listener
 * will be called; or negative with FAILURE. */
int launcher_connect(struct launcher *launcher, const struct launcher_listener *listener,
                     struct failure *failure);
/* Runs COMMAND, a line for the user's shell on the node, in a channel *RET. NULL: runs the launcher's words
 * alone. */
int launcher_open(struct launcher *launcher, enum launcher_step step, const char *command,
                  const struct remote_channel_listener *listener, struct remote_channel **ret,
                  struct failure *failure);
/* Ends the connection with its channels, without calling the listener. May be called within its callbacks. */
void launcher_disconnect(struct launcher *launcher);
void launcher_free(struct launcher *launcher); /* NULL is fine */

#endif
