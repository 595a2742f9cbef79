#include "engine/agent/serve/spool.h"

#include "engine/agent/wire/protocol.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { BUFFER = 64 << 10 };

void spool_init(struct spool *spool, int folder) {
    *spool = (struct spool){.folder = folder, .file = -1};
}

static void forget_buffer(struct spool *spool) {
    free(take_pointer(spool->buffer));
    spool->buffered = spool->used = 0;
}

void spool_clear(struct spool *spool) {
    forget_buffer(spool);
    cleanup_close_descriptor(&spool->file);
    spool_init(spool, spool->folder);
}

bool spool_is_empty(const struct spool *spool) {
    return spool->count == 0;
}

/* ---- in */

/* O_TMPFILE (Linux 3.11) is not known to all file systems; a name is taken away at once. */
static int open_file(int folder) {
    int file = openat(folder, ".", O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0)
        return file;
    char name[64];
    snprintf(name, sizeof name, ".assay-%ld.spool", (long)getpid());
    file = openat(folder, name, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return -errno;
    unlinkat(folder, name, 0);
    return file;
}

int spool_add(struct spool *spool, const char *bytes, size_t length, uint64_t last) {
    if (spool->count == SPOOL_BATCHES || length > SPOOL_LIMIT - spool->end)
        return -EFBIG;
    if (spool->file < 0) {
        int file = open_file(spool->folder);
        if (file < 0)
            return file;
        spool->file = file;
    }
    int r = lseek(spool->file, (off_t)spool->end, SEEK_SET) < 0 ? -errno : 0;
    if (r == 0)
        r = file_write_all(spool->file, bytes, length);
    if (r < 0) {
        /* What was written of it only keeps others from the space. */
        (void)!ftruncate(spool->file, (off_t)spool->end);
        if (spool->count == 0)
            spool_clear(spool);
        return r;
    }
    spool->end += length;
    spool->batches[spool->count++] = (struct spool_batch){.end = spool->end, .last = last};
    return 0;
}

/* ---- out */

static ssize_t read_at(const struct spool *spool, uint64_t offset, char *bytes, size_t size) {
    ssize_t got;
    do
        got = pread(spool->file, bytes, size, (off_t)offset);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got > 0 ? got : -EIO; /* what was written is there */
}

int spool_unsent(struct spool *spool, const char **ret, size_t *ret_length) {
    if (spool->used == spool->buffered && spool->sent < spool->end) {
        if (!spool->buffer && !(spool->buffer = malloc(BUFFER)))
            return -ENOMEM;
        uint64_t left = spool->end - spool->sent;
        ssize_t got = read_at(spool, spool->sent, spool->buffer, left < BUFFER ? (size_t)left : BUFFER);
        if (got < 0)
            return (int)got;
        spool->buffered = (size_t)got;
        spool->used = 0;
    }
    *ret_length = spool->buffered - spool->used;
    *ret = *ret_length ? spool->buffer + spool->used : NULL;
    return 0;
}

void spool_sent(struct spool *spool, size_t length) {
    spool->used += length;
    spool->sent += length;
    if (spool->sent == spool->end)
        forget_buffer(spool);
}

void spool_acknowledge(struct spool *spool, uint64_t sequence) {
    unsigned gone = 0;
    while (gone < spool->count && spool->batches[gone].last <= sequence &&
           spool->batches[gone].end <= spool->sent)
        spool->start = spool->batches[gone++].end;
    if (gone == 0)
        return;
    spool->count -= gone;
    for (unsigned i = 0; i < spool->count; i++)
        spool->batches[i] = spool->batches[i + gone];
    if (spool->count == 0)
        spool_clear(spool);
}

/* The offset of the first frame after SEQUENCE, which is in the first batch. */
static int find(struct spool *spool, uint64_t sequence, uint64_t *ret) {
    uint64_t at = spool->start;
    while (at < spool->end) {
        char header[PROTOCOL_HEADER_SIZE];
        ssize_t got = read_at(spool, at, header, sizeof header);
        if (got < PROTOCOL_HEADER_SIZE)
            return got < 0 ? (int)got : -EIO;
        uint64_t number;
        size_t length = protocol_decode_size(header, &number);
        if (number > sequence)
            break;
        at += length;
    }
    *ret = at;
    return 0;
}

int spool_resume(struct spool *spool, uint64_t sequence) {
    forget_buffer(spool);
    spool->sent = spool->end;
    spool_acknowledge(spool, sequence);
    if (spool->count == 0)
        return 0;
    return find(spool, sequence, &spool->sent);
}
