/* Who may greet on another stream. Bytes that are lost on the way, and much output meanwhile:
 * tests/simulation. */
#include "tests/unit/agent/engine.h"

TEST_EACH(set_up, tear_down)

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
             "another engine uses session %llx: it acknowledged 2 frames, and this engine none",
             (unsigned long long)engine.session);
    turned_away(&other, expected);

    /* Nor one that claims what was never sent, nor one that says something else first. */
    knock(&other);
    other.inbox.received = 100;
    say_hello(&other, other.session);
    turned_away(&other, "frame 100 was acknowledged, but the last frame sent is 3");
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
