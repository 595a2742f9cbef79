#include "engine/remote/ssh/name-resolver.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    CHILDREN_MOST = 4,
    NAME_MOST = 255, /* bytes */
    BUCKETS = 1024,
    DEATHS_MOST = 2,
};

static const int64_t answer_lifetime_ns = 60 * EVENT_SECOND;

/* What a child sends back, as one message. */
struct answer {
    int code;         /* 0, or as getaddrinfo has it */
    int system_error; /* errno, when the code says so */
    size_t count;
    struct name_address addresses[NAME_ADDRESSES_MOST];
};

struct query_list {
    struct name_query *first, *last;
};

enum question_state {
    QUESTION_WAITING, /* for a child */
    QUESTION_ASKED,   /* of a child; when nobody waits for it any more, it goes on if no other needs the child
                       */
    QUESTION_ANSWERED,
};

/* A name. In the table while it may serve others too; gone when it is not and has no queries. */
struct question {
    struct question *next_in_bucket, *next_waiting;
    enum question_state state;
    bool in_table;
    unsigned deaths; /* of children that were asked */
    int64_t answered_ns;
    struct query_list queries; /* before the answer */
    size_t users;              /* queries, with those that are about to be called back */
    struct name_address *addresses;
    size_t count;
    struct failure failure; /* code 0: there is none */
    char name[NAME_MOST + 1];
};

struct name_query {
    struct name_query *previous, *next;
    struct query_list *list; /* the question's or the resolver's */
    struct name_resolver *resolver;
    struct question *question;
    struct event_source *timer;
    int64_t timeout_ns;
    uint64_t number; /* in the order in which answers came */
    name_resolver_callback *callback;
    void *context;
};

struct child {
    pid_t pid; /* 0: there is none */
    int socket;
    struct event_source *source;
    struct question *question; /* what it was asked; NULL: idle */
    struct name_resolver *resolver;
};

struct name_resolver {
    struct event_loop *loop;
    struct child children[CHILDREN_MOST];
    struct question *buckets[BUCKETS];
    struct question *waiting, **waiting_end;
    struct query_list ready; /* to be called back at the end of the turn */
    struct event_source *deliver;
    uint64_t answers;
};

/* ---- the child's side */

static int close_from(unsigned first) {
#ifdef SYS_close_range
    if (syscall(SYS_close_range, first, ~0u, 0) == 0)
        return 0;
#endif
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) < 0)
        return -errno;
    unsigned end = limit.rlim_cur < 65536 ? (unsigned)limit.rlim_cur : 65536;
    for (unsigned descriptor = first; descriptor < end; descriptor++)
        close((int)descriptor);
    return 0;
}

/* Keeps descriptor 3, its socket, and nothing of the engine's: no pipe of a program and no connection is held
 * open by a process that has nothing to do with it. A session of its own: Ctrl-C is the engine's to handle.
 */
static int leave_engine(int socket, pid_t engine) {
    (void)setsid();
    prctl(PR_SET_NAME, "assay-names");
    if (prctl(PR_SET_PDEATHSIG, SIGKILL) < 0 || getppid() != engine)
        return -ESRCH;
    for (int number = 1; number < NSIG; number++)
        signal(number, SIG_DFL);
    signal(SIGPIPE, SIG_IGN);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (null < 0)
        return -errno;
    /* First out of the way of the numbers that it and others are to have. */
    socket = fcntl(socket, F_DUPFD_CLOEXEC, 4);
    if (socket < 0 || dup2(null, 0) < 0 || dup2(null, 1) < 0 || dup2(null, 2) < 0 ||
        dup3(socket, 3, O_CLOEXEC) < 0)
        return -errno;
    return close_from(4);
}

static void look_up(const char *name, struct answer *answer) {
    const struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM};
    struct addrinfo *found = NULL;
    memset(answer, 0, sizeof *answer);
    answer->code = getaddrinfo(name, NULL, &hints, &found);
    answer->system_error = errno;
    for (const struct addrinfo *at = found; at && answer->count < NAME_ADDRESSES_MOST; at = at->ai_next) {
        struct name_address *address = &answer->addresses[answer->count];
        if (at->ai_addrlen > sizeof address->address)
            continue;
        memcpy(&address->address, at->ai_addr, at->ai_addrlen);
        address->length = at->ai_addrlen;
        answer->count++;
    }
    if (found)
        freeaddrinfo(found);
}

_Noreturn static void be_child(int socket, pid_t engine) {
    if (leave_engine(socket, engine) < 0)
        _exit(1);
    for (;;) {
        char name[NAME_MOST + 1];
        struct answer answer;
        ssize_t got = recv(3, name, NAME_MOST, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0)
            _exit(0);
        name[got] = '\0';
        look_up(name, &answer);
        if (send(3, &answer, sizeof answer, 0) < 0)
            _exit(0);
    }
}

/* ---- queries */

static void append_query(struct query_list *list, struct name_query *query) {
    query->list = list;
    query->previous = list->last;
    query->next = NULL;
    *(list->last ? &list->last->next : &list->first) = query;
    list->last = query;
}

static void take_query(struct name_query *query) {
    *(query->previous ? &query->previous->next : &query->list->first) = query->next;
    *(query->next ? &query->next->previous : &query->list->last) = query->previous;
}

/* ---- questions */

static size_t bucket_of(const char *name) {
    uint64_t hash = UINT64_C(0xcbf29ce484222325); /* FNV-1a */
    for (; *name; name++)
        hash = (hash ^ (unsigned char)*name) * UINT64_C(0x100000001b3);
    return (size_t)(hash ^ (hash >> 32)) % BUCKETS;
}

static void leave_table(struct name_resolver *resolver, struct question *question) {
    if (!question->in_table)
        return;
    struct question **at = &resolver->buckets[bucket_of(question->name)];
    while (*at != question)
        at = &(*at)->next_in_bucket;
    *at = question->next_in_bucket;
    question->in_table = false;
}

static void leave_waiting(struct name_resolver *resolver, struct question *question) {
    struct question **at = &resolver->waiting;
    while (*at != question)
        at = &(*at)->next_waiting;
    *at = question->next_waiting;
    if (!*at)
        resolver->waiting_end = at;
}

/* Frees it if nobody can want it any more. */
static void release(struct name_resolver *resolver, struct question *question) {
    if (question->users > 0 || question->state == QUESTION_ASKED)
        return;
    if (question->state == QUESTION_ANSWERED && question->in_table)
        return;
    if (question->state == QUESTION_WAITING)
        leave_waiting(resolver, question);
    leave_table(resolver, question);
    free(question->addresses);
    free(question);
}

/* The question for NAME that still serves, or NULL. Answers beyond their time in its bucket are dropped. */
static struct question *find_question(struct name_resolver *resolver, const char *name) {
    int64_t now = event_loop_now(resolver->loop);
    struct question *found = NULL, *next;
    for (struct question *at = resolver->buckets[bucket_of(name)]; at; at = next) {
        next = at->next_in_bucket;
        if (at->state == QUESTION_ANSWERED && now - at->answered_ns >= answer_lifetime_ns) {
            leave_table(resolver, at);
            release(resolver, at);
        } else if (strcmp(at->name, name) == 0) {
            found = at;
        }
    }
    return found;
}

static struct question *new_question(const char *name) {
    struct question *question = calloc(1, sizeof *question);
    if (question)
        memcpy(question->name, name, strlen(name) + 1);
    return question;
}

static void enter_table(struct name_resolver *resolver, struct question *question) {
    struct question **bucket = &resolver->buckets[bucket_of(question->name)];
    question->next_in_bucket = *bucket;
    *bucket = question;
    question->in_table = true;
}

static void wait_for_child(struct name_resolver *resolver, struct question *question) {
    question->state = QUESTION_WAITING;
    question->next_waiting = NULL;
    *resolver->waiting_end = question;
    resolver->waiting_end = &question->next_waiting;
}

static void make_ready(struct name_query *query) {
    struct name_resolver *resolver = query->resolver;
    event_source_remove(take_pointer(query->timer));
    query->number = ++resolver->answers;
    append_query(&resolver->ready, query);
    event_source_defer(resolver->deliver);
}

/* Addresses or a failure are there: whoever waits is called back at the end of the turn. */
static void conclude(struct name_resolver *resolver, struct question *question) {
    question->state = QUESTION_ANSWERED;
    question->answered_ns = event_loop_now(resolver->loop);
    if (question->failure.code != 0)
        leave_table(resolver, question); /* it may be there the next time */
    while (question->queries.first) {
        struct name_query *query = question->queries.first;
        take_query(query);
        make_ready(query);
    }
    release(resolver, question);
}

static void conclude_failed(struct name_resolver *resolver, struct question *question,
                            const struct failure *why) {
    question->failure = *why;
    conclude(resolver, question);
}

static void explain(const struct answer *answer, const char *name, struct failure *failure) {
    switch (answer->code) {
    case 0:
        failure_set(failure, -ENOENT, "the host name '%s' has no address", name);
        break;
    case EAI_NONAME:
    case EAI_NODATA:
    case EAI_ADDRFAMILY:
        failure_set(failure, -ENOENT, "there is no host of the name '%s'", name);
        break;
    case EAI_AGAIN:
        failure_set(failure, -EAGAIN, "no name server answered for the host name '%s'", name);
        break;
    case EAI_SYSTEM:
        failure_set(failure, answer->system_error > 0 ? -answer->system_error : -EIO,
                    "cannot look up the host name '%s': %s", name, strerror(answer->system_error));
        break;
    default:
        failure_set(failure, answer->code == EAI_MEMORY ? -ENOMEM : -EIO,
                    "cannot look up the host name '%s': %s", name, gai_strerror(answer->code));
    }
}

static void take_answer(struct name_resolver *resolver, struct question *question,
                        const struct answer *answer) {
    if (answer->code != 0 || answer->count == 0) {
        explain(answer, question->name, &question->failure);
    } else {
        question->addresses = malloc(answer->count * sizeof *answer->addresses);
        if (question->addresses) {
            memcpy(question->addresses, answer->addresses, answer->count * sizeof *answer->addresses);
            question->count = answer->count;
        } else {
            failure_memory(&question->failure);
        }
    }
    conclude(resolver, question);
}

/* ---- children */

/* Ends it, whatever it does. SIGKILL is not waited for long: it does nothing but libc's look-ups. */
static void discard_child(struct child *child) {
    event_source_remove(take_pointer(child->source));
    cleanup_close_descriptor(&child->socket);
    child->socket = -1;
    if (child->pid > 0) {
        kill(child->pid, SIGKILL);
        while (waitpid(child->pid, NULL, 0) < 0 && errno == EINTR)
            continue;
    }
    child->pid = 0;
    child->question = NULL;
}

static void dispatch(struct name_resolver *resolver);

/* The child that was asked has died. Once may be chance; a name that kills two would kill all. */
static void survive(struct name_resolver *resolver, struct question *question) {
    struct failure why = {0};
    if (++question->deaths < DEATHS_MOST) {
        wait_for_child(resolver, question);
        release(resolver, question); /* if nobody wants it */
        return;
    }
    failure_set(&why, -EIO, "the processes that looked up the host name '%s' died", question->name);
    conclude_failed(resolver, question, &why);
}

static void on_child(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)events;
    struct child *child = context;
    struct name_resolver *resolver = child->resolver;
    struct question *question = child->question;
    struct answer answer;
    ssize_t got = recv(descriptor, &answer, sizeof answer, 0);
    if (got < 0 && (errno == EINTR || errno == EAGAIN))
        return;
    if (got == sizeof answer && question && answer.count <= NAME_ADDRESSES_MOST) {
        child->question = NULL;
        event_source_set_events(child->source, 0);
        take_answer(resolver, question, &answer);
    } else {
        discard_child(child);
        if (question)
            survive(resolver, question);
    }
    dispatch(resolver);
}

static int start_child(struct name_resolver *resolver, struct child *child, struct failure *failure) {
    int ends[2];
    if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) < 0)
        return failure_set(failure, -errno, "cannot look up host names: no socket: %s", strerror(errno));
    pid_t engine = getpid(), pid = fork();
    if (pid == 0)
        be_child(ends[1], engine);
    int code = -errno;
    close(ends[1]);
    *child = (struct child){.pid = pid, .socket = ends[0], .resolver = resolver};
    if (pid < 0) {
        discard_child(child);
        return failure_set(failure, code, "cannot look up host names: no process: %s", strerror(-code));
    }
    if (fcntl(child->socket, F_SETFL, O_NONBLOCK) == 0)
        child->source = event_loop_add_descriptor(resolver->loop, child->socket, 0, on_child, child);
    if (!child->source) {
        code = -errno;
        discard_child(child);
        return failure_set(failure, code, "cannot look up host names: %s", strerror(-code));
    }
    return 0;
}

/* An idle child, a new one, or one that works for nobody any more: that one is ended and another takes its
 * place, so that names which hang do not stop the others. 0: in *RET, NULL when all are busy. */
static int find_child(struct name_resolver *resolver, struct child **ret, struct failure *failure) {
    struct child *none = NULL, *abandoned = NULL;
    size_t count = 0;
    for (size_t i = 0; i < CHILDREN_MOST; i++) {
        struct child *child = &resolver->children[i];
        if (child->pid > 0 && !child->question) {
            *ret = child;
            return 0;
        }
        count += child->pid > 0;
        if (child->pid == 0)
            none = child;
        else if (child->question->users == 0)
            abandoned = child;
    }
    *ret = NULL;
    if (!none && !abandoned)
        return 0;
    if (!none) {
        struct question *question = abandoned->question;
        discard_child(abandoned);
        question->state = QUESTION_ANSWERED; /* in a way: nobody is left to be told */
        leave_table(resolver, question);
        release(resolver, question);
        none = abandoned;
    }
    int r = start_child(resolver, none, failure);
    if (r < 0)
        return count > 0 ? 0 : r; /* the others will have time */
    *ret = none;
    return 0;
}

/* Gives waiting questions to children. When there is no child and can be none, they fail. */
static void dispatch(struct name_resolver *resolver) {
    while (resolver->waiting) {
        struct question *question = resolver->waiting;
        struct child *child;
        struct failure why = {0};
        int r = find_child(resolver, &child, &why);
        if (r == 0 && !child)
            return;
        if (r == 0) {
            ssize_t sent = send(child->socket, question->name, strlen(question->name), MSG_NOSIGNAL);
            if (sent < 0 || event_source_set_events(child->source, EVENT_READ) < 0) {
                discard_child(child); /* it had died while it was idle */
                continue;
            }
        }
        leave_waiting(resolver, question);
        if (r < 0) {
            conclude_failed(resolver, question, &why);
            continue;
        }
        question->state = QUESTION_ASKED;
        child->question = question;
    }
}

/* ---- the resolver */

static void on_deliver(struct event_source *self, void *context) {
    (void)self;
    struct name_resolver *resolver = context;
    uint64_t last = resolver->answers; /* what callbacks ask for is for the next turn */
    struct name_query *query;
    while ((query = resolver->ready.first) && query->number <= last) {
        struct question *question = query->question;
        bool failed = question->failure.code != 0;
        take_query(query);
        query->callback(question->addresses, question->count, failed ? &question->failure : NULL,
                        query->context);
        free(query);
        question->users--;
        release(resolver, question);
    }
}

int name_resolver_new(struct event_loop *loop, struct name_resolver **ret, struct failure *failure) {
    struct name_resolver *resolver = xcalloc(1, sizeof *resolver);
    resolver->loop = loop;
    resolver->waiting_end = &resolver->waiting;
    for (size_t i = 0; i < CHILDREN_MOST; i++)
        resolver->children[i].socket = -1;
    resolver->deliver = event_loop_add_deferred(loop, on_deliver, resolver);
    if (!resolver->deliver) {
        free(resolver);
        return failure_memory(failure);
    }
    *ret = resolver;
    return 0;
}

/* Drops QUERY without a call. */
static void forget(struct name_query *query) {
    struct question *question = query->question;
    take_query(query);
    event_source_remove(query->timer);
    question->users--;
    release(query->resolver, question);
    free(query);
}

void name_query_cancel(struct name_query *query) {
    if (!query)
        return;
    struct name_resolver *resolver = query->resolver;
    forget(query);
    dispatch(resolver); /* a child may now be working for nobody */
}

void name_resolver_free(struct name_resolver *resolver) {
    if (!resolver)
        return;
    for (size_t i = 0; i < CHILDREN_MOST; i++) {
        struct question *question = resolver->children[i].question;
        discard_child(&resolver->children[i]);
        if (question)
            wait_for_child(resolver, question);
    }
    while (resolver->ready.first)
        forget(resolver->ready.first);
    for (size_t i = 0; i < BUCKETS; i++)
        for (struct question *at = resolver->buckets[i], *next; at; at = next) {
            next = at->next_in_bucket;
            at->users++; /* so that it does not go with its last query */
            while (at->queries.first)
                forget(at->queries.first);
            at->users--;
            leave_table(resolver, at);
            release(resolver, at);
        }
    event_source_remove(resolver->deliver);
    free(resolver);
}

static void on_timeout(struct event_source *self, void *context) {
    (void)self;
    struct name_query *query = context;
    struct failure failure = {0};
    char duration[NUMBER_TEXT_SIZE];
    failure_set(&failure, -ETIMEDOUT, "no answer within %s to what address the host name '%s' has",
                number_describe_duration((double)query->timeout_ns * 1e-9, duration), query->question->name);
    name_resolver_callback *callback = query->callback;
    void *its_context = query->context;
    struct name_resolver *resolver = query->resolver;
    forget(query);
    dispatch(resolver);
    callback(NULL, 0, &failure, its_context);
}

/* Whether NAME is an address, which then is the answer. */
static bool read_address(const char *name, struct question *question) {
    const struct addrinfo hints = {
        .ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICHOST};
    struct addrinfo *found = NULL;
    if (getaddrinfo(name, NULL, &hints, &found) != 0)
        return false;
    question->addresses = calloc(1, sizeof *question->addresses);
    if (question->addresses) {
        memcpy(&question->addresses->address, found->ai_addr, found->ai_addrlen);
        question->addresses->length = found->ai_addrlen;
        question->count = 1;
    }
    freeaddrinfo(found);
    return true;
}

/* A question of NAME that is not in the table yet: answered, if it is an address; otherwise it waits. */
static struct question *begin_question(struct name_resolver *resolver, const char *name) {
    struct question *question = new_question(name);
    if (!question)
        return NULL;
    if (read_address(name, question)) {
        question->state = QUESTION_ANSWERED;
        if (question->addresses)
            return question;
        free(question);
        return NULL;
    }
    enter_table(resolver, question);
    wait_for_child(resolver, question);
    return question;
}

int name_resolver_ask(struct name_resolver *resolver, const char *name, int64_t timeout_ns,
                      name_resolver_callback *callback, void *context, struct name_query **ret,
                      struct failure *failure) {
    if (!name[0] || strlen(name) > NAME_MOST)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "'%.300s' is not a host name; expected 1 to %d bytes", name, (int)NAME_MOST);
    struct name_query *query = calloc(1, sizeof *query);
    struct question *question = query ? find_question(resolver, name) : NULL;
    if (query && !question)
        question = begin_question(resolver, name);
    if (!question) {
        free(query);
        return failure_memory(failure);
    }
    *query = (struct name_query){.resolver = resolver,
                                 .question = question,
                                 .timeout_ns = timeout_ns,
                                 .callback = callback,
                                 .context = context};
    question->users++;
    if (question->state == QUESTION_ANSWERED) {
        make_ready(query);
    } else {
        append_query(&question->queries, query);
        query->timer = event_loop_add_timer(resolver->loop, timeout_ns, 0, on_timeout, query);
        if (!query->timer) {
            forget(query);
            return failure_memory(failure);
        }
        dispatch(resolver);
    }
    *ret = query;
    return 0;
}
