/*
 * Links to daemons: the lease and the heartbeat, reconnecting when a stream has broken, and telling the agent
 * to end (LEAVE). For links of session 0 these functions do nothing.
 */
#include "engine/remote/link/link-private.h"

#include <errno.h>
#include <string.h>
#include <sys/random.h>

#define RETRY_FIRST (EVENT_SECOND / 2)
#define RETRY_MAX (10 * EVENT_SECOND)
#define LEAVE_TIMEOUT_NS (5 * EVENT_SECOND) /* for sending LEAVE, also on a new stream */
#define LEAVE_TIMEOUTS_MAX 6 /* times LEAVE_TIMEOUT_NS at most, while the stream still accepts bytes */
#define FIRST_LEASE (60 * EVENT_SECOND) /* of an agent that has not received LEASE */

static bool is_session(const struct agent_link *link) {
    return link->session.number != 0;
}

static int64_t now(const struct agent_link *link) {
    return event_loop_now(link->loop);
}

static int64_t smaller_of(int64_t a, int64_t b) {
    return a < b ? a : b;
}

static double seconds(int64_t ns) {
    return (double)ns / (double)EVENT_SECOND;
}

/* ---- policy */

void agent_link_set_policy(struct agent_link *link, const struct agent_link_policy *policy) {
    if (link->state != AGENT_LINK_IDLE)
        return;
    if (policy->lease_ns > 0)
        link->policy.lease_ns =
            smaller_of(policy->lease_ns, (int64_t)PROTOCOL_LEASE_LIMIT_MS * EVENT_MILLISECOND);
    if (policy->heartbeat_ns > 0)
        link->policy.heartbeat_ns = policy->heartbeat_ns;
    if (policy->silence_ns > 0)
        link->policy.silence_ns = policy->silence_ns;
}

void session_init(struct agent_link *link, uint64_t number) {
    link->session.number = number;
    link->session.retry_first_ns = RETRY_FIRST;
    link->session.leave_timeout_ns = LEAVE_TIMEOUT_NS;
    agent_link_set_policy(link, &(struct agent_link_policy){.lease_ns = AGENT_LINK_LEASE_NS,
                                                            .heartbeat_ns = AGENT_LINK_HEARTBEAT_NS,
                                                            .silence_ns = AGENT_LINK_SILENCE_NS});
}

/* Shortens the interval of heartbeats if the lease is short, and queues LEASE. */
int session_begin(struct agent_link *link, struct failure *failure) {
    if (!is_session(link))
        return 0;
    /* A heartbeat must be answered within the silence, and one may be lost before the lease ends. */
    struct agent_link_policy *policy = &link->policy;
    policy->heartbeat_ns =
        smaller_of(policy->heartbeat_ns, smaller_of(policy->lease_ns / 3, policy->silence_ns / 2));
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_LEASE);
    int64_t lease_ms = policy->lease_ns / EVENT_MILLISECOND;
    protocol_put_u64(&writer, lease_ms > 0 ? (uint64_t)lease_ms : 1);
    return link_send(link, &writer, failure);
}

/* ---- the watch: one timer, whose meaning depends on the state */

static void set_watch(struct agent_link *link, int64_t due) {
    int64_t delay = due - now(link);
    link->session.watch_due = due;
    event_source_set_timer(link->session.watch, delay > 0 ? delay : 0, 0);
}

void session_note_sent(struct agent_link *link) {
    struct link_session *session = &link->session;
    session->sent = now(link);
    if (session->waiting_since < 0)
        session->waiting_since = session->sent;
}

void session_note_heard(struct agent_link *link) {
    struct link_session *session = &link->session;
    session->last_received = now(link);
    /* While a heartbeat is not answered the next silence begins at once. */
    session->waiting_since = session->heartbeat ? session->last_received : -1;
}

bool session_answer_heartbeat(struct agent_link *link, uint32_t number) {
    if (number == 0 || number != link->session.heartbeat)
        return false;
    link->session.heartbeat = 0;
    link->session.waiting_since = -1;
    return true;
}

/* Sends a heartbeat: CLOCK, whose answer shows that the agent is alive. Without memory it is tried again
 * later. */
static void send_heartbeat(struct agent_link *link) {
    uint32_t number = link_next_number(link);
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_CLOCK);
    protocol_put_u32(&writer, number);
    if (link_send(link, &writer, NULL) == 0)
        link->session.heartbeat = number;
}

/* When a heartbeat is due: heartbeat_ns after we last sent bytes or, if earlier, after the oldest unanswered
 * bytes. */
static int64_t heartbeat_due(const struct agent_link *link) {
    const struct link_session *session = &link->session;
    int64_t from =
        session->waiting_since >= 0 ? smaller_of(session->waiting_since, session->sent) : session->sent;
    return from + link->policy.heartbeat_ns;
}

static void lose_stream(struct agent_link *link, const struct failure *why);
static void fail_or_watch(struct agent_link *link);

/* READY: sends a heartbeat if it is due, loses the stream after too long a silence, and sets the timer again.
 */
static void watch_stream(struct agent_link *link) {
    struct link_session *session = &link->session;
    const struct agent_link_policy *policy = &link->policy;
    /* If the timer is late, the engine itself was stopped or busy, and answers may have come that are not
     * read yet: the silence begins anew. */
    if (now(link) - session->watch_due > policy->silence_ns / 4 && session->waiting_since >= 0)
        session->waiting_since = now(link);
    if (session->heartbeat && session->waiting_since >= 0 &&
        now(link) - session->waiting_since >= policy->silence_ns) {
        struct failure why;
        node_failure(&why, link->node, -ETIMEDOUT, "the agent sent nothing for %.3g s",
                     seconds(policy->silence_ns));
        lose_stream(link, &why);
        return;
    }
    int64_t next = heartbeat_due(link);
    if (!session->heartbeat && next <= now(link))
        send_heartbeat(link);
    if (session->heartbeat)
        next = (session->waiting_since >= 0 ? session->waiting_since : now(link)) + policy->silence_ns;
    if (next <= now(link))
        next = now(link) + policy->heartbeat_ns; /* the heartbeat was not sent, without memory */
    set_watch(link, smaller_of(next, now(link) + policy->heartbeat_ns));
}

/* ---- reconnecting */

/* A number that grows with each frame that one side has received for sure. */
static uint64_t progress(const struct agent_link *link) {
    return link->inbox.received + link->outbox.acknowledged;
}

/* Notes when the agent last sent a frame other than greetings. */
static void note_answered(struct agent_link *link) {
    struct link_session *session = &link->session;
    if (session->answered_ns == 0 || link->inbox.received != session->answered)
        session->answered_ns = session->answered_ns ? session->last_received : now(link);
    session->answered = link->inbox.received;
}

/* When reconnecting stops: at the end of the agent's lease, which each HELLO starts anew; but after two
 * leases for an agent that answers HELLO and nothing else. */
static int64_t reconnect_deadline(const struct agent_link *link) {
    return smaller_of(link->session.last_received + link->policy.lease_ns,
                      link->session.answered_ns + 2 * link->policy.lease_ns);
}

/* The delay before the next attempt: 0, then 0.5 s, doubling up to RETRY_MAX, plus a random fifth at most, so
 * that many links that broke together do not all reconnect together. */
static int64_t retry_delay(const struct link_session *session) {
    if (session->attempts == 0)
        return 0;
    unsigned doublings = session->attempts - 1;
    int64_t delay = smaller_of(doublings < 20 ? session->retry_first_ns << doublings : RETRY_MAX, RETRY_MAX);
    uint32_t chance = 0;
    (void)!getrandom(&chance, sizeof chance, GRND_NONBLOCK);
    return delay + (int64_t)((double)delay * 0.2 * ((double)chance / (double)UINT32_MAX));
}

static void retry_later(struct agent_link *link) {
    event_source_set_timer(link->session.retry, retry_delay(&link->session), 0);
}

/* Makes the link BROKEN because of WHY, and plans to reconnect. The old stream is freed with the next
 * attempt. */
static void lose_stream(struct agent_link *link, const struct failure *why) {
    struct link_session *session = &link->session;
    session->attempt_failed = false;
    /* A stream without progress counts as an attempt, so that delays grow where each stream breaks at once.
     */
    if (progress(link) != session->mark)
        session->attempts = 0;
    link->failure = *why;
    (void)transport_want(link->transport, 0);
    retry_later(link);
    note_answered(link);
    if (now(link) >= session->answered_ns + 2 * link->policy.lease_ns) {
        fail_or_watch(link);
        return;
    }
    set_watch(link, reconnect_deadline(link));
    link_set_state(link, AGENT_LINK_BROKEN, NULL);
    if (link->state == AGENT_LINK_BROKEN)
        transport_close(link->transport);
}

/* Fails the link at the end of the lease, which may have been started anew by a failed attempt; before that,
 * sets the timer. */
static void fail_or_watch(struct agent_link *link) {
    struct failure why;
    int64_t end = reconnect_deadline(link);
    if (now(link) < end) {
        set_watch(link, end);
        return;
    }
    if (now(link) < link->session.last_received + link->policy.lease_ns)
        node_failure(&why, link->node, -ETIMEDOUT,
                     "the agent accepted connections but sent nothing for %.3g s; "
                     "reconnecting has stopped; the last attempt: %s",
                     seconds(2 * link->policy.lease_ns), link->failure.text);
    else
        node_failure(&why, link->node, -ETIMEDOUT,
                     "the agent sent nothing for %.3g s, its lease, and has ended; the last attempt: %s",
                     seconds(link->policy.lease_ns), link->failure.text);
    link_fail(link, &why);
}

/* True for failures after which no attempt can succeed. */
static bool is_final(int code) {
    return code == -ESTALE || code == -EACCES || code == -EKEYREJECTED || code == -ENOTSUP;
}

/* An attempt to reconnect has failed: the next one is planned, or the link ends. */
static void fail_attempt(struct agent_link *link, const struct failure *why) {
    struct link_session *session = &link->session;
    session->reconnecting = false;
    session->attempt_failed = true;
    if (link->state == AGENT_LINK_CLOSING) {
        session->leave_sent = false; /* LEAVE may be lost with this stream, too */
        if (why->code == -ESTALE)
            session->may_still_run = false;
        link_set_state(link, AGENT_LINK_CLOSED, NULL);
        return;
    }
    event_source_set_timer(link->hello_timeout, -1, 0);
    if (is_final(why->code)) {
        struct failure lost;
        node_failure(&lost, link->node, why->code, "the connection was lost and cannot be made again: %s",
                     why->text);
        link_fail(link, &lost);
        return;
    }
    link->failure = *why;
    transport_close(link->transport);
    retry_later(link);
    fail_or_watch(link);
}

/* Starts an attempt: a new transport to the same agent, and HELLO. */
static int begin_attempt(struct agent_link *link, struct failure *failure) {
    struct transport *renewed = NULL;
    int r = transport_renew(link->transport, &renewed, failure);
    if (r < 0)
        return r;
    transport_free(link->transport);
    link->transport = renewed;
    link->read_ended = link->write_ended = false;
    inbox_restart(&link->inbox);
    outbox_restart(&link->outbox);
    r = link_send_hello(link, failure);
    return r < 0 ? r : link_start_transport(link, failure);
}

/* Timer: begins an attempt to reconnect. */
static void on_retry(struct event_source *self, void *context) {
    (void)self;
    struct agent_link *link = context;
    if (link->state != AGENT_LINK_BROKEN && link->state != AGENT_LINK_CLOSING)
        return;
    struct failure why;
    link->session.attempts++;
    link->session.reconnecting = true;
    if (begin_attempt(link, &why) < 0)
        fail_attempt(link, &why);
}

/* CLOSING, at the time-out of LEAVE: extends it while a slow stream still accepts the frames before LEAVE.
 * False: the time is over. */
static bool extend_leave_timeout(struct agent_link *link) {
    const struct link_session *session = &link->session;
    int64_t last = session->closed_at + LEAVE_TIMEOUTS_MAX * session->leave_timeout_ns;
    int64_t next = smaller_of(session->sent + session->leave_timeout_ns, last);
    bool moves = session->sent >= session->closed_at && next > now(link);
    /* If the timer is late, the engine was stopped or busy: the stream may accept more. */
    if (now(link) - session->watch_due > session->leave_timeout_ns / 4)
        next = smaller_of(now(link) + session->leave_timeout_ns, last);
    else if (!moves)
        return false;
    if (next <= now(link))
        return false;
    set_watch(link, next);
    return true;
}

/* The timer of the session: looks whether the agent is silent, the attempts to reconnect take too long, or
 * the agent does not end. */
static void on_watch(struct event_source *self, void *context) {
    (void)self;
    struct agent_link *link = context;
    struct link_session *session = &link->session;
    switch (link->state) {
    case AGENT_LINK_READY:
        watch_stream(link);
        break;
    case AGENT_LINK_BROKEN:
        /* The first attempt is always waited for: the agent may have received bytes after we last did. */
        if (session->attempt_failed)
            fail_or_watch(link);
        break;
    case AGENT_LINK_CLOSING:
        if (!session->leave_sent && !extend_leave_timeout(link))
            link_set_state(link, AGENT_LINK_CLOSED, NULL);
        break;
    default:
        break;
    }
}

/* ---- functions for link.c */

int session_add_sources(struct agent_link *link) {
    if (!is_session(link))
        return 0;
    link->session.watch = event_loop_add_timer(link->loop, -1, 0, on_watch, link);
    link->session.retry = event_loop_add_timer(link->loop, -1, 0, on_retry, link);
    return link->session.watch && link->session.retry ? 0 : -ENOMEM;
}

void session_clear(struct agent_link *link) {
    event_source_remove(link->session.watch);
    event_source_remove(link->session.retry);
}

bool session_is_reconnecting(const struct agent_link *link) {
    return link->session.reconnecting;
}

/* A new stream is ready: heartbeats begin again, and attempts are counted from 0 if the last stream carried
 * frames. */
void session_stream_ready(struct agent_link *link) {
    struct link_session *session = &link->session;
    if (!is_session(link))
        return;
    session->reconnecting = false;
    note_answered(link);
    /* The agent's HELLO tells what it received on the last stream. */
    if (progress(link) != session->mark)
        session->attempts = 0;
    session->mark = progress(link);
    session->last_received = session->sent = now(link);
    session->waiting_since = session->heartbeat ? session->last_received : -1;
    if (link->state != AGENT_LINK_CLOSING)
        set_watch(link, now(link) + link->policy.heartbeat_ns);
}

bool session_is_over(struct agent_link *link, const struct failure *why) {
    struct link_session *session = &link->session;
    if (!is_session(link))
        return true;
    if (session->leave_sent && !why)
        session->may_still_run = false;
    return session->leave_sent && !session->may_still_run;
}

/* READY: starts to reconnect. BROKEN: plans the next attempt. CLOSING: makes one attempt to send LEAVE on a
 * new stream. */
bool session_stream_ended(struct agent_link *link, const struct failure *why) {
    struct link_session *session = &link->session;
    struct failure end;
    if (!is_session(link))
        return false;
    if (!why) {
        node_failure(&end, link->node, -ECONNRESET, "the connection ended");
        why = &end;
    }
    switch (link->state) {
    case AGENT_LINK_READY:
        lose_stream(link, why);
        return true;
    case AGENT_LINK_BROKEN:
        if (session->reconnecting)
            fail_attempt(link, why);
        return true;
    case AGENT_LINK_CLOSING:
        if (session->reconnecting || session->leave_retried || is_final(why->code)) {
            fail_attempt(link, why);
        } else {
            session->leave_retried = true;
            session->leave_sent = false; /* LEAVE may be lost with the stream */
            set_watch(link, now(link) + session->leave_timeout_ns);
            event_source_set_timer(session->retry, 0, 0);
        }
        return true;
    default:
        return false;
    }
}

/* True: LEAVE is queued, and the caller waits for its sending. False: there is no agent, or no memory, and
 * its lease ends it. */
bool session_begin_leave(struct agent_link *link) {
    struct link_session *session = &link->session;
    bool is_there = link->state >= AGENT_LINK_GREETING && link->state <= AGENT_LINK_BROKEN;
    bool may_be_there = link->state == AGENT_LINK_OPENING && link->transport->begun;
    if (!is_session(link) || !(is_there || may_be_there))
        return false;
    session->may_still_run = true;
    session->closed_at = now(link);
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_LEAVE);
    if (link_send(link, &writer, NULL) < 0)
        return false; /* the agent ends with its lease */
    if (link->state == AGENT_LINK_BROKEN) {
        session->leave_retried = true;
        if (!session->reconnecting)
            event_source_set_timer(session->retry, 0, 0);
    }
    set_watch(link, now(link) + session->leave_timeout_ns);
    return true;
}

void session_send_leave(struct agent_link *link) {
    size_t length;
    if (link->state != AGENT_LINK_CLOSING || link->session.leave_sent ||
        link->transport->state != TRANSPORT_OPEN || link->outbox.held ||
        outbox_unsent(&link->outbox, &length))
        return;
    link->session.leave_sent = true;
    transport_close(link->transport);
}

int64_t agent_link_left_ns(const struct agent_link *link) {
    if (!link->session.may_still_run || link->session.leave_sent)
        return 0;
    if (link->greeting.version)
        return link->policy.lease_ns;
    /* Whether the agent has received LEASE is not known. */
    return link->session.sent && link->policy.lease_ns > FIRST_LEASE ? link->policy.lease_ns : FIRST_LEASE;
}

void session_stop(struct agent_link *link) {
    if (!is_session(link))
        return;
    link->session.reconnecting = false;
    event_source_set_timer(link->session.watch, -1, 0);
    event_source_set_timer(link->session.retry, -1, 0);
}
