/* What the tests of node groups share: many agents of this machine, each a node of its own. */
#ifndef ASSAY_TESTS_UNIT_REMOTE_GROUP_FIXTURE_H
#define ASSAY_TESTS_UNIT_REMOTE_GROUP_FIXTURE_H

#include "engine/foundation/cleanup.h"
#include "engine/remote/nodes/group.h"
#include "tests/unit/remote/fixture.h"

enum { GROUP_NODES_MAX = 64 };

struct group_fixture {
    struct event_loop *loop;
    struct node_group *group;
    struct failure failure;
    const char *folder; /* node k runs in FOLDER/nK */
    char names[GROUP_NODES_MAX][24];
};

static struct group_fixture fixture;
static struct failure *failures;    /* what a call has given: group_close() frees the last ones */
static struct node_result *results; /* as well */

static inline void group_add(size_t node, const char *agent) {
    snprintf(fixture.names[node], sizeof fixture.names[node], "n%zu", node + 1);
    char *directory = text_format("%s/%s", fixture.folder, fixture.names[node]);
    assert_non_null(directory);
    struct transport_local_options options = {
        .agent = agent, .directory = directory, .node = fixture.names[node]};
    struct transport *transport;
    assert_done(&fixture, transport_local_new(fixture.loop, &options, &transport, &fixture.failure));
    free(directory);
    assert_done(&fixture, node_group_add(fixture.group, transport, NULL, &fixture.failure));
}

static inline void group_close(void) {
    event_loop_resume(fixture.loop);
    free(take_pointer(failures));
    node_results_free(fixture.group, take_pointer(results));
    node_group_free(fixture.group);
    event_loop_free(take_pointer(fixture.loop));
}

static inline int close_last_group(void **state) {
    (void)state;
    if (fixture.loop)
        group_close();
    return 0;
}
TEST_EACH(NULL, close_last_group)

/* Not connected yet; the last one is closed. */
static inline void group_prepare(const struct node_group_listener *listener) {
    close_last_group(NULL);
    memset(&fixture, 0, sizeof fixture);
    fixture.folder = test_own_folder();
    fixture.loop = event_loop_new(&fixture.failure);
    assert_non_null(fixture.loop);
    assert_done(&fixture, node_group_new(fixture.loop, listener, &fixture.group));
}

/* COUNT nodes n1, n2, ..., connected. */
static inline void group_open(size_t count) {
    group_prepare(NULL);
    for (size_t i = 0; i < count; i++)
        group_add(i, test_agent());
    assert_done(&fixture, node_group_connect(fixture.group, &fixture.failure));
}

/* FOLDER/NAME (test_formatted()). */
static inline const char *group_path(const char *name) {
    return test_formatted("%s/%s", fixture.folder, name);
}

static inline void write_whole(const char *path, const char *bytes, size_t length) {
    FILE *file = fopen(path, "we");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, length, file), length);
    assert_int_equal(fclose(file), 0);
}

/* The peak of this process's memory since it was last asked to forget it, in KiB. */
static inline void forget_peak(void) {
    FILE *file = fopen("/proc/self/clear_refs", "we");
    assert_non_null(file);
    fputs("5", file);
    assert_int_equal(fclose(file), 0);
}

static inline long peak_kib(const char *field) {
    long value = -1;
    char line[256];
    FILE *file = fopen("/proc/self/status", "re");
    assert_non_null(file);
    while (value < 0 && fgets(line, sizeof line, file))
        if (strncmp(line, field, strlen(field)) == 0)
            value = strtol(line + strlen(field) + 1, NULL, 10);
    fclose(file);
    assert_true(value > 0);
    return value;
}

#endif
