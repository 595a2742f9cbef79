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
#include "tests/integration/remote/descriptors.h"

#include <errno.h>
#include <getopt.h>
#include <inttypes.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>

enum { COPIES_MAX = 256 };

static struct transport_ssh_options options = {
    .agent = {.folder = "transport-try", .remove_directory = true}};
static struct ssh_client_options ssh;
static const char *identity, *prefix;
static enum agent_kind kind = AGENT_AUTO;
static size_t copies = 1, waiting;
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
static const char *const *split(char *text) {
    enum { WORDS_MAX = 32 };
    const char **words = calloc(WORDS_MAX, sizeof *words);
    size_t count = 0;
    for (char *rest, *word = strtok_r(text, " ", &rest); words && word && count < WORDS_MAX - 1;
         word = strtok_r(NULL, " ", &rest))
        words[count++] = word;
    return words;
}

static struct launcher_words launcher;

static int take_options(int count, char **words) {
    static const struct option names[] = {
        {"identity", 1, NULL, 'i'},  {"known-hosts", 1, NULL, 'k'}, {"jump", 1, NULL, 'J'},
        {"prefix", 1, NULL, 'p'},    {"source", 0, NULL, 's'},      {"binary", 0, NULL, 'b'},
        {"workspace", 1, NULL, 'w'}, {"copies", 1, NULL, 'n'},      {"node", 1, NULL, 'N'},
        {"timeout", 1, NULL, 't'},   {"label", 1, NULL, 'l'},       {"attach", 1, NULL, 'A'},
        {"start", 1, NULL, 'S'},     {"launcher", 1, NULL, 'L'},    {NULL, 0, NULL, 0},
    };
    ssh.config = "none";
    for (int option; (option = getopt_long(count, words, "+", names, NULL)) != -1;)
        switch (option) {
        case 'i':
            identity = optarg;
            ssh.identities = &identity;
            ssh.identity_count = 1;
            break;
        case 'k':
            ssh.known_hosts = optarg;
            break;
        case 'J':
            ssh.jump = optarg;
            break;
        case 'p':
            prefix = optarg;
            break;
        case 's':
            kind = AGENT_SOURCE;
            break;
        case 'b':
            kind = AGENT_BINARY;
            break;
        case 'w':
            options.agent.workspace = optarg;
            break;
        case 'n':
            copies = strtoul(optarg, NULL, 10);
            break;
        case 'N':
            options.node = optarg;
            break;
        case 'l':
            options.agent.label = optarg;
            break;
        case 'A':
            launcher.attach = split(optarg);
            options.launcher = &launcher;
            break;
        case 'S':
            launcher.start = split(optarg);
            break;
        case 'L':
            options.launcher = launcher_words_find(optarg);
            break;
        case 't':
            ssh.timeout_ns = (int64_t)(strtod(optarg, NULL) * 1e9);
            break;
        default:
            return -EINVAL;
        }
    return copies >= 1 && copies <= COPIES_MAX ? 0 : -EINVAL;
}

static int run_steps(char **steps) {
    struct failure failure = {0};
    struct installation installation = {0};
    struct agent_package *package = NULL;
    struct ssh_client *client = NULL;
    int code = 0;
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
    if (take_options(count, words) < 0 || count - optind < 2) {
        fprintf(stderr, "usage: transport-try [OPTION...] DESTINATION STEP...\n");
        return 2;
    }
    options.destination = words[optind];
    return run_steps(words + optind + 1);
}
