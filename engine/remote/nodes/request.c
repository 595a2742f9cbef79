/* Requests with one answer: their life, their answers, and those that ask for no file's content. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { LISTING_LIMIT = 64 << 20, CLOCK_EXCHANGES_LIMIT = 1000 };

/* ---- lists */

static void list_init(struct request_list *list) {
    list->first = NULL;
    list->end = &list->first;
}

static void append(struct request_list *list, struct pending_request *request) {
    request->next = NULL;
    *list->end = request;
    list->end = &request->next;
}

static struct pending_request *find_in(const struct request_list *list, uint32_t number) {
    struct pending_request *request = list->first;
    while (request && request->number != number)
        request = request->next;
    return request;
}

static void remove_from(struct request_list *list, struct pending_request *request) {
    struct pending_request **at = &list->first;
    while (*at != request)
        at = &(*at)->next;
    *at = request->next;
    if (list->end == &request->next)
        list->end = at;
}

static struct pending_request *take_first(struct request_list *list) {
    struct pending_request *request = list->first;
    if (request)
        remove_from(list, request);
    return request;
}

/* ---- what they have a share of */

void request_init(struct agent_link *link) {
    list_init(&link->requests);
    list_init(&link->sending);
    list_init(&link->reading.queue);
    list_init(&link->writing.queue);
    link->reading.limit = PROTOCOL_READ_LIMIT;
    link->writing.limit = PROTOCOL_WRITE_LIMIT;
}

static struct request_share *share_of(struct agent_link *link, enum protocol_type type) {
    switch (type) {
    case PROTOCOL_READ_FILE:
    case PROTOCOL_HASH_FILE:
    case PROTOCOL_LIST_TREE:
        return &link->reading;
    case PROTOCOL_WRITE_BEGIN:
        return &link->writing;
    default:
        return NULL;
    }
}

static struct request_list *list_of(struct agent_link *link, enum protocol_type type) {
    bool pumped = type == PROTOCOL_WRITE_BEGIN || type == PROTOCOL_CLOCK;
    return pumped ? &link->sending : &link->requests;
}

/* Of those that were sent. The few that are pumped come first, for there may be many others. */
static struct pending_request *find(struct agent_link *link, uint32_t number) {
    struct pending_request *request = find_in(&link->sending, number);
    return request ? request : find_in(&link->requests, number);
}

static void add_sent(struct agent_link *link, struct pending_request *request) {
    struct request_share *share = share_of(link, request->type);
    if (share)
        share->active++;
    append(list_of(link, request->type), request);
}

/* Makes room for one that is queued. */
static void remove_sent(struct agent_link *link, struct pending_request *request) {
    struct request_share *share = share_of(link, request->type);
    if (share)
        share->active--;
    remove_from(list_of(link, request->type), request);
}

/* ---- life */

int request_new(struct agent_link *link, enum protocol_type type, const char *path, size_t bytes_limit,
                void *context, struct pending_request **ret, struct failure *failure) {
    int r = link_check(link, failure);
    if (r < 0)
        return r;
    if (path && path[0] == '\0')
        return link_complain(link, failure, -EINVAL, "a path is empty");
    if (path && strnlen(path, PROTOCOL_PATH_LIMIT + 1) > PROTOCOL_PATH_LIMIT)
        return link_complain(link, failure, -ENAMETOOLONG, "'%.64s...' is longer than %d bytes", path,
                             PROTOCOL_PATH_LIMIT);
    struct pending_request *request = xcalloc(1, sizeof *request);
    request->number = link_next_number(link);
    request->type = type;
    request->context = context;
    request->file = -1;
    text_init(&request->bytes, bytes_limit);
    if (path && !(request->path = strdup(path))) {
        request_free(link, request);
        return failure_memory(failure);
    }
    *ret = request;
    return 0;
}

void request_free(struct agent_link *link, struct pending_request *request) {
    if (request->type == PROTOCOL_WRITE_BEGIN)
        link->write_bytes -= request->bytes.length;
    text_clear(&request->bytes);
    cleanup_close_descriptor(&request->file);
    free(request->path);
    free(request->local_path);
    free(request);
}

/* Its frame; from then on it is in the list of those that were sent. */
static int send_request(struct agent_link *link, struct pending_request *request, struct failure *failure) {
    struct protocol_writer writer;
    link_begin(link, &writer, request->type);
    if (request->path)
        protocol_put_path_request(&writer, &(struct protocol_path_request){.request = request->number,
                                                                           .mode = request->mode,
                                                                           .size = request->size,
                                                                           .path = request->path});
    else
        protocol_put_number(&writer, request->number);
    int r = link_send(link, &writer, failure);
    if (r < 0)
        return r;
    free(take_pointer(request->path));
    add_sent(link, request);
    return 0;
}

static int enqueue(struct agent_link *link, struct request_share *share, struct pending_request *request,
                   struct failure *failure) {
    if (link->queued >= LINK_QUEUE_LIMIT)
        return link_complain(link, failure, -EBUSY,
                             "%zu files wait for their turn; no more are allowed at once", link->queued);
    cleanup_close_descriptor(&request->file); /* so many could not be open */
    request->file = -1;
    append(&share->queue, request);
    link->queued++;
    return 0;
}

int request_submit(struct agent_link *link, struct pending_request *request, struct failure *failure) {
    struct request_share *share = share_of(link, request->type);
    int r = share && (share->queue.first || share->active >= share->limit)
                ? enqueue(link, share, request, failure)
                : send_request(link, request, failure);
    if (r < 0)
        request_free(link, request);
    return r;
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
    case PROTOCOL_HASH_FILE:
        request->callback.hash(link, NULL, 0, failure, request->context);
        break;
    case PROTOCOL_LIST_TREE:
        request->callback.tree(link, NULL, 0, failure, request->context);
        break;
    case PROTOCOL_CLOCK:
        request->callback.clock(link, NULL, failure, request->context);
        break;
    default:
        request->callback.done(link, failure, request->context);
    }
}

/* Any of all; NULL when there is none left. */
static struct pending_request *take_any(struct agent_link *link) {
    struct request_list *lists[] = {&link->requests, &link->sending, &link->reading.queue,
                                    &link->writing.queue};
    struct pending_request *request = NULL;
    for (size_t i = 0; i < sizeof lists / sizeof *lists && !request; i++)
        request = take_first(lists[i]);
    return request;
}

void request_fail_all(struct agent_link *link, const struct failure *failure) {
    for (struct pending_request *request; (request = take_any(link));) {
        tell_failure(link, request, failure);
        request_free(link, request);
    }
}

void request_free_all(struct agent_link *link) {
    for (struct pending_request *request; (request = take_any(link));)
        request_free(link, request);
}

static void forget_in(struct request_list *list, const void *context) {
    for (struct pending_request *request = list->first; request; request = request->next)
        if (request->context == context)
            request->forgotten = true;
}

void request_forget(struct agent_link *link, const void *context) {
    forget_in(&link->requests, context);
    forget_in(&link->sending, context);
    forget_in(&link->reading.queue, context);
    forget_in(&link->writing.queue, context);
}

void agent_link_forget(struct agent_link *link, const void *context) {
    request_forget(link, context);
}

/* ---- answers */

/* The request NUMBER, if it was sent and is of TYPE. */
static struct pending_request *find_asked(struct agent_link *link, const struct protocol_frame *frame,
                                          uint32_t number, enum protocol_type type, struct failure *failure) {
    struct pending_request *request = find(link, number);
    if (request && request->type == type && !request->refused)
        return request;
    failure_set(failure, -EPROTO, "%s for request %u, which did not ask for it",
                protocol_type_name(frame->type), number);
    return NULL;
}

static int take_facts(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_data data;
    int r = protocol_get_data(frame, &data, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find_asked(link, frame, data.number, PROTOCOL_INSPECT, failure);
    if (!request)
        return -EPROTO;
    struct node_facts *facts = NULL;
    r = node_facts_parse(data.bytes, data.length, &facts, failure);
    if (r < 0)
        return r;
    remove_sent(link, request);
    if (request->forgotten)
        node_facts_free(facts);
    else
        request->callback.facts(link, facts, NULL, request->context);
    request_free(link, request);
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

static int take_file_data(struct agent_link *link, const struct protocol_frame *frame,
                          struct failure *failure) {
    struct protocol_data data;
    int r = protocol_get_data(frame, &data, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find(link, data.number);
    bool is_tree = request && request->type == PROTOCOL_LIST_TREE;
    if (!is_tree && !(request = find_asked(link, frame, data.number, PROTOCOL_READ_FILE, failure)))
        return -EPROTO;
    if (request->forgotten)
        return 0;
    if (request->piece)
        return take_piece(link, request, &data, failure);
    r = text_append(&request->bytes, data.bytes, data.length);
    return r < 0 ? failure_set(failure, r, "a %s is longer than was asked for, or there is no memory for it",
                               is_tree ? "listing" : "file")
                 : 0;
}

static int tell_tree(struct agent_link *link, struct pending_request *request, struct failure *failure) {
    struct agent_entry *entries = NULL;
    size_t count = 0;
    int r = tree_parse(&request->bytes, &entries, &count, failure);
    if (r < 0) {
        struct failure why;
        bool broken = r == -EPROTO; /* then the link ends too */
        link_complain(link, &why, r, "%s%s", broken ? "the agent broke the protocol: " : "", failure->text);
        tell_failure(link, request, &why);
        return broken ? r : 0;
    }
    request->callback.tree(link, entries, count, NULL, request->context);
    free(entries);
    return 0;
}

static int take_done(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    uint32_t number;
    int r = protocol_get_number(frame, &number, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find(link, number);
    enum protocol_type type = request && !request->refused ? request->type : 0;
    bool is_due = type == PROTOCOL_READ_FILE || type == PROTOCOL_LIST_TREE || type == PROTOCOL_MAKE_FOLDER ||
                  type == PROTOCOL_REMOVE_TREE || (type == PROTOCOL_WRITE_BEGIN && request->complete);
    if (!is_due)
        return failure_set(failure, -EPROTO, "DONE for request %u, which is not", number);
    remove_sent(link, request);
    if (request->forgotten)
        r = 0;
    else if (type == PROTOCOL_READ_FILE && !request->piece)
        request->callback.bytes(link, request->bytes.bytes, request->bytes.length, NULL, request->context);
    else if (type == PROTOCOL_LIST_TREE)
        r = tell_tree(link, request, failure);
    else
        request->callback.done(link, NULL, request->context);
    request_free(link, request);
    return r;
}

static int take_error(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_error error;
    int r = protocol_get_error(frame, &error, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find(link, error.number);
    if (!request || request->refused)
        return failure_set(failure, -EPROTO, "ERROR for request %u, which nobody made", error.number);
    struct failure why;
    link_complain(link, &why, error.code, "%s", error.sentence);
    if (request->type == PROTOCOL_WRITE_BEGIN && !request->complete && !transfer_end(link, request)) {
        bool forgotten = request->forgotten;
        request->refused = request->forgotten = true;
        /* After the callback it may be gone. */
        if (!forgotten)
            request->callback.done(link, &why, request->context);
        return 0;
    }
    remove_sent(link, request);
    tell_failure(link, request, &why);
    request_free(link, request);
    return 0;
}

static int take_statistics(struct agent_link *link, const struct protocol_frame *frame,
                           struct failure *failure) {
    struct protocol_statistics got;
    int r = protocol_get_statistics(frame, &got, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find_asked(link, frame, got.request, PROTOCOL_STATISTICS, failure);
    if (!request)
        return -EPROTO;
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
    remove_sent(link, request);
    if (!request->forgotten)
        request->callback.statistics(link, &statistics, NULL, request->context);
    request_free(link, request);
    return 0;
}

static int take_hash(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    struct protocol_hash got;
    int r = protocol_get_hash(frame, &got, failure);
    if (r < 0)
        return r;
    struct pending_request *request = find_asked(link, frame, got.request, PROTOCOL_HASH_FILE, failure);
    if (!request)
        return -EPROTO;
    static const char digits[] = "0123456789abcdef";
    char hex[2 * PROTOCOL_HASH_SIZE + 1] = "";
    for (size_t i = 0; i < PROTOCOL_HASH_SIZE; i++) {
        hex[2 * i] = digits[got.digest[i] >> 4];
        hex[2 * i + 1] = digits[got.digest[i] & 15];
    }
    remove_sent(link, request);
    if (!request->forgotten)
        request->callback.hash(link, hex, got.size, NULL, request->context);
    request_free(link, request);
    return 0;
}

static int take_clock(struct agent_link *link, const struct protocol_frame *frame, struct failure *failure) {
    int64_t now = clock_monotonic_ns();
    struct protocol_clock got;
    int r = protocol_get_clock(frame, &got, failure);
    if (r < 0)
        return r;
    if (session_takes_clock(link, got.request))
        return 0;
    struct pending_request *request = find_asked(link, frame, got.request, PROTOCOL_CLOCK, failure);
    if (!request)
        return -EPROTO;
    if (request->due)
        return failure_set(failure, -EPROTO, "CLOCK_REPLY for request %u, which was answered", got.request);
    struct agent_clock *best = &request->clock;
    int64_t round_trip = now - request->asked_monotonic_ns;
    unsigned exchanges = best->exchanges + 1;
    if (exchanges == 1 || round_trip < best->round_trip_ns)
        *best = (struct agent_clock){.engine_wall_ns = request->asked_wall_ns + round_trip / 2,
                                     .engine_monotonic_ns = request->asked_monotonic_ns + round_trip / 2,
                                     .node_wall_ns = got.wall_ns,
                                     .node_monotonic_ns = got.monotonic_ns,
                                     .round_trip_ns = round_trip};
    best->exchanges = exchanges;
    if (exchanges < request->exchanges && !request->forgotten) {
        request->due = true; /* the link is pumped after what has come was taken */
        return 0;
    }
    remove_sent(link, request);
    if (!request->forgotten)
        request->callback.clock(link, best, NULL, request->context);
    request_free(link, request);
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
    case PROTOCOL_HASH:
        return take_hash(link, frame, failure);
    case PROTOCOL_CLOCK_REPLY:
        return take_clock(link, frame, failure);
    case PROTOCOL_FACTS:
        return take_facts(link, frame, failure);
    default:
        return take_file_data(link, frame, failure);
    }
}

/* ---- pumping */

/* Sends the first of the queue. False when it must wait still. */
static bool admit(struct agent_link *link, struct request_share *share) {
    if (!share->queue.first || share->active >= share->limit || link_check(link, NULL) < 0)
        return false;
    struct pending_request *request = take_first(&share->queue);
    link->queued--;
    if (request->forgotten && request->type != PROTOCOL_WRITE_BEGIN) {
        request_free(link, request); /* it would have no effect but its answer */
        return true;
    }
    struct failure why = {0};
    int r = transfer_open(request, &why);
    if (r == 0)
        r = send_request(link, request, &why);
    if (r < 0) {
        tell_failure(link, request, &why);
        request_free(link, request);
    }
    return true;
}

/* An exchange is stamped when its frame is about to go out, for what waits in between is no round trip. */
static void begin_exchange(struct agent_link *link, struct pending_request *request) {
    struct protocol_writer writer;
    link_begin(link, &writer, PROTOCOL_CLOCK);
    protocol_put_number(&writer, request->number);
    if (link_send(link, &writer, NULL) < 0)
        return; /* the next time */
    request->due = false;
    /* In this order, so that whatever comes between the two makes the round trip longer, and not the error
     * larger than half of it. */
    request->asked_monotonic_ns = clock_monotonic_ns();
    request->asked_wall_ns = clock_wall_ns();
}

void request_pump(struct agent_link *link) {
    while (admit(link, &link->reading) || admit(link, &link->writing))
        continue;
    if (link_check(link, NULL) < 0)
        return; /* a callback has closed it */
    for (struct pending_request *request = link->sending.first, *next; request; request = next) {
        next = request->next;
        if (request->type == PROTOCOL_WRITE_BEGIN)
            transfer_pump(link, request);
        else if (request->due)
            begin_exchange(link, request);
        if (request->refused && request->complete) {
            remove_sent(link, request);
            request_free(link, request);
        }
    }
}

/* ---- asking */

int agent_link_inspect(struct agent_link *link, agent_facts_callback *callback, void *context,
                       struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_INSPECT, NULL, 0, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.facts = callback;
    return request_submit(link, request, failure);
}

int agent_link_statistics(struct agent_link *link, agent_statistics_callback *callback, void *context,
                          struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_STATISTICS, NULL, 0, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.statistics = callback;
    return request_submit(link, request, failure);
}

static int ask_about_folder(struct agent_link *link, enum protocol_type type, const char *path,
                            agent_done_callback *callback, void *context, struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, type, path, 0, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.done = callback;
    return request_submit(link, request, failure);
}

int agent_link_make_folder(struct agent_link *link, const char *path, agent_done_callback *callback,
                           void *context, struct failure *failure) {
    return ask_about_folder(link, PROTOCOL_MAKE_FOLDER, path, callback, context, failure);
}

int agent_link_remove_tree(struct agent_link *link, const char *path, agent_done_callback *callback,
                           void *context, struct failure *failure) {
    return ask_about_folder(link, PROTOCOL_REMOVE_TREE, path, callback, context, failure);
}

int agent_link_hash_file(struct agent_link *link, const char *path, agent_hash_callback *callback,
                         void *context, struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_HASH_FILE, path, 0, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.hash = callback;
    return request_submit(link, request, failure);
}

int agent_link_list_tree(struct agent_link *link, const char *path, agent_tree_callback *callback,
                         void *context, struct failure *failure) {
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_LIST_TREE, path, LISTING_LIMIT, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.tree = callback;
    request->size = LISTING_LIMIT;
    return request_submit(link, request, failure);
}

int agent_link_measure_clock(struct agent_link *link, unsigned exchanges, agent_clock_callback *callback,
                             void *context, struct failure *failure) {
    if (exchanges > CLOCK_EXCHANGES_LIMIT)
        return link_complain(link, failure, -EINVAL, "%u exchanges are asked for; at most %d are allowed",
                             exchanges, CLOCK_EXCHANGES_LIMIT);
    struct pending_request *request;
    int r = request_new(link, PROTOCOL_CLOCK, NULL, 0, context, &request, failure);
    if (r < 0)
        return r;
    request->callback.clock = callback;
    request->exchanges = exchanges ? exchanges : AGENT_CLOCK_EXCHANGES;
    request->due = true;
    add_sent(link, request);
    event_source_defer(link->pump);
    return 0;
}
