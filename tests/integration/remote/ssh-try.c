/*
 * ssh-try [OPTION...] DESTINATION... -- COMMAND: connects to every destination at once by engine/remote's ssh
 * and runs COMMAND there. For tests: what comes is printed, one line each:
 *
 *     ready DESTINATION
 *     end DESTINATION exit 3            (or: signal TERM, or: unknown)
 *     failed DESTINATION ENAME PLACE: sentence
 *     cpu 0.123 s, connected after 0.456 s, ...   (with --measure)
 *
 * Exit status 0 when all commands ran, whatever they said, 1 otherwise, 2 when the options are refused, 3
 * when it gave up after --give-up SECONDS: then everything is freed as it is.
 */
#include "engine/foundation/clock.h"
#include "engine/foundation/text.h"
#include "engine/remote/channel/run.h"
#include "engine/remote/ssh/connection.h"
#include "tests/integration/remote/options.h"

#include <errno.h>
#include <stdio.h>
#include <sys/resource.h>

enum { OUTPUT_LIMIT = 64 << 20 };

struct attempt {
    const char *destination;
    struct ssh_connection *connection;
    struct channel_run *run;
    bool failed;
};

static struct {
    struct ssh_client_options ssh;
    const char *identities[TRY_TEXTS_MAX];
    const char *input, *output, *error;
    unsigned copies;
    bool measure;
    int64_t give_up_ns; /* 0: never */
} options = {.ssh.identities = options.identities, .copies = 1};

static struct event_loop *loop;
static struct ssh_client *client;
static struct attempt *attempts;
static size_t attempt_count, waiting, unready;
static struct text input;
static const char *command;
static int status;
static int64_t started, connected;

static void done(struct attempt *attempt, const struct failure *why) {
    if (why) {
        status = 1;
        printf("failed %s %s %s: %s\n", attempt->destination, strerrorname_np(-why->code), why->place,
               why->text);
    }
    if (--waiting == 0)
        event_loop_stop(loop);
}

static void on_give_up(struct event_source *self, void *context) {
    (void)self;
    (void)context;
    status = 3;
    event_loop_stop(loop);
}

static void save(const char *path, const char *bytes, size_t length) {
    FILE *file = path ? fopen(path, "w") : NULL;
    if (file) {
        fwrite(bytes, 1, length, file);
        fclose(file);
    }
}

static void on_run(const struct channel_run_result *result, const struct failure *failure, void *context) {
    struct attempt *attempt = context;
    attempt->run = NULL;
    if (result) {
        if (result->end.exited)
            printf("end %s exit %d\n", attempt->destination, result->end.code);
        else if (result->end.signal[0])
            printf("end %s signal %s\n", attempt->destination, result->end.signal);
        else
            printf("end %s unknown\n", attempt->destination);
        save(options.output, result->output, result->output_length);
        save(options.error, result->error, result->error_length);
    }
    attempt->failed = true;
    done(attempt, failure);
}

static void on_ready(struct ssh_connection *connection, void *context) {
    struct attempt *attempt = context;
    printf("ready %s\n", attempt->destination);
    if (--unready == 0)
        connected = clock_monotonic_ns();
    struct failure failure;
    struct channel_run *run = channel_run_new(input.bytes, input.length, OUTPUT_LIMIT, on_run, attempt);
    struct remote_channel_listener listener = channel_run_listener(run);
    struct remote_channel *channel;
    if (ssh_connection_open(connection, command, &listener, &channel, &failure) == 0) {
        channel_run_started(run, channel);
        attempt->run = run;
    } else {
        channel_run_cancel(run);
        attempt->failed = true;
        done(attempt, &failure);
    }
}

static void on_closed(struct ssh_connection *connection, const struct failure *why, void *context) {
    (void)connection;
    struct attempt *attempt = context;
    if (!attempt->failed) {
        attempt->failed = true;
        done(attempt, why);
    }
}

static int refuse(const struct failure *failure) {
    char text[2048];
    fprintf(stderr, "ssh-try: %s\n", failure_describe(failure, text, sizeof text));
    return failure->kind == FAILURE_INPUT ? 2 : 1;
}

static int run_all(char **destinations, size_t count) {
    struct failure failure = {0};
    struct ssh_connection_listener listener = {.on_ready = on_ready, .on_closed = on_closed};
    attempt_count = count * options.copies;
    attempts = calloc(attempt_count, sizeof *attempts);
    waiting = unready = attempt_count;
    started = clock_monotonic_ns();
    for (size_t i = 0; i < attempt_count; i++) {
        listener.context = &attempts[i];
        attempts[i].destination = destinations[i % count];
        if (ssh_connection_new(client, attempts[i].destination, &listener, &attempts[i].connection,
                               &failure) < 0 ||
            ssh_connection_start(attempts[i].connection, &failure) < 0)
            return refuse(&failure);
    }
    if (options.give_up_ns > 0)
        (void)event_loop_add_timer(loop, options.give_up_ns, 0, on_give_up, NULL);
    if (event_loop_run(loop, &failure) < 0)
        return refuse(&failure);
    return status;
}

static const struct try_option rows[] = {
    {"--user", .text = &options.ssh.user},
    {"--identity", .text = options.identities, .count = &options.ssh.identity_count},
    {"--jump", .text = &options.ssh.jump},
    {"--config", .text = &options.ssh.config},
    {"--known-hosts", .text = &options.ssh.known_hosts},
    {"--accepted", .text = &options.ssh.accepted_hosts},
    {"--window", .number = &options.ssh.window},
    {"--timeout", .seconds_ns = &options.ssh.timeout_ns},
    {"--copies", .number = &options.copies},
    {"--input", .text = &options.input},
    {"--output", .text = &options.output},
    {"--error", .text = &options.error},
    {"--measure", .is_given = &options.measure},
    {"--give-up", .seconds_ns = &options.give_up_ns},
    {NULL},
};

static void report_cost(void) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    double cpu = (double)(usage.ru_utime.tv_sec + usage.ru_stime.tv_sec) +
                 (double)(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) * 1e-6;
    printf("cpu %.3f s, connected after %.3f s, %ld kB, %ld switches\n", cpu,
           (double)(connected - started) * 1e-9, usage.ru_maxrss, usage.ru_nvcsw);
}

static int read_input(void) {
    text_init(&input, OUTPUT_LIMIT);
    FILE *file = options.input ? fopen(options.input, "r") : NULL;
    char bytes[65536];
    size_t got;
    while (file && (got = fread(bytes, 1, sizeof bytes, file)) > 0)
        if (text_append(&input, bytes, got) < 0)
            return -EFBIG;
    if (file)
        fclose(file);
    return options.input && !file ? -ENOENT : 0;
}

int main(int count, char **words) {
    setvbuf(stdout, NULL, _IOLBF, 0);
    char **destinations = try_options(rows, words + 1);
    if (!destinations || words + count - destinations < 3 || strcmp(words[count - 2], "--") != 0 ||
        read_input() < 0) {
        fprintf(stderr, "usage: ssh-try [OPTION...] DESTINATION... -- COMMAND\n");
        return 2;
    }
    command = words[count - 1];
    struct failure failure = {0};
    loop = event_loop_new(&failure);
    if (!loop)
        return refuse(&failure);
    int r = ssh_client_new(loop, &options.ssh, &client, &failure);
    int code = r < 0 ? refuse(&failure) : run_all(destinations, (size_t)(words + count - 2 - destinations));
    for (size_t i = 0; i < attempt_count; i++)
        channel_run_cancel(attempts[i].run);
    for (size_t i = 0; i < attempt_count; i++)
        ssh_connection_free(attempts[i].connection);
    ssh_client_free(client);
    event_loop_free(loop);
    free(attempts);
    text_clear(&input);
    if (options.measure)
        report_cost();
    return code;
}
