/* Groups as a whole: names, interruptions, and how much memory it takes. How all leave: simulation/groups.c.
 */
#include "tests/test.h"
#include "tests/unit/remote/group-fixture.h"

#include <sys/stat.h>

/* ---- connecting */

static int add(const char *name) {
    struct transport_local_options options = {
        .agent = test_agent(), .directory = group_path("x"), .node = name};
    struct transport *transport;
    assert_done(&fixture, transport_local_new(fixture.loop, &options, &transport, &fixture.failure));
    return node_group_add(fixture.group, transport, NULL, &fixture.failure);
}

TEST(names_that_cannot_be_files_are_refused) {
    group_prepare(NULL);
    char longest[202];
    memset(longest, 'a', 201);
    longest[201] = '\0';
    const char *const bad[] = {"", "..", ".hidden", "a/b", "/", longest};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        assert_int_equal(add(bad[i]), -EINVAL);
        assert_int_equal(fixture.failure.kind, FAILURE_INPUT);
    }
    assert_int_equal(node_group_count(fixture.group), 0);
    assert_int_equal(add("same"), 0);
    assert_int_equal(add("other"), 0);
    assert_int_equal(add("same"), 0);
    assert_int_equal(node_group_connect(fixture.group, &fixture.failure), -EINVAL);
    assert_string_equal(fixture.failure.text, "two nodes would be called 'same'; expected names that differ "
                                              "(an alias in the ssh configuration gives one)");
}

TEST(an_empty_group) {
    group_prepare(NULL);
    assert_done(&fixture, node_group_connect(fixture.group, &fixture.failure));
    const char *arguments[] = {"true", NULL};
    struct remote_command_specification specification = {.arguments = arguments};
    assert_done(&fixture,
                node_group_run(fixture.group, &(struct node_group_command){.specification = &specification},
                               &results, &fixture.failure));
    assert_int_equal(node_results_failure(fixture.group, results, &fixture.failure), 0);
    node_results_free(fixture.group, take_pointer(results));
    assert_done(&fixture, node_group_close(fixture.group, EVENT_SECOND, &fixture.failure));
}

static void stop_it(struct event_source *self, void *context) {
    event_loop_stop(context);
}

TEST(connecting_can_be_interrupted_and_gone_on_with) {
    group_prepare(NULL);
    for (size_t i = 0; i < 4; i++)
        group_add(i, test_agent());
    struct event_source *timer = event_loop_add_timer(fixture.loop, 0, 0, stop_it, fixture.loop);
    assert_int_equal(node_group_connect(fixture.group, &fixture.failure), -EINTR);
    event_source_remove(timer);
    event_loop_resume(fixture.loop);
    assert_done(&fixture, node_group_connect(fixture.group, &fixture.failure));
    for (size_t i = 0; i < 4; i++)
        assert_true(node_group_is_there(fixture.group, i));
}

/* ---- memory */

static long grown_kib(const char *script, uint64_t limit, uint64_t expected_total, bool filed) {
    const char *arguments[] = {"sh", "-c", script, NULL};
    struct remote_command_specification specification = {.arguments = arguments, .output_limit = limit};
    char folder[128];
    snprintf(folder, sizeof folder, "%s/outputs", fixture.folder);
    assert_true(mkdir(folder, 0777) == 0 || errno == EEXIST);
    struct node_group_command command = {.specification = &specification, .folder = filed ? folder : NULL};
    forget_peak();
    long before = peak_kib("VmRSS:");
    assert_done(&fixture, node_group_run(fixture.group, &command, &results, &fixture.failure));
    long grown = peak_kib("VmHWM:") - before;
    for (size_t i = 0; i < node_group_count(fixture.group); i++) {
        assert_int_equal(results[i].outcome, NODE_DONE);
        assert_true(results[i].output.received >= expected_total);
        assert_int_equal(results[i].output.length, NODE_OUTPUT_KEPT);
        assert_string_equal(results[i].output.hash, results[0].output.hash);
    }
    node_results_free(fixture.group, take_pointer(results));
    return grown;
}

TEST(memory_is_bounded_whatever_is_printed) {
    group_open(GROUP_NODES_MAX);
    long all = peak_kib("VmRSS:");
    long some = grown_kib("head -c 1048576 /dev/zero", 0, 1 << 20, true);
    long endless = grown_kib("yes | head -c 5000000", 300000, 300000, true);
    print_message("64 nodes: %ld KiB connected, %ld KiB more for 1 MiB each, %ld KiB more for 5 MB each, "
                  "cut\n",
                  all, some, endless);
    if (!SANITIZED)
        assert_true(some < 60 << 10 && endless < 60 << 10);
}
