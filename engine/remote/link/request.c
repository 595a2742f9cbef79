/* Requests with one answer: the node's facts, its clock, and the agent's statistics. */
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/link-private.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

enum { CLOCK_EXCHANGES_LIMIT = 1000 };

/* ---- pending requests */

static struct pending_request *pop_first(struct agent_link *link) {
    struct pending_request *request = link->requests;
    if (request)
        link->requests = request->next;
    return request;
}

static void remove_and_free(struct agent_link *link, struct pending_request *request) {
    struct pending_request **at = &link->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    free(request);
}

static struct pending_request *add_request(struct agent_link *link, enum protocol_type type, void *context) {
    struct pending_request *request = xcalloc(1, sizeof *request), **end = &link->requests;
    request->number = link_next_number(link);
    request->type = type;
    request->context = context;
    limit_begin(link, &request->limit, LIMIT_ANSWER);
    while (*end)
        end = &(*end)->next;
    return *end = request;
}

static void tell_failure(struct agent_link *link, struct pending_request *request,
                         const struct failure *failure) {
    if (request->forgotten)
        return;
    if (request->type == PROTOCOL_INSPECT)
        request->callback.facts(link, NULL, failure, request->context);
    else if (request->type == PROTOCOL_CLOCK)
        request->callback.clock(link, NULL, failure, request->context);
    else
        request->callback.statistics(link, NULL, failure, request->context);
}

const char *request_describe(const struct pending_request *request) {
    return request->type == PROTOCOL_INSPECT ? "report the facts of its node"
           : request->type == PROTOCOL_CLOCK ? "report the time of its node"
                                             : "report its own cost";
}

void request_fail_all(struct agent_link *link, const struct failure *failure) {
    for (struct pending_request *request; (request = pop_first(link));) {
        tell_failure(link, request, failure);
        free(request);
    }
}

void request_free_all(struct agent_link *link) {
    for (struct pending_request *request; (request = pop_first(link));)
        free(request);
}

void agent_link_forget(struct agent_link *link, const void *context) {
    for (struct pending_request *request = link->requests; request; request = request->next)
        request->forgotten |= request->context == context;
    file_request_forget(link, context);
}

/* ---- sending */

static int send(struct agent_link *link, const struct pending_request *request, struct failure *failure) {
    struct protocol_writer writer;
    link_begin(link, &writer, request->type);
    protocol_put_u32(&writer, request->number);
    return link_send(link, &writer, failure);
}

/* Makes and sends a request of TYPE; the caller then sets the callback of *RET. */
static int submit(struct agent_link *link, enum protocol_type type, void *context,
                  struct pending_request **ret, struct failure *failure) {
    int r = link_check(link, failure);
    if (r < 0)
        return r;
    *ret = add_request(link, type, context);
    r = send(link, *ret, failure);
    if (r < 0)
        remove_and_free(link, *ret);
    return r;
}

int agent_link_inspect(struct agent_link *link, agent_facts_callback *callback, void *context,
                       struct failure *failure) {
    struct pending_request *request;
    int r = submit(link, PROTOCOL_INSPECT, context, &request, failure);
    if (r == 0)
        request->callback.facts = callback;
    return r;
}

int agent_link_statistics(struct agent_link *link, agent_statistics_callback *callback, void *context,
                          struct failure *failure) {
    struct pending_request *request;
    int r = submit(link, PROTOCOL_STATISTICS, context, &request, failure);
    if (r == 0)
        request->callback.statistics = callback;
    return r;
}

int agent_link_measure_clock(struct agent_link *link, unsigned exchanges, agent_clock_callback *callback,
                             void *context, struct failure *failure) {
    if (exchanges > CLOCK_EXCHANGES_LIMIT)
        return node_failure(failure, link->node, -EINVAL,
                            "%u exchanges are asked for; at most %d are allowed", exchanges,
                            CLOCK_EXCHANGES_LIMIT);
    int r = link_check(link, failure);
    if (r < 0)
        return r;
    struct pending_request *request = add_request(link, PROTOCOL_CLOCK, context);
    request->callback.clock = callback;
    request->exchanges = exchanges ? exchanges : AGENT_CLOCK_EXCHANGES;
    request->due = true;
    event_source_defer(link->pump);
    return 0;
}

/* Sends CLOCK and notes the time. It is called just before the outbox is written, so that waiting frames are
 * no part of the round trip. */
static void begin_exchange(struct agent_link *link, struct pending_request *request) {
    if (send(link, request, NULL) < 0)
        return; /* tried again with the next pump */
    request->due = false;
    /* The monotonic clock is read first: an interruption between the two then lengthens the round trip, which
     * bounds the error. */
    request->asked_monotonic_ns = clock_monotonic_ns();
    request->asked_wall_ns = clock_wall_ns();
}

void request_pump(struct agent_link *link) {
    for (struct pending_request *request = link->requests; request; request = request->next)
        if (request->due)
            begin_exchange(link, request);
}

/* ---- answers */

/* Finds the pending request NUMBER of TYPE; NULL with FAILURE: there is no such request, so that the answer
 * violates the protocol. */
static struct pending_request *find_request(struct agent_link *link, const struct protocol_frame *frame,
                                            uint32_t number, enum protocol_type type,
                                            struct failure *failure) {
    struct pending_request *request = link->requests;
    while (request && request->number != number)
        request = request->next;
    if (request && request->type == type)
        return request;
    failure_set(failure, -EPROTO, "%s for request %u, which did not ask for it",
                protocol_type_name(frame->type), number);
    return NULL;
}

/* Finds the pending request NUMBER of TYPE, copies it to RET and removes it. -EPROTO: there is no such
 * request. */
static int remove_answered(struct agent_link *link, const struct protocol_frame *frame, uint32_t number,
                           enum protocol_type type, struct pending_request *ret, struct failure *failure) {
    struct pending_request *request = find_request(link, frame, number, type, failure);
    if (!request)
        return -EPROTO;
    *ret = *request;
    remove_and_free(link, request);
    return 0;
}

/* FACTS: passes the facts of the node to the callback of the request, unless it was forgotten. */
static int handle_facts(struct agent_link *link, const struct protocol_frame *frame,
                        struct failure *failure) {
    struct protocol_data data;
    struct node_facts *facts = NULL;
    struct pending_request answered;
    int r = protocol_get_message(frame, &data, failure);
    if (r == 0)
        r = node_facts_parse(data.bytes, data.length, &facts, failure);
    if (r == 0)
        r = remove_answered(link, frame, data.number, PROTOCOL_INSPECT, &answered, failure);
    if (r < 0 || answered.forgotten)
        node_facts_free(facts);
    else
        answered.callback.facts(link, facts, NULL, answered.context);
    return r;
}

/* ERROR: passes the agent's failure to the callback of the request for facts. */
static int handle_error(struct agent_link *link, const struct protocol_frame *frame,
                        struct failure *failure) {
    struct protocol_error error;
    struct pending_request answered;
    struct failure why;
    int r = protocol_get_message(frame, &error, failure);
    if (r == 0)
        r = remove_answered(link, frame, error.number, PROTOCOL_INSPECT, &answered, failure);
    if (r < 0)
        return r;
    node_failure(&why, link->node, error.code, "%s", error.sentence);
    tell_failure(link, &answered, &why);
    return 0;
}

/* STATISTICS: passes the agent's own cost to the callback of the request, unless it was forgotten. */
static int handle_statistics(struct agent_link *link, const struct protocol_frame *frame,
                             struct failure *failure) {
    struct protocol_statistics got;
    struct pending_request answered;
    int r = protocol_get_message(frame, &got, failure);
    if (r == 0)
        r = remove_answered(link, frame, got.request, PROTOCOL_STATISTICS, &answered, failure);
    if (r < 0)
        return r;
    struct agent_statistics statistics = {
        .user_us = got.user_us,
        .system_us = got.system_us,
        .rss_bytes = got.rss_bytes,
        .rss_peak_bytes = got.rss_peak_bytes,
        .frames_received = got.frames_received,
        .frames_sent = got.frames_sent,
        .bytes_received = got.bytes_received,
        .bytes_sent = got.bytes_sent,
        .wakeups = got.wakeups,
        .commands_running = got.commands,
    };
    if (!answered.forgotten)
        answered.callback.statistics(link, &statistics, NULL, answered.context);
    return 0;
}

/* Handles CLOCK_REPLY: notes the exchange if its round trip is the shortest, and starts the next, or calls
 * back. The answer to a heartbeat is not passed on. */
static int handle_clock(struct agent_link *link, const struct protocol_frame *frame,
                        struct failure *failure) {
    int64_t now = clock_monotonic_ns();
    struct protocol_clock got;
    int r = protocol_get_message(frame, &got, failure);
    if (r < 0)
        return r;
    if (session_answer_heartbeat(link, got.request))
        return 0;
    struct pending_request *request = find_request(link, frame, got.request, PROTOCOL_CLOCK, failure);
    if (!request)
        return -EPROTO;
    if (request->due)
        return failure_set(failure, -EPROTO, "CLOCK_REPLY for request %u, which was answered", got.request);
    struct agent_clock *best = &request->clock;
    int64_t round_trip = now - request->asked_monotonic_ns;
    unsigned exchanges = best->exchanges + 1;
    if (exchanges == 1 || round_trip < best->round_trip_ns)
        *best = (struct agent_clock){.engine_wall_ns = request->asked_wall_ns + round_trip / 2,
                                     .engine_monotonic_ns = request->asked_monotonic_ns + round_trip / 2,
                                     .node_wall_ns = got.wall_ns,
                                     .node_monotonic_ns = got.monotonic_ns,
                                     .round_trip_ns = round_trip};
    best->exchanges = exchanges;
    if (exchanges < request->exchanges && !request->forgotten) {
        limit_moved(link, &request->limit);
        request->due = true; /* sent by the pump, after all received frames are handled */
        return 0;
    }
    struct pending_request answered = *request;
    remove_and_free(link, request);
    if (!answered.forgotten)
        answered.callback.clock(link, &answered.clock, NULL, answered.context);
    return 0;
}

int request_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    switch (frame->type) {
    case PROTOCOL_ERROR:
        return handle_error(link, frame, failure);
    case PROTOCOL_STATISTICS_REPLY:
        return handle_statistics(link, frame, failure);
    case PROTOCOL_CLOCK_REPLY:
        return handle_clock(link, frame, failure);
    default:
        return handle_facts(link, frame, failure);
    }
}
