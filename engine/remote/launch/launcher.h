/*
 * A launcher runs commands on one node. Over ssh it has a connection, on which commands are channels;
 * otherwise each command is a child process that leads to the node (ssh(1), oarsh, srun), or that runs here.
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
    /* Once after each connect; also of a connection that was never ready. Its channels have been told. */
    void (*on_lost)(struct launcher *launcher, const struct failure *why, void *context);
    void *context;
};

/*
 * What a program that leads to a node is called with. In each word {node} stands for the node's name and
 * {host} for its host, as the user wrote it; the word {command} stands for the command as one word, for
 * programs that hand it to a login shell (ssh, oarsh), and the word {command...} for the words /bin/sh, -c
 * and the command, for programs that execute what they are given (srun).
 *
 * `attach` runs a command that ends by itself, such as the relay to the agent. Where everything that a
 * command has started is killed when it ends, as in a step of Slurm's, the agent cannot stay behind as a
 * daemon: then `start` is what runs it in the foreground, for as long as it serves.
 */
struct launcher_words {
    const char *const *start;  /* NULL: attaching starts the agent */
    const char *const *attach; /* both end with NULL */
};
/* The words of a program that is known by NAME ("oarsh", "srun"), or NULL. */
const struct launcher_words *launcher_words_find(const char *name);
/* What is wrong with WORDS, as in "expected ...", or NULL. */
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
    char *node;     /* its name in failures */
    bool has_start; /* the agent is to be started by LAUNCHER_START */
    struct launcher_listener listener;
};

/* By libssh. CLIENT is borrowed; DESTINATION is [user@]host[:port]. */
struct launcher *launcher_ssh_new(struct event_loop *loop, struct ssh_client *client, const char *destination,
                                  const char *node);
/* By programs. WORDS is copied; HOST may be NULL where no word has {host}. */
struct launcher *launcher_command_new(struct event_loop *loop, const struct launcher_words *words,
                                      const char *host, const char *node);
/* By programs on this machine, which are no way to a node: each ends by itself when its streams are closed
 * (child.h, ends_in_order). WORDS is copied: `attach` runs the agent, and `start`, if there is one, brings
 * the image that it is deployed in. */
struct launcher *launcher_local_new(struct event_loop *loop, const struct launcher_words *words,
                                    const char *node);

/* 1: ready, at once; 0: the listener is called; or negative. After launcher_disconnect() again. */
int launcher_connect(struct launcher *launcher, const struct launcher_listener *listener,
                     struct failure *failure);
/* Runs COMMAND, a line for a shell of the user there; NULL: the launcher's own words are all. */
int launcher_open(struct launcher *launcher, enum launcher_step step, const char *command,
                  const struct remote_channel_listener *listener, struct remote_channel **ret,
                  struct failure *failure);
/* Ends the connection, with its channels; calls no listener. From its callbacks too. */
void launcher_disconnect(struct launcher *launcher);
void launcher_free(struct launcher *launcher); /* NULL is fine */

#endif
