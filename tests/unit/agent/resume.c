/* Mailboxes over streams that break anywhere, and the spool: whatever is lost on the way, every frame arrives
 * once and in order. */
#include "engine/agent/mailbox.h"
#include "engine/agent/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cmocka.h>

enum { STREAM_SIZE = 256 << 10, BODY_LIMIT = 3000 };

/* Deterministic, so that what fails fails again. */
static uint32_t seed;
static uint32_t random_below(uint32_t limit) {
    seed = seed * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)(seed >> 8) * limit >> 24);
}

/* One of the two sides. The engine greets first. */
struct side {
    struct inbox inbox;
    struct outbox outbox;
    struct spool spool;
    bool engine, greeted, with_spool;
    uint32_t produced, received; /* data frames */
    char stream[STREAM_SIZE];    /* on its way to the other side */
    size_t on_its_way;
    uint64_t twice, spooled; /* bytes that were lost on the way; that were in the spool */
};

static struct failure failure;

static void fill(char *body, uint32_t number, size_t length) {
    for (size_t i = 0; i < length; i++)
        body[i] = (char)(number * 31 + i);
}

static size_t length_of(uint32_t number) {
    return number % 7 == 0 ? 0 : number * 2654435761u % BODY_LIMIT;
}

static void side_init(struct side *side, bool engine, int folder) {
    memset(side, 0, sizeof *side);
    inbox_init(&side->inbox);
    outbox_init(&side->outbox, &side->inbox, 64 << 20);
    outbox_restart(&side->outbox);
    spool_init(&side->spool, folder);
    side->engine = engine;
    side->with_spool = folder >= 0;
}

static void side_clear(struct side *side) {
    inbox_clear(&side->inbox);
    outbox_clear(&side->outbox);
    spool_clear(&side->spool);
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
    protocol_put_number(&writer, side->produced);
    protocol_put_bytes(&writer, body, length);
    assert_int_equal(outbox_end(&side->outbox, &writer), 0);
    side->produced++;
}

static void move_to_spool(struct side *side) {
    size_t length;
    uint64_t last;
    const char *bytes = outbox_kept_frames(&side->outbox, &length, &last);
    if (length && spool_add(&side->spool, bytes, length, last) == 0) {
        outbox_forget_kept(&side->outbox);
        side->spooled += length;
    }
}

/* As much as the stream takes. */
static void send_some(struct side *side) {
    for (;;) {
        const char *bytes = NULL;
        size_t length = 0;
        bool spooled = false;
        if (side->greeted && !outbox_is_ahead(&side->outbox)) {
            assert_int_equal(spool_unsent(&side->spool, &bytes, &length), 0);
            spooled = bytes != NULL;
        }
        if (!bytes)
            bytes = outbox_unsent(&side->outbox, &length);
        size_t room = STREAM_SIZE - side->on_its_way;
        if (!bytes || room == 0)
            return;
        size_t part = 1 + random_below((uint32_t)(length < 9000 ? length : 9000));
        part = part < length ? part : length;
        part = part < room ? part : room;
        memcpy(side->stream + side->on_its_way, bytes, part);
        side->on_its_way += part;
        if (spooled)
            spool_sent(&side->spool, part);
        else
            outbox_sent(&side->outbox, part);
    }
}

static void take(struct side *side, const struct protocol_frame *frame) {
    if (!side->greeted) {
        assert_int_equal(frame->type, PROTOCOL_HELLO);
        if (!side->engine)
            put_hello(side);
        assert_int_equal(outbox_resume(&side->outbox, frame->acknowledged, &failure), 0);
        assert_int_equal(spool_resume(&side->spool, frame->acknowledged), 0);
        side->greeted = true;
        return;
    }
    assert_int_equal(outbox_acknowledge(&side->outbox, frame->acknowledged, &failure), 0);
    spool_acknowledge(&side->spool, side->outbox.acknowledged);
    if (frame->type == PROTOCOL_ACK)
        return;
    char body[BODY_LIMIT];
    size_t length = length_of(side->received);
    fill(body, side->received, length);
    assert_int_equal(frame->length, 4 + length);
    uint32_t number;
    memcpy(&number, frame->payload, 4);
    assert_int_equal(number, side->received);
    assert_memory_equal(frame->payload + 4, body, length);
    side->received++;
}

/* LENGTH bytes of what is on its way from the other side arrive. */
static void arrive(struct side *side, struct side *from, size_t length) {
    char *space;
    size_t size;
    for (size_t done = 0; done < length; done += size) {
        assert_int_equal(inbox_reserve(&side->inbox, &space, &size), 0);
        size = size < length - done ? size : length - done;
        memcpy(space, from->stream + done, size);
        inbox_fill(&side->inbox, size);
        struct protocol_frame frame;
        int r;
        while ((r = inbox_next(&side->inbox, &frame, &failure)) > 0)
            take(side, &frame);
        if (r < 0)
            fail_msg("%s", failure.text);
    }
    memmove(from->stream, from->stream + length, from->on_its_way - length);
    from->on_its_way -= length;
}

static void cut(struct side *side) {
    side->twice += side->on_its_way;
    side->on_its_way = 0;
    side->greeted = false;
    inbox_restart(&side->inbox);
    outbox_restart(&side->outbox);
}

static void exchange(struct side *a, struct side *b, uint32_t most) {
    send_some(a);
    send_some(b);
    size_t to_b = a->on_its_way, to_a = b->on_its_way;
    if (most) {
        to_b = to_b ? random_below((uint32_t)(to_b < most ? to_b : most) + 1) : 0;
        to_a = to_a ? random_below((uint32_t)(to_a < most ? to_a : most) + 1) : 0;
    }
    arrive(b, a, to_b);
    arrive(a, b, to_a);
}

static void settle(struct side *a, struct side *b) {
    do
        exchange(a, b, 0);
    while (a->on_its_way || b->on_its_way);
}

/* Both sides send FRAMES frames over a stream that is cut again and again; the agent's go through the spool
 * now and then if it has a folder. */
static void run(uint32_t start, int folder, uint32_t frames) {
    static struct side engine, agent;
    seed = start;
    side_init(&engine, true, -1);
    side_init(&agent, false, folder);
    unsigned cuts = 0;
    put_hello(&engine);
    while (engine.received < frames || agent.received < frames) {
        for (uint32_t n = random_below(6); n > 0 && engine.produced < frames; n--)
            produce(&engine);
        for (uint32_t n = random_below(12); n > 0 && agent.produced < frames; n--)
            produce(&agent);
        if (random_below(9) == 0 && engine.greeted)
            assert_int_equal(outbox_put_acknowledgement(&engine.outbox), 0);
        if (random_below(9) == 0 && agent.greeted)
            assert_int_equal(outbox_put_acknowledgement(&agent.outbox), 0);
        exchange(&engine, &agent, 1 + random_below(20000));
        if (random_below(6) == 0) {
            cut(&engine);
            cut(&agent);
            cuts++;
            for (uint32_t n = random_below(40); n > 0 && agent.produced < frames; n--) {
                produce(&agent);
                if (agent.with_spool && random_below(5) == 0)
                    move_to_spool(&agent);
            }
            put_hello(&engine);
        }
        if (engine.produced == frames && agent.produced == frames && random_below(20) == 0)
            settle(&engine, &agent);
    }
    assert_true(cuts > 20 && engine.twice > 0 && agent.twice > 0 && (agent.spooled > 0) == agent.with_spool);
    /* All is acknowledged in the end, and nothing is kept. */
    while (!engine.greeted || !agent.greeted)
        exchange(&engine, &agent, 0);
    settle(&engine, &agent);
    assert_int_equal(outbox_put_acknowledgement(&engine.outbox), 0);
    assert_int_equal(outbox_put_acknowledgement(&agent.outbox), 0);
    settle(&engine, &agent);
    assert_int_equal(engine.received, frames);
    assert_int_equal(agent.received, frames);
    assert_int_equal(outbox_kept(&engine.outbox), 0);
    assert_int_equal(outbox_kept(&agent.outbox), 0);
    assert_true(spool_is_empty(&agent.spool));
    assert_int_equal(agent.spool.file, -1);
    side_clear(&engine);
    side_clear(&agent);
}

static void every_frame_arrives_once(void **state) {
    (void)state;
    for (uint32_t start = 1; start <= 40; start++)
        run(start, -1, 1000);
}

static char spool_folder[] = "/tmp/assay-test-XXXXXX";
static int folder;

static int set_up_folder(void **state) {
    (void)state;
    memcpy(spool_folder + sizeof spool_folder - 7, "XXXXXX", 6);
    if (!mkdtemp(spool_folder))
        return -1;
    folder = open(spool_folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0;
}

static int tear_down_folder(void **state) {
    (void)state;
    close(folder);
    return rmdir(spool_folder); /* fails if the spool has left something */
}

static void every_frame_arrives_once_through_the_spool(void **state) {
    (void)state;
    for (uint32_t start = 1; start <= 40; start++)
        run(start, folder, 1000);
}

/* ---- what a mailbox refuses */

static void what_is_not_kept_cannot_be_resumed(void **state) {
    (void)state;
    static struct side side;
    side_init(&side, true, -1);
    assert_int_equal(outbox_resume(&side.outbox, 0, &failure), 0);
    for (int i = 0; i < 10; i++)
        produce(&side);
    send_some(&side);
    assert_int_equal(outbox_acknowledge(&side.outbox, 6, &failure), 0);
    outbox_restart(&side.outbox);
    assert_int_equal(outbox_resume(&side.outbox, 5, &failure), -EPROTO);
    assert_string_equal(failure.text, "frames after 5 are asked for, but 6 was acknowledged");
    assert_int_equal(outbox_resume(&side.outbox, 11, &failure), -EPROTO);
    assert_string_equal(failure.text, "frame 11 was acknowledged, but 10 is the last that was sent");
    /* Neither has changed anything. */
    size_t length;
    assert_null(outbox_unsent(&side.outbox, &length));
    assert_int_equal(outbox_resume(&side.outbox, 8, &failure), 0);
    struct protocol_frame frame;
    const char *bytes = outbox_unsent(&side.outbox, &length);
    assert_int_equal(protocol_decode_frame(bytes, length, &frame, &failure), 1);
    assert_int_equal(frame.sequence, 9);
    side_clear(&side);
}

static void a_held_outbox_sends_what_goes_ahead(void **state) {
    (void)state;
    static struct side side;
    side_init(&side, false, -1);
    produce(&side);
    size_t length;
    assert_null(outbox_unsent(&side.outbox, &length));
    assert_int_equal(length, 0);
    put_hello(&side);
    assert_true(outbox_is_ahead(&side.outbox));
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
    assert_false(outbox_is_ahead(&side.outbox));
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

/* ---- the spool alone */

static size_t make_batch(struct text *frames, uint64_t first, unsigned count, size_t body) {
    text_reset(frames);
    for (unsigned i = 0; i < count; i++) {
        struct protocol_writer writer;
        protocol_begin(&writer, frames, PROTOCOL_OUTPUT);
        char *space = protocol_put_space(&writer, body);
        assert_non_null(space);
        memset(space, (int)(first + i), body);
        assert_int_equal(protocol_end(&writer, first + i, 0), 0);
    }
    return frames->length;
}

static void a_full_spool_takes_nothing(void **state) {
    (void)state;
    struct spool spool;
    spool_init(&spool, folder);
    struct text frames;
    text_init(&frames, 32 << 20);
    make_batch(&frames, 1, 1, 100);
    for (uint64_t i = 1; i <= SPOOL_BATCHES; i++)
        assert_int_equal(spool_add(&spool, frames.bytes, frames.length, i), 0);
    assert_int_equal(spool_add(&spool, frames.bytes, frames.length, SPOOL_BATCHES + 1), -EFBIG);
    spool_clear(&spool);
    /* By bytes: sixteen batches of 16 MiB do not fit into 256 MiB with their headers. */
    make_batch(&frames, 1, 16, 1 << 20);
    for (uint64_t i = 1; i <= 15; i++)
        assert_int_equal(spool_add(&spool, frames.bytes, frames.length, 16 * i), 0);
    assert_int_equal(spool_add(&spool, frames.bytes, frames.length, 256), -EFBIG);
    assert_int_equal(spool.end, 15 * frames.length);
    spool_clear(&spool);
    text_clear(&frames);
}

/* A write that fails in its middle leaves nothing of the batch behind, and what was there before is whole. */
static void a_failed_write_leaves_nothing(void **state) {
    (void)state;
    struct spool spool;
    spool_init(&spool, folder);
    struct text frames;
    text_init(&frames, 1 << 20);
    signal(SIGXFSZ, SIG_IGN);
    struct rlimit before, limit;
    getrlimit(RLIMIT_FSIZE, &before);
    limit = before;
    size_t length = make_batch(&frames, 1, 10, 100);
    limit.rlim_cur = length + length / 2;
    setrlimit(RLIMIT_FSIZE, &limit);
    assert_int_equal(spool_add(&spool, frames.bytes, length, 10), 0);
    make_batch(&frames, 11, 10, 100);
    assert_int_equal(spool_add(&spool, frames.bytes, length, 20), -EFBIG);
    setrlimit(RLIMIT_FSIZE, &before);
    assert_int_equal(lseek(spool.file, 0, SEEK_END), (off_t)length);
    make_batch(&frames, 11, 10, 100);
    assert_int_equal(spool_add(&spool, frames.bytes, length, 20), 0);
    assert_int_equal(spool_resume(&spool, 13), 0);
    const char *bytes;
    struct protocol_frame frame;
    assert_int_equal(spool_unsent(&spool, &bytes, &length), 0);
    assert_int_equal(protocol_decode_frame(bytes, length, &frame, &failure), 1);
    assert_int_equal(frame.sequence, 14);
    assert_int_equal(spool.count, 1); /* the first batch was received, and is given up */
    /* What was not sent is not given up, whatever the other side says. */
    spool_acknowledge(&spool, 20);
    assert_false(spool_is_empty(&spool));
    spool_sent(&spool, length);
    spool_acknowledge(&spool, 20);
    assert_true(spool_is_empty(&spool));
    spool_clear(&spool);
    text_clear(&frames);
}

static void a_folder_that_cannot_be_written_to(void **state) {
    (void)state;
    char name[] = "/tmp/assay-test-XXXXXX";
    assert_non_null(mkdtemp(name));
    int gone = open(name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    rmdir(name); /* nothing can be made there any more */
    struct spool spool;
    spool_init(&spool, gone);
    assert_true(spool_add(&spool, "x", 1, 1) < 0);
    assert_true(spool_is_empty(&spool));
    assert_int_equal(spool.file, -1);
    spool_clear(&spool);
    close(gone);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_frame_arrives_once),
        cmocka_unit_test_setup_teardown(every_frame_arrives_once_through_the_spool, set_up_folder,
                                        tear_down_folder),
        cmocka_unit_test(what_is_not_kept_cannot_be_resumed),
        cmocka_unit_test(a_held_outbox_sends_what_goes_ahead),
        cmocka_unit_test_setup_teardown(a_full_spool_takes_nothing, set_up_folder, tear_down_folder),
        cmocka_unit_test_setup_teardown(a_failed_write_leaves_nothing, set_up_folder, tear_down_folder),
        cmocka_unit_test(a_folder_that_cannot_be_written_to),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
