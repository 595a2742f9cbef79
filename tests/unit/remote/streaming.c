/* Many programs at once, and what a streamed row costs the machine. */
#include "tests/test.h"
#include "tests/unit/remote/fixture.h"

static struct fixture f;

static int set_up(void **state) {
    fixture_open(&f, NULL);
    return 0;
}

static int tear_down(void **state) {
    fixture_close(&f);
    return 0;
}

enum { MANY = 64, ROWS = 400 };

struct row_stream {
    struct remote_command *command;
    int sent, received, exited;
    char line[32];
    size_t length;
    int code;
};

static int streams_left;

static void send_rows(struct row_stream *stream) {
    size_t queued = remote_command_queued(stream->command);
    while (stream->sent < ROWS && queued < 512) {
        char row[32];
        int length = snprintf(row, sizeof row, "%d\n", stream->sent++);
        assert_done(&f, remote_command_write(stream->command, row, (size_t)length, &queued, &f.failure));
    }
    if (stream->sent == ROWS)
        assert_done(&f, remote_command_close_input(stream->command, &f.failure));
}

static void on_rows_drain(struct remote_command *command, void *context) {
    (void)command;
    send_rows(context);
}

static void on_row_output(struct remote_command *command, enum remote_stream stream_name, const char *bytes,
                          size_t length, void *context) {
    (void)command;
    (void)stream_name;
    struct row_stream *stream = context;
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n') {
            assert_true(stream->length + 1 < sizeof stream->line);
            stream->line[stream->length++] = bytes[i];
            continue;
        }
        stream->line[stream->length] = '\0';
        assert_int_equal(strtol(stream->line, NULL, 10), stream->received++);
        stream->length = 0;
    }
}

static void on_row_exit(struct remote_command *command, const struct remote_exit *exit,
                        const struct failure *failure, void *context) {
    (void)command;
    struct row_stream *stream = context;
    assert_null(failure);
    stream->exited++;
    stream->code = exit->code;
    streams_left--;
}

TEST(sixty_four_programs_stream_at_once) {
    static const struct remote_command_callbacks callbacks = {
        .on_output = on_row_output, .on_drain = on_rows_drain, .on_exit = on_row_exit};
    static struct row_stream streams[MANY];
    memset(streams, 0, sizeof streams);
    streams_left = MANY;
    for (int i = 0; i < MANY; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", i);
        struct remote_command_specification specification = {.arguments = SHELL("cat; exit $0", code),
                                                             .input = REMOTE_INPUT_STREAM,
                                                             .coalesce_ms = 20,
                                                             .low_mark = 256};
        assert_done(&f, remote_command_start(f.link, &specification, &callbacks, &streams[i],
                                             &streams[i].command, &f.failure));
        send_rows(&streams[i]);
    }
    wait_until(f.loop, streams_left == 0, "%d are left", streams_left);
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(streams[i].received, ROWS);
        assert_int_equal(streams[i].code, i);
        remote_command_free(streams[i].command);
    }
}

/* ---- what it costs: tests/benchmarks/engine has the figures */

enum { COST_ROWS = 50000 };

static struct { int sent, received; } cost;

static void send_cost_rows(struct remote_command *command) {
    size_t queued = remote_command_queued(command);
    while (cost.sent < COST_ROWS && queued < 2 * REMOTE_LOW_MARK) {
        char row[64];
        int length = snprintf(row, sizeof row, "%d,2048,1024,512,2048,2048,2048\n", cost.sent++);
        assert_done(&f, remote_command_write(command, row, (size_t)length, &queued, &f.failure));
    }
    if (cost.sent == COST_ROWS)
        assert_done(&f, remote_command_close_input(command, &f.failure));
}

static void on_cost_drain(struct remote_command *command, void *context) {
    (void)context;
    send_cost_rows(command);
}

static void on_cost_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                           size_t length, void *context) {
    (void)command;
    (void)stream;
    (void)context;
    for (const char *end; (end = memchr(bytes, '\n', length)); cost.received++) {
        length -= (size_t)(end + 1 - bytes);
        bytes = end + 1;
    }
}

static void on_cost_exit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    (void)command;
    assert_null(failure);
    *(struct remote_exit *)context = *exit;
}

/* A wake-up for every row would be ten times what is allowed. */
TEST(rows_are_gathered) {
    static const struct remote_command_callbacks callbacks = {
        .on_output = on_cost_output, .on_drain = on_cost_drain, .on_exit = on_cost_exit};
    memset(&cost, 0, sizeof cost);
    struct agent_statistics before = {0}, after = {0};
    assert_done(&f, agent_link_statistics_and_wait(f.link, &before, &f.failure));
    struct remote_command_specification specification = {
        .arguments = SHELL("cat"), .input = REMOTE_INPUT_STREAM, .coalesce_ms = 50};
    struct remote_command *command;
    struct remote_exit exit = {0};
    assert_done(&f, remote_command_start(f.link, &specification, &callbacks, &exit, &command, &f.failure));
    send_cost_rows(command);
    wait_until(f.loop, remote_command_ended(command), "%d rows of %d came", cost.received, cost.sent);
    assert_done(&f, agent_link_statistics_and_wait(f.link, &after, &f.failure));
    remote_command_free(command);
    assert_int_equal(cost.received, COST_ROWS);
    assert_int_equal(exit.code, 0);
    print_message("%d rows: %llu wake-ups, agent's peak %.1f MiB\n", COST_ROWS,
                  (unsigned long long)(after.wakeups - before.wakeups),
                  (double)after.rss_peak_bytes / 1048576);
    assert_true(after.wakeups - before.wakeups < COST_ROWS / 10);
    if (!SANITIZED)
        assert_true(after.rss_peak_bytes < (uint64_t)16 << 20);
}

TEST_EACH(set_up, tear_down)
