/* Signals: blocked in the thread and read from one signalfd. */
#include "engine/event-loop/event-source.h"

#include <errno.h>
#include <sys/signalfd.h>
#include <time.h>
#include <unistd.h>

/* Reads signals from the signalfd and calls all sources of each. */
static void on_signals(struct event_source *self, int descriptor, unsigned events, void *context) {
    (void)self;
    (void)events;
    struct event_loop *loop = context;
    struct signalfd_siginfo information;
    while (!loop->stopped && read(descriptor, &information, sizeof information) == sizeof information) {
        int number = (int)information.ssi_signo;
        if (number == SIGCHLD) {
            child_collect(loop);
            return; /* seldom is another signal there: it is reported again */
        }
        for (struct event_source *source = TAILQ_FIRST(&loop->sources); source;
             source = TAILQ_NEXT(source, all))
            if (!source->removed && source->kind == EVENT_KIND_SIGNAL && source->signal.number == number)
                source->signal.callback(source, number, source->context);
    }
}

/* Sets the signalfd to the wanted signals, making it and its source the first time. 0 or a negative errno. */
static int update_signalfd(struct event_loop *loop) {
    int descriptor = signalfd(loop->signals, &loop->wanted, SFD_CLOEXEC | SFD_NONBLOCK);
    if (descriptor < 0)
        return -errno;
    if (loop->signals >= 0)
        return 0;
    loop->signal_source = event_loop_add_descriptor(loop, descriptor, EVENT_READ, on_signals, loop);
    if (!loop->signal_source) {
        int r = -errno;
        close(descriptor);
        return r;
    }
    loop->signal_source->internal = true;
    loop->active--; /* it does not keep the loop running */
    loop->signals = descriptor;
    return 0;
}

/* Blocks signal NUMBER and reads it from the signalfd from now on. 0 or a negative errno. */
int signal_want(struct event_loop *loop, int number) {
    sigset_t one, before;
    sigemptyset(&one);
    if (sigaddset(&one, number) < 0)
        return -EINVAL;
    if (sigismember(&loop->wanted, number) > 0)
        return 0;
    if (sigprocmask(SIG_BLOCK, &one, &before) < 0)
        return -errno;
    sigaddset(&loop->wanted, number);
    int r = update_signalfd(loop);
    if (!sigismember(&before, number)) {
        if (r < 0)
            sigprocmask(SIG_UNBLOCK, &one, NULL);
        else
            sigaddset(&loop->blocked, number);
    }
    if (r < 0)
        sigdelset(&loop->wanted, number);
    return r;
}

/* Stops reading signal NUMBER, and unblocks it if the loop had blocked it; what is pending of it is
 * discarded. */
void signal_unwant(struct event_loop *loop, int number) {
    if (sigismember(&loop->wanted, number) <= 0)
        return;
    sigdelset(&loop->wanted, number);
    (void)update_signalfd(loop);
    if (!sigismember(&loop->blocked, number))
        return;
    sigdelset(&loop->blocked, number);
    /* A second Ctrl-C that came while the first was being dealt with must not kill the process now. */
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, number);
    while (sigtimedwait(&one, NULL, &(struct timespec){0}) > 0)
        continue;
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}

/* Calls CALLBACK for each signal. NULL with errno set; SIGCHLD is for event_loop_add_child() alone. */
struct event_source *event_loop_add_signal(struct event_loop *loop, int signal_number,
                                           event_signal_callback *callback, void *context) {
    if (signal_number == SIGCHLD) {
        errno = EINVAL;
        return NULL;
    }
    struct event_source *source = event_source_new(loop, EVENT_KIND_SIGNAL, context);
    if (!source)
        return NULL;
    source->signal.callback = callback;
    source->signal.number = signal_number;
    loop->active++;
    return event_source_added(source, signal_want(loop, signal_number));
}

void signal_remove(struct event_source *source) {
    struct event_loop *loop = source->loop;
    loop->active--;
    for (struct event_source *other = TAILQ_FIRST(&loop->sources); other; other = TAILQ_NEXT(other, all))
        if (other != source && !other->removed && other->kind == EVENT_KIND_SIGNAL &&
            other->signal.number == source->signal.number)
            return;
    signal_unwant(loop, source->signal.number);
}
