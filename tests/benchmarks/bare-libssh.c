/*
 * bare-libssh FOLDER COUNT ROUNDS COMMAND: what libssh alone needs, without an agent and without assay: one
 * process logs in on the first COUNT nodes of a test bed's FOLDER, then ROUNDS times opens a channel on each
 * for COMMAND and reads what comes. Prints the seconds of connecting, of the median round, and the bytes of a
 * round.
 */
#include <libssh/libssh.h>
#include <poll.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NODES_MAX = 1024 };

struct peer {
    ssh_session session;
    ssh_channel channel;
    enum { CONNECTING, LOGGING_IN, IDLE, OPENING, ASKING, READING } step;
};

static struct peer peers[NODES_MAX];
static char buffer[64 << 10];

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

static _Noreturn void fail(const char *what, ssh_session session) {
    fprintf(stderr, "bare-libssh: %s: %s\n", what, session ? ssh_get_error(session) : "no such file");
    exit(1);
}

static void begin(struct peer *peer, const char *host) {
    bool off = false;
    int on = 1;
    peer->session = ssh_new();
    ssh_options_set(peer->session, SSH_OPTIONS_HOST, host);
    ssh_options_set(peer->session, SSH_OPTIONS_USER, "root");
    ssh_options_set(peer->session, SSH_OPTIONS_PROCESS_CONFIG, &off);
    ssh_options_set(peer->session, SSH_OPTIONS_NODELAY, &on);
    ssh_options_set(peer->session, SSH_OPTIONS_KEY_EXCHANGE, "curve25519-sha256");
    ssh_set_blocking(peer->session, 0);
}

/* One step; whether it was taken. */
static bool advance(struct peer *peer, ssh_key key, const char *command, size_t *bytes) {
    int r;
    switch (peer->step) {
    case CONNECTING:
        r = ssh_connect(peer->session);
        if (r == SSH_ERROR)
            fail("cannot connect", peer->session);
        break;
    case LOGGING_IN:
        r = ssh_userauth_publickey(peer->session, NULL, key);
        if (r == SSH_AUTH_AGAIN)
            return false;
        if (r != SSH_AUTH_SUCCESS)
            fail("cannot log in", peer->session);
        r = SSH_OK;
        break;
    case OPENING:
        r = ssh_channel_open_session(peer->channel);
        if (r == SSH_ERROR)
            fail("cannot open a channel", peer->session);
        break;
    case ASKING:
        r = ssh_channel_request_exec(peer->channel, command);
        if (r == SSH_ERROR)
            fail("cannot run", peer->session);
        break;
    case READING:
        r = ssh_channel_read_nonblocking(peer->channel, buffer, sizeof buffer, 0);
        if (r > 0) {
            *bytes += (size_t)r;
            return true;
        }
        if (!ssh_channel_is_eof(peer->channel) || ssh_channel_get_exit_status(peer->channel) < 0)
            return false;
        ssh_channel_free(peer->channel);
        peer->step = IDLE;
        return true;
    default:
        return false;
    }
    if (r == SSH_AGAIN)
        return false;
    peer->step++;
    return true;
}

static void run_until_idle(size_t count, ssh_key key, const char *command, size_t *bytes) {
    for (bool idle = false; !idle;) {
        bool moved = false;
        struct pollfd wait[NODES_MAX];
        nfds_t waiting = 0;
        idle = true;
        for (size_t i = 0; i < count; i++) {
            moved |= advance(&peers[i], key, command, bytes);
            if (peers[i].step == IDLE)
                continue;
            idle = false;
            int descriptor = ssh_get_fd(peers[i].session);
            if (descriptor >= 0)
                wait[waiting++] = (struct pollfd){.fd = descriptor, .events = POLLIN};
        }
        if (!idle && !moved)
            poll(wait, waiting, 5);
    }
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

int main(int count, char **arguments) {
    long nodes = count == 5 ? strtol(arguments[2], NULL, 10) : 0,
         rounds = count == 5 ? strtol(arguments[3], NULL, 10) : 0;
    if (nodes < 1 || nodes > NODES_MAX || rounds < 1 || rounds > 10000) {
        fprintf(stderr, "usage: bare-libssh FOLDER COUNT ROUNDS COMMAND\n");
        return 2;
    }
    char path[4096];
    snprintf(path, sizeof path, "%s/id_ed25519", arguments[1]);
    ssh_key key;
    if (ssh_pki_import_privkey_file(path, NULL, NULL, NULL, &key) != SSH_OK)
        fail(path, NULL);
    snprintf(path, sizeof path, "%s/nodes", arguments[1]);
    FILE *names = fopen(path, "re");
    if (!names)
        fail(path, NULL);
    double start = now();
    for (long i = 0; i < nodes && fgets(buffer, sizeof buffer, names); i++) {
        buffer[strcspn(buffer, "\n")] = '\0';
        begin(&peers[i], buffer);
    }
    fclose(names);
    size_t bytes = 0;
    /* LOGGING_IN is followed by IDLE. */
    run_until_idle((size_t)nodes, key, arguments[4], &bytes);
    double connected = now() - start, *times = calloc((size_t)rounds, sizeof *times);
    for (long round = 0; times && round < rounds; round++) {
        bytes = 0;
        double from = now();
        for (long i = 0; i < nodes; i++) {
            peers[i].channel = ssh_channel_new(peers[i].session);
            peers[i].step = OPENING;
        }
        run_until_idle((size_t)nodes, key, arguments[4], &bytes);
        times[round] = now() - from;
    }
    qsort(times, (size_t)rounds, sizeof *times, compare);
    printf("%.4f %.6f %zu\n", connected, times[rounds / 2], bytes);
    free(times);
    return 0;
}
