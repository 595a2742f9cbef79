#include "engine/agent/wire/mailbox.h"

#include <errno.h>
#include <string.h>

enum {
    READ_SIZE = 64 << 10,
    INBOX_LIMIT = PROTOCOL_HEADER_SIZE + PROTOCOL_PAYLOAD_LIMIT + READ_SIZE,
    KEEP_CAPACITY = 256 << 10, /* an empty box with more memory than this is freed */
};

static void free_if_large(struct text *text) {
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
    free_if_large(&inbox->bytes);
    size_t room = INBOX_LIMIT - inbox->bytes.length;
    if (room > READ_SIZE)
        room = READ_SIZE;
    int r = text_reserve(&inbox->bytes, room, ret);
    if (r == 0)
        *ret_size = room;
    return r;
}

void inbox_free_idle(struct inbox *inbox) {
    if (inbox->taken == inbox->bytes.length)
        inbox_clear(inbox);
}

void inbox_fill(struct inbox *inbox, size_t length) {
    inbox->bytes.length += length;
    inbox->total_bytes += length;
    inbox->owed_bytes += length;
}

/* The next frame, whose bytes stay valid until more are read. 1; 0: none is complete; -EPROTO: it is not the
 * next one in sequence. */
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

void inbox_restart(struct inbox *inbox) {
    text_reset(&inbox->bytes);
    inbox->taken = 0;
    inbox->owed_bytes = inbox->owed_frames = 0;
}

bool inbox_owes(const struct inbox *inbox) {
    return inbox->owed_bytes >= PROTOCOL_ACKNOWLEDGE_BYTES ||
           inbox->owed_frames >= PROTOCOL_ACKNOWLEDGE_FRAMES;
}

/* ---- out */

void outbox_init(struct outbox *outbox, struct inbox *inbox, size_t limit) {
    *outbox = (struct outbox){.next = 1, .inbox = inbox};
    text_init(&outbox->frames, limit);
    text_init(&outbox->ahead, 4 * (PROTOCOL_HEADER_SIZE + PROTOCOL_SENTENCE_LIMIT));
}

void outbox_clear(struct outbox *outbox) {
    text_clear(&outbox->frames);
    text_clear(&outbox->ahead);
    outbox->done = outbox->sent = 0;
}

void outbox_begin(struct outbox *outbox, struct protocol_writer *writer, enum protocol_type type) {
    bool first = outbox->held && !protocol_type_is_numbered(type);
    protocol_begin(writer, first ? &outbox->ahead : &outbox->frames, type);
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
    if (outbox->ahead.length || outbox->held) {
        *ret_length = outbox->ahead.length;
        return *ret_length ? outbox->ahead.bytes : NULL;
    }
    *ret_length = outbox->frames.length - outbox->sent;
    return *ret_length ? outbox->frames.bytes + outbox->sent : NULL;
}

/* Removes frames at the start that were sent whole and need not be kept: acknowledged and unnumbered ones.
 * The rest is moved only when the removed bytes are half of all, so that each byte is moved once on average.
 */
static void remove_acknowledged(struct outbox *outbox) {
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
    free_if_large(&outbox->frames);
}

void outbox_sent(struct outbox *outbox, size_t length) {
    outbox->total_bytes += length;
    if (outbox->ahead.length) {
        text_consume(&outbox->ahead, length);
        return;
    }
    outbox->sent += length;
    remove_acknowledged(outbox);
}

/* Removes unnumbered frames, which are never sent again, from the frames that are kept. */
static void drop_unnumbered(struct outbox *outbox) {
    struct text *frames = &outbox->frames;
    struct protocol_frame frame;
    size_t from = outbox->done, to = from;
    if (frames->length == 0)
        return;
    while (protocol_decode_frame(frames->bytes + from, frames->length - from, &frame, NULL) > 0) {
        size_t size = PROTOCOL_HEADER_SIZE + frame.length;
        if (frame.sequence != 0) {
            memmove(frames->bytes + to, frames->bytes + from, size);
            to += size;
        }
        from += size;
    }
    frames->length = to;
    frames->bytes[to] = '\0';
}

void outbox_restart(struct outbox *outbox) {
    text_reset(&outbox->ahead);
    drop_unnumbered(outbox);
    outbox->sent = outbox->done;
    outbox->held = true;
}

/* Goes on after the frame SEQUENCE, the last that the other side received: only later frames are sent again.
 */
int outbox_resume(struct outbox *outbox, uint64_t sequence, struct failure *failure) {
    if (sequence < outbox->acknowledged)
        return failure_set(failure, -EPROTO,
                           "cannot resume after frame %llu: frame %llu was already acknowledged",
                           (unsigned long long)sequence, (unsigned long long)outbox->acknowledged);
    int r = outbox_acknowledge(outbox, sequence, failure);
    if (r < 0)
        return r;
    /* Frames that the other side has received are not sent again. */
    struct protocol_frame frame;
    while (outbox->sent < outbox->frames.length &&
           protocol_decode_frame(outbox->frames.bytes + outbox->sent, outbox->frames.length - outbox->sent,
                                 &frame, NULL) > 0 &&
           frame.sequence <= sequence)
        outbox->sent += PROTOCOL_HEADER_SIZE + frame.length;
    outbox->held = false;
    remove_acknowledged(outbox);
    return 0;
}

int outbox_acknowledge(struct outbox *outbox, uint64_t sequence, struct failure *failure) {
    if (sequence >= outbox->next)
        return failure_set(failure, -EPROTO, "frame %llu was acknowledged, but the last frame sent is %llu",
                           (unsigned long long)sequence, (unsigned long long)outbox->next - 1);
    if (sequence <= outbox->acknowledged)
        return 0;
    outbox->acknowledged = sequence;
    remove_acknowledged(outbox);
    return 0;
}

size_t outbox_kept(const struct outbox *outbox) {
    return outbox->frames.length - outbox->done;
}
