#include "engine/remote/ssh/name-resolver.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { THREADS_MAX = 4, NAME_MAX_BYTES = 255 };

enum query_state {
    QUERY_WAITING,
    QUERY_RUNNING,
    QUERY_DONE,      /* its thread has the answer, and is about to signal it */
    QUERY_ABANDONED, /* cancelled; its thread frees it */
};

struct name_query {
    struct name_query *next;
    struct name_resolver *resolver;
    _Atomic enum query_state state;
    pthread_t thread;
    int signal; /* eventfd */
    struct event_source *source;
    name_resolver_callback *callback;
    void *context;
    char name[NAME_MAX_BYTES + 1];
    /* The answer, written by the thread while it runs. */
    bool answered;
    int code, system_error; /* of getaddrinfo() */
    size_t count;
    struct name_address addresses[NAME_ADDRESSES_MAX];
};

struct name_resolver {
    struct event_loop *loop;
    struct event_source *turn; /* deferred: starts threads, answers queries */
    struct name_query *queries;
    unsigned running;
};

/* Calls getaddrinfo() and stores its answer in QUERY. */
static void look_up(struct name_query *query, int flags) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags};
    struct addrinfo *found = NULL;
    query->code = getaddrinfo(query->name, NULL, &hints, &found);
    query->system_error = errno;
    for (const struct addrinfo *at = found; at && query->count < NAME_ADDRESSES_MAX; at = at->ai_next) {
        struct name_address *address = &query->addresses[query->count++];
        memcpy(&address->address, at->ai_addr, at->ai_addrlen);
        address->length = at->ai_addrlen;
    }
    if (found)
        freeaddrinfo(found);
}

static void *run_query(void *context) {
    struct name_query *query = context;
    look_up(query, 0);
    if (atomic_exchange(&query->state, QUERY_DONE) == QUERY_ABANDONED)
        free(query);
    else
        (void)!write(query->signal, &(uint64_t){1}, sizeof(uint64_t));
    return NULL;
}

/* ---- answers */

static void describe_failure(const struct name_query *query, struct failure *failure) {
    const char *why = query->code == 0            ? "it has no address"
                      : query->code == EAI_SYSTEM ? strerror(query->system_error)
                                                  : gai_strerror(query->code);
    bool is_absent = query->code == 0 || query->code == EAI_NONAME || query->code == EAI_NODATA ||
                     query->code == EAI_ADDRFAMILY;
    failure_set(failure,
                is_absent                  ? -ENOENT
                : query->code == EAI_AGAIN ? -EAGAIN
                                           : -EIO,
                "cannot look up the host name '%s': %s", query->name, why);
}

static void unlink_query(struct name_query *query) {
    struct name_query **at = &query->resolver->queries;
    while (*at != query)
        at = &(*at)->next;
    *at = query->next;
}

static void call_back(struct name_query *query) {
    struct failure failure = {0};
    unlink_query(query);
    if (query->count == 0)
        describe_failure(query, &failure);
    query->callback(query->addresses, query->count, query->count == 0 ? &failure : NULL, query->context);
    free(query);
}

/* Joins the thread of a query, which has ended or is about to. */
static void end_thread(struct name_query *query) {
    (void)pthread_join(query->thread, NULL);
    event_source_remove(query->source);
    cleanup_close_descriptor(&query->signal);
    query->resolver->running--;
    event_source_defer(query->resolver->turn);
}

static void on_signal(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)descriptor;
    (void)events;
    end_thread(context);
    call_back(context);
}

/* ---- threads */

/* Starts the thread of a query with all signals blocked: only the loop's thread handles them. 0 or an errno.
 */
static int start_thread(struct name_query *query) {
    sigset_t all, before;
    query->signal = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (query->signal < 0)
        return errno;
    query->source =
        event_loop_add_descriptor(query->resolver->loop, query->signal, EVENT_READ, on_signal, query);
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    query->state = QUERY_RUNNING;
    int r = query->source ? pthread_create(&query->thread, NULL, run_query, query) : errno;
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    if (r != 0) {
        query->state = QUERY_WAITING;
        event_source_remove(query->source);
        cleanup_close_descriptor(&query->signal);
    }
    return r;
}

/* Answers numeric addresses, and starts threads for waiting queries. */
static void on_turn(struct event_source *self, void *context) {
    (void)self;
    struct name_resolver *resolver = context;
    for (struct name_query *query = resolver->queries; query;) {
        if (query->answered) {
            call_back(query); /* its callback may have started and cancelled queries */
            query = resolver->queries;
            continue;
        }
        if (query->state == QUERY_WAITING && resolver->running < THREADS_MAX) {
            int r = start_thread(query); /* from now on only the thread writes the answer */
            resolver->running += r == 0;
            if (r != 0) {
                query->answered = true;
                query->code = EAI_SYSTEM;
                query->system_error = r;
            }
        }
        query = query->answered ? query : query->next;
    }
}

/* RET: a query, which CALLBACK ends. A numeric address is answered without the network, in a later turn. */
int name_resolver_ask(struct name_resolver *resolver, const char *name, name_resolver_callback *callback,
                      void *context, struct name_query **ret, struct failure *failure) {
    if (!name[0] || strlen(name) > NAME_MAX_BYTES)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "'%.300s' is not a host name; expected 1 to %d bytes", name, NAME_MAX_BYTES);
    struct name_query *query = xcalloc(1, sizeof *query), **end = &resolver->queries;
    *query =
        (struct name_query){.resolver = resolver, .signal = -1, .callback = callback, .context = context};
    memcpy(query->name, name, strlen(name) + 1);
    look_up(query, AI_NUMERICHOST);
    query->answered = query->count > 0;
    while (*end)
        end = &(*end)->next;
    *ret = *end = query;
    event_source_defer(resolver->turn);
    return 0;
}

/* Frees a query; the thread of one that is under way frees it later. */
void name_query_cancel(struct name_query *query) {
    if (!query)
        return;
    unlink_query(query);
    if (query->state == QUERY_WAITING) {
        free(query);
        return;
    }
    struct name_resolver *resolver = query->resolver;
    pthread_t thread = query->thread;
    struct event_source *source = query->source;
    int signal = query->signal;
    if (atomic_exchange(&query->state, QUERY_ABANDONED) == QUERY_DONE) {
        end_thread(query);
        free(query);
        return;
    }
    /* The thread may free the query at any time now, and signals nothing. */
    (void)pthread_detach(thread);
    event_source_remove(source);
    cleanup_close_descriptor(&signal);
    resolver->running--;
    event_source_defer(resolver->turn);
}

/* ---- the resolver */

int name_resolver_new(struct event_loop *loop, struct name_resolver **ret, struct failure *failure) {
    struct name_resolver *resolver = xcalloc(1, sizeof *resolver);
    resolver->loop = loop;
    resolver->turn = event_loop_add_deferred(loop, on_turn, resolver);
    *ret = resolver;
    return resolver->turn ? 0 : failure_memory(failure);
}

void name_resolver_free(struct name_resolver *resolver) {
    if (!resolver)
        return;
    event_source_remove(resolver->turn);
    free(resolver);
}
