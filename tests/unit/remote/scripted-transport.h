/*
 * A transport for tests: a socket pair to the relay of a real daemon, which breaks when the test says so, or
 * does not open at all. What becomes of bytes on streams that break is a matter for tests/simulation.
 */
#ifndef ASSAY_TESTS_UNIT_REMOTE_SCRIPTED_TRANSPORT_H
#define ASSAY_TESTS_UNIT_REMOTE_SCRIPTED_TRANSPORT_H

#include "engine/foundation/cleanup.h"
#include "tests/unit/remote/fixture.h"

#include <inttypes.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/wait.h>

/* What all streams of one link have in common. The test changes it as it goes. */
struct script {
    const char *folder;
    uint64_t session;
    int refuse;            /* a negative errno: what new streams end with instead of opening */
    int64_t open_delay_ns; /* of new streams */
    bool begins_at_once;   /* an agent may be there before that delay is over */
};

struct scripted {
    struct transport head;
    struct script *script;
    int socket;
    pid_t relay;
    struct event_source *source, *child, *end, *delay;
    struct failure failure;
    size_t line_length;
    bool broken;
};

static void scripted_fail(struct scripted *scripted, int code, const char *sentence) {
    if (scripted->broken)
        return;
    scripted->broken = true;
    failure_set(&scripted->failure, code, "%s", sentence);
    snprintf(scripted->failure.place, sizeof scripted->failure.place, "node %s", scripted->head.node);
    event_source_remove(take_pointer(scripted->source));
    cleanup_close_descriptor(&scripted->socket);
    scripted->socket = -1;
    event_source_defer(scripted->end);
}

static void scripted_on_end(struct event_source *self, void *context) {
    (void)self;
    struct scripted *scripted = context;
    bool asked = scripted->head.state == TRANSPORT_CLOSING;
    transport_set_state(&scripted->head, TRANSPORT_CLOSED, asked ? NULL : &scripted->failure);
}

static void scripted_on_child(struct event_source *self, const struct event_child_exit *exit, void *context) {
    (void)self;
    struct scripted *scripted = context;
    scripted->child = NULL;
    scripted->relay = 0;
    char sentence[64];
    snprintf(sentence, sizeof sentence, "the relay ended with status %d", exit->code);
    scripted_fail(scripted, exit->code == 69 ? -ESTALE : -ECONNRESET, sentence);
}

/* Byte by byte up to the end of the relay's line: what follows is frames. */
static void scripted_read_line(struct scripted *scripted) {
    static const char start[] = "ASSAY-AGENT ATTACHED ";
    char byte;
    while (recv(scripted->socket, &byte, 1, 0) == 1) {
        if (scripted->line_length == 0 && byte == '\n')
            continue; /* the relay ends what login scripts have left unfinished */
        if (scripted->line_length < sizeof start - 1)
            assert_int_equal(byte, start[scripted->line_length]);
        scripted->line_length++;
        if (byte != '\n')
            continue;
        event_source_set_events(scripted->source, 0);
        transport_set_state(&scripted->head, TRANSPORT_OPEN, NULL);
        return;
    }
}

static void scripted_on_socket(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    struct scripted *scripted = context;
    struct transport *head = &scripted->head;
    if (events & EVENT_HANGUP)
        events |= EVENT_READ;
    if (head->state == TRANSPORT_STARTING) {
        scripted_read_line(scripted);
    } else if (head->state == TRANSPORT_OPEN && head->listener.on_ready) {
        head->listener.on_ready(head, events & (EVENT_READ | EVENT_WRITE), head->listener.context);
    }
}

static int scripted_spawn(struct scripted *scripted) {
    struct script *script = scripted->script;
    char session[17];
    int ends[2];
    scripted->head.begun = true;
    snprintf(session, sizeof session, "%016" PRIx64, scripted->head.session);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends), 0);
    const char *const attach[] = {agent_program(), "--attach", session, "--directory", script->folder, NULL};
    const char *const resume[] = {agent_program(), "--resume", session, NULL};
    scripted->relay = fork();
    if (scripted->relay == 0) {
        sigset_t none;
        sigemptyset(&none);
        sigprocmask(SIG_SETMASK, &none, NULL);
        dup2(ends[1], 0);
        dup2(ends[1], 1);
        execv(agent_program(), (char **)(scripted->head.resumed ? resume : attach));
        _exit(127);
    }
    assert_true(scripted->relay > 0);
    close(ends[1]);
    scripted->socket = ends[0];
    scripted->child = event_loop_add_child(scripted->head.loop, scripted->relay, scripted_on_child, scripted);
    scripted->source = event_loop_add_descriptor(scripted->head.loop, scripted->socket, EVENT_READ,
                                                 scripted_on_socket, scripted);
    assert_true(scripted->child && scripted->source);
    return 0;
}

static void scripted_on_delay(struct event_source *self, void *context) {
    (void)self;
    scripted_spawn(context);
}

static int scripted_start(struct transport *transport, struct failure *failure) {
    (void)failure;
    struct scripted *scripted = (struct scripted *)transport;
    struct script *script = scripted->script;
    scripted->end = event_loop_add_deferred(transport->loop, scripted_on_end, scripted);
    scripted->delay = event_loop_add_timer(transport->loop, -1, 0, scripted_on_delay, scripted);
    transport->begun = script->begins_at_once;
    if (script->refuse)
        scripted_fail(scripted, script->refuse, "the test refuses it");
    else if (script->open_delay_ns)
        event_source_set_timer(scripted->delay, script->open_delay_ns, 0);
    else
        return scripted_spawn(scripted);
    return 0;
}

static ssize_t scripted_read(struct transport *transport, void *bytes, size_t size) {
    struct scripted *scripted = (struct scripted *)transport;
    if (scripted->broken)
        return -ECONNRESET;
    ssize_t got = recv(scripted->socket, bytes, size, 0);
    return got < 0 ? -errno : got;
}

static ssize_t scripted_write(struct transport *transport, const void *bytes, size_t length) {
    struct scripted *scripted = (struct scripted *)transport;
    if (scripted->broken)
        return -EPIPE;
    ssize_t sent = send(scripted->socket, bytes, length, MSG_NOSIGNAL);
    return sent < 0 ? -errno : sent;
}

static int scripted_want(struct transport *transport, unsigned events) {
    struct scripted *scripted = (struct scripted *)transport;
    return scripted->source ? event_source_set_events(scripted->source, events) : 0;
}

/* The relay goes when the agent has, if that was told to leave, or when it has been told that the link is
 * over. */
static void scripted_close(struct transport *transport) {
    struct scripted *scripted = (struct scripted *)transport;
    if (scripted->socket < 0) {
        event_source_defer(scripted->end);
        return;
    }
    event_source_set_events(scripted->source, 0);
    shutdown(scripted->socket, SHUT_WR);
}

static void scripted_free(struct transport *transport) {
    struct scripted *scripted = (struct scripted *)transport;
    event_source_remove(scripted->source);
    event_source_remove(scripted->child);
    event_source_remove(scripted->end);
    event_source_remove(scripted->delay);
    cleanup_close_descriptor(&scripted->socket);
    if (scripted->relay > 0) {
        kill(scripted->relay, SIGKILL);
        waitpid(scripted->relay, NULL, 0);
    }
    free(transport->node);
    free(scripted);
}

static int scripted_renew(struct transport *old, struct transport **ret, struct failure *failure);

static const struct transport_operations scripted_operations = {
    .name = "scripted",
    .start = scripted_start,
    .read = scripted_read,
    .write = scripted_write,
    .want = scripted_want,
    .close = scripted_close,
    .free = scripted_free,
    .renew = scripted_renew,
};

static struct transport *scripted_new(struct event_loop *loop, struct script *script) {
    struct scripted *scripted = calloc(1, sizeof *scripted);
    scripted->head.operations = &scripted_operations;
    scripted->head.loop = loop;
    scripted->head.node = strdup("testnode");
    scripted->head.session = script->session;
    scripted->script = script;
    scripted->socket = -1;
    return &scripted->head;
}

static int scripted_renew(struct transport *old, struct transport **ret, struct failure *failure) {
    (void)failure;
    *ret = scripted_new(old->loop, ((struct scripted *)old)->script);
    (*ret)->resumed = true;
    return 0;
}

#endif
