#include "engine/remote/ssh/name-resolver.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <netdb.h>
#include <pthread.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

enum { THREADS_MAX = 4, NAME_MAX_BYTES = 255 };

enum query_state { QUERY_WAITING, QUERY_RUNNING, QUERY_ANSWERED };

/* While a thread runs for a query, the thread writes the answer; all else belongs to the loop's thread. */
struct name_query {
    struct name_query *next; /* in the resolver's list of those that wait, or of those that are answered */
    struct name_resolver *resolver;
    enum query_state state;
    name_resolver_callback *callback; /* NULL: the query was cancelled */
    void *context;
    char name[NAME_MAX_BYTES + 1];
    /* The answer. */
    int code, system_error; /* of getaddrinfo() */
    size_t count;
    struct name_address addresses[NAME_ADDRESSES_MAX];
};

struct name_resolver {
    struct event_source *source; /* of `signal` */
    struct name_query *waiting;
    unsigned running; /* threads whose query is still wanted */
    size_t wanted;    /* queries that will be called back */

    pthread_mutex_t lock; /* of what follows */
    struct name_query *answered;
    unsigned threads;
    bool closed; /* the last thread frees the resolver */
    int signal;  /* eventfd: there is an answer */
};

static void append(struct name_query **list, struct name_query *query) {
    query->next = NULL;
    while (*list)
        list = &(*list)->next;
    *list = query;
}

/* ---- threads */

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

static void release(struct name_resolver *resolver) {
    pthread_mutex_destroy(&resolver->lock);
    close(resolver->signal);
    free(resolver);
}

static void hand_over(struct name_query *query) {
    struct name_resolver *resolver = query->resolver;
    append(&resolver->answered, query);
    (void)!write(resolver->signal, &(uint64_t){1}, sizeof(uint64_t));
}

static void *run_query(void *context) {
    struct name_query *query = context;
    struct name_resolver *resolver = query->resolver;
    look_up(query, 0);
    pthread_mutex_lock(&resolver->lock);
    bool closed = resolver->closed, last = --resolver->threads == 0;
    if (!closed)
        hand_over(query);
    pthread_mutex_unlock(&resolver->lock);
    if (closed)
        free(query);
    if (closed && last)
        release(resolver);
    return NULL;
}

/* Signals are handled by the loop's thread alone. */
static int start_thread(struct name_query *query) {
    pthread_attr_t attributes;
    pthread_t thread;
    sigset_t all, before;
    sigfillset(&all);
    pthread_attr_init(&attributes);
    pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
    pthread_sigmask(SIG_SETMASK, &all, &before);
    int r = pthread_create(&thread, &attributes, run_query, query);
    pthread_sigmask(SIG_SETMASK, &before, NULL);
    pthread_attr_destroy(&attributes);
    return r;
}

static void start_waiting(struct name_resolver *resolver) {
    pthread_mutex_lock(&resolver->lock);
    while (resolver->waiting && resolver->running < THREADS_MAX) {
        struct name_query *query = resolver->waiting;
        resolver->waiting = query->next;
        query->state = QUERY_RUNNING;
        resolver->running++;
        resolver->threads++;
        int error = start_thread(query);
        if (error) {
            query->code = EAI_SYSTEM;
            query->system_error = error;
            resolver->threads--;
            hand_over(query);
        }
    }
    pthread_mutex_unlock(&resolver->lock);
    (void)event_source_set_events(resolver->source, resolver->wanted ? EVENT_READ : 0);
}

/* ---- answers */

static void explain(const struct name_query *query, struct failure *failure) {
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

/* Nobody waits for the query now. Its memory stays while a thread or the list of answers has it. */
static void disown(struct name_query *query) {
    struct name_resolver *resolver = query->resolver;
    query->callback = NULL;
    resolver->wanted--;
    if (query->state == QUERY_RUNNING)
        resolver->running--;
    if (query->state != QUERY_WAITING)
        return;
    struct name_query **at = &resolver->waiting;
    while (*at != query)
        at = &(*at)->next;
    *at = query->next;
    free(query);
}

static void on_signal(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)events;
    struct name_resolver *resolver = context;
    uint64_t count;
    (void)!read(descriptor, &count, sizeof count);
    pthread_mutex_lock(&resolver->lock);
    struct name_query *answered = take_pointer(resolver->answered);
    pthread_mutex_unlock(&resolver->lock);
    for (struct name_query *query = answered; query; query = query->next) {
        if (query->callback && query->state == QUERY_RUNNING)
            resolver->running--;
        query->state = QUERY_ANSWERED;
    }
    while (answered) {
        struct name_query *query = answered;
        answered = query->next;
        name_resolver_callback *callback = query->callback;
        if (callback) {
            struct failure failure = {0};
            disown(query);
            if (query->count == 0)
                explain(query, &failure);
            callback(query->addresses, query->count, query->count == 0 ? &failure : NULL, query->context);
        }
        free(query);
    }
    start_waiting(resolver);
}

int name_resolver_ask(struct name_resolver *resolver, const char *name, name_resolver_callback *callback,
                      void *context, struct name_query **ret, struct failure *failure) {
    if (!name[0] || strlen(name) > NAME_MAX_BYTES)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "'%.300s' is not a host name; expected 1 to %d bytes", name, NAME_MAX_BYTES);
    struct name_query *query = xcalloc(1, sizeof *query);
    *query = (struct name_query){.resolver = resolver, .callback = callback, .context = context};
    memcpy(query->name, name, strlen(name) + 1);
    resolver->wanted++;
    look_up(query, AI_NUMERICHOST);
    if (query->count > 0) {
        query->state = QUERY_ANSWERED;
        pthread_mutex_lock(&resolver->lock);
        hand_over(query);
        pthread_mutex_unlock(&resolver->lock);
    } else {
        append(&resolver->waiting, query);
    }
    start_waiting(resolver);
    *ret = query;
    return 0;
}

void name_query_cancel(struct name_query *query) {
    if (!query)
        return;
    struct name_resolver *resolver = query->resolver;
    disown(query);
    start_waiting(resolver);
}

/* ---- the resolver */

int name_resolver_new(struct event_loop *loop, struct name_resolver **ret, struct failure *failure) {
    cleanup_close int descriptor = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (descriptor < 0)
        return failure_set(failure, -errno, "cannot look up host names: %s", strerror(errno));
    struct name_resolver *resolver = xcalloc(1, sizeof *resolver);
    resolver->signal = take_descriptor(descriptor);
    pthread_mutex_init(&resolver->lock, NULL);
    resolver->source = event_loop_add_descriptor(loop, resolver->signal, 0, on_signal, resolver);
    if (!resolver->source) {
        release(resolver);
        return failure_set(failure, -errno, "cannot look up host names: %s", strerror(errno));
    }
    *ret = resolver;
    return 0;
}

void name_resolver_free(struct name_resolver *resolver) {
    if (!resolver)
        return;
    event_source_remove(resolver->source);
    pthread_mutex_lock(&resolver->lock);
    while (resolver->answered) {
        struct name_query *query = resolver->answered;
        resolver->answered = query->next;
        free(query);
    }
    resolver->closed = true;
    bool last = resolver->threads == 0;
    pthread_mutex_unlock(&resolver->lock);
    if (last)
        release(resolver);
}
