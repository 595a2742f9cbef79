/*
 * Frames that wait on disk for a link, because there are too many to wait in memory: a file without a name in
 * the run directory. The spool holds whole frames, in order; all of them come before those in the outbox
 * (mailbox.h), from which they are taken in batches.
 *
 *     batch | batch | batch ............ | outbox
 *     ^start  ^acknowledged so far  ^sent
 *
 * A batch is given up when the last of its frames was acknowledged, the file when the last batch is.
 */
#ifndef ASSAY_SERVE_SPOOL_H
#define ASSAY_SERVE_SPOOL_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { SPOOL_BATCHES = 64 };
#define SPOOL_LIMIT (UINT64_C(256) << 20) /* bytes of the file */

struct spool {
    int folder; /* where the file is made; not the spool's to close */
    int file;   /* -1: none */
    struct spool_batch {
        uint64_t end;  /* offset */
        uint64_t last; /* sequence number of its last frame */
    } batches[SPOOL_BATCHES];
    unsigned count;
    uint64_t start, sent, end; /* offsets: of the first batch; of what the stream takes next; of the file */
    char *buffer;              /* what the stream takes next, while it is being sent */
    size_t buffered, used;
};

void spool_init(struct spool *spool, int folder);
void spool_clear(struct spool *spool);
bool spool_is_empty(const struct spool *spool);

/* Takes a batch of whole frames, LAST being the number of the last of them. 0, or a negative errno and
 * nothing was taken: -EFBIG for the limits, -ENOSPC and its like. */
int spool_add(struct spool *spool, const char *bytes, size_t length, uint64_t last);

/* What the stream is to take next: *RET_LENGTH bytes, 0 when all is sent. 0, or a negative errno when the
 * file cannot be read. */
int spool_unsent(struct spool *spool, const char **ret, size_t *ret_length);
void spool_sent(struct spool *spool, size_t length);
/* The other side has all up to SEQUENCE; batches that are not all sent stay, whatever it says. */
void spool_acknowledge(struct spool *spool, uint64_t sequence);
/* A new stream, whose other side has all up to SEQUENCE: what comes after is to be sent. As spool_unsent().
 */
int spool_resume(struct spool *spool, uint64_t sequence);

#endif
