/*
 * A transport for tests: a socket pair to the relay of a real daemon, which breaks where the script says, has
 * bytes vanish, or does not open at all.
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
    bool remove_directory;
    uint64_t session;
    uint64_t seed;         /* of the places where streams break */
    size_t break_within;   /* each breaks after so many bytes at most, in either direction; 0: none does */
    bool swallows;         /* streams that are open take bytes to nowhere and give none */
    int refuse;            /* a negative errno: what new streams end with instead of opening */
    int64_t open_delay_ns; /* of new streams */
    bool begins_at_once;   /* an agent may be there before that delay is over */
    size_t bytes_a_tick;   /* streams take so many bytes in 10 ms; 0: any number */
    int attempts, streams, breaks;
    int64_t attempt_ns[64]; /* when the first ones began */
};

struct scripted {
    struct transport head;
    struct script *script;
    int socket;
    pid_t relay;
    struct event_source *source, *child, *end, *delay, *tick;
    size_t read_left, write_left, tick_left;
    unsigned wanted;
    struct failure failure;
    size_t line_length;
    bool swallowed; /* this one was open when bytes began to vanish, and stays so */
    bool broken;
};

static uint64_t script_random(struct script *script) {
    script->seed ^= script->seed << 13;
    script->seed ^= script->seed >> 7;
    script->seed ^= script->seed << 17;
    return script->seed;
}

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
        scripted->script->streams++;
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
    } else if (scripted->swallowed) {
        char bytes[4096];
        while (recv(scripted->socket, bytes, sizeof bytes, 0) > 0)
            continue;
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
    const char *const attach[] = {agent_program(),
                                  "--attach",
                                  session,
                                  "--directory",
                                  script->folder,
                                  script->remove_directory ? "--remove-directory" : NULL,
                                  NULL};
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

static void scripted_on_tick(struct event_source *self, void *context) {
    (void)self;
    struct scripted *scripted = context;
    struct transport *head = &scripted->head;
    scripted->tick_left = scripted->script->bytes_a_tick;
    if (head->state == TRANSPORT_OPEN && scripted->wanted & EVENT_WRITE && head->listener.on_ready)
        head->listener.on_ready(head, EVENT_WRITE, head->listener.context);
}

/* Where this stream will break. */
static void scripted_draw(struct scripted *scripted) {
    struct script *script = scripted->script;
    scripted->read_left = scripted->write_left = SIZE_MAX;
    if (!script->break_within)
        return;
    size_t place = 1 + script_random(script) % script->break_within;
    *(script_random(script) & 1 ? &scripted->read_left : &scripted->write_left) = place;
}

static int scripted_start(struct transport *transport, struct failure *failure) {
    (void)failure;
    struct scripted *scripted = (struct scripted *)transport;
    struct script *script = scripted->script;
    if (script->attempts < 64)
        script->attempt_ns[script->attempts] = clock_monotonic_ns();
    script->attempts++;
    scripted->end = event_loop_add_deferred(transport->loop, scripted_on_end, scripted);
    scripted->delay = event_loop_add_timer(transport->loop, -1, 0, scripted_on_delay, scripted);
    scripted->tick = event_loop_add_timer(transport->loop, -1, 0, scripted_on_tick, scripted);
    transport->begun = script->begins_at_once;
    scripted_draw(scripted);
    if (script->refuse)
        scripted_fail(scripted, script->refuse, "the test refuses it");
    else if (script->open_delay_ns)
        event_source_set_timer(scripted->delay, script->open_delay_ns, 0);
    else
        return scripted_spawn(scripted);
    return 0;
}

/* Spends GOT of LEFT; at none, the stream breaks, and what is on its way is lost. */
static void scripted_spend(struct scripted *scripted, size_t *left, size_t got) {
    if (*left == SIZE_MAX)
        return;
    *left -= got;
    if (*left > 0)
        return;
    scripted->script->breaks++;
    scripted_fail(scripted, -ECONNRESET, "the test broke it");
}

static ssize_t scripted_read(struct transport *transport, void *bytes, size_t size) {
    struct scripted *scripted = (struct scripted *)transport;
    if (scripted->broken)
        return -ECONNRESET;
    scripted->swallowed |= scripted->script->swallows;
    if (scripted->swallowed)
        return -EAGAIN;
    ssize_t got = recv(scripted->socket, bytes, size < scripted->read_left ? size : scripted->read_left, 0);
    if (got > 0)
        scripted_spend(scripted, &scripted->read_left, (size_t)got);
    return got < 0 ? -errno : got;
}

static ssize_t scripted_write(struct transport *transport, const void *bytes, size_t length) {
    struct scripted *scripted = (struct scripted *)transport;
    if (scripted->broken)
        return -EPIPE;
    scripted->swallowed |= scripted->script->swallows;
    if (scripted->swallowed)
        return (ssize_t)length;
    if (scripted->script->bytes_a_tick && length > scripted->tick_left)
        length = scripted->tick_left;
    if (length == 0)
        return -EAGAIN;
    ssize_t sent = send(scripted->socket, bytes,
                        length < scripted->write_left ? length : scripted->write_left, MSG_NOSIGNAL);
    if (sent > 0 && scripted->script->bytes_a_tick)
        scripted->tick_left -= (size_t)sent;
    if (sent > 0)
        scripted_spend(scripted, &scripted->write_left, (size_t)sent);
    return sent < 0 ? -errno : sent;
}

static int scripted_want(struct transport *transport, unsigned events) {
    struct scripted *scripted = (struct scripted *)transport;
    scripted->wanted = events;
    if (scripted->script->swallows || scripted->script->bytes_a_tick)
        events &= ~(unsigned)EVENT_WRITE;
    if (scripted->script->bytes_a_tick)
        event_source_set_timer(scripted->tick, 10 * EVENT_MILLISECOND, 10 * EVENT_MILLISECOND);
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
    event_source_remove(scripted->tick);
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
