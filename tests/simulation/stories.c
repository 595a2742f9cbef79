/* What the simulation does not say of links: how long exactly they wait, what they say when they end, and
 * what they leave alone. One node, and a network that does what the story says. */
#include "engine/foundation/cleanup.h"
#include "engine/remote/link/link-private.h"
#include "tests/simulation/world.h"
#include "tests/test.h"

static struct node *node;
static struct {
    int ready, broken, resumed, closed;
    struct failure why, end;
    bool asked, close_when_broken;
} told;

static void on_state(struct agent_link *link, enum agent_link_state state, const struct failure *why,
                     void *context) {
    bool resumed = agent_link_greeting(link)->resumed > 0;
    told.ready += state == AGENT_LINK_READY && !resumed;
    told.resumed += state == AGENT_LINK_READY && resumed;
    if (state == AGENT_LINK_BROKEN) {
        told.broken++;
        told.why = *why;
        if (told.close_when_broken)
            agent_link_close(link);
    } else if (state == AGENT_LINK_CLOSED) {
        told.closed++;
        told.asked = why == NULL;
        if (why)
            told.end = *why;
    }
}

static int set_up(void **state) {
    memset(&told, 0, sizeof told);
    world.seed = 1;
    world_init();
    world.node_count = 1;
    node = &world.nodes[0];
    node->latency_ns = MS;
    node->window = 1 << 20;
    return 0;
}

static int tear_down(void **state) {
    node->freed = true; /* its agent leaves as it likes */
    programs_clear();
    agent_link_free(node->link);
    network_clear();
    return 0;
}

TEST_EACH(set_up, tear_down)

static void nothing(void) {
}

static void pass(int64_t ns) {
    world_run(now() + ns, NULL, nothing);
}

static void run_until_(bool (*is_so)(void), int line) {
    world_run(now() + 3600 * SECOND, is_so, nothing);
    if (!is_so())
        fail_msg("line %d: it does not come to that", line);
}
#define run_until(is_so) run_until_(is_so, __LINE__)

static bool is_ready(void) {
    return agent_link_state(node->link) == AGENT_LINK_READY;
}
static bool is_broken(void) {
    return agent_link_state(node->link) == AGENT_LINK_BROKEN;
}
static bool is_closed(void) {
    return agent_link_state(node->link) == AGENT_LINK_CLOSED;
}
static bool is_ready_or_closed(void) {
    return is_ready() || is_closed();
}
static bool is_broken_or_closed(void) {
    return is_broken() || is_closed();
}
static bool is_seeking(void) {
    return session_is_reconnecting(node->link);
}
static bool is_gone(void) {
    return !node->there;
}

static void start(int64_t lease_ms, int64_t heartbeat_ms, int64_t silence_ms, int64_t timeout_ns) {
    node->policy = (struct agent_link_policy){lease_ms * MS, heartbeat_ms * MS, silence_ms * MS};
    const struct agent_link_callbacks callbacks = {.on_state = on_state};
    assert_int_equal(
        agent_link_new(world.actors[ENGINE].loop, scripted_new(node), &callbacks, &node->link, NULL), 0);
    agent_link_set_policy(node->link, &node->policy);
    node->policy = node->link->policy; /* with what is usual */
    assert_int_equal(agent_link_start(node->link, timeout_ns, NULL), 0);
}

static void connect(int64_t lease_ms, int64_t heartbeat_ms, int64_t silence_ms) {
    start(lease_ms, heartbeat_ms, silence_ms, AGENT_LINK_HELLO_TIMEOUT);
    run_until(is_ready);
}

/* The stream breaks, and there is no other until node->refused_until_ns is set back. */
static void break_it(void) {
    node->refused_until_ns = INT64_MAX;
    network_cut(node, true, true);
    run_until(is_broken);
}

static void close_it(void) {
    node->closing_ns = now();
    agent_link_close(node->link);
    run_until(is_closed);
    assert_int_equal(told.closed, 1);
    assert_true(told.asked);
    assert_null(agent_link_failure(node->link));
}

static struct program *run_program(struct program program) {
    struct program *one = &world.programs[world.program_count++];
    *one = program;
    one->node = node;
    one->out = one->in = -1;
    program_start(one, 0);
    return one;
}

/* ---- while it is up */

static uint64_t frames;

static void on_statistics(struct agent_link *link, const struct agent_statistics *statistics,
                          const struct failure *failure, void *context) {
    assert_null(failure);
    frames = statistics->frames_received;
}

static bool is_answered(void) {
    return frames > 0;
}

static uint64_t count_frames(void) {
    frames = 0;
    assert_int_equal(agent_link_statistics(node->link, on_statistics, NULL, NULL), 0);
    run_until(is_answered);
    return frames;
}

TEST(a_quiet_link_beats) {
    connect(1500, 0, 0);
    assert_int_equal(node->link->policy.heartbeat_ns, 500 * MS); /* a third of the lease */
    uint64_t before = count_frames();
    pass(5 * SECOND);
    /* A beat each 0.5 s, counted from its answer; and STATISTICS. */
    assert_in_range(count_frames() - before, 9 + 1, 10 + 1);
    assert_int_equal(told.broken, 0);
}

TEST(a_busy_link_does_not) {
    connect(0, 1000, 0);
    uint64_t before = count_frames();
    for (int i = 0; i < 60; i++) {
        pass(40 * MS);
        (void)count_frames();
    }
    assert_int_equal(frames - before, 60);
}

TEST(a_silent_stream_is_given_up_and_mended) {
    connect(20000, 100, 400);
    pass(SECOND);
    int64_t begin = now();
    network_cut(node, false, false);
    run_until(is_broken);
    assert_in_range(now() - begin, 400 * MS, 510 * MS);
    assert_string_equal(told.why.text, "the agent sent nothing for 0.4 s");
    assert_string_equal(told.why.place, "node testnode");
    run_until(is_ready);
    assert_int_equal(agent_link_greeting(node->link)->resumed, 1);
}

/* ---- broken, for a while and for good */

/* At once, after 0.5 s, 1 s and so on up to 10 s, and a fifth more by chance. */
TEST(attempts_come_ever_more_seldom) {
    connect(300000, 0, 0);
    break_it();
    pass(60 * SECOND);
    const int64_t least[] = {500, 1000, 2000, 4000, 8000, 10000};
    for (int i = 0; i < 6; i++)
        assert_in_range(node->attempt_ns[i + 2] - node->attempt_ns[i + 1], least[i] * MS,
                        least[i] * MS * 12 / 10 + 3 * node->latency_ns);
    node->refused_until_ns = 0;
    run_until(is_ready);
}

TEST(a_lease_that_runs_out_ends_the_link) {
    connect(1500, 0, 0);
    struct program *program = run_program((struct program){.size = 1000000, .piece = 1, .pause_ns = SECOND});
    pass(100 * MS);
    break_it();
    int64_t heard_ns = node->heard_from_ns;
    run_until(is_closed);
    assert_int_equal(now() - heard_ns, 1500 * MS);
    assert_false(told.asked);
    assert_int_equal(told.end.code, -ETIMEDOUT);
    assert_string_equal(told.end.place, "node testnode");
    assert_string_equal(told.end.text, "the agent sent nothing for 1.5 s, its lease, and has ended; "
                                       "the last attempt: the network broke it");
    assert_int_equal(program->exits, 1);
    run_until(is_gone);
}

/* Each greeting begins the agent's lease anew, so that the lease alone would never end such a link. */
TEST(an_agent_that_only_greets_is_given_up) {
    connect(30000, 0, 300);
    int64_t begin_ns = now();
    while (!is_closed()) {
        network_cut(node, false, false);
        run_until(is_broken_or_closed);
        run_until(is_ready_or_closed);
    }
    assert_int_equal(told.end.code, -ETIMEDOUT);
    assert_non_null(strstr(told.end.text, "accepted connections but sent nothing for 60 s"));
    assert_in_range(now() - begin_ns, 60 * SECOND, 73 * SECOND);
}

TEST(a_lease_that_runs_out_ends_an_attempt) {
    connect(1500, 0, 0);
    break_it();
    pass(100 * MS);
    node->refused_until_ns = 0;
    node->stalled_until_ns = INT64_MAX;
    run_until(is_seeking);
    run_until(is_closed);
    assert_int_equal(now() - node->heard_from_ns, 1500 * MS);
}

/* The agent may have heard us after we heard it. */
TEST(the_first_attempt_is_waited_for) {
    connect(500, 0, 0);
    node->stalled_until_ns = now() + 3 * SECOND;
    network_cut(node, true, true);
    run_until(is_closed);
    assert_int_equal(told.end.code, -ESTALE);
    assert_string_equal(told.end.text,
                        "the connection was lost and cannot be made again: the network broke it");
    assert_string_equal(agent_link_failure(node->link)->place, "node testnode");
}

TEST(what_trying_again_will_not_mend_ends_the_link_at_once) {
    static const int codes[] = {-ESTALE, -EACCES, -EKEYREJECTED};
    for (size_t i = 0; i < sizeof codes / sizeof *codes; i++) {
        if (i > 0) {
            tear_down(NULL);
            set_up(NULL);
        }
        connect(0, 0, 0);
        node->refusal = codes[i];
        break_it();
        run_until(is_closed);
        assert_int_equal(told.end.code, codes[i]);
        assert_int_equal(node->attempts, 2);
        assert_int_equal(told.closed, 1);
    }
}

/* How long a transport takes to open is its own business. */
TEST(patience_begins_when_the_stream_is_open) {
    node->latency_ns = SECOND / 5;
    start(0, 0, 0, 3 * node->latency_ns);
    run_until(is_ready);
}

TEST(a_first_stream_that_breaks_is_the_end) {
    start(0, 0, 0, SECOND);
    while (agent_link_state(node->link) != AGENT_LINK_GREETING)
        pass(MS);
    network_cut(node, true, true);
    run_until(is_closed);
    assert_int_equal(told.end.code, -ECONNRESET);
    assert_string_equal(told.end.text, "the network broke it");
    assert_int_equal(node->attempts, 1);
}

/* ---- farewells */

TEST(closing_a_broken_link_tells_the_agent_too) {
    for (int way = 0; way < 3; way++) {
        if (way > 0) {
            tear_down(NULL);
            set_up(NULL);
        }
        connect(0, 0, 0);
        told.close_when_broken = way == 1;
        node->closing_ns = now();
        network_cut(node, true, true);
        run_until(way == 1 ? is_closed : way == 2 ? is_seeking : is_broken);
        if (way != 1)
            close_it();
        assert_true(is_gone());
        assert_int_equal(told.resumed, 0);
        assert_int_equal(agent_link_left_ns(node->link), 0);
    }
}

TEST(closing_does_not_wait_for_who_cannot_be_reached) {
    connect(20000, 0, 0);
    break_it();
    int64_t begin = now();
    close_it();
    assert_in_range(now() - begin, 0, 10 * MS);
    assert_int_equal(agent_link_left_ns(node->link), 20 * SECOND);
}

TEST(a_farewell_has_an_end) {
    connect(20000, 0, 0);
    break_it();
    node->refused_until_ns = 0;
    node->stalled_until_ns = INT64_MAX;
    int64_t begin = now();
    close_it();
    assert_int_equal(now() - begin, 5 * SECOND);
    assert_int_equal(agent_link_left_ns(node->link), 20 * SECOND);
}

/* A LEAVE that the network has swallowed is sent again on another stream. */
TEST(a_farewell_that_is_lost_is_made_again) {
    connect(60000, 0, 0);
    network_cut(node, false, false);
    close_it();
    assert_true(is_gone());
    assert_int_equal(node->attempts, 2);
    assert_int_equal(agent_link_left_ns(node->link), 0);
}

TEST(closing_before_the_agent_was_started_is_done_at_once) {
    node->stalled_until_ns = INT64_MAX;
    start(0, 0, 0, SECOND);
    int64_t begin = now();
    close_it();
    assert_int_equal(now(), begin);
    assert_int_equal(agent_link_left_ns(node->link), 0);
}

static bool is_begun(void) {
    return node->link->transport->begun;
}

TEST(closing_before_the_stream_is_open_tells_the_agent) {
    start(0, 0, 0, SECOND);
    run_until(is_begun);
    close_it();
    assert_int_equal(node->born, 1);
    assert_true(is_gone());
    assert_int_equal(agent_link_left_ns(node->link), 0);
}

TEST(closing_before_the_stream_is_open_has_an_end) {
    start(300000, 0, 0, SECOND);
    run_until(is_begun);
    node->stalled_until_ns = INT64_MAX;
    int64_t begin = now();
    close_it();
    assert_int_equal(now() - begin, 5 * SECOND);
    assert_int_equal(agent_link_left_ns(node->link), 60 * SECOND); /* it knows of no other lease */
}

/* It has sent its lease, and not heard whether the agent has it. */
TEST(an_agent_that_may_have_its_lease_may_stay_for_that) {
    start(300000, 0, 0, SECOND);
    while (agent_link_state(node->link) != AGENT_LINK_GREETING)
        pass(MS / 10);
    pass(3 * MS / 2);
    node->refused_until_ns = INT64_MAX;
    network_cut(node, true, true);
    close_it();
    assert_int_equal(agent_link_left_ns(node->link), 300 * SECOND);
}

/* LEAVE waits behind much that was asked for. RET: how long closing takes. */
static int64_t close_slow(size_t window) {
    connect(20000, 0, 0);
    run_program((struct program){.reads = true, .input = 250000, .pause_ns = MS});
    node->window = window;
    pass(100 * MS);
    int64_t begin = now();
    close_it();
    return now() - begin;
}

TEST(a_farewell_goes_on_while_bytes_go_out) {
    assert_in_range(close_slow(20), 6 * SECOND, 30 * SECOND); /* more than one farewell's time */
    assert_int_equal(agent_link_left_ns(node->link), 0);
    assert_true(is_gone());
}

TEST(a_farewell_does_not_go_on_for_ever) {
    assert_int_equal(close_slow(2), 30 * SECOND);
    assert_int_equal(agent_link_left_ns(node->link), 20 * SECOND);
    node->stalled_until_ns = 0;
    run_until(is_gone);
}

/* In each state that a link can be freed in, with much that is pending: nobody is called any more. */
TEST(a_link_can_be_freed_in_every_state) {
    for (int i = 0; i < 7; i++) {
        if (i > 0) {
            tear_down(NULL);
            set_up(NULL);
        }
        connect(10000, 0, 0);
        struct program *program =
            run_program((struct program){.reads = true, .input = 250000, .pause_ns = MS});
        node->closing_ns = now(); /* the agent may leave */
        if (i == 1)
            break_it();
        if (i >= 2 && i != 5)
            network_cut(node, true, true);
        if (i == 2 || i == 3)
            run_until(is_seeking);
        if (i == 3)
            pass(5 * node->latency_ns);
        if (i >= 4)
            agent_link_close(node->link);
        if (i == 6)
            run_until(is_seeking);
        int exits = program->exits, closed = told.closed;
        agent_link_free(take_pointer(node->link));
        run_until(is_gone);
        assert_int_equal(program->exits, exits);
        assert_int_equal(told.closed, closed);
    }
}
