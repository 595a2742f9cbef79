/*
 * A wire is a stream of bytes between a transport of the engine and the agent of a node. What goes in at one
 * end comes out at the other after the network's delay, in order; or it does not, when the network stalls,
 * swallows all, or is cut. A wire outlives its transport, as the server's end of a connection does.
 */
#include "tests/simulation/world.h"

#include "engine/agent/controls/restore.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum chunk_kind { CHUNK_BYTES, CHUNK_OPEN, CHUNK_END };

struct chunk {
    struct chunk *next;
    enum chunk_kind kind;
    int code; /* of CHUNK_END */
    int64_t due_ns;
    size_t length, done;
    char bytes[];
};

struct direction {
    struct chunk *first, *last;
    size_t bytes;
};

struct scripted;

struct wire {
    struct wire *next;
    struct node *node;
    struct scripted *transport;   /* NULL: the engine has let go of it */
    struct direction up, down;    /* to the agent; to the engine */
    struct event_source *carrier; /* timer: the next chunk is due */
    struct event_source *reader;  /* what the agent says */
    int socket;                   /* the other end of the agent's; -1 */
    bool resumed, connected;
    bool waiting; /* at the agent's door */
    bool swallows, down_over;
};

struct scripted {
    struct transport head;
    struct node *node;
    struct wire *wire;                    /* NULL: before the start */
    struct event_source *poke, *patience; /* deferred and a timer of the engine's */
    struct text arrived;
    unsigned wanted;
    unsigned opened; /* 1: connected; 2: to the agent */
    bool ended;
    int code; /* how it ended; 0: in order */
};

#define OPEN_PATIENCE (20 * SECOND)
#define CLOSE_PATIENCE (10 * SECOND) /* as that of ssh */

static struct wire *wires;

static struct event_loop *network(void) {
    return world.actors[NETWORK].loop;
}

/* ---- carrying */

static void direction_clear(struct direction *direction) {
    for (struct chunk *chunk = direction->first, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    *direction = (struct direction){0};
}

static void arrive(struct wire *wire);

/* Is there anything to be given, and somebody to take it? */
static bool is_for_agent(const struct wire *wire) {
    const struct chunk *chunk = wire->up.first;
    return chunk && (chunk->kind == CHUNK_OPEN || wire->socket >= 0);
}

static void set_carrier(struct wire *wire) {
    int64_t due = INT64_MAX;
    if (is_for_agent(wire))
        due = wire->up.first->due_ns;
    if (wire->down.first && wire->down.first->due_ns < due)
        due = wire->down.first->due_ns;
    if (due < wire->node->stalled_until_ns)
        due = wire->node->stalled_until_ns;
    event_source_set_timer(wire->carrier, due == INT64_MAX ? -1 : due > now() ? due - now() : 0, 0);
}

static void put(struct wire *wire, struct direction *direction, enum chunk_kind kind, const void *bytes,
                size_t length, int code) {
    if (wire->swallows)
        return;
    struct chunk *chunk = calloc(1, sizeof *chunk + length);
    int64_t due = now() + wire->node->latency_ns + draw_time(0, wire->node->jitter_ns);
    if (direction->last && due < direction->last->due_ns)
        due = direction->last->due_ns;
    *chunk = (struct chunk){.kind = kind, .due_ns = due, .length = length, .code = code};
    if (length)
        memcpy(chunk->bytes, bytes, length);
    if (direction->last)
        direction->last->next = chunk;
    else
        direction->first = chunk;
    direction->last = chunk;
    direction->bytes += length;
    set_carrier(wire);
}

static void pop(struct direction *direction) {
    struct chunk *chunk = direction->first;
    direction->first = chunk->next;
    if (!direction->first)
        direction->last = NULL;
    direction->bytes -= chunk->length;
    free(chunk);
}

static void poke(struct scripted *transport) {
    if (transport)
        event_source_defer(transport->poke);
}

static void heard(struct node *node) {
    if (world.actors[FIRST_AGENT + node->number].frozen) {
        node->unread = true;
        return;
    }
    if (node->heard_ns != now())
        node->before_ns = node->heard_ns;
    node->heard_ns = now();
}

/* A cut that waits for traffic, so that it comes in the middle of something: how many of LENGTH bytes pass
 * before it.
 */
static size_t pass_before_cut(struct node *node, size_t length) {
    if (!node->cuts_after || length < node->cuts_after) {
        node->cuts_after -= node->cuts_after ? length : 0;
        return length;
    }
    return node->cuts_after;
}

/* False: the agent takes no more for now. */
static bool give_to_agent(struct wire *wire) {
    struct chunk *chunk = wire->up.first;
    if (chunk->kind != CHUNK_BYTES) {
        bool is_end = chunk->kind == CHUNK_END;
        pop(&wire->up);
        if (is_end)
            shutdown(wire->socket, SHUT_WR);
        else
            arrive(wire);
        return true;
    }
    size_t left = chunk->length - chunk->done, length = pass_before_cut(wire->node, left);
    ssize_t sent = send(wire->socket, chunk->bytes + chunk->done, length, MSG_NOSIGNAL);
    if (sent < 0 && errno == EAGAIN) {
        chunk->due_ns = now() + MS;
        return false;
    }
    if (sent > 0 && wire->node->attached == wire)
        heard(wire->node);
    if (length < left) {
        network_cut(wire->node, happens(70), happens(70));
        return false;
    }
    chunk->done += sent > 0 ? (size_t)sent : chunk->length - chunk->done; /* nobody is there: it is lost */
    if (chunk->done == chunk->length)
        pop(&wire->up);
    poke(wire->transport);
    return true;
}

static void give_to_engine(struct wire *wire) {
    struct chunk *chunk = wire->down.first;
    struct scripted *transport = wire->transport;
    if (transport && chunk->kind == CHUNK_BYTES) {
        size_t length = pass_before_cut(wire->node, chunk->length);
        (void)text_append(&transport->arrived, chunk->bytes, length);
        if (transport->head.state == TRANSPORT_OPEN && transport->wanted & EVENT_READ &&
            !world.actors[ENGINE].frozen)
            wire->node->heard_from_ns = now();
        if (length < chunk->length) {
            poke(transport);
            network_cut(wire->node, happens(70), happens(70));
            return;
        }
    } else if (transport && chunk->kind == CHUNK_OPEN) {
        transport->opened++;
    } else if (transport && !transport->ended) {
        transport->ended = true;
        transport->code = chunk->code;
    }
    pop(&wire->down);
    if (wire->reader && !wire->down.bytes)
        event_source_set_events(wire->reader, EVENT_READ);
    poke(transport);
}

static void on_carrier(struct event_source *self, void *context) {
    struct wire *wire = context;
    if (now() >= wire->node->stalled_until_ns) {
        while (is_for_agent(wire) && wire->up.first->due_ns <= now() && give_to_agent(wire))
            continue;
        while (wire->down.first && wire->down.first->due_ns <= now())
            give_to_engine(wire);
    }
    set_carrier(wire);
}

static void end_down(struct wire *wire, int code) {
    if (wire->down_over)
        return;
    wire->down_over = true;
    put(wire, &wire->down, CHUNK_END, NULL, 0, code);
}

/* The agent's end of the stream is at its end; what still goes there is lost. */
static void hang_up(struct wire *wire) {
    event_source_remove(take_pointer(wire->reader));
    cleanup_close_descriptor(&wire->socket);
    wire->socket = -1;
    direction_clear(&wire->up);
    set_carrier(wire);
    poke(wire->transport);
}

static void on_reader(struct event_source *self, int descriptor, unsigned events, void *context) {
    struct wire *wire = context;
    char bytes[16384];
    if (wire->down.bytes >= 16 * sizeof bytes) {
        event_source_set_events(wire->reader, 0); /* until the engine has taken some */
        return;
    }
    ssize_t got = recv(descriptor, bytes, sizeof bytes, MSG_DONTWAIT);
    if (got > 0) {
        put(wire, &wire->down, CHUNK_BYTES, bytes, (size_t)got, 0);
    } else if (got == 0 || errno != EAGAIN) {
        hang_up(wire);
        end_down(wire, 0);
    }
}

/* ---- the node's end: the relay and the agent's door */

static void on_leaving(struct agent *agent, void *context) {
    struct node *node = context;
    int64_t lease = agent->inbox.received ? node->policy.lease_ns : AGENT_FIRST_LEASE;
    int64_t silence = now() - node->heard_ns, silence_before = now() - node->before_ns;
    trace("agent %zu leaves after a silence of %.3f s", node->number, (double)silence / 1e9);
    if (node->closing_ns || node->freed || (node->is_of_run && (!agent->lease_over || silence == 0)))
        return;
    counters.agent_leases++;
    must(silence >= lease || (silence == 0 && silence_before >= lease),
         "agent %zu leaves after a silence of %.3f s, but its lease is %.3f s", node->number,
         (double)silence / 1e9, (double)lease / 1e9);
}

static void node_start(struct node *node) {
    struct event_loop *loop = world.actors[FIRST_AGENT + node->number].loop;
    struct agent_options options = {.directory = world.directories[node->number],
                                    .root = node->root,
                                    .leave_controls = !node->root,
                                    .session = node->number + 1,
                                    .listener = {.on_leaving = on_leaving, .context = node}};
    (void)event_loop_run_once(loop, 0, NULL); /* looks at the clock */
    must(agent_init(&node->agent, loop, &options, NULL) == 0, "there is no agent");
    trace("agent %zu is there", node->number);
    node->there = true;
    node->born++;
    node->heard_ns = node->before_ns = now();
}

static void attach(struct node *node, struct wire *wire) {
    int ends[2];
    must(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0, ends) == 0,
         "no sockets are left");
    must(agent_attach(&node->agent, ends[1], dup(ends[1]), NULL) == 0, "the agent is not attached");
    wire->socket = ends[0];
    wire->reader = event_loop_add_descriptor(network(), ends[0], EVENT_READ, on_reader, wire);
    wire->waiting = false;
    node->attached = wire;
    put(wire, &wire->down, CHUNK_OPEN, NULL, 0, 0);
    set_carrier(wire);
}

/* In the agent's loop. One that is leaving lets nobody in: who comes waits until it has gone. */
static void on_door(struct event_source *self, void *context) {
    struct node *node = context;
    for (struct wire *wire = wires; wire; wire = wire->next)
        if (wire->node == node && wire->waiting && node->there && node->agent.state < AGENT_LEAVING)
            attach(node, wire);
}

static void nobody_is_there(struct node *node) {
    for (struct wire *wire = wires; wire; wire = wire->next)
        if (wire->node == node && wire->waiting) {
            wire->waiting = false;
            end_down(wire, -ESTALE);
        }
}

/* First the connection; then, in answer to that, the order to start the relay. */
static void arrive(struct wire *wire) {
    struct node *node = wire->node;
    if (!wire->connected) {
        wire->connected = true;
        if (now() < node->refused_until_ns)
            end_down(wire, node->refusal ? node->refusal : -ECONNREFUSED);
        else
            put(wire, &wire->down, CHUNK_OPEN, NULL, 0, 0);
        return;
    }
    wire->waiting = true;
    if (!node->there && wire->resumed) {
        nobody_is_there(node);
        return;
    }
    if (!node->there)
        node_start(node);
    event_source_defer(node->door);
}

static void node_end(struct node *node) {
    trace("agent %zu is gone", node->number);
    if (node->keeps_controls) /* its guardian does, where the agent itself cannot */
        must(restore_own(&node->agent.machine, NULL) == 0, "the controls of node %zu are not put back",
             node->number);
    agent_clear(&node->agent);
    event_loop_resume(world.actors[FIRST_AGENT + node->number].loop);
    node->there = false;
    node->gone_ns = now();
    node->attached = NULL;
    programs_are_gone(node);
    nobody_is_there(node);
}

void node_look(struct node *node) {
    if (node->there && outbox_kept(&node->agent.outbox) > PROTOCOL_WINDOW)
        counters.kept_much++;
    if (node->there && node->agent.state == AGENT_GONE)
        node_end(node);
}

void node_die(struct node *node) {
    if (!node->there)
        return;
    trace("agent %zu is killed", node->number);
    counters.deaths++;
    node->faulty = true;
    node_end(node);
}

void network_clear(void) {
    for (size_t i = 0; i < world.node_count; i++) {
        if (world.nodes[i].there)
            node_end(&world.nodes[i]);
        event_source_remove(world.nodes[i].door);
    }
    for (struct wire *wire = wires, *next; wire; wire = next) {
        next = wire->next;
        event_source_remove(wire->reader);
        event_source_remove(wire->carrier);
        cleanup_close_descriptor(&wire->socket);
        direction_clear(&wire->up);
        direction_clear(&wire->down);
        free(wire);
    }
    wires = NULL;
}

/* ---- the engine's end */

static struct scripted *scripted_of(struct transport *transport) {
    return (struct scripted *)transport;
}

static void close_with(struct scripted *scripted, int code, const char *sentence) {
    struct failure why;
    failure_set(&why, code, "%s", sentence);
    transport_set_state(&scripted->head, TRANSPORT_CLOSED, code ? &why : NULL);
}

static void on_poke(struct event_source *self, void *context) {
    struct scripted *scripted = context;
    struct transport *head = &scripted->head;
    if (head->state == TRANSPORT_STARTING && scripted->opened > 0 && !head->begun) {
        head->begun = true;
        put(scripted->wire, &scripted->wire->up, CHUNK_OPEN, NULL, 0, 0);
    }
    if (head->state == TRANSPORT_STARTING && scripted->opened > 1) {
        event_source_set_timer(scripted->patience, -1, 0);
        transport_set_state(head, TRANSPORT_OPEN, NULL);
    }
    if (head->state == TRANSPORT_OPEN) {
        bool room = scripted->wire && scripted->wire->up.bytes < scripted->node->window;
        unsigned events = (scripted->arrived.length ? EVENT_READ : 0u) | (room ? EVENT_WRITE : 0u);
        events &= scripted->wanted;
        if (events)
            head->listener.on_ready(head, events, head->listener.context);
        if (head->state == TRANSPORT_OPEN && scripted->arrived.length && scripted->wanted & EVENT_READ) {
            event_source_defer(self);
            return;
        }
    }
    if (!scripted->ended)
        return;
    if (head->state == TRANSPORT_CLOSING || scripted->code)
        close_with(scripted, scripted->code, "the network broke it");
    else if (head->state == TRANSPORT_OPEN)
        close_with(scripted, -ECONNRESET, "the agent closed the connection");
}

static void on_patience(struct event_source *self, void *context) {
    close_with(context, -ETIMEDOUT, "the network took too long");
}

static int scripted_start(struct transport *transport, struct failure *failure) {
    struct scripted *scripted = scripted_of(transport);
    struct wire *wire = scripted->wire = calloc(1, sizeof *wire);
    if (scripted->node->attempts < ATTEMPTS_NOTED)
        scripted->node->attempt_ns[scripted->node->attempts] = now();
    scripted->node->attempts++;
    *wire = (struct wire){.node = scripted->node,
                          .transport = scripted,
                          .socket = -1,
                          .resumed = transport->resumed,
                          .next = wires};
    wires = wire;
    wire->carrier = event_loop_add_timer(network(), -1, 0, on_carrier, wire);
    event_source_set_timer(scripted->patience, OPEN_PATIENCE, 0);
    put(wire, &wire->up, CHUNK_OPEN, NULL, 0, 0);
    return 0;
}

static ssize_t scripted_read(struct transport *transport, void *bytes, size_t size) {
    struct scripted *scripted = scripted_of(transport);
    if (!scripted->arrived.length)
        return scripted->ended ? (scripted->code ? scripted->code : 0) : -EAGAIN;
    size_t length = scripted->arrived.length < size ? scripted->arrived.length : size;
    memcpy(bytes, scripted->arrived.bytes, length);
    text_consume(&scripted->arrived, length);
    return (ssize_t)length;
}

static ssize_t scripted_write(struct transport *transport, const void *bytes, size_t length) {
    struct scripted *scripted = scripted_of(transport);
    struct wire *wire = scripted->wire;
    if (scripted->ended)
        return -EPIPE;
    if (wire->up.bytes >= scripted->node->window)
        return -EAGAIN;
    size_t room = scripted->node->window - wire->up.bytes, taken = length < room ? length : room;
    put(wire, &wire->up, CHUNK_BYTES, bytes, taken, 0);
    if (world.freeze_ns)
        freeze(ENGINE, world.freeze_ns);
    world.freeze_ns = 0;
    return (ssize_t)taken;
}

static int scripted_want(struct transport *transport, unsigned events) {
    scripted_of(transport)->wanted = events;
    poke(scripted_of(transport));
    return 0;
}

static void scripted_close(struct transport *transport) {
    struct scripted *scripted = scripted_of(transport);
    put(scripted->wire, &scripted->wire->up, CHUNK_END, NULL, 0, 0);
    if (!scripted->opened)
        scripted->ended = true; /* nobody knows of it */
    event_source_set_timer(scripted->patience, CLOSE_PATIENCE, 0);
    poke(scripted);
}

static void scripted_free(struct transport *transport) {
    struct scripted *scripted = scripted_of(transport);
    if (scripted->wire) {
        scripted->wire->transport = NULL;
        put(scripted->wire, &scripted->wire->up, CHUNK_END, NULL, 0, 0);
    }
    event_source_remove(scripted->poke);
    event_source_remove(scripted->patience);
    text_clear(&scripted->arrived);
    free(transport->node);
    free(scripted);
}

static int scripted_renew(struct transport *old, struct transport **ret, struct failure *failure) {
    *ret = scripted_new(scripted_of(old)->node);
    (*ret)->resumed = true;
    return 0;
}

static const struct transport_operations scripted_operations = {.name = "scripted",
                                                                .start = scripted_start,
                                                                .read = scripted_read,
                                                                .write = scripted_write,
                                                                .want = scripted_want,
                                                                .close = scripted_close,
                                                                .free = scripted_free,
                                                                .renew = scripted_renew};

struct transport *scripted_new(struct node *node) {
    struct event_loop *loop = world.actors[ENGINE].loop;
    struct scripted *scripted = calloc(1, sizeof *scripted);
    scripted->head = (struct transport){.operations = &scripted_operations,
                                        .loop = loop,
                                        .session = node->number + 1,
                                        .node = strdup(node->name ? node->name : "testnode")};
    scripted->node = node;
    text_init(&scripted->arrived, 64 << 20);
    scripted->poke = event_loop_add_deferred(loop, on_poke, scripted);
    scripted->patience = event_loop_add_timer(loop, -1, 0, on_patience, scripted);
    if (!node->door)
        node->door = event_loop_add_deferred(world.actors[FIRST_AGENT + node->number].loop, on_door, node);
    return &scripted->head;
}

/* ---- what goes wrong */

void network_lose_engine(bool silently) {
    for (struct wire *wire = wires; wire; wire = wire->next) {
        if (wire->transport && !silently)
            put(wire, &wire->up, CHUNK_END, NULL, 0, 0);
        wire->swallows |= wire->transport && silently;
        wire->transport = NULL;
    }
}

void network_cut(struct node *node, bool engine_sees, bool agent_sees) {
    trace("the wires to agent %zu are cut; the engine %s, the agent %s", node->number,
          engine_sees ? "sees it" : "does not", agent_sees ? "sees it" : "does not");
    node->faulty = true;
    node->cuts_after = 0;
    if (node->mended_ns < now())
        node->mended_ns = now();
    for (struct wire *wire = wires; wire; wire = wire->next) {
        if (wire->node != node)
            continue;
        direction_clear(&wire->up);
        direction_clear(&wire->down);
        if (engine_sees && wire->transport && !wire->transport->ended) {
            wire->transport->ended = true;
            wire->transport->code = -ECONNRESET;
            poke(wire->transport);
        }
        if (agent_sees && wire->socket >= 0)
            hang_up(wire);
        wire->swallows = true;
        wire->waiting = false;
    }
}
