/* Fuzz target: a byte stream as either end of a link would take it, cut where the input says, and every
 * payload through its decoder. What decodes must encode to the same bytes again. */
#include "engine/agent/wire/mailbox.h"
#include "engine/agent/wire/protocol.h"
#include "engine/foundation/failure.h"
#include "engine/remote/link/facts.h"
#include "tests/fuzz/fuzz.h"

static struct protocol_writer writer;

/* The payload that was written is the one that was read. */
static void compare(const struct protocol_frame *frame, struct text *out) {
    must(protocol_end(&writer, frame->sequence, frame->acknowledged) == 0);
    must(out->length == PROTOCOL_HEADER_SIZE + frame->length);
    must(memcmp(out->bytes + PROTOCOL_HEADER_SIZE, frame->payload, frame->length) == 0);
}

static void through_facts(const struct protocol_data *data) {
    struct failure failure;
    struct node_facts *facts = NULL;
    const struct node_pu **cores;
    size_t count;
    if (node_facts_parse(data->bytes, data->length, &facts, &failure) == 0 &&
        node_facts_physical_cores(facts, &cores, &count) == 0)
        free(cores);
    node_facts_free(facts);
}

static void through(const struct protocol_frame *frame, struct text *out) {
    struct failure failure;
    union {
        struct protocol_hello hello;
        struct protocol_data data;
        struct protocol_run run;
        struct protocol_statistics statistics;
        struct protocol_exited exited;
    } message;
    text_reset(out);
    protocol_begin(&writer, out, frame->type);
    if (protocol_get_message(frame, &message, &failure) < 0 ||
        (frame->type == PROTOCOL_HELLO && message.hello.version != PROTOCOL_VERSION))
        return;
    if (frame->type == PROTOCOL_FACTS)
        through_facts(&message.data);
    if (frame->type == PROTOCOL_RUN)
        (void)protocol_check_run(&message.run, &failure);
    protocol_put_message(&writer, &message);
    compare(frame, out);
    if (frame->type == PROTOCOL_RUN)
        protocol_run_clear(&message.run);
}

/* The payload in memory of its exact size, where a sanitizer sees every byte that is read beyond it. */
static void through_exact(const struct protocol_frame *frame, struct text *out) {
    struct protocol_frame copy = *frame;
    char *payload = malloc(frame->length ? frame->length : 1);
    must(payload);
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
        must(inbox_reserve(&inbox, &space, &room) == 0);
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
            must(frame.sequence == 0 || frame.sequence == before + 1);
            before = inbox.received;
            through_exact(&frame, &out);
        }
    }
    fuzz_passed += inbox.received > 0;
    inbox_clear(&inbox);
    text_clear(&out);
    return 0;
}
