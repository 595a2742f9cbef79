/* Every message there and back, every prefix and every extension of it refused, every limit. */
#include "engine/agent/wire/protocol.h"
#include "engine/agent/wire/mailbox.h"
#include "tests/test.h"

static struct text out;
static struct protocol_writer writer;
static struct protocol_frame frame;
static struct failure failure;

static int set_up(void **state) {
    text_init(&out, 8 << 20);
    return 0;
}

static int tear_down(void **state) {
    text_clear(&out);
    return 0;
}

static void begin(enum protocol_type type) {
    text_reset(&out);
    protocol_begin(&writer, &out, type);
}

/* Ends the frame that was begun and decodes it. */
static void take(void) {
    uint64_t sequence = protocol_type_is_numbered(writer.type) ? 7 : 0;
    assert_int_equal(protocol_end(&writer, sequence, 5), 0);
    assert_int_equal(protocol_decode_frame(out.bytes, out.length, &frame, &failure), 1);
    assert_int_equal(frame.type, writer.type);
    assert_int_equal(frame.sequence, sequence);
    assert_int_equal(frame.acknowledged, 5);
    assert_int_equal(frame.length, out.length - PROTOCOL_HEADER_SIZE);
}

#define SEND(type, ...) (begin(type), protocol_put_message(&writer, __VA_ARGS__), take())
#define GET(ret) assert_int_equal(protocol_get_message(&frame, ret, &failure), 0)
#define REFUSED(ret) assert_int_equal(protocol_get_message(&frame, ret, &failure), -EPROTO)

/* The largest messages, and room for any other. */
static union {
    struct protocol_run run;
    struct protocol_hello hello;
    struct protocol_data data;
    struct protocol_error error;
    struct protocol_exited exited;
    const char *sentence;
} got;

/* Leaves nothing allocated. */
static int decode(const struct protocol_frame *given) {
    memset(&got, 0, sizeof got);
    int r = protocol_get_message(given, &got, &failure);
    if (r == 0 && given->type == PROTOCOL_RUN)
        protocol_run_clear(&got.run);
    return r;
}

/* OPEN: the message ends with `rest`, so that a longer one is well-formed. LEAST: shorter ones are malformed.
 * The payload is copied to memory of its exact size, where a sanitizer sees every byte that is read beyond.
 */
static void check_lengths(bool open, size_t least) {
    for (size_t length = 0; length <= frame.length + 1; length++) {
        char *payload = malloc(length ? length : 1);
        memcpy(payload, frame.payload, length < frame.length ? length : frame.length);
        if (length > frame.length)
            payload[length - 1] = 'x';
        struct protocol_frame cut = frame;
        cut.payload = payload;
        cut.length = length;
        int expected = length == frame.length || (open && length >= least) ? 0 : -EPROTO;
        failure.text[0] = '\0';
        assert_int_equal(decode(&cut), expected);
        if (expected < 0) {
            char prefix[64];
            snprintf(prefix, sizeof prefix, "a malformed %s message: it ", protocol_type_name(frame.type));
            assert_memory_equal(failure.text, prefix, strlen(prefix));
        }
        free(payload);
    }
}

/* MESSAGE, written, reads as it was (SIZE bytes of its struct: 0 where texts are elsewhere), and is written
 * again as it came. */
static void there_and_back(enum protocol_type type, const void *message, size_t size, bool open,
                           size_t least) {
    cleanup(text_clear) struct text first;
    text_init(&first, 8 << 20);
    SEND(type, message);
    assert_int_equal(text_append(&first, out.bytes, out.length), 0);
    frame.payload = first.bytes + PROTOCOL_HEADER_SIZE;
    memset(&got, 0, sizeof got);
    GET(&got);
    assert_memory_equal(&got, message, size);
    SEND(type, &got);
    assert_int_equal(out.length, first.length);
    assert_memory_equal(out.bytes, first.bytes, out.length);
    if (type == PROTOCOL_RUN)
        protocol_run_clear(&got.run);
    check_lengths(open, least);
    GET(&got);
}

TEST(messages_there_and_back) {
    static const struct protocol_hello hello = {.version = PROTOCOL_VERSION,
                                                .capabilities = 0x8000000000000001,
                                                .session = 42,
                                                .payload_limit = 1 << 20,
                                                .pid = 99,
                                                .program = "0.1.0",
                                                .host = "dahu-3",
                                                .sha256 = {1, 2, 3}};
    static const struct protocol_statistics statistics = {1, -2, 3, 4, 5, 6, 7, 8, 9, UINT64_C(1) << 40, 11};
    static const struct protocol_clock clock = {1, -2, INT64_MAX};
    static const struct protocol_amount credit = {1, UINT64_C(1) << 40};
    static const struct protocol_started started = {1, 2, -3, 4, 5};
    static const struct protocol_exited exited = {1, PROTOCOL_EXIT_FLAGS, 255, 4, 5, 6, 7, 8, 9, 10, 11};
    there_and_back(PROTOCOL_INSPECT, &(uint32_t){0xfedcba98}, sizeof(uint32_t), false, 0);
    there_and_back(PROTOCOL_LEASE, &(uint64_t){PROTOCOL_LEASE_LIMIT_MS}, sizeof(uint64_t), false, 0);
    there_and_back(PROTOCOL_STATISTICS_REPLY, &statistics, sizeof statistics, false, 0);
    there_and_back(PROTOCOL_CLOCK_REPLY, &clock, sizeof clock, false, 0);
    there_and_back(PROTOCOL_CREDIT, &credit, sizeof credit, false, 0);
    there_and_back(PROTOCOL_STARTED, &started, sizeof started, false, 0);
    there_and_back(PROTOCOL_EXITED, &exited, sizeof exited, false, 0);
    there_and_back(PROTOCOL_HELLO, &hello, offsetof(struct protocol_hello, program), false, 0);
    assert_string_equal(got.hello.program, "0.1.0");
    assert_string_equal(got.hello.host, "dahu-3");
    assert_memory_equal(got.hello.sha256, hello.sha256, sizeof hello.sha256);
    there_and_back(PROTOCOL_REFUSE, &(const char *){"no"}, 0, false, 0);
    assert_string_equal(got.sentence, "no");
    there_and_back(PROTOCOL_ERROR, &(struct protocol_error){9, -ENOENT, "no such thing"}, 8, false, 0);
    assert_string_equal(got.error.sentence, "no such thing");
    there_and_back(PROTOCOL_OUTPUT, &(struct protocol_data){3, 2, "a\0b", 3}, 5, true, 5);
    assert_memory_equal(got.data.bytes, "a\0b", 3);
    there_and_back(PROTOCOL_INPUT, &(struct protocol_data){4, 0, "xyz", 3}, 5, true, 4);
    assert_memory_equal(got.data.bytes, "xyz", 3);
}

/* A payload may be written in place, with room to spare. */
TEST(space_is_trimmed) {
    begin(PROTOCOL_INPUT);
    protocol_put_u32(&writer, 3);
    memcpy(protocol_put_space(&writer, 100), "abc", 3);
    protocol_trim(&writer, 97);
    take();
    GET(&got);
    assert_int_equal(got.data.length, 3);
}

TEST(values_that_there_are_not) {
    static const struct protocol_exited flags = {.flags = PROTOCOL_EXIT_FLAGS + 1};
    const struct {
        enum protocol_type type;
        const void *message;
    } cases[] = {{PROTOCOL_LEASE, &(const uint64_t){PROTOCOL_LEASE_LIMIT_MS + 1}},
                 {PROTOCOL_FAILED, &(const struct protocol_error){9, 0, "x"}},
                 {PROTOCOL_FAILED, &(const struct protocol_error){9, 5, "x"}},
                 {PROTOCOL_FAILED, &(const struct protocol_error){9, -4096, "x"}},
                 {PROTOCOL_ERROR, &(const struct protocol_error){9, INT32_MIN, "x"}},
                 {PROTOCOL_OUTPUT, &(const struct protocol_data){3, 0, "", 0}},
                 {PROTOCOL_OUTPUT, &(const struct protocol_data){3, 3, "", 0}},
                 {PROTOCOL_OUTPUT, &(const struct protocol_data){3, 255, "", 0}},
                 {PROTOCOL_KILL, &(const struct protocol_amount){1, 0}},
                 {PROTOCOL_KILL, &(const struct protocol_amount){1, 65}},
                 {PROTOCOL_KILL, &(const struct protocol_amount){1, UINT64_C(1) << 40}},
                 {PROTOCOL_EXITED, &flags}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        SEND(cases[i].type, cases[i].message);
        REFUSED(&got);
    }
    begin(PROTOCOL_HELLO);
    protocol_put_u32(&writer, 0x12345678);
    protocol_put_u16(&writer, PROTOCOL_VERSION);
    take();
    REFUSED(&got);
    assert_says(failure.text, "the magic number");
    /* Of another version only the version is understood, whatever follows. */
    begin(PROTOCOL_HELLO);
    protocol_put_message(&writer, &(struct protocol_hello){.version = 77, .program = "", .host = ""});
    protocol_put_bytes(&writer, "the future", 10);
    take();
    GET(&got);
    assert_int_equal(got.hello.version, 77);
}

static const char *arguments[] = {"printf", "%s", "", NULL};
static const char *environment[] = {"A=1", "B", NULL};
static uint32_t pus[] = {0, 5, 8191};

static struct protocol_run sample_run(void) {
    return (struct protocol_run){.command = 12,
                                 .input = PROTOCOL_MODE_STREAM,
                                 .output = PROTOCOL_MODE_NULL,
                                 .error = PROTOCOL_MODE_MERGE,
                                 .grace_ms = 1,
                                 .coalesce_ms = 2,
                                 .timeout_ms = 3,
                                 .output_limit = 4,
                                 .error_limit = 5,
                                 .folder = ".",
                                 .arguments = arguments,
                                 .argument_count = 3,
                                 .environment = environment,
                                 .environment_count = 2,
                                 .pus = pus,
                                 .pu_count = 3};
}

TEST(run_there_and_back) {
    struct protocol_run run = sample_run();
    assert_int_equal(protocol_check_run(&run, &failure), 0);
    there_and_back(PROTOCOL_RUN, &run, offsetof(struct protocol_run, folder), false, 0);
    assert_string_equal(got.run.folder, ".");
    assert_int_equal(got.run.argument_count, 3);
    for (int i = 0; i < 3; i++)
        assert_string_equal(got.run.arguments[i], arguments[i]);
    assert_null(got.run.arguments[3]);
    assert_int_equal(got.run.environment_count, 2);
    assert_string_equal(got.run.environment[1], "B");
    assert_null(got.run.environment[2]);
    assert_int_equal(got.run.pu_count, 3);
    assert_memory_equal(got.run.pus, pus, sizeof pus);
    assert_int_equal(protocol_check_run(&got.run, &failure), 0);
    protocol_run_clear(&got.run);
}

TEST(run_limits) {
    struct protocol_run wrong[5], run;
    uint32_t far = PROTOCOL_PU_LIMIT;
    for (size_t i = 0; i < 5; i++)
        wrong[i] = sample_run();
    wrong[0].argument_count = 0;
    wrong[1].input = PROTOCOL_MODE_MERGE;
    wrong[2].error = 3;
    wrong[3].coalesce_ms = PROTOCOL_COALESCE_LIMIT_MS + 1;
    wrong[4].pus = &far;
    wrong[4].pu_count = 1;
    for (size_t i = 0; i < 5; i++)
        assert_int_equal(protocol_check_run(&wrong[i], &failure), -EINVAL);

    static const char *many[PROTOCOL_ARGUMENT_LIMIT + 2];
    for (int i = 0; i <= PROTOCOL_ARGUMENT_LIMIT; i++)
        many[i] = "a=";
    run = sample_run();
    run.arguments = many;
    run.argument_count = PROTOCOL_ARGUMENT_LIMIT;
    assert_int_equal(protocol_check_run(&run, &failure), 0);
    run.argument_count++;
    assert_int_equal(protocol_check_run(&run, &failure), -E2BIG);
    SEND(PROTOCOL_RUN, &run);
    assert_int_equal(decode(&frame), -EPROTO);
    assert_string_equal(failure.text, "a malformed RUN message: it has too many strings");
    run = sample_run();
    run.environment = many;
    run.environment_count = PROTOCOL_ENVIRONMENT_LIMIT + 1;
    assert_int_equal(protocol_check_run(&run, &failure), -E2BIG);

    static char large[PROTOCOL_ARGUMENT_BYTES];
    memset(large, 'a', sizeof large - 1);
    const char *one[] = {large, NULL};
    run = sample_run();
    run.arguments = one;
    run.argument_count = 1;
    assert_int_equal(protocol_check_run(&run, &failure), 0); /* with its NUL exactly the limit */
    const char *two[] = {large, "", NULL};
    run.arguments = two;
    run.argument_count = 2;
    assert_int_equal(protocol_check_run(&run, &failure), -E2BIG);
}

TEST(counts_that_lie_cost_no_memory) {
    /* A RUN of 40 bytes that says that it has four thousand million arguments. */
    struct protocol_run run = sample_run();
    run.argument_count = run.environment_count = run.pu_count = 0;
    SEND(PROTOCOL_RUN, &run);
    for (int which = 0; which < 3; which++) {
        memset((char *)frame.payload + frame.length - 12 + 4 * which, 0xff, 4);
        assert_int_equal(decode(&frame), -EPROTO);
        memset((char *)frame.payload + frame.length - 12 + 4 * which, 0, 4);
    }
}

TEST(strings) {
    struct protocol_reader reader;
    static const char inner_nul[] = "\3\0\0\0a\0c", no_end[] = "\3\0\0\0abcX", huge[] = "\xff\xff\xff\xff";
    protocol_read(&reader, inner_nul, 8);
    assert_string_equal(protocol_get_string(&reader, 10), "");
    assert_string_equal(reader.wrong, "a string has a NUL inside, or none at its end");
    protocol_read(&reader, no_end, 8);
    assert_string_equal(protocol_get_string(&reader, 10), "");
    assert_non_null(reader.wrong);
    protocol_read(&reader, huge, 4);
    assert_string_equal(protocol_get_string(&reader, 10), "");
    assert_string_equal(reader.wrong, "a string is longer than its limit");
    protocol_read(&reader, "\3\0\0\0abc", 8);
    assert_string_equal(protocol_get_string(&reader, 2), "");
    assert_non_null(reader.wrong);
    /* After the first error nothing more is read. */
    assert_int_equal(protocol_get_u64(&reader), 0);
    assert_string_equal(reader.wrong, "a string is longer than its limit");
    /* A sentence over its limit is cut when it is written. */
    char longer[3000];
    memset(longer, 'x', sizeof longer - 1);
    longer[sizeof longer - 1] = '\0';
    begin(PROTOCOL_REFUSE);
    protocol_put_string(&writer, longer, PROTOCOL_SENTENCE_LIMIT);
    take();
    GET(&got);
    assert_int_equal(strlen(got.sentence), PROTOCOL_SENTENCE_LIMIT);
}

/* ---- frames */

static void patch(size_t offset, unsigned char value) {
    out.bytes[offset] = (char)value;
}

TEST(frames_that_are_none) {
    begin(PROTOCOL_INSPECT);
    protocol_put_u32(&writer, 1);
    take();
    for (size_t length = 0; length < out.length; length++)
        assert_int_equal(protocol_decode_frame(out.bytes, length, &frame, &failure), 0);
    patch(5, 1);
    assert_int_equal(protocol_decode_frame(out.bytes, out.length, &frame, &failure), -EPROTO);
    assert_string_equal(failure.text, "a frame of type INSPECT whose reserved bytes are not zero");
    patch(5, 0);
    patch(4, 200);
    assert_int_equal(protocol_decode_frame(out.bytes, out.length, &frame, &failure), -EPROTO);
    assert_string_equal(failure.text, "a frame of unknown type 200");
    patch(4, PROTOCOL_ACK);
    assert_int_equal(protocol_decode_frame(out.bytes, out.length, &frame, &failure), -EPROTO);
    assert_string_equal(failure.text, "a frame of type ACK with sequence number 7");
    patch(4, PROTOCOL_INSPECT);
    patch(8, 0);
    assert_int_equal(protocol_decode_frame(out.bytes, out.length, &frame, &failure), -EPROTO);
    patch(8, 7);
    /* A length over the limit is refused at the header, before it is waited for. */
    patch(2, 0x10);
    patch(0, 1);
    assert_int_equal(protocol_decode_frame(out.bytes, PROTOCOL_HEADER_SIZE, &frame, &failure), -EPROTO);
    assert_string_equal(failure.text, "a frame of 1048577 bytes; at most 1048576 are allowed");
    patch(0, 0);
    assert_int_equal(protocol_decode_frame(out.bytes, PROTOCOL_HEADER_SIZE, &frame, &failure), 0);
    for (unsigned type = 0; type < 256; type++)
        assert_true((protocol_type_name(type) != NULL) ==
                    ((type >= 1 && type <= 3) || type == 16 || (type >= 23 && type <= 26) ||
                     (type >= 32 && type <= 35) || type == 64 || (type >= 67 && type <= 69) ||
                     (type >= 80 && type <= 84)));
}

TEST(a_frame_over_the_limit_is_not_written) {
    begin(PROTOCOL_INSPECT);
    protocol_put_u32(&writer, 1);
    assert_int_equal(protocol_end(&writer, 1, 0), 0);
    size_t before = out.length;
    struct protocol_writer second;
    protocol_begin(&second, &out, PROTOCOL_INPUT);
    assert_non_null(protocol_put_space(&second, PROTOCOL_PAYLOAD_LIMIT + 1));
    assert_int_equal(protocol_end(&second, 2, 0), -EMSGSIZE);
    assert_int_equal(out.length, before);
    cleanup(text_clear) struct text small;
    text_init(&small, 30);
    protocol_begin(&second, &small, PROTOCOL_INPUT);
    protocol_put_bytes(&second, "0123456789", 10);
    assert_null(protocol_put_space(&second, 1));
    assert_int_equal(protocol_end(&second, 2, 0), -EFBIG);
    assert_int_equal(small.length, 0);
}

/* ---- mailboxes */

static void carry(struct outbox *from, struct inbox *to, size_t most) {
    size_t length, size;
    const char *bytes = outbox_unsent(from, &length);
    char *space;
    if (length > most)
        length = most;
    assert_int_equal(inbox_reserve(to, &space, &size), 0);
    if (length > size)
        length = size;
    if (length)
        memcpy(space, bytes, length);
    inbox_fill(to, length);
    outbox_sent(from, length);
}

static void put(struct outbox *outbox, unsigned number, size_t padding) {
    struct protocol_writer local;
    outbox_begin(outbox, &local, PROTOCOL_INPUT);
    protocol_put_u32(&local, number);
    memset(protocol_put_space(&local, padding), (int)number, padding);
    assert_int_equal(outbox_end(outbox, &local), 0);
}

TEST(what_is_not_acknowledged_is_kept) {
    struct inbox in, other_in;
    struct outbox box;
    inbox_init(&in);
    inbox_init(&other_in);
    outbox_init(&box, &other_in, 1000);
    put(&box, 1, 100);
    put(&box, 2, 100);
    size_t one = PROTOCOL_HEADER_SIZE + 104;
    assert_int_equal(outbox_kept(&box), 2 * one);
    carry(&box, &in, 10000);
    assert_int_equal(outbox_kept(&box), 2 * one);
    assert_int_equal(outbox_acknowledge(&box, 1, &failure), 0);
    assert_int_equal(outbox_kept(&box), one);
    assert_int_equal(outbox_acknowledge(&box, 1, &failure), 0); /* again, or an older one, is fine */
    assert_int_equal(outbox_acknowledge(&box, 0, &failure), 0);
    assert_int_equal(outbox_acknowledge(&box, 3, &failure), -EPROTO);
    assert_string_equal(failure.text, "frame 3 was acknowledged, but the last frame sent is 2");
    struct protocol_writer local;
    outbox_begin(&box, &local, PROTOCOL_INPUT);
    assert_null(protocol_put_space(&local, 2000));
    assert_int_equal(outbox_end(&box, &local), -EFBIG);
    put(&box, 3, 100); /* and the number was not used up */
    assert_int_equal(box.next, 4);
    inbox_clear(&in);
    outbox_clear(&box);
}

TEST(an_acknowledgement_is_owed_after_much) {
    struct inbox in;
    struct outbox box, answer;
    struct inbox other_in;
    inbox_init(&in);
    inbox_init(&other_in);
    outbox_init(&box, &other_in, 8 << 20);
    outbox_init(&answer, &in, 1000);
    size_t carried = 0;
    for (unsigned i = 0; !inbox_owes(&in); i++) {
        put(&box, i, 50000);
        for (size_t length; (outbox_unsent(&box, &length), length) > 0;)
            carry(&box, &in, 65536);
        while (inbox_next(&in, &frame, &failure) > 0)
            carried += PROTOCOL_HEADER_SIZE + frame.length;
    }
    assert_true(carried >= PROTOCOL_ACKNOWLEDGE_BYTES && carried < PROTOCOL_ACKNOWLEDGE_BYTES + 60000);
    assert_int_equal(outbox_put_acknowledgement(&answer), 0);
    assert_false(inbox_owes(&in));
    size_t length;
    const char *bytes = outbox_unsent(&answer, &length);
    assert_int_equal(protocol_decode_frame(bytes, length, &frame, &failure), 1);
    assert_int_equal(frame.type, PROTOCOL_ACK);
    assert_int_equal(frame.acknowledged, in.received);
    inbox_clear(&in);
    outbox_clear(&box);
    outbox_clear(&answer);
}

TEST_EACH(set_up, tear_down)
