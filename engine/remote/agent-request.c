/* Requests with one answer: facts, files, folders, statistics. */
#include "engine/foundation/cleanup.h"
#include "engine/remote/link-inside.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WRITE_MEMORY_LIMIT = 64 << 20 };

/* ---- pending ones */

static struct pending_request *request_new(struct agent_link *link, enum protocol_type type, void *context,
                                           size_t limit) {
    struct pending_request *request = calloc(1, sizeof *request);
    if (!request)
        return NULL;
    request->number = link_next_number(link);
    request->type = type;
    request->context = context;
    request->file = -1;
    text_init(&request->bytes, limit);
    return request;
}

static void request_free(struct pending_request *request) {
    if (!request)
        return;
    text_clear(&request->bytes);
    cleanup_close_descriptor(&request->file);
    free(request->local_path);
    free(request);
}

static void free_request(struct pending_request **request) {
    request_free(*request);
}

static void append(struct agent_link *link, struct pending_request *request) {
    *link->requests_end = request;
    link->requests_end = &request->next;
}

static struct pending_request *find(struct agent_link *link, uint32_t number) {
    struct pending_request *request = link->requests;
    while (request && request->number != number)
        request = request->next;
    return request;
}

static void unlink_request(struct agent_link *link, struct pending_request *request) {
    struct pending_request **at = &link->requests;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (link->requests_end == &request->next)
        link->requests_end = at;
}

static void tell_failure(struct agent_link *link, struct pending_request *request,
                         const struct failure *failure) {
    if (request->forgotten)
        return;
    switch (request->type) {
    case PROTOCOL_INSPECT:
        request->callback.facts(link, NULL, failure, request->context);
        break;
    case PROTOCOL_READ_FILE:
        if (request->piece)
            request->callback.done(link, failure, request->context);
        else
            request->callback.bytes(link, NULL, 0, failure, request->context);
        break;
    case PROTOCOL_STATISTICS:
        request->callback.statistics(link, NULL, failure, request->context);
        break;
    default:
        request->callback.done(link, failure, request->context);
    }
}

void request_fail_all(struct agent_link *link, const struct failure *failure) {
    while (link->requests) {
        struct pending_request *request = link->requests;
        unlink_request(link, request);
        tell_failure(link, request, failure);
        request_free(request);
    }
}

void request_free_all(struct agent_link *link) {
    while (link->requests) {
        struct pending_request *request = link->requests;
        unlink_request(link, request);
        request_free(request);
    }
}

void request_forget(struct agent_link *link, const void *context) {
    for (struct pending_request *request = link->requests; request; request = request->next)
        if (request->context == context)
            request->forgotten = true;
}

void agent_link_forget(struct agent_link *link, const void *context) {
    request_forget(link, context);
}

/* ---- answers */

static int take_facts(struct agent_link *link, struct pending_request *request,
                      const struct protocol_data *data, struct failure *failure) {
    struct node_facts *facts = NULL;
    int r = node_facts_parse(data->bytes, data->length, &facts, failure);
    if (r < 0)
        return r;
    unlink_request(link, request);
    if (request->forgotten)
        node_facts_free(facts);
    else
        request->callback.facts(link, facts, NULL, request->context);
    request_free(request);
    return 0;
}

static int take_piece(struct agent_link *link, struct pending_request *request,
                      const struct protocol_data *data, struct failure *failure) {
    if (data->length > request->size - request->sent)
        return failure_set(failure, -EPROTO, "a file is longer than was asked for");
    request->sent += data->length;
    request->piece(link, data->bytes, data->length, request->context);
    return 0; /* and the request may be gone: the callback may have ended the link */
}

static int take_data(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_data data;
    int r = protocol_get_data(frame, &data, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find(link, data.number);
    enum protocol_type asked = frame->type == PROTOCOL_FACTS ? PROTOCOL_INSPECT : PROTOCOL_READ_FILE;
    if (!request || request->type != asked)
        return failure_set(failure, -EPROTO, "%s for request %u, which did not ask for it",
                           protocol_type_name(frame->type), data.number);
    if (asked == PROTOCOL_INSPECT)
        return take_facts(link, request, &data, failure);
    if (request->forgotten)
        return 0;
    if (request->piece)
        return take_piece(link, request, &data, failure);
    r = text_append(&request->bytes, data.bytes, data.length);
    return r < 0
               ? failure_set(failure, r, "a file is longer than was asked for, or there is no memory for it")
               : 0;
}

static int take_done(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    uint32_t number;
    int r = protocol_get_number(frame, &number, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find(link, number);
    if (!request || request->type == PROTOCOL_INSPECT || request->type == PROTOCOL_STATISTICS ||
        (request->type == PROTOCOL_WRITE_BEGIN && !request->complete))
        return failure_set(failure, -EPROTO, "DONE for request %u, which is not", number);
    unlink_request(link, request);
    if (!request->forgotten && request->type == PROTOCOL_READ_FILE && !request->piece)
        request->callback.bytes(link, request->bytes.bytes, request->bytes.length, NULL, request->context);
    else if (!request->forgotten)
        request->callback.done(link, NULL, request->context);
    request_free(request);
    return 0;
}

static void end_writing(struct agent_link *link, struct pending_request *request);

static int take_error(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_error error;
    int r = protocol_get_error(frame, &error, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find(link, error.number);
    if (!request)
        return failure_set(failure, -EPROTO, "ERROR for request %u, which nobody made", error.number);
    struct failure why;
    link_complain(link, &why, error.code, "%s", error.sentence);
    unlink_request(link, request);
    if (request->type == PROTOCOL_WRITE_BEGIN && !request->complete)
        end_writing(link, request);
    tell_failure(link, request, &why);
    request_free(request);
    return 0;
}

static int take_statistics(struct agent_link *link, const struct protocol_frame *frame,
                           struct failure *failure) {
    struct protocol_statistics got;
    int r = protocol_get_statistics(frame, &got, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find(link, got.request);
    if (!request || request->type != PROTOCOL_STATISTICS)
        return failure_set(failure, -EPROTO, "statistics for request %u, which did not ask for them",
                           got.request);
    struct agent_statistics statistics = {
        .user_us = got.user_us,
        .system_us = got.system_us,
        .rss_bytes = got.rss_bytes,
        .rss_peak_bytes = got.rss_peak_bytes,
        .frames_received = got.frames_received,
        .frames_sent = got.frames_sent,
        .bytes_received = got.bytes_received,
        .bytes_sent = got.bytes_sent,
        .wakeups = got.wakeups,
        .commands_running = got.commands,
    };
    unlink_request(link, request);
    if (!request->forgotten)
        request->callback.statistics(link, &statistics, NULL, request->context);
    request_free(request);
    return 0;
}

int request_dispatch(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    switch (frame->type) {
    case PROTOCOL_DONE:
        return take_done(link, frame, failure);
    case PROTOCOL_ERROR:
        return take_error(link, frame, failure);
    case PROTOCOL_STATISTICS_REPLY:
        return take_statistics(link, frame, failure);
    default:
        return take_data(link, frame, failure);
    }
}

/* ---- asking */

static int check_path(const struct agent_link *link, const char *path, struct failure *failure) {
    if (path[0] == '\0')
        return link_complain(link, failure, -EINVAL, "a path is empty");
    if (strnlen(path, PROTOCOL_PATH_LIMIT + 1) > PROTOCOL_PATH_LIMIT)
        return link_complain(link, failure, -ENAMETOOLONG, "'%.64s...' is longer than %d bytes", path,
                             PROTOCOL_PATH_LIMIT);
    return 0;
}

/* The agent serves only so many files at once, and more is a violation of the protocol. */
static int check_count(const struct agent_link *link, enum protocol_type type, unsigned limit,
                       struct failure *failure) {
    unsigned count = 0;
    for (const struct pending_request *request = link->requests; request; request = request->next)
        count += request->type == type;
    if (count < limit)
        return 0;
    return link_complain(link, failure, -EBUSY, "%u files are on their way; no more are allowed at once",
                         count);
}

/* Sends the frame and, if that went well, appends the request, whose owner is the link from then on. */
static int send_and_append(struct agent_link *link, struct protocol_writer *writer,
                           struct pending_request **request, struct failure *failure) {
    int r = link_send(link, writer, failure);
    if (r == 0)
        append(link, take_pointer(*request));
    return r;
}

int agent_link_inspect(struct agent_link *link, agent_facts_callback *callback, void *context,
                       struct failure *failure) {
    int r = link_check(link, failure);
    if (r < 0)
        return r;
    cleanup(free_request) struct pending_request *request = request_new(link, PROTOCOL_INSPECT, context, 0);
    if (!request)
        return failure_memory(failure);
    request->callback.facts = callback;
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_INSPECT);
    protocol_put_number(&writer, request->number);
    return send_and_append(link, &writer, &request, failure);
}

int agent_link_statistics(struct agent_link *link, agent_statistics_callback *callback, void *context,
                          struct failure *failure) {
    int r = link_check(link, failure);
    if (r < 0)
        return r;
    cleanup(free_request) struct pending_request *request =
        request_new(link, PROTOCOL_STATISTICS, context, 0);
    if (!request)
        return failure_memory(failure);
    request->callback.statistics = callback;
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_STATISTICS);
    protocol_put_number(&writer, request->number);
    return send_and_append(link, &writer, &request, failure);
}

/* PIECE or BYTES. */
static int ask_for_file(struct agent_link *link, const char *path, uint64_t limit,
                        agent_bytes_callback *bytes, agent_piece_callback *piece, agent_done_callback *done,
                        void *context, struct failure *failure) {
    int r = link_check(link, failure);
    if (r == 0)
        r = check_path(link, path, failure);
    if (r == 0)
        r = check_count(link, PROTOCOL_READ_FILE, PROTOCOL_READ_LIMIT, failure);
    if (r < 0)
        return r;
    cleanup(free_request) struct pending_request *request =
        request_new(link, PROTOCOL_READ_FILE, context, piece ? 0 : limit);
    if (!request)
        return failure_memory(failure);
    request->piece = piece;
    request->size = limit;
    if (piece)
        request->callback.done = done;
    else
        request->callback.bytes = bytes;
    struct protocol_path_request asked = {.request = request->number, .size = limit, .path = path};
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_READ_FILE);
    protocol_put_path_request(&writer, &asked);
    return send_and_append(link, &writer, &request, failure);
}

int agent_link_read_file(struct agent_link *link, const char *path, uint64_t limit,
                         agent_bytes_callback *callback, void *context, struct failure *failure) {
    return ask_for_file(link, path, limit < AGENT_FILE_LIMIT ? limit : AGENT_FILE_LIMIT, callback, NULL, NULL,
                        context, failure);
}

int agent_link_stream_file(struct agent_link *link, const char *path, uint64_t limit,
                           agent_piece_callback *piece, agent_done_callback *done, void *context,
                           struct failure *failure) {
    return ask_for_file(link, path, limit < PROTOCOL_FILE_LIMIT ? limit : PROTOCOL_FILE_LIMIT, NULL, piece,
                        done, context, failure);
}

static int ask_about_folder(struct agent_link *link, enum protocol_type type, const char *path,
                            agent_done_callback *callback, void *context, struct failure *failure) {
    int r = link_check(link, failure);
    if (r == 0)
        r = check_path(link, path, failure);
    if (r < 0)
        return r;
    cleanup(free_request) struct pending_request *request = request_new(link, type, context, 0);
    if (!request)
        return failure_memory(failure);
    request->callback.done = callback;
    struct protocol_path_request asked = {.request = request->number, .path = path};
    struct protocol_writer writer;
    link_begin(link, &writer, type);
    protocol_put_path_request(&writer, &asked);
    return send_and_append(link, &writer, &request, failure);
}

int agent_link_make_folder(struct agent_link *link, const char *path, agent_done_callback *callback,
                           void *context, struct failure *failure) {
    return ask_about_folder(link, PROTOCOL_MAKE_FOLDER, path, callback, context, failure);
}

int agent_link_remove_tree(struct agent_link *link, const char *path, agent_done_callback *callback,
                           void *context, struct failure *failure) {
    return ask_about_folder(link, PROTOCOL_REMOVE_TREE, path, callback, context, failure);
}

/* ---- writing files */

static int begin_writing(struct agent_link *link, struct pending_request **request, const char *path,
                         unsigned mode, struct failure *failure) {
    struct protocol_path_request asked = {
        .request = (*request)->number, .mode = mode & 0777, .size = (*request)->size, .path = path};
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_WRITE_BEGIN);
    protocol_put_path_request(&writer, &asked);
    return send_and_append(link, &writer, request, failure);
}

int agent_link_write_file(struct agent_link *link, const char *path, const void *bytes, size_t length,
                          unsigned mode, agent_done_callback *callback, void *context,
                          struct failure *failure) {
    int r = link_check(link, failure);
    if (r == 0)
        r = check_path(link, path, failure);
    if (r == 0)
        r = check_count(link, PROTOCOL_WRITE_BEGIN, PROTOCOL_WRITE_LIMIT, failure);
    if (r < 0)
        return r;
    cleanup(free_request) struct pending_request *request =
        request_new(link, PROTOCOL_WRITE_BEGIN, context, WRITE_MEMORY_LIMIT);
    if (!request)
        return failure_memory(failure);
    request->callback.done = callback;
    request->size = length;
    r = text_append(&request->bytes, bytes, length);
    if (r == -EFBIG)
        return link_complain(link, failure, r,
                             "'%.256s' is to have %zu bytes; more than %d must come from a file", path,
                             length, WRITE_MEMORY_LIMIT);
    if (r < 0)
        return failure_memory(failure);
    return begin_writing(link, &request, path, mode, failure);
}

int agent_link_send_file(struct agent_link *link, const char *path, const char *local_path, unsigned mode,
                         agent_done_callback *callback, void *context, struct failure *failure) {
    int r = link_check(link, failure);
    if (r == 0)
        r = check_path(link, path, failure);
    if (r == 0)
        r = check_count(link, PROTOCOL_WRITE_BEGIN, PROTOCOL_WRITE_LIMIT, failure);
    if (r < 0)
        return r;
    cleanup(free_request) struct pending_request *request =
        request_new(link, PROTOCOL_WRITE_BEGIN, context, 0);
    if (!request || !(request->local_path = strdup(local_path)))
        return failure_memory(failure);
    request->callback.done = callback;
    request->file = open(local_path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    struct stat status;
    if (request->file < 0 || fstat(request->file, &status) < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot read '%s': %s", local_path,
                                strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "cannot send '%s': it is not a file",
                                local_path);
    request->size = (uint64_t)status.st_size;
    if (request->size > PROTOCOL_FILE_LIMIT)
        return failure_set_kind(failure, FAILURE_INPUT, -EFBIG, "'%s' is too large to be sent", local_path);
    return begin_writing(link, &request, path, mode, failure);
}

/* A frame that has no memory now is tried again when the link is next pumped. */
static void end_writing(struct agent_link *link, struct pending_request *request) {
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_WRITE_END);
    protocol_put_number(&writer, request->number);
    request->complete = link_send(link, &writer, NULL) == 0;
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

/* One chunk. False when there is nothing more to do for now. */
static bool send_chunk(struct agent_link *link, struct pending_request *request) {
    if (request->sent == request->size) {
        end_writing(link, request);
        return request->complete;
    }
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
            end_writing(link, request);
        return false;
    }
    protocol_trim(&writer, size - (size_t)got);
    if (link_send(link, &writer, NULL) < 0)
        return false;
    request->sent += (uint64_t)got;
    return true;
}

void request_pump(struct agent_link *link) {
    for (struct pending_request *request = link->requests; request; request = request->next) {
        if (request->type != PROTOCOL_WRITE_BEGIN)
            continue;
        while (!request->complete && link_has_window(link) && send_chunk(link, request))
            continue;
    }
}
