/* Names to addresses. As root the whole test moves into namespaces of its own: private /etc/hosts,
 * /etc/resolv.conf and /etc/nsswitch.conf, and a loopback on which the test itself is the name server, so
 * that it sees every question. Otherwise only what needs no name server is tested, aloud. */
#include "engine/remote/ssh/name-resolver.h"

#include "engine/foundation/file.h"
#include "tests/test.h"
#include "tests/wait.h"

#include <arpa/inet.h>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <signal.h>
#include <sys/ioctl.h>
#include <sys/mount.h>
#include <sys/socket.h>
#include <unistd.h>

static bool have_namespaces;

/* ---- a name server: A records for names in "fast", nothing at all for "never", no such name for others */

struct server {
    int socket;
    struct event_source *source;
    unsigned questions; /* for A */
};

/* The name in a question at BYTES[12..], with dots. Returns what follows it. */
static size_t read_name(const unsigned char *bytes, size_t length, char *name, size_t size) {
    size_t at = 12, used = 0;
    while (at < length && bytes[at]) {
        size_t part = bytes[at++];
        for (; part > 0 && at < length && used + 2 < size; part--)
            name[used++] = (char)bytes[at++];
        name[used++] = '.';
    }
    name[used ? used - 1 : 0] = '\0';
    return at + 1;
}

static void on_question(struct event_source *self, int descriptor, unsigned events, void *context) {
    struct server *server = context;
    unsigned char bytes[600];
    struct sockaddr_in from;
    socklen_t from_length = sizeof from;
    ssize_t got = recvfrom(descriptor, bytes, 512, 0, (struct sockaddr *)&from, &from_length);
    if (got < 17)
        return;
    char name[300];
    size_t end = read_name(bytes, (size_t)got, name, sizeof name);
    bool is_a = bytes[end + 1] == 1;
    server->questions += is_a;
    if (strstr(name, "never"))
        return;
    bool known = strstr(name, "fast") != NULL;
    end += 4;
    bytes[2] = 0x81;
    bytes[3] = known ? 0x80 : 0x83; /* an answer; NXDOMAIN */
    memset(bytes + 6, 0, 6);
    if (known && is_a) {
        static const unsigned char record[] = {0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 60, 0, 4, 10, 9, 8, 7};
        bytes[7] = 1;
        memcpy(bytes + end, record, sizeof record);
        end += sizeof record;
    }
    (void)!sendto(descriptor, bytes, end, 0, (struct sockaddr *)&from, from_length);
}

/* ---- the fixture */

static struct fixture {
    struct event_loop *loop;
    struct name_resolver *resolver;
    struct server server;
} fixture;

static int set_up(void **state) {
    memset(&fixture, 0, sizeof fixture);
    fixture.server.socket = -1;
    fixture.loop = event_loop_new(&test_failure);
    assert_non_null(fixture.loop);
    assert_int_equal(name_resolver_new(fixture.loop, &fixture.resolver, &test_failure), 0);
    if (have_namespaces) {
        struct server *server = &fixture.server;
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons(53)};
        address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
        server->socket = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
        assert_int_equal(bind(server->socket, (struct sockaddr *)&address, sizeof address), 0);
        server->source =
            event_loop_add_descriptor(fixture.loop, server->socket, EVENT_READ, on_question, server);
        assert_non_null(server->source);
    }
    return 0;
}

static int tear_down(void **state) {
    name_resolver_free(fixture.resolver);
    event_source_remove(fixture.server.source);
    cleanup_close_descriptor(&fixture.server.socket);
    event_loop_free(fixture.loop);
    return 0;
}

static void require_namespaces(void) {
    if (!have_namespaces)
        test_need_own_mounts(CLONE_NEWNET);
}

struct result {
    unsigned calls;
    size_t count;
    struct name_address first;
    int code;
    char text[FAILURE_TEXT_SIZE];
    struct name_query *query;
};

static void on_result(const struct name_address *addresses, size_t count, const struct failure *failure,
                      void *context) {
    struct result *result = context;
    result->calls++;
    result->count = count;
    assert_true((count == 0) == (failure != NULL));
    if (count > 0)
        result->first = addresses[0];
    if (failure) {
        result->code = failure->code;
        snprintf(result->text, sizeof result->text, "%s", failure->text);
    }
}

static void ask(const char *name, struct result *result) {
    struct failure failure = {0};
    *result = (struct result){0};
    if (name_resolver_ask(fixture.resolver, name, on_result, result, &result->query, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_int_equal(result->calls, 0); /* never from within */
}

static void wait_for(const struct result *result) {
    wait_until(fixture.loop, result->calls > 0, "no answer");
    assert_int_equal(result->calls, 1);
}

static void expect(const char *name, const char *expected) {
    struct result result;
    ask(name, &result);
    wait_for(&result);
    if (result.count == 0)
        fail_msg("%s: %s", name, result.text);
    char address[64];
    const struct sockaddr_storage *at = &result.first.address;
    const void *bytes = at->ss_family == AF_INET
                            ? (const void *)&((const struct sockaddr_in *)at)->sin_addr
                            : (const void *)&((const struct sockaddr_in6 *)at)->sin6_addr;
    assert_non_null(inet_ntop(at->ss_family, bytes, address, sizeof address));
    assert_string_equal(address, expected);
    assert_int_equal(result.first.length,
                     at->ss_family == AF_INET ? sizeof(struct sockaddr_in) : sizeof(struct sockaddr_in6));
}

/* ---- tests */

TEST(addresses) {
    expect("127.0.0.1", "127.0.0.1");
    expect("10.1.2.3", "10.1.2.3");
    expect("::1", "::1");
    expect("fe80::1%lo", "fe80::1");
}

TEST(names_of_the_hosts_file) {
    if (have_namespaces) {
        expect("localhost", "127.0.0.1");
        expect("node-1.site", "10.20.30.40");
        expect("only-six", "fd00::6");
        assert_int_equal(fixture.server.questions, 0);
        return;
    }
    struct result result;
    ask("localhost", &result);
    wait_for(&result);
    assert_true(result.count > 0);
    require_namespaces(); /* for a hosts file of our own */
}

TEST(bad_names) {
    struct result result = {0};
    char longest[300];
    memset(longest, 'a', sizeof longest);
    longest[256] = '\0';
    const char *const bad[] = {"", longest};
    for (size_t i = 0; i < 2; i++) {
        struct failure failure = {0};
        assert_int_equal(
            name_resolver_ask(fixture.resolver, bad[i], on_result, &result, &result.query, &failure),
            -EINVAL);
        assert_int_equal(failure.kind, FAILURE_INPUT);
    }
}

TEST(no_such_name) {
    require_namespaces();
    struct result result;
    ask("nobody.example", &result);
    wait_for(&result);
    assert_int_equal(result.code, -ENOENT);
    assert_non_null(strstr(result.text, "'nobody.example'"));
    /* It is asked again the next time: the node may just have been made. */
    unsigned questions = fixture.server.questions;
    ask("nobody.example", &result);
    wait_for(&result);
    assert_true(fixture.server.questions > questions);
}

TEST(many_names) {
    require_namespaces();
    enum { NAMES = 500 };
    static struct result results[NAMES];
    for (size_t i = 0; i < NAMES; i++) {
        char name[32];
        snprintf(name, sizeof name, i % 2 ? "fast%zu.example" : "none%zu.example", i);
        ask(name, &results[i]);
    }
    for (size_t i = 0; i < NAMES; i++) {
        wait_for(&results[i]);
        assert_int_equal(results[i].count, i % 2);
        assert_int_equal(results[i].code, i % 2 ? 0 : -ENOENT);
    }
}

TEST(hanging_names_do_not_stop_others) {
    require_namespaces();
    static struct result hanging[8];
    for (size_t i = 0; i < 8; i++) {
        char name[32];
        snprintf(name, sizeof name, "never%zu.example", i);
        ask(name, &hanging[i]);
    }
    while (fixture.server.questions < 4)
        turn_or_sleep(fixture.loop);
    for (size_t i = 0; i < 8; i++)
        name_query_cancel(hanging[i].query);
    expect("fast.example", "10.9.8.7");
    for (size_t i = 0; i < 8; i++)
        assert_int_equal(hanging[i].calls, 0);
}

TEST(cancel) {
    require_namespaces();
    static struct result results[12];
    for (size_t i = 0; i < 12;
         i++) { /* running, waiting for a thread, and answered but not yet called back */
        char name[32];
        snprintf(name, sizeof name,
                 i == 11   ? "10.0.0.1"
                 : i == 10 ? "never0.example"
                           : "never%zu.example",
                 i);
        ask(name, &results[i]);
    }
    name_query_cancel(NULL);
    for (size_t i = 0; i < 12; i++)
        name_query_cancel(results[i].query);
    expect("fast.example", "10.9.8.7");
    for (size_t i = 0; i < 12; i++)
        assert_int_equal(results[i].calls, 0);
}

/* Freed with cancelled queries in every state: the leak checker judges. */
TEST(free_while_busy) {
    static struct result results[10];
    for (size_t i = 0; i < 10; i++) {
        char name[32];
        snprintf(name, sizeof name, i < 8 ? "never%zu.example" : "127.0.0.%zu", i);
        ask(name, &results[i]);
    }
    for (size_t i = 0; i < 10; i++)
        name_query_cancel(results[i].query);
}

struct again {
    struct result inner, *other;
};

static void ask_again(const struct name_address *addresses, size_t count, const struct failure *failure,
                      void *context) {
    struct again *again = context;
    assert_int_equal(count, 1);
    name_query_cancel(again->other->query);
    ask("127.0.0.9", &again->inner);
}

TEST(ask_and_cancel_in_a_callback) {
    struct result other;
    struct again again = {.other = &other};
    struct name_query *query;
    assert_int_equal(
        name_resolver_ask(fixture.resolver, "127.0.0.1", ask_again, &again, &query, &test_failure), 0);
    ask("127.0.0.2", &other);
    wait_for(&again.inner);
    assert_int_equal(again.inner.count, 1);
    assert_int_equal(other.calls, 0);
}

static void on_signal(struct event_source *self, int number, void *context) {
    ++*(unsigned *)context;
}

TEST(threads_take_no_signal) {
    unsigned interrupts = 0;
    struct event_source *source = event_loop_add_signal(fixture.loop, SIGINT, on_signal, &interrupts);
    assert_non_null(source);
    struct result result;
    ask("localhost", &result);
    assert_int_equal(kill(getpid(), SIGINT), 0);
    wait_for(&result);
    wait_until(fixture.loop, interrupts == 1, "%u interrupts", interrupts);
    event_source_remove(source);
    /* With nothing to do it does not keep the loop turning. */
    event_source_remove(take_pointer(fixture.server.source));
    assert_int_equal(event_loop_run(fixture.loop, &test_failure), 0);
}

/* ---- the world that names are looked up in */

static void mount_file(const char *folder, const char *name, const char *target, const char *content) {
    cleanup_free char *path = file_join(folder, name);
    assert_int_equal(file_replace(path, content, strlen(content), 0644, &test_failure), 0);
    assert_int_equal(mount(path, target, NULL, MS_BIND, NULL), 0);
}

static void raise_loopback(void) {
    struct ifreq request = {.ifr_name = "lo", .ifr_flags = IFF_UP | IFF_RUNNING};
    int descriptor = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_int_equal(ioctl(descriptor, SIOCSIFFLAGS, &request), 0);
    close(descriptor);
}

static char scratch[] = "/tmp/assay-name-resolver.XXXXXX";

static int enter_world(void **state) {
    if (!test_can_own_mounts(CLONE_NEWNET))
        return 0;
    assert_ok(test_own_mounts(CLONE_NEWNET));
    assert_non_null(mkdtemp(scratch));
    mount_file(scratch, "hosts", "/etc/hosts",
               "127.0.0.1 localhost\n::1 ip6-localhost\n10.20.30.40 node-1.site\nfd00::6 only-six\n");
    mount_file(scratch, "resolv", "/etc/resolv.conf",
               "nameserver 127.0.0.1\noptions timeout:10 attempts:1\n");
    mount_file(scratch, "nsswitch", "/etc/nsswitch.conf", "hosts: files dns\npasswd: files\n");
    raise_loopback();
    have_namespaces = true;
    return 0;
}

static int leave_world(void **state) {
    return have_namespaces ? file_remove_tree(scratch, NULL) : 0;
}

TEST_EACH(set_up, tear_down)
TEST_GROUP(enter_world, leave_world)
