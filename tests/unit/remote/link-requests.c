/* Hashes, listings and clocks: what a real agent answers, and what is made of answers that are wrong. */
#include "engine/foundation/hash.h"
#include "engine/remote/link/inside.h"
#include "tests/unit/remote/fixture.h"

#include <sys/stat.h>

static struct fixture f;

static int set_up(void **state) {
    (void)state;
    fixture_open(&f, NULL);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    fixture_close(&f);
    return 0;
}

static void put(const char *name, const char *content) {
    assert_int_equal(file_replace(fixture_path(&f, name), content, strlen(content), 0640, NULL), 0);
}

/* ---- hashes */

static void a_hash_is_that_of_the_bytes(void **state) {
    (void)state;
    enum { SIZE = 5 * 1000 * 1000 };
    char *bytes = malloc(SIZE), expected[HASH_HEX_SIZE], hex[HASH_HEX_SIZE];
    for (size_t i = 0; i < SIZE; i++)
        bytes[i] = (char)(i * 2654435761u >> 11);
    assert_int_equal(file_replace(fixture_path(&f, "large"), bytes, SIZE, 0600, NULL), 0);
    assert_int_equal(hash_bytes(bytes, SIZE, expected), 0);
    free(bytes);
    uint64_t size = 0;
    assert_done(&f, agent_link_hash_file_and_wait(f.link, "large", hex, &size, &f.failure));
    assert_string_equal(hex, expected);
    assert_int_equal(size, SIZE);
    put("empty", "");
    assert_done(&f, agent_link_hash_file_and_wait(f.link, "empty", hex, NULL, &f.failure));
    assert_string_equal(hex, "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
    memset(hex, 'x', sizeof hex);
    assert_int_equal(agent_link_hash_file_and_wait(f.link, "nowhere", hex, &size, &f.failure), -ENOENT);
    assert_string_equal(f.failure.place, "node testnode");
    assert_int_equal(hex[0], 'x');
    assert_true(agent_link_hash_file_and_wait(f.link, ".", hex, &size, &f.failure) < 0);
}

static void note_hash(struct agent_link *link, const char *hex, uint64_t size, const struct failure *failure,
                      void *context) {
    (void)link;
    if (failure)
        print_error("%s\n", failure->text);
    else if (size == 5 &&
             strcmp(hex, "2cf24dba5fb0a30e26e83b2ac5b9e29e1b161e5c1fa7425e73043362938b9824") == 0)
        ++*(int *)context;
}

static void more_hashes_than_the_agent_makes_at_once_wait(void **state) {
    (void)state;
    int right = 0;
    put("hello", "hello");
    for (int i = 0; i < 300; i++)
        assert_done(&f, agent_link_hash_file(f.link, "hello", note_hash, &right, &f.failure));
    while (right < 300)
        assert_true(event_loop_run_once(f.loop, 5 * EVENT_SECOND, NULL) > 0);
}

/* ---- listings */

struct listing {
    int calls;
    char text[1024];
    size_t count;
    struct failure failure;
};

static void note_tree(struct agent_link *link, const struct agent_entry *entries, size_t count,
                      const struct failure *failure, void *context) {
    (void)link;
    struct listing *listing = context;
    listing->calls++;
    listing->count = count;
    if (failure)
        listing->failure = *failure;
    size_t at = 0;
    for (size_t i = 0; i < count && at < sizeof listing->text - 1; i++)
        at += (size_t)snprintf(listing->text + at, sizeof listing->text - at, "%c %o %llu %s\n",
                               "fdlo"[entries[i].kind], entries[i].mode, (unsigned long long)entries[i].size,
                               entries[i].path);
}

static struct listing list(const char *path) {
    struct listing listing = {0};
    assert_done(&f, agent_link_list_tree(f.link, path, note_tree, &listing, &f.failure));
    while (!listing.calls)
        assert_true(event_loop_run_once(f.loop, 5 * EVENT_SECOND, NULL) > 0);
    return listing;
}

static void a_tree_is_listed_as_it_is(void **state) {
    (void)state;
    mode_t before = umask(022);
    assert_int_equal(mkdir(fixture_path(&f, "tree"), 0755), 0);
    assert_int_equal(mkdir(fixture_path(&f, "tree/a"), 0700), 0);
    umask(before);
    put("tree/a/inner", "12345");
    put("tree/a-b", "1");
    put("tree/z", "");
    assert_int_equal(symlink("/", fixture_path(&f, "tree/link")), 0);
    assert_int_equal(mkfifo(fixture_path(&f, "tree/fifo"), 0600), 0);
    struct listing listing = list("tree");
    assert_string_equal(listing.text, "d 700 0 a\n"
                                      "f 640 1 a-b\n"
                                      "f 640 5 a/inner\n"
                                      "o 600 0 fifo\n"
                                      "l 777 0 link\n"
                                      "f 640 0 z\n");
    listing = list("tree/a/inner");
    assert_string_equal(listing.text, "f 640 5 \n");
    listing = list("tree/nowhere");
    assert_int_equal(listing.failure.code, -ENOENT);
    assert_string_equal(listing.failure.place, "node testnode");
    assert_int_equal(mkdir(fixture_path(&f, "tree/empty"), 0755), 0);
    listing = list("tree/empty");
    assert_int_equal(listing.count, 0);
    assert_int_equal(listing.failure.code, 0);
}

/* ---- listings of agents that lie */

static int parse(const char *bytes, size_t length, struct agent_entry **ret, size_t *ret_count,
                 struct failure *failure) {
    static struct text text;
    text_clear(&text);
    text_init(&text, 1 << 20);
    assert_int_equal(text_append(&text, bytes, length), 0);
    return tree_parse(&text, ret, ret_count, failure);
}

#define assert_refused(bytes, part)                                                                          \
    do {                                                                                                     \
        struct agent_entry *entries = NULL;                                                                  \
        size_t count = 77;                                                                                   \
        struct failure failure = {0};                                                                        \
        assert_int_equal(parse(bytes, sizeof(bytes) - 1, &entries, &count, &failure), -EPROTO);              \
        assert_null(entries);                                                                                \
        assert_int_equal(count, 77);                                                                         \
        assert_non_null(strstr(failure.text, part));                                                         \
    } while (0)

static void listings_that_are_malformed_are_refused(void **state) {
    (void)state;
    assert_refused("f", "malformed at its byte 0");
    assert_refused("f 644 1\0", "malformed");
    assert_refused("f 644 1\0a", "malformed");
    assert_refused("f 644 1\0a\0f 644", "malformed at its byte 10");
    assert_refused("x 644 1\0a\0", "malformed");
    assert_refused("f 644\0a\0", "malformed");
    assert_refused("f 648 1\0a\0", "malformed");
    assert_refused("f 10000 1\0a\0", "malformed");
    assert_refused("f 644 18446744073709551616\0a\0", "malformed");
    assert_refused("f 644 1 \0a\0", "malformed");
    assert_refused("f 644  1\0a\0", "malformed");
    assert_refused("f 644 -1\0a\0", "malformed");
    assert_refused("\0a\0", "malformed");
    assert_refused("f 644 1\0a\0f 644 1\0a\0", "'a' twice");
    assert_refused("f 644 1\0b\0f 644 1\0a\0f 644 1\0b\0", "'b' twice");
}

static void listings_that_lead_elsewhere_are_refused(void **state) {
    (void)state;
    assert_refused("f 644 1\0../x\0", "not below");
    assert_refused("f 644 1\0/etc/passwd\0", "not below");
    assert_refused("f 644 1\0a/../../x\0", "not below");
    assert_refused("f 644 1\0a/..\0", "not below");
    assert_refused("f 644 1\0.\0", "not below");
    assert_refused("f 644 1\0./a\0", "not below");
    assert_refused("f 644 1\0a//b\0", "not below");
    assert_refused("f 644 1\0a/\0", "not below");
    assert_refused("f 644 1\0\0f 644 1\0a\0", "not below");
    assert_refused("f 644 1\0a\0f 644 1\0\0", "not below");
}

static void listings_are_sorted_whatever_their_order(void **state) {
    (void)state;
    static const char bytes[] =
        "d 755 0\0b\0f 644 18446744073709551615\0b/\xff\0f 7777 0\0...\0l 777 0\0b-\0";
    struct agent_entry *entries;
    size_t count;
    assert_int_equal(parse(bytes, sizeof bytes - 1, &entries, &count, NULL), 0);
    assert_int_equal(count, 4);
    assert_string_equal(entries[0].path, "...");
    assert_int_equal(entries[0].mode, 07777);
    assert_string_equal(entries[1].path, "b");
    assert_string_equal(entries[2].path, "b-");
    assert_int_equal(entries[2].kind, AGENT_ENTRY_LINK);
    assert_string_equal(entries[3].path, "b/\xff");
    assert_true(entries[3].size == UINT64_MAX);
    free(entries);
    assert_int_equal(parse("", 0, &entries, &count, NULL), 0);
    assert_int_equal(count, 0);
    free(entries);
}

/* ---- clocks: the agent is on the same machine, so both clocks must agree within half the round trip */

static void a_clock_is_measured_within_its_error(void **state) {
    (void)state;
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
    (void)link;
    assert_true(!clock == !!failure);
    ++((int *)context)[failure != NULL];
}

static void a_clock_whose_agent_dies_is_told_once(void **state) {
    (void)state;
    int told[2] = {0, 0};
    assert_done(&f, agent_link_measure_clock(f.link, 1000, note_clock, told, &f.failure));
    kill(agent_link_greeting(f.link)->pid, SIGKILL);
    while (agent_link_state(f.link) != AGENT_LINK_CLOSED)
        assert_true(event_loop_run_once(f.loop, 5 * EVENT_SECOND, NULL) > 0);
    assert_int_equal(told[0], 0);
    assert_int_equal(told[1], 1);
}

/* Whoever gives up is called no more, and no more exchanges are made for nobody. */
static void what_is_forgotten_is_not_answered(void **state) {
    (void)state;
    int told[2] = {0, 0}, right = 0;
    put("hello", "hello");
    assert_done(&f, agent_link_measure_clock(f.link, 1000, note_clock, told, &f.failure));
    for (int i = 0; i < 100; i++)
        assert_done(&f, agent_link_hash_file(f.link, "hello", note_hash, &right, &f.failure));
    agent_link_forget(f.link, told);
    agent_link_forget(f.link, &right);
    struct agent_statistics statistics;
    assert_done(&f, agent_link_statistics_and_wait(f.link, &statistics, &f.failure));
    fixture_turn(&f, 100);
    assert_done(&f, agent_link_statistics_and_wait(f.link, &statistics, &f.failure));
    assert_int_equal(told[0] + told[1] + right, 0);
    assert_true(statistics.frames_received <= 1 + 2 + PROTOCOL_READ_LIMIT + 2);
    assert_null(f.link->sending.first);
    assert_null(f.link->requests.first);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, set_up, tear_down)

int main(void) {
    const struct CMUnitTest tests[] = {
        TEST(a_hash_is_that_of_the_bytes),
        TEST(more_hashes_than_the_agent_makes_at_once_wait),
        TEST(a_tree_is_listed_as_it_is),
        cmocka_unit_test(listings_that_are_malformed_are_refused),
        cmocka_unit_test(listings_that_lead_elsewhere_are_refused),
        cmocka_unit_test(listings_are_sorted_whatever_their_order),
        TEST(a_clock_is_measured_within_its_error),
        TEST(a_clock_whose_agent_dies_is_told_once),
        TEST(what_is_forgotten_is_not_answered),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
