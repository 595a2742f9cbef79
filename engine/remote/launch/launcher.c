#include "engine/remote/launch/launcher.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/secret.h"
#include "engine/foundation/text.h"
#include "engine/remote/channel/child.h"
#include "engine/remote/ssh/connection.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

int launcher_open(struct launcher *launcher, enum launcher_step step, const char *command,
                  const struct remote_channel_listener *listener, struct remote_channel **ret,
                  struct failure *failure) {
    return launcher->operations->open(launcher, step, command, listener, ret, failure);
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

/* ---- launchers that use libssh */

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

static int ssh_open(struct launcher *launcher, enum launcher_step step, const char *command,
                    const struct remote_channel_listener *listener, struct remote_channel **ret,
                    struct failure *failure) {
    (void)step;
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

/* ---- launchers that run a program */

#define PLACE_OF_COMMAND "{command}"
#define PLACE_OF_WORDS "{command...}"
enum { WORDS_OF_COMMAND = 3 };

/* The command lines of the built-in launcher NAME; NULL: there is none. */
const struct launcher_words *launcher_words_find(const char *name) {
    /* --overlap and --cpu-bind=none: the step shares all of the job's processors with steps of the user's
     * commands. --export passes the environment whatever SLURM_EXPORT_ENV says, and keeps Open MPI from
     * taking the step's single task for the limit of its ranks. --unbuffered: output does not wait for the
     * end of a line. */
    static const char *const srun[] = {"srun",
                                       "--overlap",
                                       "--nodes=1",
                                       "--ntasks=1",
                                       "--nodelist={host}",
                                       "--cpu-bind=none",
                                       "--mpi=none",
                                       "--export=ALL,OMPI_MCA_ras=^slurm,PRTE_MCA_ras=^slurm",
                                       "--unbuffered",
                                       "--quiet",
                                       PLACE_OF_WORDS,
                                       NULL};
    static const char *const oarsh[] = {"oarsh",          "-T", "-o", "BatchMode=yes", "{host}",
                                        PLACE_OF_COMMAND, NULL};
    static const struct {
        const char *name;
        struct launcher_words words;
    } known[] = {{"srun", {.start = srun, .attach = srun}}, {"oarsh", {.attach = oarsh}}};
    for (size_t i = 0; i < sizeof known / sizeof *known; i++)
        if (strcmp(name, known[i].name) == 0)
            return &known[i].words;
    return NULL;
}

static bool is_place_of_command(const char *word) {
    return strcmp(word, PLACE_OF_COMMAND) == 0 || strcmp(word, PLACE_OF_WORDS) == 0;
}

/* The number of {node} and {host} in WORD; -1: it has other braces. */
static int count_names(const char *word) {
    int names = 0;
    for (const char *at = strchr(word, '{'); at; at = strchr(at + 1, '{')) {
        if (strncmp(at, "{node}", 6) != 0 && strncmp(at, "{host}", 6) != 0)
            return -1;
        names++;
    }
    return names;
}

/* What WORDS lack to be a launcher, after "expected"; NULL: nothing. */
const char *launcher_words_problem(const char *const *words) {
    size_t places = 0;
    int names = 0;
    if (!words[0] || !words[0][0] || words[0][0] == '{')
        return "a program first";
    for (size_t i = 0; words[i]; i++) {
        int in_word = is_place_of_command(words[i]) ? 0 : count_names(words[i]);
        if (in_word < 0)
            return strstr(words[i], "{command")
                       ? PLACE_OF_COMMAND " and " PLACE_OF_WORDS " as words of their own"
                       : "nothing in braces but {node}, {host}, " PLACE_OF_COMMAND " and " PLACE_OF_WORDS;
        places += is_place_of_command(words[i]);
        names += in_word;
    }
    if (names == 0)
        return "{node} or {host}, which says where";
    return places == 1 ? NULL : PLACE_OF_COMMAND " or " PLACE_OF_WORDS " once, where the command belongs";
}

struct launcher_command {
    struct launcher head;
    bool is_local;
    char **words[2]; /* by enum launcher_step; owned, ended by NULL; NULL: no such step */
};

/* WORD with {node} and {host} replaced by NODE and HOST; NULL: not replaced. The caller frees. */
static char *replace_names(const char *word, const char *node, const char *host) {
    struct text text;
    text_init(&text, SIZE_MAX / 2);
    while (*word) {
        bool is_node = node && strncmp(word, "{node}", 6) == 0;
        bool is_host = host && strncmp(word, "{host}", 6) == 0;
        if (is_node || is_host)
            (void)text_append_string(&text, is_node ? node : host);
        else
            (void)text_append_character(&text, *word);
        word += is_node || is_host ? 6 : 1;
    }
    return text_take(&text);
}

static size_t count_words(const char *const *words) {
    size_t count = 0;
    while (words[count])
        count++;
    return count;
}

static char **copy_words(const char *const *words, const char *node, const char *host) {
    size_t count = words ? count_words(words) : 0;
    char **copy = words ? xcalloc(count + 1, sizeof *copy) : NULL;
    for (size_t i = 0; i < count; i++)
        copy[i] = replace_names(words[i], node, host);
    return copy;
}

/* This process's environment without variables that look like secrets: a login on the node would not have
 * them either. FOR_STEP: SLURM_JWT is kept, which srun may need to reach Slurm; the agent removes it. The
 * caller frees the array only. */
static const char **environment_without_secrets(bool for_step) {
    size_t count = 0;
    const char **safe = xcalloc(count_words((const char *const *)environ) + 1, sizeof *safe);
    for (char **variable = environ; *variable; variable++)
        if (!secret_is_variable(*variable) || (for_step && strncmp(*variable, "SLURM_JWT=", 10) == 0))
            safe[count++] = *variable;
    return safe;
}

static int command_connect(struct launcher *launcher, struct failure *failure) {
    (void)launcher;
    (void)failure;
    return 1;
}

/* Runs the program of STEP as a child, with its placeholders replaced by COMMAND. */
static int command_open(struct launcher *launcher, enum launcher_step step, const char *command,
                        const struct remote_channel_listener *listener, struct remote_channel **ret,
                        struct failure *failure) {
    const struct launcher_command *self = (const struct launcher_command *)launcher;
    const char *const *words = (const char *const *)self->words[step];
    cleanup_free const char **arguments = xcalloc(count_words(words) + WORDS_OF_COMMAND, sizeof *arguments);
    size_t count = 0;
    for (size_t i = 0; words[i]; i++) {
        if (command && strcmp(words[i], PLACE_OF_WORDS) == 0) {
            arguments[count++] = "/bin/sh";
            arguments[count++] = "-c";
        }
        arguments[count++] = command && is_place_of_command(words[i]) ? command : words[i];
    }
    /* A program with a start step (srun) passes its environment to the agent, which must get no secrets.
     * Others log in to the node, and may need all variables themselves. */
    bool is_filtered = self->is_local || launcher->has_start;
    cleanup_free const char **environment = is_filtered ? environment_without_secrets(!self->is_local) : NULL;
    const struct child_channel_options options = {
        .arguments = arguments, .environment = environment, .ends_in_order = self->is_local};
    return child_channel_open(launcher->loop, &options, listener, ret, failure);
}

static void command_disconnect(struct launcher *launcher) {
    (void)launcher; /* each channel is a separate child, which its user frees */
}

static void command_free(struct launcher *launcher) {
    struct launcher_command *self = (struct launcher_command *)launcher;
    for (size_t step = 0; step < 2; step++) {
        for (char **word = self->words[step]; word && *word; word++)
            free(*word);
        free(self->words[step]);
    }
    free(self);
}

/* Makes a launcher of programs. PLACED: the text for {node}; NULL: a local launcher, whose words are not
 * changed. */
static struct launcher *new_command(struct event_loop *loop, const struct launcher_words *words,
                                    const char *placed, const char *host, const char *node) {
    static const struct launcher_operations operations = {command_connect, command_open, command_disconnect,
                                                          command_free};
    struct launcher_command *self = xcalloc(1, sizeof *self);
    init(&self->head, &operations, loop, node);
    self->head.has_start = words->start;
    self->is_local = !placed;
    self->words[LAUNCHER_START] = copy_words(words->start, placed, host);
    self->words[LAUNCHER_ATTACH] = copy_words(words->attach, placed, host);
    return &self->head;
}

struct launcher *launcher_command_new(struct event_loop *loop, const struct launcher_words *words,
                                      const char *host, const char *node) {
    return new_command(loop, words, node, host, node);
}

struct launcher *launcher_local_new(struct event_loop *loop, const struct launcher_words *words,
                                    const char *node) {
    return new_command(loop, words, NULL, NULL, node);
}
