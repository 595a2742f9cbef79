/*
 * Links to a daemon over scripted streams, for tests: a loop, an agent, and what the link told. Included by
 * one file of a program; what a test does not need is left unused.
 */
#ifndef ASSAY_TESTS_UNIT_REMOTE_LINK_FIXTURE_H
#define ASSAY_TESTS_UNIT_REMOTE_LINK_FIXTURE_H

#include "engine/foundation/hash.h"
#include "engine/remote/link-inside.h"
#include "tests/unit/remote/scripted-transport.h"

#include <fcntl.h>
#include <sys/random.h>
#include <sys/stat.h>

static struct fixture f;
static struct script script;

struct told {
    int ready, broken, resumed, closed;
    int64_t outage_ns;
    struct failure why, end;
    bool asked;
    bool close_when_broken;
};
static struct told told;

static void on_ready(struct agent_link *link, void *context) {
    (void)link;
    ((struct told *)context)->ready++;
}

static void on_broken(struct agent_link *link, const struct failure *why, void *context) {
    struct told *heard = context;
    assert_int_equal(agent_link_state(link), AGENT_LINK_BROKEN);
    heard->broken++;
    heard->why = *why;
    if (heard->close_when_broken)
        agent_link_close(link);
}

static void on_resumed(struct agent_link *link, int64_t outage_ns, void *context) {
    struct told *heard = context;
    assert_int_equal(agent_link_state(link), AGENT_LINK_READY);
    heard->resumed++;
    heard->outage_ns = outage_ns;
}

static void on_closed(struct agent_link *link, const struct failure *why, void *context) {
    (void)link;
    struct told *heard = context;
    heard->closed++;
    heard->asked = why == NULL;
    if (why)
        heard->end = *why;
}

/* In milliseconds; 0: as it is by default. */
static void connect_with(int64_t lease, int64_t heartbeat, int64_t silence) {
    assert_int_equal(agent_link_new(f.loop, scripted_new(f.loop, &script),
                                    &(struct agent_link_callbacks){.on_ready = on_ready,
                                                                   .on_broken = on_broken,
                                                                   .on_resumed = on_resumed,
                                                                   .on_closed = on_closed,
                                                                   .context = &told},
                                    &f.link, NULL),
                     0);
    agent_link_set_policy(f.link, &(struct agent_link_policy){lease * EVENT_MILLISECOND,
                                                              heartbeat * EVENT_MILLISECOND,
                                                              silence * EVENT_MILLISECOND});
    assert_done(&f, agent_link_start(f.link, AGENT_LINK_HELLO_TIMEOUT, &f.failure));
    assert_done(&f, agent_link_wait_ready(f.link, &f.failure));
    assert_int_equal(told.ready, 1);
}

static int set_up(void **state) {
    (void)state;
    memset(&f, 0, sizeof f);
    memset(&told, 0, sizeof told);
    snprintf(f.folder, sizeof f.folder, "/tmp/assay-test-XXXXXX");
    assert_non_null(mkdtemp(f.folder));
    f.loop = event_loop_new(&f.failure);
    assert_non_null(f.loop);
    script = (struct script){.folder = f.folder, .seed = 88172645463325252};
    while (script.session == 0)
        assert_int_equal(getrandom(&script.session, sizeof script.session, 0), sizeof script.session);
    return 0;
}

/* Nobody is left behind: where the test has not ended the agent, its link's end does. */
static int tear_down(void **state) {
    (void)state;
    pid_t agent = f.link ? agent_link_greeting(f.link)->pid : 0;
    script.break_within = 0;
    agent_link_free(f.link);
    if (agent && !process_ends(agent))
        kill(agent, SIGKILL);
    event_loop_free(f.loop);
    file_remove_tree(f.folder, NULL);
    return 0;
}

static void turn_until_(bool (*is_so)(void), int line) {
    for (int64_t end = clock_monotonic_ns() + 60 * EVENT_SECOND; !is_so();) {
        int64_t left = end - clock_monotonic_ns();
        if (left < 0 || event_loop_run_once(f.loop, left, NULL) < 0)
            fail_msg(
                "line %d: it did not come to that in time: state %d, %d attempts, %d streams, %d breaks, "
                "last: %s",
                line, agent_link_state(f.link), script.attempts, script.streams, script.breaks,
                told.why.text);
    }
}
#define turn_until(function) turn_until_(function, __LINE__)

static bool is_closed(void) {
    return agent_link_state(f.link) == AGENT_LINK_CLOSED;
}

static bool is_broken(void) {
    return told.broken > 0;
}

struct printed {
    struct hash *hash;
    uint64_t bytes;
    int exits, starts;
    struct remote_exit exit;
    struct failure failure;
    const char *input; /* still to be fed */
    size_t input_left;
};

static void note_started(struct remote_command *command, const struct remote_start *start, void *context) {
    (void)command;
    (void)start;
    ((struct printed *)context)->starts++;
}

static void note_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                        size_t length, void *context) {
    (void)command;
    (void)stream;
    struct printed *printed = context;
    hash_update(printed->hash, bytes, length);
    printed->bytes += length;
}

static void feed(struct remote_command *command, void *context) {
    struct printed *printed = context;
    size_t queued = remote_command_queued(command);
    while (printed->input_left && queued < 100000) {
        size_t size = printed->input_left < 7001 ? printed->input_left : 7001;
        assert_int_equal(remote_command_write(command, printed->input, size, &queued, NULL), 0);
        printed->input += size;
        printed->input_left -= size;
    }
    if (!printed->input_left)
        assert_int_equal(remote_command_close_input(command, NULL), 0);
}

static void note_exit(struct remote_command *command, const struct remote_exit *exit,
                      const struct failure *failure, void *context) {
    (void)command;
    struct printed *printed = context;
    printed->exits++;
    if (exit)
        printed->exit = *exit;
    if (failure)
        printed->failure = *failure;
}

static const struct remote_command_callbacks printing = {
    .on_started = note_started, .on_output = note_output, .on_drain = feed, .on_exit = note_exit};

static void note_done(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    ++((int *)context)[failure != NULL];
}

static void break_now(void) {
    script.refuse = -ECONNREFUSED;
    scripted_fail((struct scripted *)f.link->transport, -ECONNRESET, "the test broke it");
    turn_until(is_broken);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

#endif
