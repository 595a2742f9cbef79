/* Groups of daemons whose streams break: the others do not wait for them, and who could not be told to leave
 * is named. */
#include "tests/simulation/moved-clock.h"
#include "tests/test.h"
#include "tests/unit/remote/group-fixture.h"
#include "tests/unit/remote/scripted-transport.h"

#include <sys/random.h>

/* More than any round has under way at once. */
enum { NODES = 20, HEALTHY = NODES - 1, LEASE_MS = 300000 };

struct broken_fixture {
    struct group_fixture group;
    struct script scripts[NODES];
    char folders[NODES][96];
    bool leaving;
};

static void add_daemon(struct broken_fixture *fixture, size_t node, int64_t lease_ms) {
    struct group_fixture *group = &fixture->group;
    struct script *script = &fixture->scripts[node];
    snprintf(fixture->folders[node], sizeof fixture->folders[node], "%s/n%zu", group->folder, node + 1);
    assert_int_equal(file_make_folders(fixture->folders[node], NULL), 0);
    *script = (struct script){.folder = fixture->folders[node]};
    while (script->session == 0)
        assert_int_equal(getrandom(&script->session, sizeof script->session, 0), sizeof script->session);
    struct transport *transport = scripted_new(group->loop, script);
    free(transport->node);
    assert_true(asprintf(&transport->node, "n%zu", node + 1) > 0);
    assert_done(group, node_group_add(group->group, transport,
                                      &(struct agent_link_policy){.lease_ns = lease_ms * EVENT_MILLISECOND},
                                      &group->failure));
}

static void prepare(struct broken_fixture *fixture, size_t count, int64_t lease_ms) {
    memset(fixture, 0, sizeof *fixture);
    group_prepare(&fixture->group, NULL);
    for (size_t i = 0; i < count; i++)
        add_daemon(fixture, i, lease_ms);
}

static void open_daemons(struct broken_fixture *fixture, size_t count, int64_t lease_ms) {
    prepare(fixture, count, lease_ms);
    assert_done(&fixture->group, node_group_connect(fixture->group.group, &fixture->group.failure));
}

static struct agent_link *link_of(struct broken_fixture *fixture, size_t node) {
    return node_group_link(fixture->group.group, node);
}

/* Its stream breaks, and there is no other; nobody is at its other end. */
static void break_node(struct broken_fixture *fixture, size_t node) {
    pid_t agent = agent_link_greeting(link_of(fixture, node))->pid;
    fixture->scripts[node].refuse = -ECONNREFUSED;
    scripted_fail((struct scripted *)agent_link_transport(link_of(fixture, node)), -ECONNRESET,
                  "the test broke it");
    kill(agent, SIGKILL);
    wait_until(fixture->group.loop, agent_link_state(link_of(fixture, node)) == AGENT_LINK_BROKEN, "%d",
               agent_link_state(link_of(fixture, node)));
}

/* ---- rounds */

struct taken {
    struct broken_fixture *fixture;
    unsigned count;
    int64_t until_ns; /* then it has not come */
    bool is_over;
};

/* Nothing has become of the others meanwhile: it has not waited for them. */
static void take(size_t node, const char *bytes, size_t length, void *context) {
    struct taken *taken = context;
    assert_int_equal(node, HEALTHY);
    assert_int_equal(length, 4);
    for (size_t i = 0; i < HEALTHY; i++)
        assert_int_equal(agent_link_state(link_of(taken->fixture, i)), AGENT_LINK_BROKEN);
    taken->count++;
}

static void end_leases(struct event_source *self, void *context) {
    struct taken *taken = context;
    if (taken->is_over || (taken->count == 0 && wait_now_ns() < taken->until_ns))
        return;
    moved_clock_advance(LEASE_MS);
    taken->is_over = true;
}

TEST(those_that_were_broken_before_take_no_places) {
    struct broken_fixture fixture;
    open_daemons(&fixture, NODES, LEASE_MS);
    moved_clock_use(group_path(&fixture.group, "clock"));
    write_whole(group_path(&fixture.group, "n20/file"), "here", 4);
    for (size_t i = 0; i < HEALTHY; i++)
        break_node(&fixture, i);
    struct taken taken = {.fixture = &fixture, .until_ns = wait_now_ns() + WAIT_LIMIT_MS * EVENT_MILLISECOND};
    struct failure *failures;
    struct event_source *timer =
        event_loop_add_timer(fixture.group.loop, EVENT_MILLISECOND, EVENT_MILLISECOND, end_leases, &taken);
    assert_done(&fixture.group, node_group_read(fixture.group.group, "file", 100, take, &taken, &failures,
                                                &fixture.group.failure));
    assert_int_equal(taken.count, 1);
    /* The round is over when the others are lost. */
    assert_true(taken.is_over);
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(failures[i].code == 0, i == HEALTHY);
    free(failures);
    event_source_remove(timer);
    assert_done(&fixture.group, node_group_close(fixture.group.group, WAIT_LIMIT_MS * EVENT_MILLISECOND,
                                                 &fixture.group.failure));
    group_close(&fixture.group);
}

/* ---- leaving */

/* At once, but when they leave only after the one that can be told has left. */
static void stop_it(struct event_source *self, void *context) {
    struct broken_fixture *fixture = context;
    if (!fixture->leaving || agent_link_state(link_of(fixture, 1)) == AGENT_LINK_CLOSED)
        event_loop_stop(fixture->group.loop);
}

TEST(those_that_could_not_be_told_are_named) {
    struct broken_fixture fixture;
    open_daemons(&fixture, 3, 300000);
    break_node(&fixture, 1);
    assert_int_equal(
        node_group_close(fixture.group.group, WAIT_LIMIT_MS * EVENT_MILLISECOND, &fixture.group.failure),
        -ETIMEDOUT);
    assert_string_equal(fixture.group.failure.text,
                        "leaving failed on 1 of 3 nodes: n2: the agent could not be told to leave; it is "
                        "left to its lease of 5 min");
    group_close(&fixture.group);
}

TEST(those_that_could_not_be_told_are_named_when_interrupted) {
    struct broken_fixture fixture;
    open_daemons(&fixture, 2, 90000);
    add_daemon(&fixture, 2, 90000);
    fixture.scripts[2].open_delay_ns = 20 * EVENT_SECOND;
    fixture.scripts[2].begins_at_once = true;
    break_node(&fixture, 0);
    fixture.scripts[0].refuse = 0;
    fixture.scripts[0].open_delay_ns = 20 * EVENT_SECOND;
    struct event_source *timer =
        event_loop_add_timer(fixture.group.loop, EVENT_MILLISECOND, EVENT_MILLISECOND, stop_it, &fixture);
    assert_int_equal(node_group_connect(fixture.group.group, &fixture.group.failure), -EINTR);
    event_loop_resume(fixture.group.loop);
    fixture.leaving = true;
    assert_int_equal(
        node_group_close(fixture.group.group, WAIT_LIMIT_MS * EVENT_MILLISECOND, &fixture.group.failure),
        -EINTR);
    assert_int_equal(fixture.group.failure.kind, FAILURE_INTERRUPTED);
    assert_string_equal(
        fixture.group.failure.text,
        "interrupted while the agents left; leaving failed on 2 of 3 nodes: n1: the agent could not be told "
        "to leave; it is left to its lease of 90 s; n3: the agent, if it was started, could not be told to "
        "leave; it is left to its lease of 60 s");
    event_source_remove(timer);
    group_close(&fixture.group);
}
