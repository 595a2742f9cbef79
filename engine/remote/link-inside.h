/* The inside of an agent link: what agent-link.c, agent-request.c and remote-command.c share. Nobody else
 * includes it. */
#ifndef ASSAY_REMOTE_LINK_INSIDE_H
#define ASSAY_REMOTE_LINK_INSIDE_H

#include "engine/agent/mailbox.h"
#include "engine/remote/agent-link.h"
#include "engine/remote/remote-command.h"

/* A request that was sent and not yet answered. */
struct pending_request {
    struct pending_request *next;
    uint32_t number;
    enum protocol_type type;
    void *context;
    bool forgotten;              /* nobody wants the answer any more */
    agent_piece_callback *piece; /* READ_FILE: takes the bytes as they come, and callback.done the end */
    union {
        agent_facts_callback *facts;
        agent_bytes_callback *bytes;
        agent_done_callback *done;
        agent_statistics_callback *statistics;
    } callback;
    struct text bytes; /* READ_FILE: what has come; WRITE_BEGIN from memory: what is to go */
    /* WRITE_BEGIN: what is still to go, from `bytes` or from a file. READ_FILE with `piece`: what has come
     * (as `sent`), and the most that may. */
    uint64_t sent, size;
    int file; /* -1: none */
    char *local_path;
    bool complete; /* WRITE_END has gone out */
};

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
};

struct agent_link {
    struct event_loop *loop;
    struct transport *transport;
    enum agent_link_state state;
    struct agent_link_callbacks callbacks;
    struct inbox inbox;
    struct outbox outbox;
    struct event_source *pump;     /* deferred: fill the outbox, give it to the transport */
    struct event_source *patience; /* timer: HELLO must have come */
    int64_t patience_ns;
    bool write_ended; /* the transport takes nothing any more */
    bool read_ended;
    struct agent_greeting greeting;
    char *greeting_version, *greeting_host;
    bool failed;
    struct failure failure;
    uint32_t next_number;
    struct pending_request *requests, **requests_end;
    struct remote_command **commands; /* by number, ascending, for those that have not ended */
    size_t command_count, command_capacity;
};

enum { LINK_COMMANDS_LIMIT = PROTOCOL_COMMAND_LIMIT };

/* May requests be made? 0 or -ENOTCONN and why not. */
int link_check(const struct agent_link *link, struct failure *failure);
/* "node NAME" becomes the place. Returns CODE. */
int link_complain(const struct agent_link *link, struct failure *failure, int code, const char *format, ...)
    __attribute__((format(printf, 4, 5)));
uint32_t link_next_number(struct agent_link *link);
/* A frame; link_send returns 0, or negative and a sentence, and then nothing was sent. */
void link_begin(struct agent_link *link, struct protocol_writer *writer, enum protocol_type type);
int link_send(struct agent_link *link, struct protocol_writer *writer, struct failure *failure);
/* Is there room for data? */
bool link_has_window(const struct agent_link *link);

/* agent-request.c */
int request_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure);
/* Fills the outbox with files that are being written, as far as the window allows. */
void request_pump(struct agent_link *link);
void request_fail_all(struct agent_link *link, const struct failure *failure);
void request_free_all(struct agent_link *link);
/* The answers that would go to CONTEXT go nowhere. */
void request_forget(struct agent_link *link, const void *context);

/* remote-command.c */
int command_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure);
void command_pump(struct agent_link *link);
void command_fail_all(struct agent_link *link, const struct failure *failure);
void command_detach_all(struct agent_link *link);

#endif
