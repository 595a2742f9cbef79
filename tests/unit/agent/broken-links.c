/* Streams that break: what no simulation has, much output, and who may greet on another one. Bytes
 * that are lost on the way: tests/simulation. */
#include "tests/unit/agent/engine.h"

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

static void read_all_lines(struct engine *self, struct lines *lines) {
    struct protocol_data data;
    for (;;) {
        assert_true(receive(self));
        assert_int_equal(outbox_acknowledge(&self->outbox, frame.acknowledged, &failure), 0);
        if (frame.type == PROTOCOL_EXITED)
            return;
        if (frame.type != PROTOCOL_OUTPUT)
            continue;
        assert_int_equal(protocol_get_message(&frame, &data, &failure), 0);
        take_lines(lines, data.bytes, data.length);
        if (inbox_owes(&self->inbox)) {
            assert_int_equal(outbox_put_acknowledgement(&self->outbox), 0);
            flush(self);
        }
    }
}

/* What is printed meanwhile waits in memory; when that is much, the program waits in its write. Nothing is
 * lost. */
TEST(a_program_prints_more_than_is_kept) {
    struct lines lines = {.next = 1};
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    run(&engine, (const char *const[]){"seq", "5000000", NULL}, PROTOCOL_MODE_NULL); /* 39 MB */
    expect(&engine, PROTOCOL_STARTED);
    break_stream(&engine);
    relay_end(&engine);
    long resident = 0;
    wait_until(NULL, (resident = status_of(engine.agent, "VmRSS:")) > 16 << 10, "%ld KiB", resident);
    resume(&engine);
    read_all_lines(&engine, &lines);
    assert_int_equal(lines.next, 5000001);
    leave(&engine);
}

/* ---- greetings */

static void knock(struct engine *self) {
    start_relay(self, "--resume", NULL, NULL);
    assert_true(read_line(self));
    inbox_restart(&self->inbox);
    outbox_restart(&self->outbox);
}

static void turned_away(struct engine *self, const char *sentence) {
    refused(self, sentence);
    close_stream(self);
    assert_int_equal(relay_end(self), 0);
}

TEST(another_engine_is_refused) {
    struct engine other;
    char expected[256];
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    run_to_end(&engine, "true");
    run_shell(&engine, "sleep 1000"); /* acknowledges two frames */
    break_stream(&engine);
    relay_end(&engine);

    engine_init(&other);
    other.session = engine.session;
    memcpy(other.name, engine.name, sizeof other.name);
    knock(&other);
    say_hello(&other, other.session);
    snprintf(expected, sizeof expected,
             "another engine had session %llx: it has acknowledged 2 frames, this one none",
             (unsigned long long)engine.session);
    turned_away(&other, expected);

    /* Nor one that claims what was never sent, nor one that says something else first. */
    knock(&other);
    other.inbox.received = 100;
    say_hello(&other, other.session);
    turned_away(&other, "frame 100 was acknowledged, but 3 is the last that was sent");
    knock(&other);
    say_hello(&other, 1);
    turned_away(&other, "this agent does not serve session 1");
    knock(&other);
    assert_int_equal(outbox_resume(&other.outbox, 0, &failure), 0);
    assert_int_equal(outbox_put_acknowledgement(&other.outbox), 0);
    flush(&other);
    refused(&other, "a ACK message came before HELLO");
    engine_clear(&other);

    /* All that is nothing to the one whose session it is. */
    resume(&engine);
    leave(&engine);
}

TEST(a_violation_ends_the_agent) {
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    begin(&engine, PROTOCOL_LEAVE);
    protocol_put_u32(&writer, 1);
    end(&engine);
    refused(&engine, "a malformed LEAVE message: it continues after its end");
    assert_int_equal(relay_end(&engine), 0);
    assert_false(file_exists(below("run")));
}
