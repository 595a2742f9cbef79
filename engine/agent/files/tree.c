/* LIST_TREE: what is below a folder. Walked a slice a turn, then sorted, then sent as far as the window
 * allows. One listing at a time, so that memory is bounded; the others wait. */
#include "engine/agent/files/anywhere.h"
#include "engine/agent/files/beneath.h"
#include "engine/agent/serve/agent.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    ENTRIES_A_TURN = 256,
    CHUNKS_A_TURN = 4,
    DEPTH_LIMIT = 256,
    LISTING_LIMIT = 64 << 20, /* bytes; an engine's own limit is usually lower */
    ENTRY_LIMIT = 1 << 22,
};

/* A folder that is being read, and how much of `relative` names it. */
struct level {
    DIR *entries;
    size_t length;
};

struct listing {
    struct listing *next;
    uint32_t request;
    uint64_t limit;
    char *path;
    bool started, sorted;
    struct level *levels;
    size_t depth, level_capacity;
    struct text content; /* of each entry "<kind> <mode> <size>", NUL, path, NUL */
    size_t *entries;     /* where each begins in the content */
    size_t count, capacity;
    size_t sent; /* entries */
    char relative[PROTOCOL_PATH_LIMIT + 1];
};

static void listing_free(struct listing *listing) {
    while (listing->depth > 0)
        closedir(listing->levels[--listing->depth].entries);
    free(listing->levels);
    text_clear(&listing->content);
    free(listing->entries);
    free(listing->path);
    free(listing);
}

int listing_begin(struct agent *agent, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_path_request request;
    int r = protocol_get_path_request(frame, &request, failure);
    if (r < 0)
        return r;
    struct listing **end = &agent->listings;
    unsigned count = 0;
    for (; *end; end = &(*end)->next)
        count++;
    if (count >= PROTOCOL_READ_LIMIT)
        return failure_set(failure, -EPROTO, "more than %d folders are being listed at once",
                           PROTOCOL_READ_LIMIT);
    struct listing *listing = calloc(1, sizeof *listing);
    char *path = listing ? strdup(request.path) : NULL;
    if (!path) {
        free(listing);
        struct failure own = {0};
        failure_memory(&own);
        agent_send_error(agent, PROTOCOL_ERROR, request.request, &own);
        return 0;
    }
    listing->request = request.request;
    listing->limit = request.size;
    listing->path = path;
    text_init(&listing->content, request.size < LISTING_LIMIT ? (size_t)request.size : LISTING_LIMIT);
    *end = listing;
    event_source_defer(agent->work);
    return 0;
}

/* ---- walking */

static char kind_of(mode_t mode) {
    return S_ISREG(mode) ? 'f' : S_ISDIR(mode) ? 'd' : S_ISLNK(mode) ? 'l' : 'o';
}

static int add_entry(struct listing *listing, const struct stat *status, struct failure *failure) {
    struct text *content = &listing->content;
    size_t start = content->length;
    int r = list_reserve(&listing->entries, &listing->capacity, listing->count + 1, sizeof *listing->entries,
                         ENTRY_LIMIT);
    if (r == 0)
        r = text_printf(content, "%c %o %llu", kind_of(status->st_mode), (unsigned)status->st_mode & 07777u,
                        S_ISREG(status->st_mode) ? (unsigned long long)status->st_size : 0ULL);
    if (r == 0)
        r = text_append(content, "", 1);
    if (r == 0)
        r = text_append(content, listing->relative, strlen(listing->relative) + 1);
    if (r == -EFBIG)
        return failure_set(failure, r, "the list of what is in '%.256s' has more than %llu bytes",
                           listing->path, (unsigned long long)content->limit);
    if (r < 0)
        return failure_memory(failure);
    listing->entries[listing->count++] = start;
    return 0;
}

static int complain(const struct listing *listing, int code, struct failure *failure) {
    const char *relative = listing->relative;
    return failure_set(failure, code, "cannot list '%.256s%s%.256s': %s", listing->path,
                       relative[0] ? "/" : "", relative, strerror(-code));
}

/* Goes down into FOLDER, which is taken over and is what `relative` names. */
static int push(struct listing *listing, int folder, struct failure *failure) {
    cleanup_close int owned = folder;
    if (listing->depth == DEPTH_LIMIT)
        return failure_set(failure, -ELOOP, "cannot list '%.256s': it is deeper than %d folders",
                           listing->path, DEPTH_LIMIT);
    if (list_reserve(&listing->levels, &listing->level_capacity, listing->depth + 1, sizeof *listing->levels,
                     DEPTH_LIMIT) < 0)
        return failure_memory(failure);
    DIR *entries = fdopendir(owned);
    if (!entries)
        return complain(listing, -errno, failure);
    (void)take_descriptor(owned);
    listing->levels[listing->depth++] =
        (struct level){.entries = entries, .length = strlen(listing->relative)};
    return 0;
}

/* PATH itself is followed if it is a link, as when a file is read; nothing below it is. */
static int start(struct agent *agent, struct listing *listing, struct failure *failure) {
    listing->started = true;
    const char *path = listing->path;
    cleanup_close int top = path[0] == '/' ? anywhere_open(agent->machine.root, path, O_PATH, failure)
                                           : beneath_open(agent->directory, path, O_PATH, 0, failure);
    if (top < 0)
        return top;
    struct stat status;
    if (fstat(top, &status) < 0)
        return complain(listing, -errno, failure);
    if (!S_ISDIR(status.st_mode))
        return add_entry(listing, &status, failure);
    int folder = openat(top, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    return folder < 0 ? complain(listing, -errno, failure) : push(listing, folder, failure);
}

static int visit(struct listing *listing, int folder, const char *name, struct failure *failure) {
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0)
        return errno == ENOENT ? 0 : complain(listing, -errno, failure); /* it went meanwhile */
    int r = add_entry(listing, &status, failure);
    if (r < 0 || !S_ISDIR(status.st_mode))
        return r;
    int inner = openat(folder, name, O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);
    if (inner < 0)
        return errno == ENOENT || errno == ENOTDIR || errno == ELOOP ? 0 : complain(listing, -errno, failure);
    return push(listing, inner, failure);
}

/* One entry. */
static int step(struct listing *listing, struct failure *failure) {
    const struct level level = listing->levels[listing->depth - 1];
    listing->relative[level.length] = '\0';
    errno = 0;
    const struct dirent *entry = readdir(level.entries);
    if (!entry) {
        if (errno)
            return complain(listing, -errno, failure);
        closedir(level.entries);
        listing->depth--;
        return 0;
    }
    const char *name = entry->d_name;
    if (strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return 0;
    size_t at = level.length, slash = at > 0, length = strlen(name);
    if (at + slash + length > PROTOCOL_PATH_LIMIT)
        return complain(listing, -ENAMETOOLONG, failure);
    if (slash)
        listing->relative[at] = '/';
    memcpy(listing->relative + at + slash, name, length + 1);
    return visit(listing, dirfd(level.entries), name, failure);
}

static const char *path_of(const char *content, size_t entry) {
    return content + entry + strlen(content + entry) + 1;
}

static int compare(const void *a, const void *b, void *content) {
    return strcmp(path_of(content, *(const size_t *)a), path_of(content, *(const size_t *)b));
}

/* 1: it is all there. */
static int walk(struct agent *agent, struct listing *listing, struct failure *failure) {
    int r = listing->started ? 0 : start(agent, listing, failure);
    for (int i = 0; r == 0 && listing->depth > 0 && i < ENTRIES_A_TURN; i++)
        r = step(listing, failure);
    if (r < 0 || listing->depth > 0)
        return r;
    if (listing->count)
        qsort_r(listing->entries, listing->count, sizeof *listing->entries, compare, listing->content.bytes);
    listing->sorted = true;
    return 1;
}

/* ---- sending */

static void send_chunk(struct agent *agent, struct listing *listing) {
    const char *content = listing->content.bytes;
    struct protocol_writer writer;
    agent_begin(agent, &writer, PROTOCOL_FILE_DATA);
    protocol_put_number(&writer, listing->request);
    for (size_t bytes = 0; listing->sent < listing->count; listing->sent++) {
        size_t entry = listing->entries[listing->sent];
        const char *path = path_of(content, entry);
        size_t length = (size_t)(path - (content + entry)) + strlen(path) + 1;
        if (bytes + length > PROTOCOL_CHUNK)
            break;
        protocol_put_bytes(&writer, content + entry, length);
        bytes += length;
    }
    agent_end(agent, &writer);
}

static void end_listing(struct agent *agent, struct listing *listing, const struct failure *failure) {
    agent->listings = listing->next;
    if (failure)
        agent_send_error(agent, PROTOCOL_ERROR, listing->request, failure);
    else
        agent_send_done(agent, listing->request);
    listing_free(listing);
    if (agent->listings)
        event_source_defer(agent->work);
}

void listing_continue(struct agent *agent) {
    struct listing *listing = agent->listings;
    if (!listing)
        return;
    struct failure own = {0};
    int r = listing->sorted ? 1 : walk(agent, listing, &own);
    if (r < 0) {
        end_listing(agent, listing, &own);
        return;
    }
    int chunks = 0;
    for (; r > 0 && listing->sent < listing->count && chunks < CHUNKS_A_TURN; chunks++) {
        if (!agent_may_send_file(agent))
            return; /* comes round when it may */
        send_chunk(agent, listing);
        if (agent->state >= AGENT_LEAVING)
            return; /* and the listing is no more */
    }
    if (r > 0 && listing->sent == listing->count)
        end_listing(agent, listing, NULL);
    else
        event_source_defer(agent->work);
}

void listing_clear(struct agent *agent) {
    while (agent->listings) {
        struct listing *listing = agent->listings;
        agent->listings = listing->next;
        listing_free(listing);
    }
}
