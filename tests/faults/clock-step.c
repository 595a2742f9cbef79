/*
 * A wall clock that is set back: loaded with LD_PRELOAD, from the moment that the file $ASSAY_CLOCK_STEP is
 * there, CLOCK_REALTIME is an hour (or $ASSAY_CLOCK_STEP_S seconds) earlier. Other clocks are as they are.
 */
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const char *trigger;
static long step = 3600;

__attribute__((constructor)) static void begin(void) {
    const char *file = getenv("ASSAY_CLOCK_STEP"), *seconds = getenv("ASSAY_CLOCK_STEP_S");
    if (file)
        trigger = strdup(file);
    if (seconds)
        step = strtol(seconds, NULL, 10);
    unsetenv("ASSAY_CLOCK_STEP");
    unsetenv("LD_PRELOAD"); /* children keep their time: a node's clock is its own */
}

static long stepped(void) {
    return trigger && access(trigger, F_OK) == 0 ? step : 0;
}

int clock_gettime(clockid_t clock, struct timespec *now) {
    static int (*next)(clockid_t, struct timespec *);
    if (!next)
        next = (__typeof__(next))dlsym(RTLD_NEXT, "clock_gettime");
    int r = next(clock, now);
    if (r == 0 && (clock == CLOCK_REALTIME || clock == CLOCK_REALTIME_COARSE))
        now->tv_sec -= stepped();
    return r;
}

time_t time(time_t *ret) {
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    if (ret)
        *ret = now.tv_sec;
    return now.tv_sec;
}

int gettimeofday(struct timeval *restrict now, void *restrict zone) {
    struct timespec exact;
    (void)zone;
    clock_gettime(CLOCK_REALTIME, &exact);
    *now = (struct timeval){exact.tv_sec, exact.tv_nsec / 1000};
    return 0;
}
