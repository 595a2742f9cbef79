/* Timers: a binary heap by deadline. Its room is reserved when a timer is added, so that arming one cannot
 * fail. */
#include "engine/event-loop/event-source.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/list.h"

#include <errno.h>

static bool earlier(const struct event_source *a, const struct event_source *b) {
    if (a->timer.deadline != b->timer.deadline)
        return a->timer.deadline < b->timer.deadline;
    return a->timer.order < b->timer.order;
}

static void place(struct event_loop *loop, size_t slot, struct event_source *source) {
    loop->timers[slot] = source;
    source->timer.slot = slot;
}

/* Puts SOURCE into the heap at its place, up or down from the free SLOT. */
static void sift(struct event_loop *loop, size_t slot, struct event_source *source) {
    while (slot > 0 && earlier(source, loop->timers[(slot - 1) / 2])) {
        place(loop, slot, loop->timers[(slot - 1) / 2]);
        slot = (slot - 1) / 2;
    }
    for (;;) {
        size_t child = 2 * slot + 1;
        if (child >= loop->timer_count)
            break;
        if (child + 1 < loop->timer_count && earlier(loop->timers[child + 1], loop->timers[child]))
            child++;
        if (!earlier(loop->timers[child], source))
            break;
        place(loop, slot, loop->timers[child]);
        slot = child;
    }
    place(loop, slot, source);
}

/* Takes the timer out of the heap, if it is armed. */
static void disarm(struct event_source *source) {
    struct event_loop *loop = source->loop;
    size_t slot = source->timer.slot;
    if (slot == TIMER_DISARMED)
        return;
    source->timer.slot = TIMER_DISARMED;
    struct event_source *last = loop->timers[--loop->timer_count];
    if (last != source)
        sift(loop, slot, last);
}

static void arm(struct event_source *source, int64_t deadline) {
    struct event_loop *loop = source->loop;
    disarm(source);
    source->timer.deadline = deadline;
    source->timer.order = loop->timer_order++;
    source->timer.armed = loop->turn;
    sift(loop, loop->timer_count++, source);
}

/* Adds a timer (event-loop.h). NULL with errno set: no memory, or too many timers. */
struct event_source *event_loop_add_timer(struct event_loop *loop, int64_t delay_ns, int64_t period_ns,
                                          event_timer_callback *callback, void *context) {
    int r = list_reserve(&loop->timers, &loop->timer_capacity, loop->timer_sources + 1, sizeof *loop->timers,
                         TIMER_LIMIT);
    if (r < 0) {
        errno = -r;
        return NULL;
    }
    struct event_source *source = event_source_new(loop, EVENT_KIND_TIMER, context);
    if (!source)
        return NULL;
    loop->timer_sources++;
    source->timer.callback = callback;
    source->timer.slot = TIMER_DISARMED;
    event_source_set_timer(source, delay_ns, period_ns);
    return source;
}

/* Arms the timer for DELAY_NS from now, and then every PERIOD_NS (0: once). A negative delay disarms it. */
void event_source_set_timer(struct event_source *source, int64_t delay_ns, int64_t period_ns) {
    if (source->removed)
        return;
    source->timer.period = period_ns;
    int64_t deadline;
    if (delay_ns < 0)
        disarm(source);
    else
        arm(source,
            __builtin_add_overflow(clock_monotonic_ns(), delay_ns, &deadline) ? INT64_MAX - 1 : deadline);
}

bool event_source_timer_is_armed(const struct event_source *source) {
    return source->timer.slot != TIMER_DISARMED;
}

void timer_remove(struct event_source *source) {
    disarm(source);
    source->loop->timer_sources--;
}

int64_t timer_earliest(const struct event_loop *loop) {
    return loop->timer_count ? loop->timers[0]->timer.deadline : INT64_MAX;
}

/* Calls the timers that are due, and arms periodic ones again. Returns the number of calls. */
unsigned serve_timers(struct event_loop *loop) {
    unsigned served = 0;
    uint64_t turn = loop->turn;
    int64_t now = loop->now;
    while (loop->timer_count && !loop->stopped) {
        struct event_source *source = loop->timers[0];
        /* One that was armed in this turn waits for the next, even when it is due: else a timer of no delay
         * that arms itself would hold the loop. All that were armed before have an earlier deadline or order,
         * so are served. */
        if (source->timer.deadline > now || source->timer.armed >= turn)
            break;
        int64_t period = source->timer.period;
        if (period > 0)
            arm(source, source->timer.deadline + period * ((now - source->timer.deadline) / period + 1));
        else
            disarm(source);
        source->timer.callback(source, source->context);
        served++;
    }
    return served;
}
