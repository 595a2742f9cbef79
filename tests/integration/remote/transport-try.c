/*
 * transport-try [OPTION...] DESTINATION STEP...: opens transports to agents over ssh, step by step, and
 * prints what comes of each. For tests. Steps:
 *
 *     open        a new transport, started          -> "open PATH HASH as-usual|delivered|built"
 *     renew       another one to the same agent     -> the same
 *     lost        waits until the stream breaks     -> "closed ENAME PLACE: sentence"
 *     close       closes it, waits until it has     -> "closed"
 *     free        frees it as it is
 *     do:COMMAND  runs COMMAND by sh here, with SESSION in its environment
 *
 * Where the transport does not do as the step wants, "closed ..." is printed and the exit status is 1, unless
 * the step begins with "-". With --copies N, N transports take each step together. With --attach WORDS, those
 * lead to the node in place of libssh, with --start WORDS too those start the agent there; with --launcher
 * NAME, those that are known by it.
 */
#include "engine/foundation/installation.h"
#include "engine/remote/launch/transport-ssh.h"
#include "tests/integration/remote/options.h"

#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <sys/wait.h>

enum { COPIES_MAX = 256 };

static struct transport_ssh_options options = {
    .agent = {.folder = "transport-try", .remove_directory = true}};
static const char *identities[TRY_TEXTS_MAX], *prefix, *attach, *start, *launcher_name;
static struct ssh_client_options ssh = {.config = "none", .identities = identities};
static bool is_source, is_binary;
static unsigned copies = 1;
static size_t waiting;
static struct event_loop *loop;
static struct transport *transports[COPIES_MAX];
static enum transport_state wanted;
static int status;

static int refuse(const struct failure *failure) {
    char text[2048];
    printf("refused %s\n", failure_describe(failure, text, sizeof text));
    return 2;
}

static void on_state(struct transport *transport, enum transport_state state, const struct failure *why,
                     void *context) {
    (void)context;
    if (state == TRANSPORT_OPEN) {
        const struct agent_arrival *agent = agent_transport_arrival(transport);
        printf("open %s %s%s%s\n", agent->path,
               agent->built       ? "built"
               : agent->delivered ? "delivered"
                                  : "as-usual",
               agent->damage ? ", damaged: " : "", agent->damage ? agent->damage : "");
        (void)transport_want(transport, EVENT_READ);
    } else if (why) {
        printf("closed %s %s: %s\n", strerrorname_np(-why->code), why->place, why->text);
    } else {
        printf("closed\n");
    }
    if (state != wanted)
        status = 1;
    if ((state == wanted || state == TRANSPORT_CLOSED) && --waiting == 0)
        event_loop_stop(loop);
}

static void on_ready(struct transport *transport, unsigned events, void *context) {
    (void)events;
    (void)context;
    char bytes[4096];
    ssize_t got;
    while ((got = transport_read(transport, bytes, sizeof bytes)) > 0)
        continue;
    if (got == 0)
        (void)transport_want(transport, 0);
}

static int wait_for(enum transport_state state) {
    struct failure failure;
    wanted = state;
    waiting = copies;
    event_loop_resume(loop);
    return event_loop_run(loop, &failure) < 0 ? refuse(&failure) : status;
}

static int open_one(size_t i, bool renew) {
    struct failure failure = {0};
    struct transport *made;
    int r = renew ? transport_renew(transports[i], &made, &failure)
                  : transport_ssh_new(loop, &options, &made, &failure);
    if (r < 0)
        return refuse(&failure);
    transport_free(transports[i]);
    transports[i] = made;
    struct transport_listener listener = {.on_state = on_state, .on_ready = on_ready};
    return transport_start(made, &listener, &failure) < 0 ? refuse(&failure) : 0;
}

static int run_here(const char *command) {
    char session[32];
    snprintf(session, sizeof session, "%016" PRIx64, transports[0] ? transports[0]->session : 0);
    setenv("SESSION", session, 1);
    char *words[] = {(char *)"sh", (char *)"-c", (char *)command, NULL};
    pid_t pid;
    int end = 0;
    fflush(stdout);
    if (posix_spawnp(&pid, "sh", NULL, NULL, words, environ) != 0 || waitpid(pid, &end, 0) < 0)
        return 2;
    return 0;
}

static int take_step(const char *step) {
    int code = 0;
    bool renew = strcmp(step, "renew") == 0;
    if (renew || strcmp(step, "open") == 0) {
        for (size_t i = 0; i < copies && code == 0; i++)
            code = open_one(i, renew);
        return code ? code : wait_for(TRANSPORT_OPEN);
    }
    if (strcmp(step, "lost") == 0)
        return wait_for(TRANSPORT_CLOSED);
    if (strcmp(step, "close") == 0) {
        for (size_t i = 0; i < copies; i++)
            transport_close(transports[i]);
        return wait_for(TRANSPORT_CLOSED);
    }
    if (strcmp(step, "free") == 0) {
        for (size_t i = 0; i < copies; i++) {
            transport_free(transports[i]);
            transports[i] = NULL;
        }
        return 0;
    }
    return strncmp(step, "do:", 3) == 0 ? run_here(step + 3) : 2;
}

/* Words are separated by blanks. */
static const char *const *split(const char *given) {
    enum { WORDS_MAX = 32 };
    const char **words = calloc(WORDS_MAX, sizeof *words);
    char *text = strdup(given);
    size_t count = 0;
    for (char *rest, *word = strtok_r(text, " ", &rest); words && word && count < WORDS_MAX - 1;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return words;
}

static const struct try_option rows[] = {
    {"--identity", .text = identities, .count = &ssh.identity_count},
    {"--known-hosts", .text = &ssh.known_hosts},
    {"--jump", .text = &ssh.jump},
    {"--prefix", .text = &prefix},
    {"--source", .is_given = &is_source},
    {"--binary", .is_given = &is_binary},
    {"--workspace", .text = &options.agent.workspace},
    {"--copies", .number = &copies},
    {"--node", .text = &options.node},
    {"--timeout", .seconds_ns = &ssh.timeout_ns},
    {"--label", .text = &options.agent.label},
    {"--attach", .text = &attach},
    {"--start", .text = &start},
    {"--launcher", .text = &launcher_name},
    {NULL},
};

static int run_steps(char **steps) {
    struct failure failure = {0};
    struct installation installation = {0};
    struct agent_package *package = NULL;
    struct ssh_client *client = NULL;
    enum agent_kind kind = is_source ? AGENT_SOURCE : is_binary ? AGENT_BINARY : AGENT_AUTO;
    static struct launcher_words launcher; /* its words live as long as the program */
    int code = 0;
    if (start)
        launcher.start = split(start);
    if (attach)
        launcher.attach = split(attach);
    options.launcher = launcher_name ? launcher_words_find(launcher_name) : attach ? &launcher : NULL;
    loop = event_loop_new(&failure);
    if (!loop || installation_init(&installation, prefix, NULL, &failure) < 0 ||
        agent_package_new(&installation, kind, &package, &failure) < 0 ||
        ssh_client_new(loop, &ssh, &client, &failure) < 0)
        code = refuse(&failure);
    options.client = client;
    options.agent.package = package;
    for (; *steps && code == 0; steps++) {
        bool lenient = **steps == '-';
        code = take_step(*steps + lenient);
        if (lenient && code == 1)
            code = status = 0;
    }
    for (size_t i = 0; i < copies; i++)
        transport_free(transports[i]);
    ssh_client_free(client);
    agent_package_free(package);
    installation_clear(&installation);
    event_loop_free(loop);
    return code;
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    char **rest = try_options(rows, words + 1);
    if (!rest || words + count - rest < 2 || copies < 1 || copies > COPIES_MAX) {
        fprintf(stderr, "usage: transport-try [OPTION...] DESTINATION STEP...\n");
        return 2;
    }
    options.destination = *rest;
    return run_steps(rest + 1);
}
