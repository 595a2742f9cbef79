/* What a mailbox refuses. That every frame arrives once and in order,
 * whatever is lost on the way: tests/simulation. */
#include "engine/agent/wire/mailbox.h"
#include "tests/test.h"

enum { BODY_LIMIT = 3000 };

struct side {
    struct inbox inbox;
    struct outbox outbox;
    bool engine;
    uint32_t produced; /* data frames */
};

static struct failure failure;

static void fill(char *body, uint32_t number, size_t length) {
    for (size_t i = 0; i < length; i++)
        body[i] = (char)(number * 31 + i);
}

static size_t length_of(uint32_t number) {
    return number % 7 == 0 ? 0 : number * 2654435761u % BODY_LIMIT;
}

static void side_init(struct side *side, bool engine) {
    memset(side, 0, sizeof *side);
    inbox_init(&side->inbox);
    outbox_init(&side->outbox, &side->inbox, 64 << 20);
    outbox_restart(&side->outbox);
    side->engine = engine;
}

static void side_clear(struct side *side) {
    inbox_clear(&side->inbox);
    outbox_clear(&side->outbox);
}

static void put_hello(struct side *side) {
    struct protocol_writer writer;
    outbox_begin(&side->outbox, &writer, PROTOCOL_HELLO);
    protocol_put_u32(&writer, PROTOCOL_MAGIC);
    assert_int_equal(outbox_end(&side->outbox, &writer), 0);
}

static void produce(struct side *side) {
    char body[BODY_LIMIT];
    size_t length = length_of(side->produced);
    fill(body, side->produced, length);
    struct protocol_writer writer;
    outbox_begin(&side->outbox, &writer, side->engine ? PROTOCOL_INPUT : PROTOCOL_OUTPUT);
    protocol_put_u32(&writer, side->produced);
    protocol_put_bytes(&writer, body, length);
    assert_int_equal(outbox_end(&side->outbox, &writer), 0);
    side->produced++;
}

/* ---- what a mailbox refuses */

TEST(what_is_not_kept_cannot_be_resumed) {
    static struct side side;
    side_init(&side, true);
    assert_int_equal(outbox_resume(&side.outbox, 0, &failure), 0);
    for (int i = 0; i < 10; i++)
        produce(&side);
    size_t length;
    outbox_unsent(&side.outbox, &length);
    outbox_sent(&side.outbox, length);
    assert_int_equal(outbox_acknowledge(&side.outbox, 6, &failure), 0);
    outbox_restart(&side.outbox);
    assert_int_equal(outbox_resume(&side.outbox, 5, &failure), -EPROTO);
    assert_string_equal(failure.text, "cannot resume after frame 5: frame 6 was already acknowledged");
    assert_int_equal(outbox_resume(&side.outbox, 11, &failure), -EPROTO);
    assert_string_equal(failure.text, "frame 11 was acknowledged, but the last frame sent is 10");
    /* Neither has changed anything. */
    assert_null(outbox_unsent(&side.outbox, &length));
    assert_int_equal(outbox_resume(&side.outbox, 8, &failure), 0);
    struct protocol_frame frame;
    const char *bytes = outbox_unsent(&side.outbox, &length);
    assert_int_equal(protocol_decode_frame(bytes, length, &frame, &failure), 1);
    assert_int_equal(frame.sequence, 9);
    side_clear(&side);
}

TEST(a_held_outbox_sends_what_goes_ahead) {
    static struct side side;
    side_init(&side, false);
    produce(&side);
    size_t length;
    assert_null(outbox_unsent(&side.outbox, &length));
    assert_int_equal(length, 0);
    put_hello(&side);
    produce(&side);
    const char *bytes = outbox_unsent(&side.outbox, &length);
    struct protocol_frame frame;
    assert_int_equal(protocol_decode_frame(bytes, length, &frame, &failure), 1);
    assert_int_equal(frame.type, PROTOCOL_HELLO);
    assert_int_equal(length, PROTOCOL_HEADER_SIZE + frame.length); /* and nothing else */
    /* HELLO first, then the rest, also when it has gone in part only. */
    outbox_sent(&side.outbox, 5);
    assert_int_equal(outbox_resume(&side.outbox, 0, &failure), 0);
    assert_non_null(outbox_unsent(&side.outbox, &length));
    outbox_sent(&side.outbox, length);
    bytes = outbox_unsent(&side.outbox, &length);
    assert_int_equal(protocol_decode_frame(bytes, length, &frame, &failure), 1);
    assert_int_equal(frame.sequence, 1);
    /* A new stream takes the greeting of the old one back, and acknowledgements with it. */
    outbox_sent(&side.outbox, length);
    assert_int_equal(outbox_put_acknowledgement(&side.outbox), 0);
    outbox_restart(&side.outbox);
    assert_int_equal(outbox_resume(&side.outbox, 0, &failure), 0);
    size_t seen = 0;
    bytes = outbox_unsent(&side.outbox, &length);
    for (uint64_t number = 1; number <= 2; number++) {
        assert_int_equal(protocol_decode_frame(bytes + seen, length - seen, &frame, &failure), 1);
        assert_int_equal(frame.sequence, number);
        seen += PROTOCOL_HEADER_SIZE + frame.length;
    }
    assert_int_equal(seen, length);
    side_clear(&side);
}
