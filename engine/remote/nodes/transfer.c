/* Files that are read and written: the asking, and the sending of content. */
#include "engine/foundation/cleanup.h"
#include "engine/remote/link/inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_MEMORY_LIMIT = 64 << 20 };

int agent_link_read_file(struct agent_link *link, const char *path, uint64_t limit,
                         agent_bytes_callback *callback, void *context, struct failure *failure) {
    if (limit > AGENT_FILE_LIMIT)
        limit = AGENT_FILE_LIMIT;
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_READ_FILE, path, limit, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.bytes = callback;
    request->size = limit;
    return request_submit(link, request, failure);
}

int agent_link_stream_file(struct agent_link *link, const char *path, uint64_t limit,
                           agent_piece_callback *piece, agent_done_callback *done, void *context,
                           struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_READ_FILE, path, 0, context, &request, failure);
    if (r < 0)
        return r;
    request->piece = piece;
    request->callback.done = done;
    request->size = limit < PROTOCOL_FILE_LIMIT ? limit : PROTOCOL_FILE_LIMIT;
    return request_submit(link, request, failure);
}

/* ---- writing */

static int keep_bytes(struct agent_link *link, struct pending_request *request, const void *bytes,
                      size_t length, struct failure *failure) {
    if (length > WRITE_MEMORY_LIMIT)
        return link_complain(link, failure, -EFBIG,
                             "'%.256s' is to have %zu bytes; more than %d must come from a file",
                             request->path, length, WRITE_MEMORY_LIMIT);
    if (length > LINK_WRITE_BYTES_LIMIT - link->write_bytes)
        return link_complain(link, failure, -EBUSY,
                             "more than %zu bytes wait to be written to files of the node",
                             LINK_WRITE_BYTES_LIMIT);
    if (text_append(&request->bytes, bytes, length) < 0)
        return failure_memory(failure);
    link->write_bytes += length;
    request->size = length;
    return 0;
}

int agent_link_write_file(struct agent_link *link, const char *path, const void *bytes, size_t length,
                          unsigned mode, agent_done_callback *callback, void *context,
                          struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_WRITE_BEGIN, path, WRITE_MEMORY_LIMIT, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.done = callback;
    request->mode = mode & 0777;
    r = keep_bytes(link, request, bytes, length, failure);
    if (r < 0) {
        request_free(link, request);
        return r;
    }
    return request_submit(link, request, failure);
}

int transfer_open(struct pending_request *request, struct failure *failure) {
    if (!request->local_path || request->file >= 0)
        return 0;
    request->file = open(request->local_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (request->file < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot read '%s': %s", request->local_path,
                                strerror(errno));
    return 0;
}

static int measure(struct pending_request *request, struct failure *failure) {
    struct stat status;
    const char *path = request->local_path;
    if (fstat(request->file, &status) < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot read '%s': %s", path,
                                strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "cannot send '%s': it is not a file", path);
    if ((uint64_t)status.st_size > PROTOCOL_FILE_LIMIT)
        return failure_set_kind(failure, FAILURE_INPUT, -EFBIG, "'%s' is too large to be sent", path);
    request->size = (uint64_t)status.st_size;
    return 0;
}

int agent_link_send_file(struct agent_link *link, const char *path, const char *local_path, unsigned mode,
                         agent_done_callback *callback, void *context, struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_WRITE_BEGIN, path, 0, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.done = callback;
    request->mode = mode & 0777;
    request->local_path = strdup(local_path);
    r = request->local_path ? transfer_open(request, failure) : failure_memory(failure);
    if (r == 0)
        r = measure(request, failure);
    if (r < 0) {
        request_free(link, request);
        return r;
    }
    return request_submit(link, request, failure);
}

bool transfer_end(struct agent_link *link, struct pending_request *request) {
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_WRITE_END);
    protocol_put_number(&writer, request->number);
    request->complete = link_send(link, &writer, NULL) == 0;
    return request->complete;
}

/* The next bytes of it into SPACE. How many, or a negative errno. */
static ssize_t next_bytes(struct pending_request *request, char *space, size_t size) {
    if (request->file < 0) {
        memcpy(space, request->bytes.bytes + request->sent, size);
        return (ssize_t)size;
    }
    ssize_t got;
    do
        got = pread(request->file, space, size, (off_t)request->sent);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* One chunk. False when there is nothing more to do for now. What is in a frame is the outbox's from then on,
 * however often the stream breaks; SENT only grows. */
static bool send_chunk(struct agent_link *link, struct pending_request *request) {
    if (request->sent == request->size || request->refused)
        return transfer_end(link, request);
    uint64_t left = request->size - request->sent;
    size_t size = left < PROTOCOL_CHUNK ? (size_t)left : PROTOCOL_CHUNK;
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_WRITE_DATA);
    protocol_put_number(&writer, request->number);
    char *space = protocol_put_space(&writer, size);
    ssize_t got = space ? next_bytes(request, space, size) : -ENOMEM;
    if (got <= 0) {
        protocol_cancel(&writer);
        /* It became shorter, or cannot be read: the agent is told the end and finds that bytes are missing.
         */
        if (got != -ENOMEM)
            transfer_end(link, request);
        return false;
    }
    protocol_trim(&writer, size - (size_t)got);
    if (link_send(link, &writer, NULL) < 0)
        return false;
    request->sent += (uint64_t)got;
    return true;
}

void transfer_pump(struct agent_link *link, struct pending_request *request) {
    while (!request->complete && link_has_window(link) && send_chunk(link, request))
        continue;
}
