/* What a mailbox refuses, and the spool where there is no room. That every frame arrives once and in order,
 * whatever is lost on the way: tests/simulation. */
#include "engine/agent/wire/mailbox.h"
#include "engine/agent/serve/spool.h"
#include "tests/test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/resource.h>
#include <unistd.h>

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

TEST_EACH(set_up_folder, tear_down_folder)

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
    assert_string_equal(failure.text, "frames after 5 are asked for, but 6 was acknowledged");
    assert_int_equal(outbox_resume(&side.outbox, 11, &failure), -EPROTO);
    assert_string_equal(failure.text, "frame 11 was acknowledged, but 10 is the last that was sent");
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

TEST(a_full_spool_takes_nothing) {
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
TEST(a_failed_write_leaves_nothing) {
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

TEST(a_folder_that_cannot_be_written_to) {
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
