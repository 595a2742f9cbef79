/* Files to and from the engine, in chunks, as many at once as there are requests. */
#include "engine/agent/files/anywhere.h"
#include "engine/agent/files/beneath.h"
#include "engine/agent/serve/agent.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- reading */

struct reading {
    struct reading *next;
    uint32_t request;
    int file;
    uint64_t read, limit;
    char *path;
};

enum { CHUNKS_A_TURN = 4 };

static void reading_free(struct reading *reading) {
    if (!reading)
        return;
    cleanup_close_descriptor(&reading->file);
    free(reading->path);
    free(reading);
}

int reading_open(struct agent *agent, const struct protocol_path_request *request, struct failure *failure) {
    const char *path = request->path;
    int flags = O_RDONLY | O_NOCTTY | O_NONBLOCK | O_CLOEXEC;
    cleanup_close int file = path[0] == '/' ? anywhere_open(agent->machine.root, path, flags, failure)
                                            : beneath_open(agent->directory, path, flags, 0, failure);
    if (file < 0)
        return file;
    struct stat status;
    if (fstat(file, &status) < 0)
        return failure_set(failure, -errno, "cannot read '%.256s': %s", request->path, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set(failure, S_ISDIR(status.st_mode) ? -EISDIR : -EINVAL,
                           "cannot read '%.256s': it is not a file", request->path);
    if (status.st_size > 0 && (uint64_t)status.st_size > request->size)
        return failure_set(failure, -EFBIG, "'%.256s' has %lld bytes; at most %llu were asked for",
                           request->path, (long long)status.st_size, (unsigned long long)request->size);
    return take_descriptor(file);
}

int reading_begin(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_path_request request;
    int r = protocol_get_path_request(frame, &request, failure);
    if (r < 0)
        return r;
    struct failure own = {0};
    struct reading **end = &agent->readings;
    unsigned count = 0;
    for (; *end; end = &(*end)->next)
        count++;
    if (count >= PROTOCOL_READ_LIMIT)
        return failure_set(failure, -EPROTO, "more than %d files are being read at once",
                           PROTOCOL_READ_LIMIT);
    int file = reading_open(agent, &request, &own);
    struct reading *reading = file < 0 ? NULL : calloc(1, sizeof *reading);
    char *path = reading ? strdup(request.path) : NULL;
    if (!path) {
        if (file >= 0)
            failure_memory(&own);
        free(reading);
        cleanup_close_descriptor(&file);
        agent_send_error(agent, PROTOCOL_ERROR, request.request, &own);
        return 0;
    }
    *reading =
        (struct reading){.request = request.request, .file = file, .limit = request.size, .path = path};
    *end = reading;
    event_source_defer(agent->work);
    return 0;
}

/* One chunk. 1: go on; 0: at its end; or the reason why not. */
static int send_chunk(struct agent *agent, struct reading *reading, struct failure *failure) {
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_FILE_DATA);
    protocol_put_number(&writer, reading->request);
    char *space = protocol_put_space(&writer, PROTOCOL_CHUNK);
    ssize_t got = -1;
    int code = -ENOMEM;
    do {
        if (space && (got = read(reading->file, space, PROTOCOL_CHUNK)) < 0)
            code = -errno;
    } while (space && got < 0 && errno == EINTR);
    if (got <= 0)
        protocol_cancel(&writer);
    if (got < 0)
        return failure_set(failure, code, "cannot read '%.256s': %s", reading->path, strerror(-code));
    if (got == 0)
        return 0;
    reading->read += (uint64_t)got;
    if (reading->read > reading->limit) {
        protocol_cancel(&writer);
        return failure_set(failure, -EFBIG, "'%.256s' has more than the %llu bytes that were asked for",
                           reading->path, (unsigned long long)reading->limit);
    }
    protocol_trim(&writer, PROTOCOL_CHUNK - (size_t)got);
    agent_end(agent, &writer);
    return 1;
}

void reading_continue(struct agent *agent) {
    for (int chunks = 0; agent->readings && agent_may_send_file(agent); chunks++) {
        if (chunks == CHUNKS_A_TURN) {
            event_source_defer(agent->work); /* the commands want their turn */
            return;
        }
        struct reading *reading = agent->readings;
        struct failure own = {0};
        int r = send_chunk(agent, reading, &own);
        if (agent->state >= AGENT_LEAVING)
            return;
        if (r > 0)
            continue;
        agent->readings = reading->next;
        if (r == 0)
            agent_send_done(agent, reading->request);
        else
            agent_send_error(agent, PROTOCOL_ERROR, reading->request, &own);
        reading_free(reading);
    }
}

/* ---- writing: beside the file, synced, renamed, the folder synced */

enum { PART_NAME_SIZE = 64 };

struct writing {
    struct writing *next;
    uint32_t request;
    int folder, file; /* -1: it has failed, and the engine knows; what still comes is dropped */
    uint64_t size, written;
    char *path;
    char *name; /* in the folder */
    char part[PART_NAME_SIZE];
};

static struct writing **find_writing(struct agent *agent, uint32_t request) {
    struct writing **at = &agent->writings;
    while (*at && (*at)->request != request)
        at = &(*at)->next;
    return at;
}

static void writing_free(struct writing *writing) {
    if (!writing)
        return;
    if (writing->file >= 0)
        unlinkat(writing->folder, writing->part, 0);
    cleanup_close_descriptor(&writing->file);
    cleanup_close_descriptor(&writing->folder);
    free(writing->path);
    free(writing->name);
    free(writing);
}

static void writing_fail(struct agent *agent, struct writing *writing, struct failure *why) {
    if (writing->file >= 0)
        unlinkat(writing->folder, writing->part, 0);
    cleanup_close_descriptor(&writing->file);
    cleanup_close_descriptor(&writing->folder);
    writing->file = writing->folder = -1;
    agent_send_error(agent, PROTOCOL_ERROR, writing->request, why);
}

static int open_parent(struct agent *agent, const char *path, char **ret_name, struct failure *failure) {
    if (path[0] == '/' && agent->write_anywhere)
        return anywhere_open_parent(path, ret_name, failure);
    const char *name;
    cleanup_close int folder = beneath_open_parent(agent->directory, path, &name, failure);
    if (folder < 0)
        return folder;
    char *copy = strdup(name);
    if (!copy)
        return failure_memory(failure);
    *ret_name = copy;
    return take_descriptor(folder);
}

static int writing_open(struct agent *agent, struct writing *writing, uint32_t mode,
                        struct failure *failure) {
    cleanup_close int folder = open_parent(agent, writing->path, &writing->name, failure);
    if (folder < 0)
        return folder;
    struct stat status;
    if (fstatat(folder, writing->name, &status, AT_SYMLINK_NOFOLLOW) == 0 && S_ISDIR(status.st_mode))
        return failure_set(failure, -EISDIR, "cannot write '%.256s': it is a folder", writing->path);
    snprintf(writing->part, sizeof writing->part, ".assay-%ld-%u.part", (long)getpid(), writing->request);
    int file =
        openat(folder, writing->part, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, (mode_t)mode);
    if (file < 0)
        return failure_set(failure, -errno, "cannot write '%.256s': %s", writing->path, strerror(errno));
    writing->file = file;
    writing->folder = take_descriptor(folder);
    return 0;
}

int writing_begin(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_path_request request;
    int r = protocol_get_path_request(frame, &request, failure);
    if (r < 0)
        return r;
    if (request.size > PROTOCOL_FILE_LIMIT)
        return failure_set(failure, -EPROTO,
                           "a file of %llu bytes is to be written; at most %llu are allowed",
                           (unsigned long long)request.size, (unsigned long long)PROTOCOL_FILE_LIMIT);
    unsigned count = 0;
    for (struct writing *other = agent->writings; other; other = other->next)
        count++;
    if (count >= PROTOCOL_WRITE_LIMIT || *find_writing(agent, request.request))
        return failure_set(failure, -EPROTO, "more than %d files are being written at once, or one twice",
                           PROTOCOL_WRITE_LIMIT);
    struct writing *writing = calloc(1, sizeof *writing);
    char *path = writing ? strdup(request.path) : NULL;
    if (!path) {
        free(writing);
        return failure_memory(failure);
    }
    *writing = (struct writing){.next = agent->writings,
                                .request = request.request,
                                .folder = -1,
                                .file = -1,
                                .size = request.size,
                                .path = path};
    agent->writings = writing;
    struct failure own = {0};
    if (writing_open(agent, writing, request.mode, &own) < 0)
        writing_fail(agent, writing, &own);
    return 0;
}

static int write_all(int file, const char *bytes, size_t length) {
    while (length > 0) {
        ssize_t written = write(file, bytes, length);
        if (written < 0 && errno != EINTR)
            return -errno;
        if (written > 0) {
            bytes += written;
            length -= (size_t)written;
        }
    }
    return 0;
}

int writing_data(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_data data;
    int r = protocol_get_data(frame, &data, failure);
    if (r < 0)
        return r;
    struct writing *writing = *find_writing(agent, data.number);
    if (!writing)
        return failure_set(failure, -EPROTO, "WRITE_DATA came for request %u, which writes no file",
                           data.number);
    if (data.length > writing->size - writing->written)
        return failure_set(failure, -EPROTO, "more bytes came for a file than were announced");
    writing->written += data.length;
    if (writing->file < 0)
        return 0;
    r = write_all(writing->file, data.bytes, data.length);
    if (r < 0) {
        struct failure own = {0};
        failure_set(&own, r, "cannot write '%.256s': %s", writing->path, strerror(-r));
        writing_fail(agent, writing, &own);
    }
    return 0;
}

static int writing_finish(struct writing *writing, struct failure *failure) {
    if (writing->written != writing->size)
        return failure_set(failure, -EIO, "cannot write '%.256s': %llu of its %llu bytes came", writing->path,
                           (unsigned long long)writing->written, (unsigned long long)writing->size);
    int r = fsync(writing->file) < 0 ? -errno : 0;
    if (r == 0 && renameat(writing->folder, writing->part, writing->folder, writing->name) < 0)
        r = -errno;
    if (r < 0)
        return failure_set(failure, r, "cannot write '%.256s': %s", writing->path, strerror(-r));
    /* From here on the part has the name that was asked for: it is no longer ours to remove. */
    int closed = close(take_descriptor(writing->file));
    /* Some file systems cannot sync a folder (EINVAL); their renames are as durable as they get. */
    if (closed < 0 || (fsync(writing->folder) < 0 && errno != EINVAL))
        return failure_set(failure, -errno, "cannot write '%.256s': %s", writing->path, strerror(errno));
    return 0;
}

int writing_end(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    uint32_t request;
    int r = protocol_get_number(frame, &request, failure);
    if (r < 0)
        return r;
    struct writing **at = find_writing(agent, request), *writing = *at;
    if (!writing)
        return failure_set(failure, -EPROTO, "WRITE_END came for request %u, which writes no file", request);
    *at = writing->next;
    struct failure own = {0};
    if (writing->file >= 0) {
        if (writing_finish(writing, &own) == 0)
            agent_send_done(agent, request);
        else
            agent_send_error(agent, PROTOCOL_ERROR, request, &own);
    }
    writing_free(writing);
    return 0;
}

void transfer_clear(struct agent *agent) {
    while (agent->readings) {
        struct reading *reading = agent->readings;
        agent->readings = reading->next;
        reading_free(reading);
    }
    while (agent->writings) {
        struct writing *writing = agent->writings;
        agent->writings = writing->next;
        writing_free(writing);
    }
}
