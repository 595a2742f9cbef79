#include "engine/agent/daemon/sessions.h"

#include "engine/agent/daemon/control-socket.h"
#include "engine/agent/daemon/relay.h"
#include "engine/agent/machine/tool.h"
#include "engine/agent/serve/workspace.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { SOCKETS_LIMIT = 64 << 20, SESSIONS_LIMIT = 1 << 20, ANSWER_TIMEOUT_MS = 2000 };

/* How long the end of an agent is waited for: its commands have their graces, and its folder may be large.
 * `assay nodes clean` waits for 60 s. */
enum { END_TIMEOUT_MS = 50000 };

#define TABLE "/proc/net/unix"

struct sessions {
    uint64_t *items;
    size_t count, capacity;
};

static void sessions_clear(struct sessions *sessions) {
    free(sessions->items);
}

/* ---- finding sessions */

/* Reads a session from a line of /proc/net/unix, "ADDRESS: REFERENCES PROTOCOL FLAGS TYPE STATE INODE NAME",
 * where a NUL is written '@' and flag 0x10000 means a listening socket. False: the socket is not that of a
 * daemon of our user. */
static bool parse_line(const char *line, const char *prefix, uint64_t *ret) {
    unsigned flags;
    char name[128];
    size_t length = strlen(prefix);
    return sscanf(line, "%*s %*s %*s %x %*s %*s %*s %127s", &flags, name) == 2 && flags & 0x10000 &&
           strncmp(name, prefix, length) == 0 && control_socket_parse_session(name + length, ret);
}

static int compare(const void *a, const void *b) {
    uint64_t one = *(const uint64_t *)a, other = *(const uint64_t *)b;
    return (one > other) - (one < other);
}

/* Finds the sessions of our user's daemons, in order. */
static int find_sessions(struct sessions *ret, struct failure *failure) {
    cleanup(text_clear) struct text table;
    text_init(&table, SOCKETS_LIMIT);
    char prefix[64];
    snprintf(prefix, sizeof prefix, "@assay-agent-%ld-", (long)geteuid());
    int r = file_read(TABLE, &table, failure);
    if (r < 0)
        return r;
    char *rest = table.length ? table.bytes : NULL, *line;
    while ((line = strsep(&rest, "\n")) && ret->count < SESSIONS_LIMIT) {
        uint64_t session;
        if (!parse_line(line, prefix, &session))
            continue;
        if (list_reserve(&ret->items, &ret->capacity, ret->count + 1, sizeof *ret->items, SESSIONS_LIMIT) < 0)
            return failure_memory(failure);
        ret->items[ret->count++] = session;
    }
    if (ret->count)
        qsort(ret->items, ret->count, sizeof *ret->items, compare);
    return 0;
}

/* ---- requests to daemons */

/* How long connecting may take in all, for all sockets together: other users can make any number of sockets
 * that accept no connection. */
static int connect_timeout_ms = ANSWER_TIMEOUT_MS;

/* Connects to a session's daemon, and subtracts the time from what is left for connecting. */
static int connect_to_daemon(uint64_t session, pid_t *ret_pid) {
    int64_t start = clock_monotonic_ns();
    int connection = control_socket_connect(session, connect_timeout_ms, ret_pid);
    int64_t waited_ms = (clock_monotonic_ns() - start) / 1000000;
    connect_timeout_ms = waited_ms < connect_timeout_ms ? connect_timeout_ms - (int)waited_ms : 0;
    return connection;
}

/* Sends the request KIND to a session's daemon. Returns 1 with its answer in *RET; 0: the session has no
 * daemon any more; -ETIMEDOUT: the daemon does not answer. */
static int request(uint64_t session, enum control_kind kind, struct control_message *ret, pid_t *ret_pid) {
    cleanup_close int connection = connect_to_daemon(session, ret_pid);
    if (connection == -EAGAIN)
        return -ETIMEDOUT;
    if (connection < 0 || control_socket_send(connection, kind, NULL, NULL, 0) < 0)
        return 0;
    int ready = clock_poll(&(struct pollfd){.fd = connection, .events = POLLIN},
                           ANSWER_TIMEOUT_MS * INT64_C(1000000));
    if (ready == 0)
        return -ETIMEDOUT;
    return control_socket_receive(connection, ret) > 0;
}

int sessions_list(bool remove_abandoned) {
    cleanup(sessions_clear) struct sessions sessions = {0};
    struct failure failure;
    if (find_sessions(&sessions, &failure) < 0)
        return tool_complain(1, "%s", failure.text);
    for (size_t i = 0; i < sessions.count; i++) {
        struct control_message message;
        pid_t pid = 0;
        int r = request(sessions.items[i], CONTROL_LIST, &message, &pid);
        if (r == -ETIMEDOUT)
            printf("%016llx\tsilent\t0\t0\t0\t%ld\t0\t\t\n", (unsigned long long)sessions.items[i],
                   (long)pid);
        if (r <= 0)
            continue;
        if (message.kind == CONTROL_LINE)
            printf("%s\n", message.text);
        control_message_clear(&message);
    }
    workspace_find_abandoned(remove_abandoned);
    return fflush(stdout) == 0 ? 0 : tool_complain(1, "cannot write to stdout");
}

/* Asks a session's daemon to end and waits until it has. Returns an exit status; RELAY_UNAVAILABLE: there is
 * no such daemon. */
static int end_one(uint64_t session) {
    struct control_message message;
    pid_t pid = 0;
    int r = request(session, CONTROL_END, &message, &pid);
    if (r == -ETIMEDOUT)
        return tool_complain(1, "the agent of session %016llx (process %ld) does not answer",
                             (unsigned long long)session, (long)pid);
    if (r == 0)
        return RELAY_UNAVAILABLE;
    cleanup_close int shutdown_fd = take_descriptor(message.descriptors[0]);
    control_message_clear(&message);
    r = shutdown_fd >= 0 ? relay_wait_for_end(shutdown_fd, END_TIMEOUT_MS) : 0;
    if (r == -ETIMEDOUT)
        return tool_complain(
            1, "the agent of session %016llx (process %ld) has not gone after %d s; it is still leaving",
            (unsigned long long)session, (long)pid, END_TIMEOUT_MS / 1000);
    return r > 0 ? 0 : 1;
}

/* Ends the agent of SESSION; 0: all agents of this user. The exit status. */
int sessions_end(uint64_t session) {
    if (session != 0) {
        int status = end_one(session);
        if (status == RELAY_UNAVAILABLE)
            (void)relay_complain_of_absence(session);
        return status;
    }
    cleanup(sessions_clear) struct sessions sessions = {0};
    struct failure failure;
    int status = find_sessions(&sessions, &failure) < 0 ? tool_complain(1, "%s", failure.text) : 0;
    for (size_t i = 0; status == 0 && i < sessions.count; i++) {
        int one = end_one(sessions.items[i]);
        status = one == RELAY_UNAVAILABLE ? 0 : one; /* the agent has ended by itself meanwhile */
    }
    return status;
}
