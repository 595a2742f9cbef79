#include "engine/agent/serve/agent.h"

#include "engine/agent/controls/restore.h"
#include "engine/agent/serve/command.h"
#include "engine/agent/serve/memory.h"
#include "engine/agent/serve/spawn.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>

enum { OUTBOX_LIMIT = 32 << 20 }; /* bytes; an engine that leaves more unacknowledged does not read */

/* ---- leaving */

static void on_flush(struct event_source *self, void *context) {
    (void)self;
    agent_flush(context);
}

/* Moves on commands whose first process has ended. An agent that is leaving has gone with its last command.
 */
static void on_settle(struct event_source *self, void *context) {
    (void)self;
    struct agent *agent = context;
    /* The messages of commands that end are sent at once: deferred from here, they would cost a turn. */
    agent->about_to_flush = true;
    command_settle_all(agent);
    agent->about_to_flush = false;
    bool gone = agent->state == AGENT_LEAVING && !agent->commands;
    if (gone)
        agent->state = AGENT_GONE;
    agent_flush(agent);
    if (gone)
        event_loop_stop(agent->loop);
}

/* Begins to end the agent, with a SENTENCE for the engine (NULL: none): commands are ended, and no request is
 * read any more. */
void agent_leave(struct agent *agent, const char *sentence) {
    if (agent->state >= AGENT_LEAVING)
        return;
    agent->state = AGENT_LEAVING;
    agent_refuse(agent, sentence);
    if (agent_is_attached(agent))
        event_source_set_events(agent->input_source, 0);
    event_source_set_timer(agent->lease, -1, 0);
    command_end_all(agent);
    event_source_defer(agent->settle);
    if (agent->listener.on_leaving)
        agent->listener.on_leaving(agent, agent->listener.context);
}

/* ---- the lease */

/* The timer of the lease, which is not moved for each frame: when it expires, it is set to the time that
 * remains since the last frame. An expired lease is checked once more in the next turn. */
static void on_lease(struct event_source *self, void *context) {
    struct agent *agent = context;
    int64_t silence = event_loop_now(agent->loop) - agent->heard_ns;
    bool was_over = agent->lease_over;
    agent->lease_over = silence >= agent->lease_ns;
    /* If this process was stopped or starved, frames that came meanwhile are read before the next turn. */
    if (!agent->lease_over || !was_over) {
        event_source_set_timer(self, agent->lease_over ? 0 : agent->lease_ns - silence, 0);
        return;
    }
    struct failure why;
    failure_set(&why, -ETIMEDOUT, "the lease has run out: the engine sent nothing for %lld s",
                (long long)(silence / EVENT_SECOND));
    agent_leave(agent, why.text);
}

static void set_lease(struct agent *agent, int64_t lease_ns) {
    agent->lease_ns = lease_ns;
    agent->lease_over = false;
    agent->heard_ns = event_loop_now(agent->loop);
    event_source_set_timer(agent->lease, lease_ns > 0 ? lease_ns : -1, 0);
}

/* ---- messages */

static int receive_lease(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    uint64_t lease_ms;
    int r = protocol_get_message(frame, &lease_ms, failure);
    if (r == 0)
        set_lease(agent, (int64_t)lease_ms * EVENT_MILLISECOND); /* below a year, so it fits */
    return r;
}

static int receive_leave(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    int r = protocol_get_message(frame, NULL, failure);
    if (r == 0)
        agent_leave(agent, NULL);
    return r;
}

int agent_serve(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    switch (frame->type) {
    case PROTOCOL_ACK:
        return protocol_get_message(frame, NULL, failure);
    case PROTOCOL_INSPECT:
    case PROTOCOL_STATISTICS:
    case PROTOCOL_CLOCK:
        return request_answer(agent, frame, failure);
    case PROTOCOL_LEASE:
        return receive_lease(agent, frame, failure);
    case PROTOCOL_LEAVE:
        return receive_leave(agent, frame, failure);
    case PROTOCOL_RUN:
        return command_run(agent, frame, failure);
    case PROTOCOL_INPUT:
    case PROTOCOL_INPUT_END:
    case PROTOCOL_KILL:
        return command_message(agent, frame, failure);
    default:
        return failure_set(failure, -EPROTO, "a %s message came to the agent",
                           protocol_type_name(frame->type));
    }
}

static void on_work(struct event_source *self, void *context) {
    (void)self;
    struct agent *agent = context;
    agent->held_back = false;
    command_continue_all(agent);
}

static void on_orphan(struct event_source *self, const struct event_child_exit *exit, void *context) {
    (void)self;
    (void)exit;
    struct agent *agent = context;
    event_source_defer(agent->settle);
}

/* ---- start and end */

static int open_folders(struct agent *agent, const struct agent_options *options, struct failure *failure) {
    int r = machine_open(options->root, &agent->machine, failure);
    if (r < 0)
        return r;
    agent->null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (agent->null < 0)
        return failure_set(failure, -errno, "cannot open '/dev/null': %s", strerror(errno));
    return 0;
}

static int add_sources(struct agent *agent, struct failure *failure) {
    struct event_loop *loop = agent->loop;
    agent->flush = event_loop_add_deferred(loop, on_flush, agent);
    agent->idle = event_loop_add_timer(loop, -1, 0, on_flush, agent);
    agent->work = event_loop_add_deferred(loop, on_work, agent);
    agent->settle = event_loop_add_deferred(loop, on_settle, agent);
    agent->lease = event_loop_add_timer(loop, -1, 0, on_lease, agent);
    if (!agent->flush || !agent->idle || !agent->work || !agent->settle || !agent->lease)
        return failure_memory(failure);
    int r = event_loop_reap_orphans(loop, on_orphan, agent);
    return r < 0 ? failure_set(failure, r, "cannot watch child processes: %s", strerror(-r)) : 0;
}

/* Prepares the agent: folders, event sources, and controls that a dead agent left changed are restored. */
int agent_init(struct agent *agent, struct event_loop *loop, const struct agent_options *options,
               struct failure *failure) {
    *agent = (struct agent){.loop = loop,
                            .session = options->session,
                            .listener = options->listener,
                            .directory = options->directory,
                            .machine = {.root = -1},
                            .null = -1,
                            .input = -1,
                            .output = -1};
    memory_return_blocks();
    spawn_allow_descriptors();
    inbox_init(&agent->inbox);
    outbox_init(&agent->outbox, &agent->inbox, OUTBOX_LIMIT);
    outbox_restart(&agent->outbox); /* held, until the first link has greeted */
    int r = open_folders(agent, options, failure);
    if (r == 0)
        r = add_sources(agent, failure);
    if (r < 0) {
        agent_clear(agent);
        return r;
    }
    /* Restores what an agent that has died left changed. */
    if (!options->leave_controls)
        restore_abandoned(&agent->machine, agent->note, sizeof agent->note);
    if (agent->session != 0)
        set_lease(agent, AGENT_FIRST_LEASE);
    return r;
}

int agent_run(struct agent *agent, struct failure *failure) {
    int r = 0;
    while (r >= 0 && !event_loop_is_stopped(agent->loop)) {
        r = event_loop_run_once(agent->loop, -1, failure);
        agent->wakeups++;
    }
    return r < 0 ? r : restore_own(&agent->machine, failure);
}

void agent_clear(struct agent *agent) {
    /* The link comes first: it uses the sources that are removed after it. */
    agent_detach(agent);
    command_clear_all(agent);
    event_source_remove(agent->flush);
    event_source_remove(agent->idle);
    event_source_remove(agent->work);
    event_source_remove(agent->settle);
    event_source_remove(agent->lease);
    inbox_clear(&agent->inbox);
    outbox_clear(&agent->outbox);
    machine_close(&agent->machine);
    cleanup_close_descriptor(&agent->null);
}
