/* Fuzz target: a byte stream as either end of a link would take it, cut where the input says, and every
 * payload through its decoder. What decodes must encode to the same bytes again. */
#include "engine/agent/wire/mailbox.h"
#include "engine/agent/wire/protocol.h"
#include "engine/foundation/failure.h"
#include "engine/remote/nodes/facts.h"
#include "tests/fuzz/fuzz.h"

static struct protocol_writer writer;

/* The payload that was written is the one that was read. */
static void compare(const struct protocol_frame *frame, struct text *out) {
    if (protocol_end(&writer, frame->sequence, frame->acknowledged) < 0)
        abort();
    if (out->length != PROTOCOL_HEADER_SIZE + frame->length ||
        memcmp(out->bytes + PROTOCOL_HEADER_SIZE, frame->payload, frame->length) != 0)
        abort();
}

#define THROUGH(type_name, get, put)                                                                         \
    do {                                                                                                     \
        type_name message;                                                                                   \
        if (get(frame, &message, &failure) == 0) {                                                           \
            put(&writer, &message);                                                                          \
            compare(frame, out);                                                                             \
        }                                                                                                    \
    } while (0)

static void through_run(const struct protocol_frame *frame, struct text *out) {
    struct failure failure;
    struct protocol_run run;
    if (protocol_get_run(frame, &run, &failure) < 0)
        return;
    (void)protocol_check_run(&run, &failure);
    protocol_put_run(&writer, &run);
    compare(frame, out);
    protocol_run_clear(&run);
}

static void through_hello(const struct protocol_frame *frame, struct text *out) {
    struct failure failure;
    struct protocol_hello hello;
    if (protocol_get_hello(frame, &hello, &failure) < 0 || hello.version != PROTOCOL_VERSION)
        return;
    protocol_put_hello(&writer, &hello);
    compare(frame, out);
}

static void through_data(const struct protocol_frame *frame, struct text *out) {
    struct failure failure;
    struct protocol_data data;
    if (protocol_get_data(frame, &data, &failure) < 0)
        return;
    if (frame->type == PROTOCOL_FACTS) {
        struct node_facts *facts = NULL;
        const struct node_pu **cores;
        size_t count;
        if (node_facts_parse(data.bytes, data.length, &facts, &failure) == 0 &&
            node_facts_physical_cores(facts, &cores, &count) == 0)
            free(cores);
        node_facts_free(facts);
    }
    protocol_put_number(&writer, data.number);
    if (frame->type == PROTOCOL_OUTPUT)
        protocol_put_u8(&writer, data.stream);
    protocol_put_bytes(&writer, data.bytes, data.length);
    compare(frame, out);
}

static void through_small(const struct protocol_frame *frame, struct text *out) {
    struct failure failure;
    uint32_t number;
    uint64_t lease, sequence;
    const char *sentence;
    switch (frame->type) {
    case PROTOCOL_REFUSE:
        if (protocol_get_refuse(frame, &sentence, &failure) == 0) {
            protocol_put_refuse(&writer, sentence);
            compare(frame, out);
        }
        break;
    case PROTOCOL_ACK:
    case PROTOCOL_LEAVE:
        break;
    case PROTOCOL_LEASE:
        if (protocol_get_lease(frame, &lease, &failure) == 0) {
            protocol_put_lease(&writer, lease);
            compare(frame, out);
            if (protocol_decode_size(out->bytes, &sequence) != out->length || sequence != frame->sequence)
                abort();
        }
        break;
    default:
        if (protocol_get_number(frame, &number, &failure) == 0) {
            protocol_put_number(&writer, number);
            compare(frame, out);
        }
    }
}

static void through(const struct protocol_frame *frame, struct text *out) {
    struct failure failure;
    text_reset(out);
    protocol_begin(&writer, out, frame->type);
    switch (frame->type) {
    case PROTOCOL_HELLO:
        through_hello(frame, out);
        break;
    case PROTOCOL_READ_FILE:
    case PROTOCOL_WRITE_BEGIN:
    case PROTOCOL_MAKE_FOLDER:
    case PROTOCOL_REMOVE_TREE:
    case PROTOCOL_HASH_FILE:
    case PROTOCOL_LIST_TREE:
        THROUGH(struct protocol_path_request, protocol_get_path_request, protocol_put_path_request);
        break;
    case PROTOCOL_WRITE_DATA:
    case PROTOCOL_FILE_DATA:
    case PROTOCOL_INPUT:
    case PROTOCOL_OUTPUT:
    case PROTOCOL_FACTS:
        through_data(frame, out);
        break;
    case PROTOCOL_ERROR:
    case PROTOCOL_FAILED:
        THROUGH(struct protocol_error, protocol_get_error, protocol_put_error);
        break;
    case PROTOCOL_STATISTICS_REPLY:
        THROUGH(struct protocol_statistics, protocol_get_statistics, protocol_put_statistics);
        break;
    case PROTOCOL_CLOCK_REPLY:
        THROUGH(struct protocol_clock, protocol_get_clock, protocol_put_clock);
        break;
    case PROTOCOL_HASH:
        THROUGH(struct protocol_hash, protocol_get_hash, protocol_put_hash);
        break;
    case PROTOCOL_RUN:
        through_run(frame, out);
        break;
    case PROTOCOL_KILL:
    case PROTOCOL_CREDIT:
        THROUGH(struct protocol_amount, protocol_get_amount, protocol_put_amount);
        break;
    case PROTOCOL_STARTED:
        THROUGH(struct protocol_started, protocol_get_started, protocol_put_started);
        break;
    case PROTOCOL_EXITED:
        THROUGH(struct protocol_exited, protocol_get_exited, protocol_put_exited);
        break;
    default:
        through_small(frame, out);
    }
}

/* The payload in memory of its exact size, where a sanitizer sees every byte that is read beyond it. */
static void through_exact(const struct protocol_frame *frame, struct text *out) {
    struct protocol_frame copy = *frame;
    char *payload = malloc(frame->length ? frame->length : 1);
    if (!payload)
        abort();
    memcpy(payload, frame->payload, frame->length);
    copy.payload = payload;
    through(&copy, out);
    free(payload);
}

FUZZ_TARGET(50, 2000);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size) {
    struct inbox inbox;
    struct text out;
    inbox_init(&inbox);
    text_init(&out, 4 << 20);
    /* The first byte says in what pieces the rest comes. */
    size_t step = size ? (size_t)data[0] * data[0] + 1 : 1, at = size ? 1 : 0;
    int r = 0;
    while (at < size && r >= 0) {
        char *space;
        size_t room;
        if (inbox_reserve(&inbox, &space, &room) < 0)
            abort();
        size_t piece = size - at < step ? size - at : step;
        if (piece > room)
            piece = room;
        memcpy(space, data + at, piece);
        inbox_fill(&inbox, piece);
        at += piece;
        struct protocol_frame frame;
        struct failure failure;
        uint64_t before = inbox.received;
        while ((r = inbox_next(&inbox, &frame, &failure)) > 0) {
            if (frame.sequence != 0 && frame.sequence != before + 1)
                abort();
            before = inbox.received;
            through_exact(&frame, &out);
        }
    }
    fuzz_passed += inbox.received > 0;
    inbox_clear(&inbox);
    text_clear(&out);
    return 0;
}
