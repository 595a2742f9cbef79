/*
 * The two ends of one direction of a link, for either side of it. No I/O.
 *
 * The outbox numbers frames and keeps them until the other side has acknowledged them; what is kept is what a
 * new link has to send again. Acknowledgements ride on every frame that goes the other way;
 * the inbox says when so much has come in that one is owed without such a frame.
 */
#ifndef ASSAY_WIRE_MAILBOX_H
#define ASSAY_WIRE_MAILBOX_H

#include "engine/agent/wire/protocol.h"

#include <stdbool.h>

struct inbox {
    struct text bytes; /* not yet taken */
    size_t taken;      /* bytes at its start that frames given out have used */
    uint64_t received; /* the highest sequence number */
    size_t owed_bytes, owed_frames;
    uint64_t total_bytes, total_frames;
};

void inbox_init(struct inbox *inbox);
void inbox_clear(struct inbox *inbox);
/* Where the next bytes go: *RET_SIZE of them, at least 1. Frames given out before are invalid now. 0 or
 * -ENOMEM. */
int inbox_reserve(struct inbox *inbox, char **ret, size_t *ret_size);
void inbox_fill(struct inbox *inbox, size_t length);
/* 1: the next frame; 0: no whole one is there; -EPROTO: malformed, or not the number that is due. */
int inbox_next(struct inbox *inbox, struct protocol_frame *ret, struct failure *failure);
/* Frees the buffer while nothing is to be read, unless part of a frame is in it. Frames that inbox_next()
 * returned before become invalid. */
void inbox_free_idle(struct inbox *inbox);
bool inbox_owes(const struct inbox *inbox);
/* The stream has broken and a new one begins: the beginning of a frame whose end did not come is dropped; the
 * other side will send that frame again. */
void inbox_restart(struct inbox *inbox);

struct outbox {
    struct text frames;    /* from the first that is not acknowledged */
    size_t done;           /* bytes at its start that are acknowledged, not yet moved away */
    size_t sent;           /* bytes from its start that the stream has taken */
    uint64_t next;         /* the sequence number of the next numbered frame */
    uint64_t acknowledged; /* the highest that the other side has received */
    struct inbox *inbox;   /* of the same link: its number goes on every frame */
    bool held;             /* a new stream has begun, and what it has to be sent is not known yet */
    struct text ahead;     /* unnumbered frames that go before all else, while it is held */
    uint64_t total_bytes, total_frames;
};

/* The outbox holds at most LIMIT bytes. */
void outbox_init(struct outbox *outbox, struct inbox *inbox, size_t limit);
void outbox_clear(struct outbox *outbox);
void outbox_begin(struct outbox *outbox, struct protocol_writer *writer, enum protocol_type type);
/* As protocol_end(). */
int outbox_end(struct outbox *outbox, struct protocol_writer *writer);
/* A frame of nothing but a header. */
int outbox_put_acknowledgement(struct outbox *outbox);
/* What the stream is to take next; NULL and 0 when there is nothing. */
const char *outbox_unsent(const struct outbox *outbox, size_t *ret_length);
void outbox_sent(struct outbox *outbox, size_t length);
/* The other side has received all up to SEQUENCE. -EPROTO if that was never sent. */
int outbox_acknowledge(struct outbox *outbox, uint64_t sequence, struct failure *failure);
/* The stream has broken and a new one begins: what was not acknowledged is to be sent again, but is held back
 * until outbox_resume(). What is begun meanwhile joins it, and HELLO and REFUSE go ahead of it. */
void outbox_restart(struct outbox *outbox);
/* The other side says that it has received all up to SEQUENCE: what comes after goes out now. -EPROTO if
 * SEQUENCE was never sent, or if frames after it are not kept any more. */
int outbox_resume(struct outbox *outbox, uint64_t sequence, struct failure *failure);
/* Bytes that are kept: beyond PROTOCOL_WINDOW, no more data is to be added. */
size_t outbox_kept(const struct outbox *outbox);

#endif
