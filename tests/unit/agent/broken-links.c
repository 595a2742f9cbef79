/* Streams that break: what no simulation has, much output, and who may greet on another one. Bytes
 * that are lost on the way: tests/simulation. */
#include "tests/unit/agent/engine.h"

#include "engine/foundation/text.h"

TEST_EACH(set_up, tear_down)

/* ---- bytes */

/* Counts the lines of `seq`, which must come one after the other. */
struct lines {
    uint64_t next;
    char part[32];
    size_t length;
};

static void take_lines(struct lines *lines, const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] != '\n') {
            assert_true(lines->length < sizeof lines->part - 1);
            lines->part[lines->length++] = bytes[i];
            continue;
        }
        lines->part[lines->length] = '\0';
        assert_int_equal(strtoull(lines->part, NULL, 10), lines->next);
        lines->next++;
        lines->length = 0;
    }
}

static void read_all_lines(struct engine *engine, struct lines *lines) {
    struct protocol_frame frame;
    struct protocol_data data;
    for (;;) {
        assert_true(receive(engine, &frame));
        assert_int_equal(outbox_acknowledge(&engine->outbox, frame.acknowledged, &failure), 0);
        if (frame.type == PROTOCOL_EXITED)
            return;
        if (frame.type != PROTOCOL_OUTPUT)
            continue;
        assert_int_equal(protocol_get_message(&frame, &data, &failure), 0);
        take_lines(lines, data.bytes, data.length);
        if (inbox_owes(&engine->inbox)) {
            assert_int_equal(outbox_put_acknowledgement(&engine->outbox), 0);
            flush(engine);
        }
    }
}

static long resident_kib(pid_t pid) {
    char path[64];
    struct text status;
    text_init(&status, 1 << 16);
    snprintf(path, sizeof path, "/proc/%ld/status", (long)pid);
    assert_int_equal(file_read(path, &status, NULL), 0);
    const char *at = strstr(status.bytes, "VmRSS:");
    long value = at ? strtol(at + 6, NULL, 10) : 0;
    text_clear(&status);
    return value;
}

/* What is printed meanwhile waits in memory; when that is much, the program waits in its write. Nothing is
 * lost. */
TEST(a_program_prints_more_than_is_kept) {
    struct engine engine;
    struct protocol_frame frame;
    struct lines lines = {.next = 1};
    char words[1024];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    run(&engine, (const char *const[]){"seq", "5000000", NULL}, PROTOCOL_MODE_NULL); /* 39 MB */
    expect(&engine, PROTOCOL_STARTED, &frame);
    break_stream(&engine);
    relay_end(&engine, words);
    long resident = 0;
    wait_until(NULL, (resident = resident_kib(engine.agent)) > 16 << 10, "%ld KiB", resident);
    resume(&engine);
    read_all_lines(&engine, &lines);
    assert_int_equal(lines.next, 5000001);
    leave(&engine);
    engine_clear(&engine);
}

/* ---- greetings */

TEST(another_engine_is_refused) {
    struct engine engine, other;
    struct protocol_frame frame;
    char words[1024], expected[256];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    run_shell(&engine, "true");
    expect(&engine, PROTOCOL_STARTED, &frame);
    expect(&engine, PROTOCOL_EXITED, &frame);
    run_shell(&engine, "sleep 1000"); /* acknowledges two frames */
    expect(&engine, PROTOCOL_STARTED, &frame);
    break_stream(&engine);
    relay_end(&engine, words);

    engine_init(&other);
    other.session = engine.session;
    memcpy(other.name, engine.name, sizeof other.name);
    start_relay(&other, "--resume", NULL, NULL);
    assert_true(read_line(&other));
    say_hello(&other, other.session);
    snprintf(expected, sizeof expected,
             "another engine had session %llx: it has acknowledged 2 frames, this one none",
             (unsigned long long)engine.session);
    refused(&other, expected);
    close_stream(&other);
    assert_int_equal(relay_end(&other, words), 0);

    /* Nor one that claims what was never sent, nor one that says something else first. */
    start_relay(&other, "--resume", NULL, NULL);
    assert_true(read_line(&other));
    inbox_restart(&other.inbox);
    outbox_restart(&other.outbox);
    other.inbox.received = 100;
    say_hello(&other, other.session);
    refused(&other, "frame 100 was acknowledged, but 3 is the last that was sent");
    close_stream(&other);
    assert_int_equal(relay_end(&other, words), 0);
    start_relay(&other, "--resume", NULL, NULL);
    assert_true(read_line(&other));
    inbox_restart(&other.inbox);
    outbox_restart(&other.outbox);
    say_hello(&other, 1);
    refused(&other, "this agent does not serve session 1");
    close_stream(&other);
    assert_int_equal(relay_end(&other, words), 0);
    start_relay(&other, "--resume", NULL, NULL);
    assert_true(read_line(&other));
    inbox_restart(&other.inbox);
    outbox_restart(&other.outbox);
    assert_int_equal(outbox_resume(&other.outbox, 0, &failure), 0);
    assert_int_equal(outbox_put_acknowledgement(&other.outbox), 0);
    flush(&other);
    refused(&other, "a ACK message came before HELLO");
    engine_clear(&other);

    /* All that is nothing to the one whose session it is. */
    resume(&engine);
    leave(&engine);
    engine_clear(&engine);
}

TEST(a_violation_ends_the_agent) {
    struct engine engine;
    char words[1024];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    begin(&engine, PROTOCOL_LEAVE);
    protocol_put_u32(&writer, 1);
    end(&engine);
    refused(&engine, "a malformed LEAVE message: it continues after its end");
    assert_int_equal(relay_end(&engine, words), 0);
    assert_false(file_exists(below("run")));
    engine_clear(&engine);
}
