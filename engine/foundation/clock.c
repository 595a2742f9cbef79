#include "engine/foundation/clock.h"

#include <ctype.h>
#include <stddef.h>
#include <stdio.h>
#include <time.h>

static const struct clock_source *used; /* NULL: the system's clocks */

void clock_use(const struct clock_source *source) {
    used = source;
}

static int64_t read_clock(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_wall_ns(void) {
    return used ? used->wall_ns(used->context) : read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic_ns(void) {
    return used ? used->monotonic_ns(used->context) : read_clock(CLOCK_MONOTONIC);
}

int64_t clock_wait_ns(int64_t deadline_ns) {
    if (used && used->pass)
        return 0;
    int64_t left = deadline_ns == INT64_MAX ? -1 : deadline_ns - clock_monotonic_ns();
    if (left < 0 && deadline_ns != INT64_MAX)
        left = 0;
    return used && (left < 0 || left > used->look_again_ns) ? used->look_again_ns : left;
}

int64_t clock_system_ns(int64_t deadline_ns) {
    return used ? read_clock(CLOCK_MONOTONIC) + clock_wait_ns(deadline_ns) : deadline_ns;
}

bool clock_waits_again(int64_t deadline_ns) {
    if (!used || clock_monotonic_ns() >= deadline_ns)
        return false;
    if (used->pass)
        used->pass(used->context, deadline_ns);
    return true;
}

/* poll(2) of one item, for at most LIMIT_NS (negative: no limit), by the clock in use, which a test can
 * replace. */
int clock_poll(struct pollfd *item, int64_t limit_ns) {
    int64_t deadline_ns;
    if (limit_ns < 0 || __builtin_add_overflow(clock_monotonic_ns(), limit_ns, &deadline_ns))
        deadline_ns = INT64_MAX;
    int r;
    do {
        int64_t wait_ns = clock_wait_ns(deadline_ns);
        struct timespec span = {.tv_sec = (time_t)(wait_ns / 1000000000),
                                .tv_nsec = (long)(wait_ns % 1000000000)};
        r = ppoll(item, 1, wait_ns < 0 ? NULL : &span, NULL);
    } while (r == 0 && clock_waits_again(deadline_ns));
    return r;
}

void clock_sleep_ns(int64_t duration_ns) {
    (void)clock_poll(&(struct pollfd){.fd = -1}, duration_ns > 0 ? duration_ns : 0);
}

/* The UTC date of WALL_NS, and the nanoseconds of its second. */
static struct tm broken_down(int64_t wall_ns, int *ret_nanoseconds) {
    time_t seconds = (time_t)(wall_ns / 1000000000);
    int64_t rest = wall_ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    struct tm fields;
    gmtime_r(&seconds, &fields);
    *ret_nanoseconds = (int)rest;
    return fields;
}

const char *clock_format(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]) {
    int nanoseconds;
    struct tm fields = broken_down(wall_ns, &nanoseconds);
    size_t length = strftime(buffer, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &fields);
    snprintf(buffer + length, CLOCK_TEXT_SIZE - length, ".%03d+00:00", nanoseconds / 1000000);
    return buffer;
}

const char *clock_format_ns(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]) {
    int nanoseconds;
    struct tm fields = broken_down(wall_ns, &nanoseconds);
    size_t length = strftime(buffer, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &fields);
    snprintf(buffer + length, CLOCK_TEXT_SIZE - length, ".%09dZ", nanoseconds);
    return buffer;
}

const char *clock_format_compact(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]) {
    int nanoseconds;
    struct tm fields = broken_down(wall_ns, &nanoseconds);
    strftime(buffer, CLOCK_TEXT_SIZE, "%Y%m%dT%H%M%SZ", &fields);
    return buffer;
}

/* Parses a time such as 2026-11-20T10:02:03.5+01:00. false: it is no time, or has no zone. */
bool clock_parse(const char *text, int64_t *ret_ns) {
    struct tm parts = {0};
    int64_t fraction_ns = 0, place_ns = INT64_C(1000000000);
    const char *end = strptime(text, "%Y-%m-%dT%H:%M:%S", &parts);
    if (end && *end == '.')
        for (end++; isdigit((unsigned char)*end); end++)
            fraction_ns += (*end - '0') * (place_ns /= 10);
    struct tm zone = {0};
    end = end ? strptime(end, "%z", &zone) : NULL;
    if (!end || *end)
        return false;
    *ret_ns = (timegm(&parts) - zone.tm_gmtoff) * INT64_C(1000000000) + fraction_ns;
    return true;
}
