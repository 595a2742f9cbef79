/* Clocks, and what becomes of answers that nobody waits for. */
#include "engine/remote/link/link-private.h"
#include "tests/test.h"
#include "tests/unit/remote/fixture.h"

static void put(const char *name, const char *content) {
    assert_int_equal(file_replace(fixture_path(&f, name), content, strlen(content), 0640, NULL), 0);
}

/* ---- clocks: the agent is on the same machine, so both clocks must agree within half the round trip */

TEST(a_clock_is_measured_within_its_error) {
    struct agent_clock clock;
    int64_t before = clock_wall_ns(), started = clock_monotonic_ns();
    assert_done(&f, agent_link_measure_clock_and_wait(f.link, 0, &clock, &f.failure));
    assert_int_equal(clock.exchanges, AGENT_CLOCK_EXCHANGES);
    assert_true(clock.round_trip_ns > 0 && clock.round_trip_ns < EVENT_SECOND);
    assert_true(llabs(clock.node_monotonic_ns - clock.engine_monotonic_ns) <= clock.round_trip_ns / 2);
    assert_true(llabs(clock.node_wall_ns - clock.engine_wall_ns) <= clock.round_trip_ns / 2);
    assert_true(clock.engine_wall_ns >= before && clock.engine_wall_ns <= clock_wall_ns());
    assert_true(clock.engine_monotonic_ns >= started && clock.engine_monotonic_ns <= clock_monotonic_ns());
    print_message("round trip %lld ns\n", (long long)clock.round_trip_ns);
    assert_done(&f, agent_link_measure_clock_and_wait(f.link, 100, &clock, &f.failure));
    assert_int_equal(clock.exchanges, 100);
    assert_int_equal(agent_link_measure_clock_and_wait(f.link, 1001, &clock, &f.failure), -EINVAL);
}

static void note_clock(struct agent_link *link, const struct agent_clock *clock,
                       const struct failure *failure, void *context) {
    assert_true(!clock == !!failure);
    /* A callback may ask again; it is told at once that there is no use. */
    if (failure)
        assert_true(agent_link_statistics(link, wait_on_statistics, NULL, NULL) < 0);
    ++((int *)context)[failure != NULL];
}

TEST(a_clock_whose_agent_dies_is_told_once) {
    int told[2] = {0, 0};
    assert_done(&f, agent_link_measure_clock(f.link, 1000, note_clock, told, &f.failure));
    kill(agent_link_greeting(f.link)->pid, SIGKILL);
    while (agent_link_state(f.link) != AGENT_LINK_CLOSED)
        assert_true(event_loop_run_once(f.loop, 5 * EVENT_SECOND, NULL) > 0);
    assert_int_equal(told[0], 0);
    assert_int_equal(told[1], 1);
}

static void note_file(struct agent_link *link, size_t path, const char *bytes, size_t length, void *context) {
    ++*(int *)context;
}

static void note_end(struct agent_link *link, const struct failure *failure, void *context) {
    ++*(int *)context;
}

/* Whoever gives up is called no more, and no more exchanges are made for nobody. */
TEST(what_is_forgotten_is_not_answered) {
    int told[2] = {0, 0}, read[2] = {0, 0};
    char name[] = "hello"; /* of no use to the link once it has asked */
    const char *const paths[] = {name, NULL};
    put("hello", "hello");
    assert_done(&f, agent_link_measure_clock(f.link, 1000, note_clock, told, &f.failure));
    for (int i = 0; i < 100; i++)
        assert_done(&f, agent_link_read_files(f.link, paths, 100, note_file, note_end, read, &f.failure));
    name[0] = '\0';
    agent_link_forget(f.link, told);
    agent_link_forget(f.link, read);
    struct agent_statistics statistics = {0};
    assert_done(&f, agent_link_statistics_and_wait(f.link, &statistics, &f.failure));
    fixture_turn(&f, 100);
    assert_done(&f, agent_link_statistics_and_wait(f.link, &statistics, &f.failure));
    assert_int_equal(told[0] + told[1] + read[0], 0);
    wait_until(f.loop, !f.link->files && !f.link->requests, "something is asked still");
    assert_int_equal(told[0] + told[1] + read[0], 0);
}

TEST_EACH(link_set_up, link_tear_down)
