/* Children, watched by a pidfd each, or all by SIGCHLD. The exit status is read with WNOWAIT first and the
 * child reaped after its callback, which may so signal the process group before its number is used again. */
#include "engine/event-loop/event-source.h"
#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

/* Reads the exit status and resource usage of a child without reaping it. 1, 0 if none has ended, or a
 * negative errno. By system call, since libc's waitid() does not return the usage. */
static int read_exit(idtype_t type, id_t id, struct event_child_exit *ret) {
    siginfo_t information;
    memset(&information, 0, sizeof information);
    memset(ret, 0, sizeof *ret);
    if (syscall(SYS_waitid, type, id, &information, WEXITED | WNOHANG | WNOWAIT, &ret->usage) < 0)
        return -errno;
    if (information.si_pid == 0)
        return 0;
    ret->pid = information.si_pid;
    ret->signalled = information.si_code != CLD_EXITED;
    ret->core_dumped = information.si_code == CLD_DUMPED;
    ret->code = information.si_status;
    return 1;
}

static void reap(pid_t pid) {
    siginfo_t information;
    while (waitid(P_PID, (id_t)pid, &information, WEXITED | WNOHANG) < 0 && errno == EINTR)
        continue;
}

static void deliver(struct event_source *source, const struct event_child_exit *exit) {
    event_child_callback *callback = source->child.callback;
    void *context = source->context;
    source->served = source->loop->turn;
    event_source_remove(source);
    callback(source, exit, context);
}

/* Calls back and reaps a child that has ended. Returns 1, or 0 if it still runs. */
unsigned serve_child(struct event_source *source) {
    struct event_child_exit exit;
    int r = read_exit(P_PID, (id_t)source->child.pid, &exit);
    if (r == 0)
        return 0;
    if (r < 0) {
        /* Somebody else has reaped it: say that it ended, with nothing known. */
        exit = (struct event_child_exit){.pid = source->child.pid, .code = -1};
    }
    deliver(source, &exit);
    if (r > 0)
        reap(exit.pid);
    return 1;
}

static struct event_source *find(struct event_loop *loop, pid_t pid) {
    for (struct event_source *source = TAILQ_FIRST(&loop->sources); source; source = TAILQ_NEXT(source, all))
        if (!source->removed && source->kind == EVENT_KIND_CHILD && source->child.pid == pid)
            return source;
    return NULL;
}

/* Calls back for all children that have ended, and reaps them; unwatched ones go to the callback for
 * orphans. */
static void collect_children(struct event_loop *loop) {
    struct event_child_exit exit;
    while (read_exit(P_ALL, 0, &exit) > 0) {
        struct event_source *source = find(loop, exit.pid);
        if (source)
            deliver(source, &exit);
        reap(exit.pid);
        if (!source && loop->orphan_callback)
            loop->orphan_callback(NULL, &exit, loop->orphan_context);
    }
}

void child_collect(struct event_loop *loop) {
    if (loop->orphans) {
        collect_children(loop);
        return;
    }
    for (struct event_source *source = TAILQ_FIRST(&loop->sources); source; source = TAILQ_NEXT(source, all))
        if (!source->removed && source->kind == EVENT_KIND_CHILD && source->child.pidfd < 0)
            serve_child(source);
}

static void on_check(struct event_source *self, void *context) {
    (void)self;
    child_collect(context);
}

/* Watches all children by SIGCHLD instead of pidfds, once. 0 or a negative errno. */
static int use_sigchld(struct event_loop *loop) {
    if (loop->sigchld)
        return 0;
    struct event_source *check = event_loop_add_deferred(loop, on_check, loop);
    if (!check)
        return -ENOMEM;
    check->internal = true;
    int r = signal_want(loop, SIGCHLD);
    if (r < 0) {
        event_source_remove(check);
        return r;
    }
    loop->child_check = check;
    loop->sigchld = true;
    return 0;
}

/* Also reaps children that are not watched, and calls CALLBACK for each; for a process that inherits
 * orphans. */
int event_loop_reap_orphans(struct event_loop *loop, event_child_callback *callback, void *context) {
    int r = use_sigchld(loop);
    if (r < 0)
        return r;
    loop->orphans = true;
    loop->orphan_callback = callback;
    loop->orphan_context = context;
    event_source_defer(loop->child_check);
    return 0;
}

int event_loop_avoid_pidfd(struct event_loop *loop) {
    loop->avoid_pidfd = true;
    return 0;
}

/* Adds a pidfd of PID to the epoll set. Returns it, or -1 with errno set. */
static int watch_pidfd(struct event_loop *loop, struct event_source *source, pid_t pid) {
#ifdef SYS_pidfd_open
    int descriptor = (int)syscall(SYS_pidfd_open, pid, 0); /* close-on-exec by itself */
    if (descriptor < 0)
        return -1;
    int r = event_loop_watch(loop, EPOLL_CTL_ADD, descriptor, EPOLLIN, source);
    if (r == 0)
        return descriptor;
    close(descriptor);
    errno = -r;
    return -1;
#else
    (void)loop;
    (void)source;
    (void)pid;
    errno = ENOSYS;
    return -1;
#endif
}

/* Watches the child PID; CALLBACK gets its exit status once. NULL with errno set: it cannot be watched. */
struct event_source *event_loop_add_child(struct event_loop *loop, pid_t pid, event_child_callback *callback,
                                          void *context) {
    struct event_source *source = event_source_new(loop, EVENT_KIND_CHILD, context);
    if (!source)
        return NULL;
    source->child.callback = callback;
    source->child.pid = pid;
    source->child.pidfd = -1;
    loop->active++;
    if (!loop->avoid_pidfd && !loop->sigchld) {
        source->child.pidfd = watch_pidfd(loop, source, pid);
        /* Old kernels do not know it, and the seccomp filters of some containers refuse it. */
        if (source->child.pidfd >= 0)
            return source;
        if (errno != ENOSYS && errno != EPERM)
            return event_source_added(source, -errno);
    }
    int r = use_sigchld(loop);
    if (r < 0)
        return event_source_added(source, r);
    /* It may have ended, and its signal have been taken, before it was watched. Where orphans are reaped it
     * would be gone then; so its signal is still to come. */
    if (!loop->orphans)
        event_source_defer(loop->child_check);
    return source;
}

void child_remove(struct event_source *source) {
    source->loop->active--;
    if (source->child.pidfd < 0)
        return;
    (void)event_loop_watch(source->loop, EPOLL_CTL_DEL, source->child.pidfd, 0, source);
    close(take_descriptor(source->child.pidfd));
}
