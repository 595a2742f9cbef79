#include "engine/agent/mailbox.h"

#include <errno.h>
#include <string.h>

enum {
    READ_SIZE = 64 << 10,
    INBOX_LIMIT = PROTOCOL_HEADER_SIZE + PROTOCOL_PAYLOAD_LIMIT + READ_SIZE,
    KEEP_CAPACITY = 256 << 10, /* more memory than this goes back when a box is empty */
};

static void give_memory_back(struct text *text) {
    if (text->length == 0 && text->capacity > KEEP_CAPACITY)
        text_clear(text);
}

/* ---- in */

void inbox_init(struct inbox *inbox) {
    *inbox = (struct inbox){0};
    text_init(&inbox->bytes, INBOX_LIMIT);
}

void inbox_clear(struct inbox *inbox) {
    text_clear(&inbox->bytes);
    inbox->taken = 0;
}

int inbox_reserve(struct inbox *inbox, char **ret, size_t *ret_size) {
    text_consume(&inbox->bytes, inbox->taken);
    inbox->taken = 0;
    give_memory_back(&inbox->bytes);
    size_t room = INBOX_LIMIT - inbox->bytes.length;
    if (room > READ_SIZE)
        room = READ_SIZE;
    int r = text_reserve(&inbox->bytes, room, ret);
    if (r == 0)
        *ret_size = room;
    return r;
}

void inbox_fill(struct inbox *inbox, size_t length) {
    inbox->bytes.length += length;
    inbox->total_bytes += length;
    inbox->owed_bytes += length;
}

int inbox_next(struct inbox *inbox, struct protocol_frame *ret, struct failure *failure) {
    struct protocol_frame frame;
    int r = protocol_decode_frame(inbox->bytes.bytes + inbox->taken, inbox->bytes.length - inbox->taken,
                                  &frame, failure);
    if (r <= 0)
        return r;
    if (frame.sequence != 0 && frame.sequence != inbox->received + 1)
        return failure_set(failure, -EPROTO, "frame %llu came where frame %llu was due",
                           (unsigned long long)frame.sequence, (unsigned long long)inbox->received + 1);
    if (frame.sequence != 0)
        inbox->received = frame.sequence;
    inbox->taken += PROTOCOL_HEADER_SIZE + frame.length;
    inbox->total_frames++;
    inbox->owed_frames++;
    *ret = frame;
    return 1;
}

bool inbox_owes(const struct inbox *inbox) {
    return inbox->owed_bytes >= PROTOCOL_ACKNOWLEDGE_BYTES ||
           inbox->owed_frames >= PROTOCOL_ACKNOWLEDGE_FRAMES;
}

/* ---- out */

void outbox_init(struct outbox *outbox, struct inbox *inbox, size_t limit) {
    *outbox = (struct outbox){.next = 1, .inbox = inbox};
    text_init(&outbox->frames, limit);
}

void outbox_clear(struct outbox *outbox) {
    text_clear(&outbox->frames);
    outbox->done = outbox->sent = 0;
}

void outbox_begin(struct outbox *outbox, struct protocol_writer *writer, enum protocol_type type) {
    protocol_begin(writer, &outbox->frames, type);
}

int outbox_end(struct outbox *outbox, struct protocol_writer *writer) {
    bool numbered = protocol_type_is_numbered(writer->type);
    int r = protocol_end(writer, numbered ? outbox->next : 0, outbox->inbox->received);
    if (r < 0)
        return r;
    outbox->next += numbered;
    outbox->total_frames++;
    outbox->inbox->owed_bytes = outbox->inbox->owed_frames = 0;
    return 0;
}

int outbox_put_acknowledgement(struct outbox *outbox) {
    struct protocol_writer writer;
    outbox_begin(outbox, &writer, PROTOCOL_ACK);
    return outbox_end(outbox, &writer);
}

const char *outbox_unsent(const struct outbox *outbox, size_t *ret_length) {
    *ret_length = outbox->frames.length - outbox->sent;
    return *ret_length ? outbox->frames.bytes + outbox->sent : NULL;
}

/* Frames at the start that need not be kept: acknowledged ones, and unnumbered ones, which are never sent
 * again. Only whole frames that have been sent can go. The bytes move when they are half of all, so each
 * moves once on average. */
static void forget(struct outbox *outbox) {
    struct protocol_frame frame;
    while (outbox->done < outbox->sent &&
           protocol_decode_frame(outbox->frames.bytes + outbox->done, outbox->frames.length - outbox->done,
                                 &frame, NULL) > 0) {
        size_t size = PROTOCOL_HEADER_SIZE + frame.length;
        if (frame.sequence > outbox->acknowledged || outbox->sent - outbox->done < size)
            break;
        outbox->done += size;
    }
    if (outbox->done < outbox->frames.length - outbox->done)
        return;
    text_consume(&outbox->frames, outbox->done);
    outbox->sent -= outbox->done;
    outbox->done = 0;
    give_memory_back(&outbox->frames);
}

void outbox_sent(struct outbox *outbox, size_t length) {
    outbox->sent += length;
    outbox->total_bytes += length;
    forget(outbox);
}

int outbox_acknowledge(struct outbox *outbox, uint64_t sequence, struct failure *failure) {
    if (sequence >= outbox->next)
        return failure_set(failure, -EPROTO,
                           "frame %llu was acknowledged, but %llu is the last that was sent",
                           (unsigned long long)sequence, (unsigned long long)outbox->next - 1);
    if (sequence <= outbox->acknowledged)
        return 0;
    outbox->acknowledged = sequence;
    forget(outbox);
    return 0;
}

size_t outbox_kept(const struct outbox *outbox) {
    return outbox->frames.length - outbox->done;
}
