/* What the tests of this folder share: a link to a real agent in a fresh folder. */
#ifndef ASSAY_TESTS_UNIT_REMOTE_FIXTURE_H
#define ASSAY_TESTS_UNIT_REMOTE_FIXTURE_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "engine/remote/launch/transport-local.h"
#include "engine/remote/link/command.h"
#include "engine/remote/link/link.h"
#include "tests/test.h"
#include "tests/unit/remote/waiting.h"
#include "tests/wait.h"

#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

/* A sanitized agent is larger and slower by itself: its figures say nothing. */
#if defined(__SANITIZE_ADDRESS__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
enum { SANITIZED = 1 };
#else
enum { SANITIZED = 0 };
#endif
#else
enum { SANITIZED = 0 };
#endif

struct fixture {
    struct event_loop *loop;
    struct agent_link *link;
    struct failure failure;
    const char *folder;
};

#define assert_done(fixture, call)                                                                           \
    do {                                                                                                     \
        if ((call) < 0) {                                                                                    \
            print_error("%s: %s\n", (fixture)->failure.place, (fixture)->failure.text);                      \
            fail();                                                                                          \
        }                                                                                                    \
    } while (0)

/* The agent is that of the tests, its node "testnode". */
static void fixture_connect(struct fixture *fixture, struct transport_local_options options) {
    options.agent = test_agent();
    options.node = "testnode";
    fixture->loop = event_loop_new(&fixture->failure);
    assert_non_null(fixture->loop);
    struct transport *transport;
    assert_done(fixture, transport_local_new(fixture->loop, &options, &transport, &fixture->failure));
    assert_done(fixture, agent_link_new(fixture->loop, transport, NULL, &fixture->link, &fixture->failure));
    assert_done(fixture,
                agent_link_start(fixture->link, WAIT_LIMIT_MS * EVENT_MILLISECOND, &fixture->failure));
    assert_done(fixture, agent_link_wait_ready(fixture->link, &fixture->failure));
}

static inline void fixture_open(struct fixture *fixture, const char *root) {
    memset(fixture, 0, sizeof *fixture);
    fixture->folder = test_own_folder();
    fixture_connect(fixture, (struct transport_local_options){.directory = fixture->folder, .root = root});
}

static inline void fixture_close(struct fixture *fixture) {
    agent_link_free(fixture->link);
    event_loop_free(fixture->loop);
}

static struct fixture f;

/* Before and after each test of files that want a link of their own for each. */
static inline int link_set_up(void **state) {
    (void)state;
    fixture_open(&f, NULL);
    return 0;
}

static inline int link_tear_down(void **state) {
    (void)state;
    fixture_close(&f);
    return 0;
}

/* The path of a file in the run directory (test_formatted()). */
static inline const char *fixture_path(const struct fixture *fixture, const char *name) {
    return test_formatted("%s/%s", fixture->folder, name);
}

/* Turns the loop for so long. */
static inline void fixture_turn(struct fixture *fixture, int64_t milliseconds) {
    int64_t end = clock_monotonic_ns() + milliseconds * EVENT_MILLISECOND;
    for (int64_t left; (left = end - clock_monotonic_ns()) > 0;)
        assert_true(event_loop_run_once(fixture->loop, left, NULL) >= 0);
}

/* Is the process there, and no zombie? */
static inline bool process_lives(pid_t pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    if (!file)
        return false;
    bool got = fgets(line, sizeof line, file);
    fclose(file);
    const char *state = got ? strrchr(line, ')') : NULL;
    return state && state[2] != 'Z';
}

/* Waits for it to be gone. */
static inline bool process_ends(pid_t pid) {
    wait_until(NULL, !process_lives(pid), "process %ld is there", (long)pid);
    return true;
}

#define SHELL(...)                                                                                           \
    (const char *const[]) {                                                                                  \
        "sh", "-c", __VA_ARGS__, NULL                                                                        \
    }

#endif
