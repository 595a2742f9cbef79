/* Requests to a server that answers well, badly and not at all, by both ways to make them. */
#include "engine/testbed/http.h"
#include "tests/unit/testbed/scripted-server.h"

#include <sys/stat.h>

enum { LIMIT = 1 << 16 };

static int set_up(void **state) {
    return chdir(test_folder()) == 0 ? scripted_clock_use(state) : -1;
}

TEST_GROUP(set_up, NULL)

static struct scripted_server server;
static struct event_loop *loop;
static struct http *http;

/* A server that answers by STEPS, and a way to it. */
static void open_with(SSL_CTX *tls, const struct scripted_step *steps, size_t count,
                      struct http_settings settings) {
    loop = event_loop_new(&test_failure);
    scripted_start(&server, tls, steps, count);
    settings.url = server.url;
    assert_ok(http_open(loop, &settings, &http, &test_failure));
}

static void close_both(void) {
    http_close(http);
    event_loop_free(loop);
    scripted_stop(&server);
}

struct outcome {
    bool is_over, is_good;
    long status;
    char body[64];
};

static void on_answer(const struct http_answer *answer, void *context) {
    struct outcome *outcome = context;
    *outcome = (struct outcome){.is_over = true, .is_good = answer != NULL};
    if (!answer)
        return;
    outcome->status = answer->status;
    snprintf(outcome->body, sizeof outcome->body, "%s", answer->body.bytes);
}

static const struct answer {
    const char *label;
    struct scripted_step step;
    int result;
    long status;
    const char *body, *says; /* says: of the failure */
} answers[] = {
    {"good", {.status = "200 OK", .body = "{}"}, 0, 200, "{}", NULL},
    {"an empty one", {.status = "202 Accepted"}, 0, 202, "", NULL},
    {"a fault of the server's", {.status = "500 Oh", .body = "no"}, 0, 500, "no", NULL},
    {"elsewhere, where nobody follows",
     {.status = "302 Found", .header = "Location: https://127.0.0.1:1/\r\n"},
     0,
     302,
     "",
     NULL},
    {"a page", {.status = "200 OK", .body = "<html>"}, 0, 200, "<html>", NULL},
    {"half of it", {.status = "200 OK", .body = "{\"a\"", .missing = 5}, -ECONNRESET, 0, "", "closed the"},
    {"none", {0}, -ECONNRESET, 0, "", "closed the connection"},
    {"half of a header", {.raw = "HTTP/1.1 200"}, -ECONNRESET, 0, "", "closed the connection"},
    {"another protocol", {.raw = "220 mail ESMTP\r\n"}, -EIO, 0, "", "does not answer"},
    {"too big a one", {.status = "200 OK", .more = LIMIT + 1}, -EMSGSIZE, 0, "", "more than 65536 bytes"},
    {"as big as may be", {.status = "200 OK", .more = LIMIT}, 0, 200, "xxxxx", NULL},
    {"silence",
     {.is_silent = true, .passes_ns = 61 * EVENT_SECOND},
     -ETIMEDOUT,
     0,
     "",
     "does not answer within a minute"},
};

static void check_answer(const struct answer *answer, bool is_started) {
    struct outcome outcome = {0};
    print_message("%s%s\n", answer->label, is_started ? ", begun and not waited for" : "");
    open_with(NULL, &answer->step, 1, (struct http_settings){0});
    if (is_started) {
        http_start(http, "GET", "/x", NULL, LIMIT, on_answer, &outcome);
        assert_ok(event_loop_turn_until(loop, &outcome.is_over, 600 * EVENT_SECOND, &test_failure));
        assert_int_equal(outcome.is_good, answer->result == 0);
    } else {
        cleanup(http_answer_clear) struct http_answer found;
        assert_int_equal(http_run(http, "GET", "/x", NULL, LIMIT, &found, &test_failure), answer->result);
        if (answer->result == 0)
            on_answer(&found, &outcome);
        else
            assert_says(test_failure.text, answer->says);
    }
    assert_int_equal(outcome.status, answer->status);
    assert_int_equal(strncmp(outcome.body, answer->body, strlen(answer->body)), 0);
    close_both();
}

TEST(answers) {
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        check_answer(&answers[i], false);
        check_answer(&answers[i], true);
    }
}

TEST(servers_say_when_to_ask_again) {
    static const struct scripted_step steps[] = {
        {.status = "200 OK", .header = "Retry-After: 0\r\n"},
        {.status = "503 Unavailable", .header = "Retry-After: 120\r\n"},
        {.status = "503 Unavailable", .header = "Retry-After: Fri, 31 Dec 2027 23:59:59 GMT\r\n"},
        {.status = "200 OK"}};
    static const int64_t expected_ns[] = {0, 120 * EVENT_SECOND, -1, -1};
    open_with(NULL, steps, 4, (struct http_settings){0});
    for (size_t i = 0; i < 4; i++) {
        cleanup(http_answer_clear) struct http_answer answer;
        assert_ok(http_run(http, "GET", "/x", NULL, LIMIT, &answer, &test_failure));
        assert_true(answer.retry_after_ns == expected_ns[i]);
    }
    close_both();
}

/* What is asked with which words, credentials among them, and not by way of a proxy. */
TEST(requests) {
    static const struct scripted_step steps[] = {
        {.status = "201 Created", .body = "{}", .header = "Location: /api/jobs/7\r\n"},
        {.status = "204 No Content"}};
    struct http_answer answer;
    char below[128];
    test_put("netrc", "machine 127.0.0.1 login me password secret\n");
    setenv("http_proxy", "http://127.0.0.1:1/", 1);
    open_with(NULL, steps, 2, (struct http_settings){.credentials = "netrc"});
    assert_ok(http_run(http, "POST", "/jobs", "{\"a\": 1}", LIMIT, &answer, &test_failure));
    assert_int_equal(answer.status, 201);
    assert_string_equal(answer.location, "/api/jobs/7");
    http_answer_clear(&answer);
    const char *request = server.requests[0];
    assert_int_equal(strncmp(request, "POST /api/jobs HTTP/1.1\r\n", 25), 0);
    assert_says(request, "\r\nAuthorization: Basic bWU6c2VjcmV0\r\n");
    assert_says(request, "\r\nAccept: application/json\r\n");
    assert_says(request, "\r\nCache-Control: no-cache\r\n");
    assert_says(request, "\r\nContent-Type: application/json\r\n");
    assert_says(request, "\r\n\r\n{\"a\": 1}");
    snprintf(below, sizeof below, "%sjobs/7", server.url);
    assert_ok(http_run(http, "DELETE", below, NULL, LIMIT, &answer, &test_failure));
    http_answer_clear(&answer);
    assert_int_equal(strncmp(server.requests[1], "DELETE /api/jobs/7 HTTP/1.1\r\n", 29), 0);
    assert_int_equal(
        http_run(http, "GET", "http://127.0.0.1.nowhere/api/", NULL, LIMIT, &answer, &test_failure), -EINVAL);
    close_both();
    unsetenv("http_proxy");
}

TEST(credentials_of_others_to_read_are_refused) {
    struct http_settings settings = {.url = "https://server/api", .credentials = "open-netrc"};
    loop = event_loop_new(&test_failure);
    assert_int_equal(chmod(test_put("open-netrc", "machine server login me password secret\n"), 0640), 0);
    assert_error(http_open(loop, &settings, &http, &test_failure), -EPERM,
                 "expected a file of your own with mode 0600");
    settings.credentials = "nowhere";
    assert_error(http_open(loop, &settings, &http, &test_failure), -EPERM,
                 "cannot read the credentials 'nowhere'");
    event_loop_free(loop);
}

TEST(addresses) {
    static const struct {
        const char *url, *says; /* NULL: it is good */
    } cases[] = {{"https://server", NULL},
                 {"https://server:8443/oarapi", NULL},
                 {"http://localhost:8080/api", NULL},
                 {"http://[::1]/api", NULL},
                 {"http://server/api", "its scheme is not https"},
                 {"http://127.0.0.1.server/api", "its scheme is not https"},
                 {"ftp://server/api", "its scheme is not https"},
                 {"file:///etc/passwd", "its scheme is not https"},
                 {"server/api", "it is no URL"},
                 {"", "it is no URL"},
                 {"https://me:secret@server/api", "a user or a password"},
                 {"https://server/api?debug=1", "a query"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        print_message("%s\n", cases[i].url);
        if (cases[i].says)
            assert_error(http_check_url(cases[i].url, &test_failure), -EINVAL, cases[i].says);
        else
            assert_ok(http_check_url(cases[i].url, &test_failure));
        assert_null(strstr(test_failure.text, "secret"));
    }
}

static int ask_with_tls(const char *address, const char *authority) {
    static const struct scripted_step step = {.status = "200 OK", .body = "{}"};
    struct http_answer answer;
    SSL_CTX *tls = scripted_tls(address, "authority.pem");
    open_with(tls, &step, 1, (struct http_settings){.authority = authority});
    int r = http_run(http, "GET", "/x", NULL, LIMIT, &answer, &test_failure);
    http_answer_clear(&answer);
    close_both();
    SSL_CTX_free(tls);
    return r;
}

TEST(certificates) {
    assert_error(ask_with_tls("127.0.0.1", NULL), -EPERM, "is not trusted");
    assert_ok(ask_with_tls("127.0.0.1", "authority.pem"));
    assert_int_equal(ask_with_tls("127.0.0.2", "authority.pem"), -EPERM);
    assert_int_equal(ask_with_tls("127.0.0.1", "nowhere.pem"), -EPERM);
}

static void on_unexpected(const struct http_answer *answer, void *context) {
    fail_msg("the callback was called after http_stop()");
}

static void close_it(const struct http_answer *answer, void *context) {
    http_close(*(struct http **)context);
    *(struct http **)context = NULL;
}

TEST(given_up_and_closed_from_its_callback) {
    static const struct scripted_step steps[] = {{.is_silent = true}, {.status = "200 OK"}};
    open_with(NULL, steps, 2, (struct http_settings){0});
    http_start(http, "GET", "/x", NULL, LIMIT, on_unexpected, NULL);
    while (server.done == 0)
        assert_true(event_loop_run_once(loop, EVENT_MILLISECOND, &test_failure) >= 0);
    http_stop(http);
    http_start(http, "GET", "/x", NULL, LIMIT, close_it, &http);
    while (http)
        assert_true(event_loop_run_once(loop, EVENT_SECOND, &test_failure) >= 0);
    close_both();
}
