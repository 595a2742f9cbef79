/*
 * Time limits that the engine enforces itself, whatever the agent does: within them each request must be
 * answered, and each command make progress or end. A command without progress is killed. The link to an agent
 * that does not answer fails, although its connection may be alive.
 */
#include "engine/foundation/number.h"
#include "engine/remote/link/link-private.h"

#include <errno.h>
#include <signal.h>

#define ENGINE_AWAY                                                                                          \
    (30 * EVENT_SECOND) /* a timer that is later than this: the engine itself was stopped or busy */
#define KILL_LIMIT (30 * EVENT_SECOND)  /* between a kill and the command's end */
#define AFTER_BREAK (10 * EVENT_SECOND) /* for limits that were due while the stream was broken */

static int64_t now(const struct agent_link *link) {
    return event_loop_now(link->loop);
}

/* Sets the timer to DUE_NS, if that is earlier than its present time. */
static void arm(struct agent_link *link, int64_t due_ns) {
    if (link->limit_due_ns && link->limit_due_ns <= due_ns)
        return;
    link->limit_due_ns = due_ns;
    event_source_set_timer(link->limit_timer, due_ns > now(link) ? due_ns - now(link) : 0, 0);
}

void limit_begin(struct agent_link *link, struct link_limit *limit, int64_t most_ns) {
    limit->most_ns = most_ns;
    limit->due_ns = 0;
    if (link->state == AGENT_LINK_READY)
        limit_moved(link, limit);
}

void limit_moved(struct agent_link *link, struct link_limit *limit) {
    if (limit->most_ns == 0)
        return;
    limit->due_ns = now(link) + limit->most_ns;
    arm(link, limit->due_ns);
}

void limit_postpone(struct agent_link *link, struct link_limit *limit, int64_t least_ns) {
    if (limit->due_ns && limit->due_ns < now(link) + least_ns)
        limit->due_ns = now(link) + least_ns;
}

static void resume_limit(struct agent_link *link, struct link_limit *limit) {
    if (limit->due_ns == 0)
        limit_moved(link, limit);
    limit_postpone(link, limit, AFTER_BREAK);
    if (limit->due_ns)
        arm(link, limit->due_ns);
}

void limit_resume_all(struct agent_link *link) {
    link->limit_due_ns = 0;
    for (struct pending_request *request = link->requests; request; request = request->next)
        resume_limit(link, &request->limit);
    for (size_t i = 0; i < link->command_count; i++)
        resume_limit(link, &link->commands[i]->limit);
}

/* True where LIMIT is over; otherwise sets the timer for it. LATE_NS: how long the engine was stopped or
 * busy, which does not count. */
static bool is_over(struct agent_link *link, struct link_limit *limit, int64_t late_ns) {
    if (limit->due_ns == 0)
        return false;
    limit->due_ns += late_ns;
    if (limit->due_ns <= now(link))
        return true;
    arm(link, limit->due_ns);
    return false;
}

/* Fails the link: "the agent did not WHAT within ...". */
static void fail_link(struct agent_link *link, const struct link_limit *limit, const char *what) {
    char most[NUMBER_TEXT_SIZE];
    struct failure why;
    node_failure(&why, link->node, -ETIMEDOUT, "the agent did not %s within %s", what,
                 number_describe_duration((double)limit->most_ns / (double)EVENT_SECOND, most));
    link_fail(link, &why);
}

/* Checks the limit of a command: at its idle limit it is killed; a second limit, or that of a time limit,
 * fails the link. True: the link has failed. */
static bool check_command(struct agent_link *link, struct remote_command *command, int64_t late_ns) {
    if (!is_over(link, &command->limit, late_ns))
        return false;
    if (command->stalled_ms == 0 && command->idle_limit_ms > 0) {
        command->stalled_ms = command->idle_limit_ms;
        limit_begin(link, &command->limit, KILL_LIMIT);
        (void)remote_command_kill(command, SIGKILL, NULL);
        return false;
    }
    fail_link(link, &command->limit,
              command->stalled_ms ? "end a command that was killed"
                                  : "report the end of a command with a time limit");
    return true;
}

/* Fails the link when a request or a command has not been answered within its limit. */
void limit_on_timer(struct event_source *self, void *context) {
    (void)self;
    struct agent_link *link = context;
    int64_t late_ns = now(link) - link->limit_due_ns;
    if (late_ns < ENGINE_AWAY)
        late_ns = 0;
    link->limit_due_ns = 0;
    if (link->state != AGENT_LINK_READY)
        return; /* while the stream is broken only the lease counts */
    for (struct pending_request *request = link->requests; request; request = request->next)
        if (is_over(link, &request->limit, late_ns)) {
            fail_link(link, &request->limit, request_describe(request));
            return;
        }
    for (size_t i = 0; i < link->command_count; i++)
        if (check_command(link, link->commands[i], late_ns))
            return;
}
