/* HASH_FILE: the SHA-256 of files, a slice a turn, so that the commands are served meanwhile. */
#include "engine/agent/files/sha256.h"
#include "engine/agent/serve/agent.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 64 << 10, READS_A_TURN = 4 };

struct hashing {
    struct hashing *next;
    uint32_t request;
    int file;
    char *path;
    struct sha256 hash;
};

static void hashing_free(struct hashing *hashing) {
    cleanup_close_descriptor(&hashing->file);
    free(hashing->path);
    free(hashing);
}

int hashing_begin(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_path_request request;
    int r = protocol_get_path_request(frame, &request, failure);
    if (r < 0)
        return r;
    struct hashing **end = &agent->hashings;
    unsigned count = 0;
    for (; *end; end = &(*end)->next)
        count++;
    if (count >= PROTOCOL_READ_LIMIT)
        return failure_set(failure, -EPROTO, "more than %d files are being hashed at once",
                           PROTOCOL_READ_LIMIT);
    struct failure own = {0};
    request.size = UINT64_MAX;
    cleanup_close int file = reading_open(agent, &request, &own);
    if (file < 0) {
        agent_send_error(agent, PROTOCOL_ERROR, request.request, &own);
        return 0;
    }
    struct hashing *hashing = calloc(1, sizeof *hashing);
    char *path = hashing ? strdup(request.path) : NULL;
    if (!path) {
        free(hashing);
        failure_memory(&own);
        agent_send_error(agent, PROTOCOL_ERROR, request.request, &own);
        return 0;
    }
    hashing->request = request.request;
    hashing->file = take_descriptor(file);
    hashing->path = path;
    sha256_init(&hashing->hash);
    *end = hashing;
    event_source_defer(agent->work);
    return 0;
}

/* 1: there is more; 0: at the end; or a negative errno. */
static int add_slice(struct hashing *hashing) {
    cleanup_free char *buffer = malloc(BUFFER);
    if (!buffer)
        return -ENOMEM;
    for (int reads = 0; reads < READS_A_TURN; reads++) {
        ssize_t got = read(hashing->file, buffer, BUFFER);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            return got < 0 ? -errno : 0;
        sha256_add(&hashing->hash, buffer, (size_t)got);
    }
    return 1;
}

static void send_hash(struct agent *agent, struct hashing *hashing) {
    struct protocol_hash hash = {.request = hashing->request, .size = hashing->hash.length};
    sha256_end(&hashing->hash, hash.digest);
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_HASH);
    protocol_put_hash(&writer, &hash);
    agent_end(agent, &writer);
}

void hashing_continue(struct agent *agent) {
    struct hashing *hashing = agent->hashings;
    if (!hashing)
        return;
    int r = add_slice(hashing);
    if (r <= 0) {
        struct failure own = {0};
        agent->hashings = hashing->next;
        if (r == 0) {
            send_hash(agent, hashing);
        } else {
            failure_set(&own, r, "cannot read '%.256s': %s", hashing->path, strerror(-r));
            agent_send_error(agent, PROTOCOL_ERROR, hashing->request, &own);
        }
        hashing_free(hashing);
    }
    if (agent->hashings)
        event_source_defer(agent->work);
}

void hashing_clear(struct agent *agent) {
    while (agent->hashings) {
        struct hashing *hashing = agent->hashings;
        agent->hashings = hashing->next;
        hashing_free(hashing);
    }
}
