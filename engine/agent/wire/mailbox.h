/*
 * The inbox and the outbox of a link, for either side of it. No I/O.
 *
 * The outbox numbers frames and keeps them until the other side has acknowledged them, so that a new link can
 * send them again. Every frame acknowledges what its sender has received; the inbox tells when so much has
 * come that an ACK of its own must be sent.
 */
#ifndef ASSAY_WIRE_MAILBOX_H
#define ASSAY_WIRE_MAILBOX_H

#include "engine/agent/wire/protocol.h"

#include <stdbool.h>

struct inbox {
    struct text bytes;              /* received, from the first frame that inbox_next() may still use */
    size_t taken;                   /* bytes at its start of frames that inbox_next() has returned */
    uint64_t received;              /* the highest sequence number received */
    size_t owed_bytes, owed_frames; /* received and not acknowledged yet */
    uint64_t total_bytes, total_frames;
};

void inbox_init(struct inbox *inbox);
void inbox_clear(struct inbox *inbox);
/* Gives a buffer *RET of *RET_SIZE bytes, at least 1, to read into. Frames returned before become invalid. 0
 * or -ENOMEM. */
int inbox_reserve(struct inbox *inbox, char **ret, size_t *ret_size);
/* LENGTH bytes were read into that buffer. */
void inbox_fill(struct inbox *inbox, size_t length);
/* Returns 1 with the next frame in *RET; 0: no complete frame has come; -EPROTO: it is malformed, or does not
 * have the next number. */
int inbox_next(struct inbox *inbox, struct protocol_frame *ret, struct failure *failure);
/* Frees the buffer unless it has part of a frame. Frames that inbox_next() returned become invalid. */
void inbox_free_idle(struct inbox *inbox);
/* True where an ACK must be sent. */
bool inbox_owes(const struct inbox *inbox);
/* Called when a new stream replaces a broken one: an incomplete frame is dropped, which the other side sends
 * again. */
void inbox_restart(struct inbox *inbox);

struct outbox {
    struct text frames;    /* frames that are not acknowledged, behind `done` bytes */
    size_t done;           /* bytes at its start that are acknowledged and not removed yet */
    size_t sent;           /* bytes from its start that were written to the stream */
    uint64_t next;         /* the sequence number of the next numbered frame */
    uint64_t acknowledged; /* the highest sequence number that the other side has received */
    struct inbox *inbox;   /* of the same link: every frame acknowledges inbox->received */
    bool held;         /* a new stream has begun, and nothing but `ahead` is sent before outbox_resume() */
    struct text ahead; /* unnumbered frames (HELLO, REFUSE) that are sent while `held` */
    uint64_t total_bytes, total_frames;
};

/* LIMIT: the most bytes that the outbox may keep. */
void outbox_init(struct outbox *outbox, struct inbox *inbox, size_t limit);
void outbox_clear(struct outbox *outbox);
void outbox_begin(struct outbox *outbox, struct protocol_writer *writer, enum protocol_type type);
/* Finishes a frame and gives it its number; returns as protocol_end(). */
int outbox_end(struct outbox *outbox, struct protocol_writer *writer);
/* Appends an ACK, a frame of nothing but a header. */
int outbox_put_acknowledgement(struct outbox *outbox);
/* The bytes to write to the stream next; NULL and 0: nothing is to be sent. */
const char *outbox_unsent(const struct outbox *outbox, size_t *ret_length);
/* LENGTH of these bytes were written. */
void outbox_sent(struct outbox *outbox, size_t length);
/* Called when the other side has received all frames up to SEQUENCE. -EPROTO if that was never sent. */
int outbox_acknowledge(struct outbox *outbox, uint64_t sequence, struct failure *failure);
/* Called when a new stream replaces a broken one: frames that were not acknowledged are kept, and sent again
 * after outbox_resume(). New frames are kept behind them, but HELLO and REFUSE are sent at once. */
void outbox_restart(struct outbox *outbox);
/* Called when the other side says, in HELLO, that it has received all up to SEQUENCE: later frames are sent
 * from now on. -EPROTO if SEQUENCE was never sent, or if frames after it are not kept any more. */
int outbox_resume(struct outbox *outbox, uint64_t sequence, struct failure *failure);
/* The bytes of frames that are not acknowledged: beyond PROTOCOL_WINDOW no more data may be added. */
size_t outbox_kept(const struct outbox *outbox);

#endif
