/* The parts of an agent link that the files of this folder share; private to this folder. */
#ifndef ASSAY_LINK_LINK_PRIVATE_H
#define ASSAY_LINK_LINK_PRIVATE_H

#include "engine/agent/wire/mailbox.h"
#include "engine/remote/channel/channel.h"
#include "engine/remote/link/command.h"
#include "engine/remote/link/link.h"

/* The limit of the time without a message from the agent about one request or command (limit.c). Zeroed
 * memory: no limit. */
struct link_limit {
    int64_t most_ns; /* 0: no limit */
    int64_t
        due_ns; /* when it is over, on event_loop_now()'s clock; 0: not started, before the agent's HELLO */
};

/* A request that is not yet answered. */
struct pending_request {
    struct pending_request *next;
    uint32_t number;
    enum protocol_type type;
    void *context;
    bool forgotten; /* the answer is dropped (agent_link_forget()) */
    struct link_limit limit;
    union {
        agent_facts_callback *facts;
        agent_clock_callback *clock;
        agent_statistics_callback *statistics;
    } callback;
    /* CLOCK */
    bool due;                                  /* the next exchange must be sent */
    unsigned exchanges;                        /* wanted in all */
    int64_t asked_wall_ns, asked_monotonic_ns; /* when the present exchange was sent */
    struct agent_clock clock;                  /* the best exchange so far */
};

struct file_request;

struct remote_command {
    struct agent_link *link; /* NULL once the link is freed */
    uint32_t number;
    struct remote_command_callbacks callbacks;
    void *context;
    bool input_stream;
    bool started, ended;
    bool released; /* the caller has freed it; the link frees it when it has ended */
    unsigned busy; /* callbacks of it that are running */
    struct remote_start start;
    struct text queue;     /* stdin */
    size_t taken;          /* bytes of the queue that are in frames */
    uint64_t sent, credit; /* stdin bytes that were sent, and that the agent allows, in all */
    size_t low_mark;
    bool above;     /* the queue was above the low mark since on_drain was last called */
    bool end_asked; /* stdin is to be closed */
    bool end_sent;  /* INPUT_END was sent */
    struct link_limit limit;
    uint64_t idle_limit_ms; /* of the specification */
    uint64_t stalled_ms;    /* it was killed after no progress for so long; 0: it was not */
};

/* The part of a link that only daemons need (session.c). Times are event_loop_now()'s. */
struct link_session {
    uint64_t number; /* of the session; 0: the agent ends with its stream, and no other member is used */
    /* Timer. READY: heartbeat and silence; BROKEN: end of the lease; CLOSING: time-out of LEAVE. */
    struct event_source *watch;
    struct event_source *retry;  /* timer: the next attempt to reconnect */
    int64_t watch_due;           /* when `watch` is due */
    int64_t last_received, sent; /* when bytes were last received and written */
    int64_t waiting_since;       /* when the oldest unanswered bytes were written; -1: none */
    uint32_t heartbeat;          /* the CLOCK request that is not answered yet, or 0 */
    uint64_t mark;               /* progress() when the stream was new */
    uint64_t answered;           /* sequence number of the last frame that came, other than greetings */
    int64_t answered_ns;         /* when that was noticed; 0: none has come yet */
    unsigned attempts;           /* attempts to reconnect since a stream last made progress */
    int64_t retry_first_ns;      /* the first delay; shorter in tests */
    bool reconnecting;           /* an attempt is under way */
    bool attempt_failed;         /* an attempt has failed since the stream broke */
    int64_t closed_at;           /* when LEAVE was put into the outbox */
    int64_t leave_timeout_ns;    /* time-out of LEAVE while the stream accepts nothing; shorter in tests */
    bool leave_retried;          /* CLOSING: the one attempt to send LEAVE on a new stream has begun */
    bool leave_sent;             /* CLOSING: LEAVE was sent */
    bool may_still_run;          /* the agent may still run: it was not surely told to end */
};

struct agent_link {
    struct event_loop *loop;
    struct transport *transport;
    char *node;
    enum agent_link_state state;
    struct agent_link_callbacks callbacks;
    struct inbox inbox;
    struct outbox outbox;
    struct event_source *pump;          /* deferred: fill the outbox, give it to the transport */
    struct event_source *hello_timeout; /* timer: HELLO must have come */
    int64_t hello_timeout_ns;
    struct event_source *limit_timer; /* timer of the earliest limit of requests and commands */
    int64_t limit_due_ns;             /* when that timer is due; 0: it is not set */
    struct agent_link_policy policy;
    struct link_session session;
    bool write_ended; /* the transport accepts no more bytes */
    bool read_ended;  /* the transport has no more bytes */
    struct agent_greeting greeting;
    char *greeting_version, *greeting_host;
    bool failed;
    struct failure failure; /* if `failed`; while BROKEN, the last failure */
    uint32_t next_number;
    struct pending_request *requests;
    struct file_request *files;
    struct remote_command **commands; /* that have not ended, by number, ascending */
    size_t command_count, command_capacity;
};

enum { LINK_COMMANDS_LIMIT = PROTOCOL_COMMAND_LIMIT };

/* Checks that requests can be made: 0, or -ENOTCONN with the reason. */
int link_check(const struct agent_link *link, struct failure *failure);
uint32_t link_next_number(struct agent_link *link);
/* Send a frame: link_begin(), protocol_put_...(), link_send(). link_send() returns 0, or negative with a
 * sentence, and then nothing is sent. */
void link_begin(struct agent_link *link, struct protocol_writer *writer, enum protocol_type type);
int link_send(struct agent_link *link, struct protocol_writer *writer, struct failure *failure);
/* True where the window has room for more data. */
bool link_has_window(const struct agent_link *link);

/* link.c, for session.c */
/* Changes the state, in this function only. WHY: the reason of a CLOSED that was not asked for. */
void link_set_state(struct agent_link *link, enum agent_link_state state, const struct failure *why);
/* Ends the link for good, with the failure WHY unless it is closing already. */
void link_fail(struct agent_link *link, const struct failure *why);
int link_send_hello(struct agent_link *link, struct failure *failure);
int link_start_transport(struct agent_link *link, struct failure *failure);

/* session.c. For session 0 these functions do nothing, or return false. */
void session_init(struct agent_link *link, uint64_t number);
int session_add_sources(struct agent_link *link); /* 0 or -ENOMEM */
void session_clear(struct agent_link *link);
/* Sends LEASE after the first HELLO. */
int session_begin(struct agent_link *link, struct failure *failure);
/* Called when the agent's HELLO has come on a stream. */
void session_stream_ready(struct agent_link *link);
/* Called when bytes were written to, and read from, the stream. */
void session_note_sent(struct agent_link *link);
void session_note_heard(struct agent_link *link);
/* Does the CLOCK_REPLY with NUMBER answer the heartbeat? Then the heartbeat is not waited for any more. */
bool session_answer_heartbeat(struct agent_link *link, uint32_t number);
/* True while a new stream is being opened, or HELLO exchanged on it. */
bool session_is_reconnecting(const struct agent_link *link);
/* Called in CLOSING when the stream has ended (WHY is NULL: in order). True: no agent still runs that LEAVE
 * must be sent to. */
bool session_is_over(struct agent_link *link, const struct failure *why);
/* Called when the stream has ended, because of WHY, which may be NULL. True: the link goes on without a
 * stream, or ends by itself later; false: the caller ends it. */
bool session_stream_ended(struct agent_link *link, const struct failure *why);
/* Called before CLOSING: puts LEAVE into the outbox, unless there is no agent. True: LEAVE will be sent, and
 * the caller goes on with session_send_leave(). */
bool session_begin_leave(struct agent_link *link);
/* Called in CLOSING after each write: closes the transport once LEAVE was written. */
void session_send_leave(struct agent_link *link);
/* Called in CLOSED: stops the timers. */
void session_stop(struct agent_link *link);

/* limit.c */
#define LIMIT_ANSWER                                                                                         \
    (120 * EVENT_SECOND) /* for each request, and for a command beyond its own time limit                    \
                          */
/* Starts LIMIT, MOST_NS from now or, before the agent's HELLO, from that on. */
void limit_begin(struct agent_link *link, struct link_limit *limit, int64_t most_ns);
/* Starts LIMIT anew, because the agent has sent something about it. */
void limit_moved(struct agent_link *link, struct link_limit *limit);
/* Moves a started LIMIT to at least LEAST_NS from now. */
void limit_postpone(struct agent_link *link, struct link_limit *limit, int64_t least_ns);
/* Called when the link is READY, for the first time or again: starts or postpones all limits. */
void limit_resume_all(struct agent_link *link);
void limit_on_timer(struct event_source *self, void *context);

/* request.c */
int request_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure);
/* Sends the CLOCK requests that are due. */
void request_pump(struct agent_link *link);
/* What an agent does that answers REQUEST, for "the agent did not ...". */
const char *request_describe(const struct pending_request *request);
void request_fail_all(struct agent_link *link, const struct failure *failure);
void request_free_all(struct agent_link *link);

/* file-request.c. File requests end with the link as its other commands do. */
void file_request_forget(struct agent_link *link, const void *context);
void file_request_free_all(struct agent_link *link);

/* command.c */
int command_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure);
void command_pump(struct agent_link *link);
void command_fail_all(struct agent_link *link, const struct failure *failure);
void command_detach_all(struct agent_link *link);

#endif
