/* Streams that break in the middle of everything: no byte is lost and none comes twice. */
#include "tests/unit/agent/engine.h"

#include <sched.h>
#include <sys/mount.h>

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

/* Reads COUNT bytes of the stream and forgets them, as a cable does. */
static void lose(struct engine *engine, size_t count) {
    char bytes[4096];
    ssize_t got;
    struct pollfd wait = {.fd = engine->from, .events = POLLIN};
    for (; count > 0 && poll(&wait, 1, 100) == 1; count -= (size_t)got) {
        got = read(engine->from, bytes, count < sizeof bytes ? count : sizeof bytes);
        if (got <= 0)
            return;
    }
}

static void no_byte_of_output_is_lost(void **state) {
    (void)state;
    enum { LINES = 700000, CUTS = 60 };
    struct engine engine;
    struct protocol_frame frame;
    struct protocol_data data;
    struct lines lines = {.next = 1};
    char words[1024];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    uint32_t command = run(&engine, (const char *const[]){"seq", "700000", NULL}, PROTOCOL_MODE_NULL);
    expect(&engine, PROTOCOL_STARTED, &frame);
    unsigned cuts = 0;
    for (uint64_t frames = 0;; frames++) {
        if (!receive(&engine, &frame))
            fail_msg("the stream ended");
        if (frame.type == PROTOCOL_ACK)
            continue;
        if (frame.type == PROTOCOL_EXITED)
            break;
        assert_int_equal(frame.type, PROTOCOL_OUTPUT);
        assert_int_equal(protocol_get_data(&frame, &data, &failure), 0);
        assert_int_equal(data.number, command);
        take_lines(&lines, data.bytes, data.length);
        if (inbox_owes(&engine.inbox)) {
            assert_int_equal(outbox_put_acknowledgement(&engine.outbox), 0);
            flush(&engine);
        }
        if (cuts >= CUTS)
            continue;
        /* Cut in three ways: the stream, the relay, and in the middle of a frame. */
        lose(&engine, cuts * 977 % 100000);
        if (cuts % 3 == 1)
            kill(engine.relay, SIGKILL);
        break_stream(&engine);
        relay_end(&engine, words);
        if (cuts % 5 == 4)
            wait_ms(20); /* alone for a while */
        resume(&engine);
        cuts++;
    }
    assert_int_equal(cuts, CUTS);
    assert_int_equal(lines.next, LINES + 1);
    assert_int_equal(lines.length, 0);
    leave(&engine);
    engine_clear(&engine);
}

/* Input goes in, the same comes out of `cat`, while the stream breaks again and again. */
static void no_byte_of_input_is_lost(void **state) {
    (void)state;
    enum { TOTAL = 3000000 };
    struct engine engine;
    struct protocol_frame frame;
    struct protocol_data data;
    struct protocol_amount amount;
    struct protocol_started started;
    char words[1024];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), NULL});
    uint32_t command = run(&engine, (const char *const[]){"cat", NULL}, PROTOCOL_MODE_STREAM);
    expect(&engine, PROTOCOL_STARTED, &frame);
    assert_int_equal(protocol_get_started(&frame, &started, &failure), 0);
    uint64_t credit = started.credit, given = 0, taken = 0, since = 0;
    unsigned cuts = 0;
    for (;;) {
        while (given < TOTAL && credit > given) {
            char bytes[5000];
            size_t length = credit - given < sizeof bytes ? (size_t)(credit - given) : sizeof bytes;
            length = TOTAL - given < length ? (size_t)(TOTAL - given) : length;
            for (size_t i = 0; i < length; i++)
                bytes[i] = (char)((given + i) * 2654435761u >> 16);
            begin(&engine, PROTOCOL_INPUT);
            protocol_put_number(&writer, command);
            protocol_put_bytes(&writer, bytes, length);
            assert_int_equal(outbox_end(&engine.outbox, &writer), 0);
            given += length;
            if (given == TOTAL) {
                begin(&engine, PROTOCOL_INPUT_END);
                protocol_put_number(&writer, command);
                assert_int_equal(outbox_end(&engine.outbox, &writer), 0);
            }
        }
        if (since > 70000) { /* with half a frame gone into the pipe, more often than not */
            size_t length;
            const char *unsent = outbox_unsent(&engine.outbox, &length);
            if (unsent)
                assert_true(write(engine.to, unsent, 1 + length / 3) > 0);
            break_stream(&engine);
            relay_end(&engine, words);
            resume(&engine);
            since = 0;
            cuts++;
        }
        flush(&engine);
        if (!receive(&engine, &frame))
            fail_msg("the stream ended");
        assert_int_equal(outbox_acknowledge(&engine.outbox, frame.acknowledged, &failure), 0);
        if (frame.type == PROTOCOL_CREDIT) {
            assert_int_equal(protocol_get_amount(&frame, &amount, &failure), 0);
            credit = amount.amount;
        } else if (frame.type == PROTOCOL_OUTPUT) {
            assert_int_equal(protocol_get_data(&frame, &data, &failure), 0);
            for (size_t i = 0; i < data.length; i++)
                assert_int_equal((unsigned char)data.bytes[i],
                                 (unsigned char)((taken + i) * 2654435761u >> 16));
            taken += data.length;
            since += data.length;
        } else if (frame.type == PROTOCOL_EXITED) {
            break;
        } else {
            assert_int_equal(frame.type, PROTOCOL_ACK);
        }
    }
    assert_int_equal(taken, TOTAL);
    assert_true(cuts > 20);
    leave(&engine);
    engine_clear(&engine);
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
        assert_int_equal(protocol_get_data(&frame, &data, &failure), 0);
        take_lines(lines, data.bytes, data.length);
        if (inbox_owes(&engine->inbox)) {
            assert_int_equal(outbox_put_acknowledgement(&engine->outbox), 0);
            flush(engine);
        }
    }
}

/* Nobody listens, and the program ends all the same: what is too much for memory is on disk. */
static void output_is_spooled(void **state) {
    (void)state;
    struct engine engine;
    struct protocol_frame frame;
    struct lines lines = {.next = 1};
    char words[1024];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    run_shell(&engine, "seq 6000000; touch ended"); /* 46 MB */
    expect(&engine, PROTOCOL_STARTED, &frame);
    expect(&engine, PROTOCOL_OUTPUT, &frame);
    struct protocol_data data;
    assert_int_equal(protocol_get_data(&frame, &data, &failure), 0);
    take_lines(&lines, data.bytes, data.length);
    break_stream(&engine);
    relay_end(&engine, words);
    for (int i = 0; !file_exists(below("run/ended")) && i < 1000; i++)
        wait_ms(10);
    assert_true(file_exists(below("run/ended")));
    resume(&engine);
    for (int i = 0; i < 20; i++) { /* and it is cut while the spool is being sent */
        expect(&engine, PROTOCOL_OUTPUT, &frame);
        assert_int_equal(protocol_get_data(&frame, &data, &failure), 0);
        take_lines(&lines, data.bytes, data.length);
    }
    break_stream(&engine);
    relay_end(&engine, words);
    resume(&engine);
    read_all_lines(&engine, &lines);
    assert_int_equal(lines.next, 6000001);
    leave(&engine);
    assert_false(file_exists(below("run")));
    engine_clear(&engine);
}

static void in_a_small_file_system(void) {
    if (unshare(CLONE_NEWNS) < 0 || mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) < 0 ||
        mount("none", folder, "tmpfs", 0, "size=6m,mode=0700") < 0)
        _exit(125);
}

/* The disk is full: the program waits in its write, and nothing is lost. */
static void a_full_disk_holds_programs_up(void **state) {
    (void)state;
    if (geteuid() != 0)
        skip();
    struct engine engine;
    struct protocol_frame frame;
    struct lines lines = {.next = 1};
    char words[1024];
    engine_init(&engine);
    start_relay(&engine, "--attach", (const char *const[]){"--directory", below("run"), NULL},
                in_a_small_file_system);
    assert_true(read_line(&engine));
    say_hello(&engine, engine.session);
    take_hello(&engine);
    run(&engine, (const char *const[]){"seq", "3000000", NULL}, PROTOCOL_MODE_NULL); /* 23 MB */
    expect(&engine, PROTOCOL_STARTED, &frame);
    break_stream(&engine);
    relay_end(&engine, words);
    wait_ms(600);
    resume(&engine);
    read_all_lines(&engine, &lines);
    assert_int_equal(lines.next, 3000001);
    leave(&engine);
    engine_clear(&engine);
}

/* ---- greetings */

static void another_engine_is_refused(void **state) {
    (void)state;
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
    refused(&other, "this agent has no session 1 to go on with");
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

static void a_violation_ends_the_agent(void **state) {
    (void)state;
    struct engine engine;
    char words[1024];
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", NULL});
    begin(&engine, PROTOCOL_LEAVE);
    protocol_put_number(&writer, 1);
    end(&engine);
    refused(&engine, "a LEAVE message with a payload");
    assert_int_equal(relay_end(&engine, words), 0);
    assert_false(file_exists(below("run")));
    engine_clear(&engine);
}

int main(void) {
    find_program();
    const struct CMUnitTest tests[] = {
        ENGINE_TEST(no_byte_of_output_is_lost), ENGINE_TEST(no_byte_of_input_is_lost),
        ENGINE_TEST(output_is_spooled),         ENGINE_TEST(a_full_disk_holds_programs_up),
        ENGINE_TEST(another_engine_is_refused), ENGINE_TEST(a_violation_ends_the_agent),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
