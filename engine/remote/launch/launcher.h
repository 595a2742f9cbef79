/*
 * A launcher runs commands on one node. Over ssh it has a connection, on which commands are channels;
 * otherwise each command is a child process that leads to the node (ssh(1), oarsh, srun), or that is on it.
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

struct launcher_operations {
    int (*connect)(struct launcher *launcher, struct failure *failure);
    int (*open)(struct launcher *launcher, const char *command,
                const struct remote_channel_listener *listener, struct remote_channel **ret,
                struct failure *failure);
    void (*disconnect)(struct launcher *launcher);
    void (*free)(struct launcher *launcher);
};

struct launcher {
    const struct launcher_operations *operations;
    struct event_loop *loop;
    char *node; /* its name in failures */
    struct launcher_listener listener;
};

/* By libssh. CLIENT is borrowed; DESTINATION is [user@]host[:port]. */
struct launcher *launcher_ssh_new(struct event_loop *loop, struct ssh_client *client, const char *destination,
                                  const char *node);
/* By the program WORDS, copied, which end with NULL: a command is its last argument. IS_LOCAL: the program is
 * no way to a node; it ends by itself when its streams are closed (child.h, ends_in_order). */
struct launcher *launcher_command_new(struct event_loop *loop, const char *const *words, bool is_local,
                                      const char *node);

/* 1: ready, at once; 0: the listener is called; or negative. After launcher_disconnect() again. */
int launcher_connect(struct launcher *launcher, const struct launcher_listener *listener,
                     struct failure *failure);
/* Runs COMMAND, a line for the login shell of the user there; NULL: the launcher's own words are all. */
int launcher_open(struct launcher *launcher, const char *command,
                  const struct remote_channel_listener *listener, struct remote_channel **ret,
                  struct failure *failure);
/* Ends the connection, with its channels; calls no listener. From its callbacks too. */
void launcher_disconnect(struct launcher *launcher);
void launcher_free(struct launcher *launcher); /* NULL is fine */

#endif
