/* The inside of an agent link: what the files of this folder share. Nobody else includes it. */
#ifndef ASSAY_LINK_LINK_PRIVATE_H
#define ASSAY_LINK_LINK_PRIVATE_H

#include "engine/agent/wire/mailbox.h"
#include "engine/remote/channel/channel.h"
#include "engine/remote/link/command.h"
#include "engine/remote/link/link.h"

/* How long something may go without a sign from the agent (limit.c). Zeroed memory: no limit. */
struct link_limit {
    int64_t most_ns; /* 0: any time */
    int64_t due_ns;  /* event_loop_now()'s; 0: not counted yet, since the agent has not greeted */
};

/* A request that is not yet answered. */
struct pending_request {
    struct pending_request *next;
    uint32_t number;
    enum protocol_type type;
    void *context;
    bool forgotten; /* the answer is not wanted any more */
    struct link_limit limit;
    union {
        agent_facts_callback *facts;
        agent_clock_callback *clock;
        agent_statistics_callback *statistics;
    } callback;
    /* CLOCK */
    bool due; /* an exchange is to begin */
    unsigned exchanges;
    int64_t asked_wall_ns, asked_monotonic_ns;
    struct agent_clock clock;
};

struct file_request;

struct remote_command {
    struct agent_link *link; /* NULL once the link is freed */
    uint32_t number;
    struct remote_command_callbacks callbacks;
    void *context;
    bool input_stream;
    bool started, ended;
    bool released; /* the caller has freed it; the link lets go when it has ended */
    unsigned busy; /* callbacks of it that are running */
    struct remote_start start;
    struct text queue; /* stdin */
    size_t taken;      /* bytes of the queue that are in frames */
    uint64_t sent, credit;
    size_t low_mark;
    bool above; /* the low mark, since on_drain was last called */
    bool end_asked, end_sent;
    struct link_limit limit;
    uint64_t idle_limit_ms; /* the specification's */
    uint64_t stalled_ms;    /* it was killed, having stood still for so long; 0: it was not */
};

/* Of a daemon's link. Times are event_loop_now()'s. */
struct link_session {
    uint64_t number;            /* 0: the agent ends with its stream, and the rest here means nothing */
    struct event_source *watch; /* timer. READY: of heartbeat and silence; BROKEN: the lease's end; CLOSING:
                                   the farewell's */
    struct event_source *retry; /* timer: the next attempt */
    int64_t watch_due;
    int64_t last_received, sent; /* when the stream last gave and took bytes */
    int64_t waiting_since;  /* since when there is something to be answered for and nothing has come; or -1 */
    uint32_t heartbeat;     /* the CLOCK request that is not yet answered, or 0 */
    uint64_t mark;          /* what had come and gone when the stream was new */
    uint64_t answered;      /* the last frame but greetings that came; */
    int64_t answered_ns;    /* when that was known; 0: nothing has come yet */
    unsigned attempts;      /* to have a stream since one last brought something */
    int64_t retry_first_ns; /* the first delay; tests have a shorter one */
    bool seeking;           /* one of them is under way */
    bool tried;             /* since it broke, one has failed */
    int64_t closed_at;      /* when LEAVE was put into the outbox */
    int64_t farewell_ns; /* for LEAVE to go out, while the stream takes nothing; tests have a shorter one */
    bool farewell;       /* CLOSING: the one attempt that a broken link has to tell LEAVE */
    bool told;           /* CLOSING: LEAVE has gone out */
    bool left;           /* for all we know the agent is there: it is not known to have been told */
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
    struct event_source *limit_timer; /* the first of the limits may have passed */
    int64_t limit_due_ns;             /* when it fires; 0: it is not set */
    struct agent_link_policy policy;
    struct link_session session;
    bool write_ended; /* the transport takes nothing any more */
    bool read_ended;
    struct agent_greeting greeting;
    char *greeting_version, *greeting_host;
    bool failed;
    struct failure failure; /* if FAILED; while BROKEN, what went wrong last */
    uint32_t next_number;
    struct pending_request *requests;
    struct file_request *files;
    struct remote_command **commands; /* by number, ascending, for those that have not ended */
    size_t command_count, command_capacity;
};

enum { LINK_COMMANDS_LIMIT = PROTOCOL_COMMAND_LIMIT };

/* May requests be made? 0 or -ENOTCONN and why not. */
int link_check(const struct agent_link *link, struct failure *failure);
uint32_t link_next_number(struct agent_link *link);
/* A frame; link_send returns 0, or negative and a sentence, and then nothing was sent. */
void link_begin(struct agent_link *link, struct protocol_writer *writer, enum protocol_type type);
int link_send(struct agent_link *link, struct protocol_writer *writer, struct failure *failure);
/* Is there room for data? */
bool link_has_window(const struct agent_link *link);

/* link.c, for session.c */
/* The one place where the state changes. WHY: of a CLOSED that was not asked for. */
void link_set_state(struct agent_link *link, enum agent_link_state state, const struct failure *why);
/* The end, for good. */
void link_fail(struct agent_link *link, const struct failure *why);
int link_send_hello(struct agent_link *link, struct failure *failure);
int link_start_transport(struct agent_link *link, struct failure *failure);

/* session.c. For session 0 all of it does nothing, or says no. */
void session_init(struct agent_link *link, uint64_t number);
int session_add_sources(struct agent_link *link); /* 0 or -ENOMEM */
void session_clear(struct agent_link *link);
/* What follows the first HELLO. */
int session_begin(struct agent_link *link, struct failure *failure);
/* The agent has greeted, on this stream. */
void session_ready(struct agent_link *link);
void session_note_sent(struct agent_link *link);
void session_note_heard(struct agent_link *link);
/* Was CLOCK_REPLY's request ours? */
bool session_takes_clock(struct agent_link *link, uint32_t number);
/* Is a new stream being opened or greeted on? */
bool session_is_seeking(const struct agent_link *link);
/* CLOSING, and the stream has ended, in order if WHY is NULL: is no agent left that is to be told to leave?
 */
bool session_is_over(struct agent_link *link, const struct failure *why);
/* The stream has ended: true if the link goes on, or looks after its own end. WHY may be NULL. */
bool session_outlives(struct agent_link *link, const struct failure *why);
/* The link is about to be CLOSING: true if the agent is being told to leave; then session_tell() closes the
 * transport as soon as that has gone out. */
bool session_leaves(struct agent_link *link);
void session_tell(struct agent_link *link);
/* CLOSED. */
void session_stop(struct agent_link *link);

/* limit.c */
#define LIMIT_ANSWER (120 * EVENT_SECOND) /* of each request, and of a command beyond its own time limit */
/* LIMIT is MOST_NS from now, or from the greeting on where that is still to come. */
void limit_begin(struct agent_link *link, struct link_limit *limit, int64_t most_ns);
/* There was a sign: LIMIT begins anew. */
void limit_moved(struct agent_link *link, struct link_limit *limit);
/* LIMIT, where it counts, is LEAST_NS from now at the earliest. */
void limit_postpone(struct agent_link *link, struct link_limit *limit, int64_t least_ns);
/* The link is READY, for the first time or again. */
void limit_resume_all(struct agent_link *link);
void limit_on_timer(struct event_source *self, void *context);

/* request.c */
int request_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure);
/* Begins the exchanges of clocks that are due. */
void request_pump(struct agent_link *link);
/* "answer a question about its clock": what an agent does that answers REQUEST. */
const char *request_words(const struct pending_request *request);
void request_fail_all(struct agent_link *link, const struct failure *failure);
void request_free_all(struct agent_link *link);

/* file-request.c. A file's command fails as the link's other commands do. */
void file_request_forget(struct agent_link *link, const void *context);
void file_request_free_all(struct agent_link *link);

/* command.c */
int command_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure);
void command_pump(struct agent_link *link);
void command_fail_all(struct agent_link *link, const struct failure *failure);
void command_detach_all(struct agent_link *link);

#endif
