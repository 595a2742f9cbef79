#include "engine/remote/launch/launcher.h"

#include "engine/foundation/memory.h"
#include "engine/remote/channel/child.h"
#include "engine/remote/ssh/connection.h"

#include <stdlib.h>

static void init(struct launcher *launcher, const struct launcher_operations *operations,
                 struct event_loop *loop, const char *node) {
    launcher->operations = operations;
    launcher->loop = loop;
    launcher->node = xstrdup(node);
}

int launcher_connect(struct launcher *launcher, const struct launcher_listener *listener,
                     struct failure *failure) {
    launcher->listener = *listener;
    return launcher->operations->connect(launcher, failure);
}

int launcher_open(struct launcher *launcher, const char *command,
                  const struct remote_channel_listener *listener, struct remote_channel **ret,
                  struct failure *failure) {
    return launcher->operations->open(launcher, command, listener, ret, failure);
}

void launcher_disconnect(struct launcher *launcher) {
    launcher->operations->disconnect(launcher);
}

void launcher_free(struct launcher *launcher) {
    if (!launcher)
        return;
    launcher->operations->disconnect(launcher);
    free(launcher->node);
    launcher->operations->free(launcher);
}

/* ---- by libssh */

struct launcher_ssh {
    struct launcher head;
    struct ssh_client *client;
    char *destination;
    struct ssh_connection *connection;
};

static struct launcher_ssh *ssh_of(struct launcher *launcher) {
    return (struct launcher_ssh *)launcher; /* the head is the first member */
}

static void on_ready(struct ssh_connection *connection, void *context) {
    (void)connection;
    struct launcher *launcher = context;
    launcher->listener.on_ready(launcher, launcher->listener.context);
}

static void on_closed(struct ssh_connection *connection, const struct failure *why, void *context) {
    (void)connection;
    struct launcher *launcher = context;
    launcher->listener.on_lost(launcher, why, launcher->listener.context);
}

static int ssh_connect_node(struct launcher *launcher, struct failure *failure) {
    struct launcher_ssh *ssh = ssh_of(launcher);
    struct ssh_connection_listener listener = {
        .on_ready = on_ready, .on_closed = on_closed, .context = launcher};
    int r = ssh_connection_new(ssh->client, ssh->destination, &listener, &ssh->connection, failure);
    return r < 0 ? r : ssh_connection_start(ssh->connection, failure);
}

static int ssh_open(struct launcher *launcher, const char *command,
                    const struct remote_channel_listener *listener, struct remote_channel **ret,
                    struct failure *failure) {
    return ssh_connection_open(ssh_of(launcher)->connection, command, listener, ret, failure);
}

static void ssh_disconnect_node(struct launcher *launcher) {
    ssh_connection_free(ssh_of(launcher)->connection);
    ssh_of(launcher)->connection = NULL;
}

static void ssh_launcher_free(struct launcher *launcher) {
    free(ssh_of(launcher)->destination);
    free(launcher);
}

struct launcher *launcher_ssh_new(struct event_loop *loop, struct ssh_client *client, const char *destination,
                                  const char *node) {
    static const struct launcher_operations operations = {ssh_connect_node, ssh_open, ssh_disconnect_node,
                                                          ssh_launcher_free};
    struct launcher_ssh *ssh = xcalloc(1, sizeof *ssh);
    init(&ssh->head, &operations, loop, node);
    ssh->client = client;
    ssh->destination = xstrdup(destination);
    return &ssh->head;
}

/* ---- by a command */

struct launcher_command {
    struct launcher head;
    bool is_local;
    size_t count;
    char **words; /* COUNT of them, room for the command, and NULL */
};

static int command_connect(struct launcher *launcher, struct failure *failure) {
    (void)launcher;
    (void)failure;
    return 1;
}

static int command_open(struct launcher *launcher, const char *command,
                        const struct remote_channel_listener *listener, struct remote_channel **ret,
                        struct failure *failure) {
    struct launcher_command *self = (struct launcher_command *)launcher;
    self->words[self->count] = (char *)command;
    struct child_channel_options options = {.arguments = (const char *const *)self->words,
                                            .ends_in_order = self->is_local};
    return child_channel_open(launcher->loop, &options, listener, ret, failure);
}

static void command_disconnect(struct launcher *launcher) {
    (void)launcher; /* each channel is a child of its own, which its user frees */
}

static void command_free(struct launcher *launcher) {
    struct launcher_command *self = (struct launcher_command *)launcher;
    for (size_t i = 0; i < self->count; i++)
        free(self->words[i]);
    free(self->words);
    free(self);
}

struct launcher *launcher_command_new(struct event_loop *loop, const char *const *words, bool is_local,
                                      const char *node) {
    static const struct launcher_operations operations = {command_connect, command_open, command_disconnect,
                                                          command_free};
    struct launcher_command *self = xcalloc(1, sizeof *self);
    init(&self->head, &operations, loop, node);
    self->is_local = is_local;
    while (words[self->count])
        self->count++;
    self->words = xcalloc(self->count + 2, sizeof *self->words);
    for (size_t i = 0; i < self->count; i++)
        self->words[i] = xstrdup(words[i]);
    return &self->head;
}
