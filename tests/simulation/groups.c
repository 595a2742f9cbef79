/* Groups of nodes whose streams break: the others do not wait for them, and who could not be told to leave is
 * named. */
#include "engine/foundation/cleanup.h"
#include "engine/remote/nodes/group.h"
#include "tests/simulation/world.h"
#include "tests/test.h"

/* More than any round has under way at once. */
enum { MANY = 20, HEALTHY = MANY - 1 };

static struct node_group *group;
static struct failure failure;
static bool (*stops)(void); /* whether the engine is interrupted now */

static void on_wait(void) {
    if (stops && stops())
        event_loop_stop(world.actors[ENGINE].loop);
}

/* An engine that is not asked at once is asked soon: time goes on in small steps. */
static void tick(void *context, int64_t begun) {
    must(now() - begun < 1000 * SECOND, "a group waits for what will never happen");
    later(NETWORK, 50 * MS, tick, NULL, begun);
}

static int set_up(void **state) {
    world.seed = 1;
    world_init();
    world_use_run_clock(on_wait);
    tick(NULL, now());
    stops = NULL;
    return node_group_new(world.actors[ENGINE].loop, NULL, &group);
}

static int tear_down(void **state) {
    for (size_t i = 0; i < world.node_count; i++)
        world.nodes[i].freed = true; /* its agent leaves as it likes */
    node_group_free(group);
    network_clear();
    return 0;
}

TEST_EACH(set_up, tear_down)

/* COUNT more: n1, n2, ... */
static void add_nodes(size_t count, int64_t lease_ns) {
    static char names[MANY][8];
    for (; count > 0; count--) {
        struct node *node = &world.nodes[world.node_count];
        node->number = world.node_count++;
        snprintf(names[node->number], sizeof names[0], "n%zu", world.node_count);
        node->name = names[node->number];
        node->latency_ns = MS;
        node->window = 1 << 20;
        node->policy = (struct agent_link_policy){.lease_ns = lease_ns};
        assert_int_equal(node_group_add(group, scripted_new(node), &node->policy, &failure), 0);
        node->link = node_group_link(group, node->number);
    }
}

static void serve_until(size_t node, enum agent_link_state state) {
    while (agent_link_state(world.nodes[node].link) != state)
        assert_true(event_loop_run_once(world.actors[ENGINE].loop, -1, &failure) >= 0);
}

/* Its stream breaks, and there is no other. */
static void break_node(size_t node) {
    world.nodes[node].refused_until_ns = INT64_MAX;
    network_cut(&world.nodes[node], true, true);
    serve_until(node, AGENT_LINK_BROKEN);
}

TEST(those_that_were_broken_before_take_no_places) {
    add_nodes(MANY, 300 * SECOND);
    assert_int_equal(node_group_connect(group, &failure), 0);
    for (size_t i = 0; i < HEALTHY; i++)
        break_node(i);
    int64_t begun = now();
    cleanup_free struct agent_clock *clocks = NULL;
    assert_int_equal(node_group_measure_clocks(group, &clocks, &failure), 0);
    assert_in_range(clocks[HEALTHY].engine_monotonic_ns, begun, begun + SECOND);
    /* The round is over when the others are lost. */
    assert_true(now() - begun > 200 * SECOND);
    for (size_t i = 0; i < HEALTHY; i++) {
        assert_int_equal(clocks[i].exchanges, 0);
        assert_int_equal(agent_link_state(world.nodes[i].link), AGENT_LINK_CLOSED);
    }
    world.nodes[HEALTHY].closing_ns = now();
    assert_int_equal(node_group_close(group, 60 * SECOND, &failure), 0);
}

/* ---- leaving */

TEST(those_that_could_not_be_told_are_named) {
    add_nodes(3, 300 * SECOND);
    assert_int_equal(node_group_connect(group, &failure), 0);
    break_node(1);
    for (size_t i = 0; i < 3; i++)
        world.nodes[i].closing_ns = now();
    assert_int_equal(node_group_close(group, 120 * SECOND, &failure), -ETIMEDOUT);
    assert_string_equal(failure.text, "leaving failed on 1 of 3 nodes: n2: cannot ask the agent to end; "
                                      "it ends by itself when its lease is over, in at most 5 min");
}

TEST(one_that_does_not_leave_is_named) {
    add_nodes(3, 300 * SECOND);
    assert_int_equal(node_group_connect(group, &failure), 0);
    freeze(FIRST_AGENT + 1, 60 * SECOND);
    for (size_t i = 0; i < 3; i++)
        world.nodes[i].closing_ns = now();
    assert_int_equal(node_group_close(group, 4 * SECOND, &failure), -ETIMEDOUT);
    assert_string_equal(failure.text,
                        "leaving failed on 1 of 3 nodes: n2: the agent has not left within 4 s");
}

/* Its agent may have been started; no stream to it opens. */
static bool third_is_begun(void) {
    if (!agent_link_transport(world.nodes[2].link)->begun)
        return false;
    world.nodes[2].stalled_until_ns = INT64_MAX;
    return true;
}

static bool second_has_left(void) {
    return agent_link_state(world.nodes[1].link) == AGENT_LINK_CLOSED;
}

TEST(those_that_could_not_be_told_are_named_when_interrupted) {
    add_nodes(2, 90 * SECOND);
    assert_int_equal(node_group_connect(group, &failure), 0);
    break_node(0);
    world.nodes[0].refused_until_ns = 0;
    world.nodes[0].stalled_until_ns = INT64_MAX;
    add_nodes(1, 90 * SECOND);
    stops = third_is_begun;
    assert_int_equal(node_group_connect(group, &failure), -EINTR);
    event_loop_resume(world.actors[ENGINE].loop);
    stops = second_has_left;
    for (size_t i = 0; i < 3; i++)
        world.nodes[i].closing_ns = now();
    assert_int_equal(node_group_close(group, 120 * SECOND, &failure), -EINTR);
    assert_int_equal(failure.kind, FAILURE_INTERRUPTED);
    assert_string_equal(
        failure.text,
        "interrupted while the agents left; leaving failed on 2 of 3 nodes: n1: cannot ask the agent to end; "
        "it ends by itself when its lease is over, in at most 90 s; n3: cannot ask the agent to end (if it "
        "was "
        "started); it ends by itself when its lease is over, in at most 60 s");
    event_loop_resume(world.actors[ENGINE].loop);
}
